# SPDX-License-Identifier: MIT
"""One call that fails, wherever it is: names may be missing then, and it is said why; none is another one, and nothing is said
not to be there that could not be looked at."""
import os
import re
import subprocess

from native_tools import Fail

PRELOAD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "preload", "fail_once.c")
TARGET = """
#include <unistd.h>
__attribute__((noinline)) static int kept(int x) { volatile int v = x; return v * 3; }
int exported(int x) { return kept(x) + (int)getpid(); }
int main(void) { exported(1); write(1, "x", 1); pause(); return 0; }
"""
LARGEST_RUNS = 500
PLACES = 24


class Target:
    def __init__(self, tools):
        program = tools.path("short of something")
        tools.run("gcc", "-O1", "-o", program, tools.write("shortage.c", TARGET))
        self.process = subprocess.Popen([program], stdout=subprocess.PIPE)
        self.process.stdout.read(1)

    def __enter__(self):
        return self.process.pid

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def places(pid):
    """All over the code of every file."""
    found = []
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        for line in maps:
            match = re.match(r"([0-9a-f]+)-([0-9a-f]+) ..x", line)
            if match:
                start, end = int(match[1], 16), int(match[2], 16)
                found += [start, start + 4] + [start + (end - start) * i // PLACES + 16 for i in range(PLACES)]
    return found


class Reader:
    def __init__(self, tools, pid):
        self.library = tools.path("fail_once.so")
        tools.run("gcc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-O1", "-fno-builtin", "-o", self.library, PRELOAD)
        self.command = [tools.program, "resolve", str(pid)]
        self.questions = "".join(f"{place:x}\n" for place in places(pid))
        self.count_file = tools.path("calls")

    def ask(self, kind="", at=0):
        done = subprocess.run(self.command, input=self.questions, capture_output=True, text=True, timeout=60,
                              env=dict(os.environ, LD_PRELOAD=self.library, FAIL=kind, FAIL_AT=str(at), FAIL_COUNT=self.count_file))
        return done.returncode, done.stdout.splitlines(), done.stderr

    def calls(self, kind):
        self.ask(kind)
        with open(self.count_file, encoding="utf-8") as file:
            return int(file.read())


def is_as_good(old, new):
    """The same, another name of the same place (exports alone have fewer), or it is said why there is none."""
    place = re.search(r"\+0x[0-9a-f]+ \(.*\)$", old)
    return old == new or "[not readable" in new or (place and "!0x" not in new and new.endswith(place[0]))


def check_each_failure(tools, kind):
    tools.need("gcc")
    with Target(tools) as pid:
        reader = Reader(tools, pid)
        status, expected, _ = reader.ask()
        if status not in (0, 3) or len(expected) < 2 * PLACES:
            raise Fail(f"resolve alone: {status}, {len(expected)} lines")
        count = reader.calls(kind)
        step = max(1, count // LARGEST_RUNS)
        changed = refused = 0
        for at in range(1, count + 1, step):
            status, lines, said = reader.ask(kind, at)
            if status < 0:
                raise Fail(f"{kind} {at}: signal {-status}")
            if status in (1, 2):
                if not said:
                    raise Fail(f"{kind} {at}: exit status {status} and nothing said")
                refused += 1
                continue
            if len(lines) != len(expected):
                raise Fail(f"{kind} {at}: {len(lines)} answers to {len(expected)} questions, exit status {status}")
            for old, new in zip(expected, lines):
                changed += old != new
                if not is_as_good(old, new):
                    raise Fail(f"{kind} {at} of {count}: {old!r} became {new!r}, exit status {status}, said {said!r}")
        tools.figure(f"{kind}: {count} calls, each {step}. of them failed once: {changed} answers less, {refused} times nothing at all")
        if not changed and not refused:
            raise Fail("no failure was felt")


def test_a_read_that_fails_makes_no_symbol_of_nothing(tools):
    check_each_failure(tools, "read")


def test_a_file_whose_status_cannot_be_had_makes_no_symbol_of_nothing(tools):
    check_each_failure(tools, "status")


def test_want_of_memory_makes_no_symbol_of_nothing(tools):
    check_each_failure(tools, "memory")
