# SPDX-License-Identifier: MIT
"""One call that fails, wherever it is: names may be missing then, and it is said why; none is another one, and nothing is said
not to be there that could not be looked at."""
import os
import re
import subprocess

from native_tools import Fail

PRELOAD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support", "preload", "fail_once.c")
TARGET = """
#include <unistd.h>
__attribute__((noinline)) static int kept(int x) { volatile int v = x; return v * 3; }
int exported(int x) { return kept(x) + (int)getpid(); }
int main(void) { exported(1); write(1, "x", 1); pause(); return 0; }
"""
LARGEST_RUNS = 200
KINDS = {
    "read": ("read", "pread", "pread64"),
    "status": ("fstat", "fstat64", "fstatat", "fstatat64"),
    "memory": ("malloc", "calloc", "realloc", "reallocarray", "posix_memalign", "aligned_alloc", "strdup", "strndup", "asprintf"),
}
PLACES = 24

INLINING = """
#include <unistd.h>
static inline __attribute__((always_inline)) int inner(int x) { volatile int v = x; return v * 3; }
static inline __attribute__((always_inline)) int middle(int x) { volatile int v = inner(x); return v + 1; }
"""
FUNCTIONS = 200
ASKED = 16
SMALLEST_KB, STEP_KB, LIMITS = 4000, 150, 112
LARGEST_DWARF_RUNS = 150
LOST = re.compile(r"(\d+) of (\d+) answers have no lines or inlined functions: ")


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
        tools.run("gcc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-O1", "-fno-builtin", "-fexceptions", "-static-libgcc", "-o", self.library, PRELOAD)
        self.command = [tools.program, "resolve", str(pid)]
        self.questions = "".join(f"{place:x}\n" for place in places(pid))
        self.log = tools.path("calls")

    def ask(self, place=None):
        if os.path.exists(self.log):
            os.unlink(self.log)
        done = subprocess.run(self.command, input=self.questions, capture_output=True, text=True, timeout=60,
                              env=dict(os.environ, LD_PRELOAD=self.library, FAIL_OBJECT="/dotnet-mapgen", FAIL_LOG=self.log,
                                       **({"FAIL_PLACE": place} if place else {})))
        return done.returncode, done.stdout.splitlines(), done.stderr

    def calls(self, kind):
        """Hashes of the places where functions of this kind are called."""
        self.ask()
        return self.logged(kind)

    def logged(self, kind):
        with open(self.log, encoding="utf-8") as file:
            return [line.split()[1] for line in file if line.split()[0] in KINDS[kind]]


def is_as_good(old, new):
    """The answer is equal, is another name of the same address (exports alone have fewer), or has a reason."""
    place = re.search(r"\+0x[0-9a-f]+ \(.*\)$", old)
    return old == new or "[not readable" in new or (place and "!0x" not in new and new.endswith(place[0]))


def check_each_failure(tools, kind):
    tools.need("gcc")
    with Target(tools) as pid:
        reader = Reader(tools, pid)
        status, expected, _ = reader.ask()
        if status not in (0, 3) or len(expected) < 2 * PLACES:
            raise Fail(f"resolve alone: {status}, {len(expected)} lines")
        calls = reader.calls(kind)
        step = max(1, len(calls) // LARGEST_RUNS)
        changed = refused = 0
        for at in calls[::step]:
            status, lines, said = reader.ask(at)
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
                    raise Fail(f"{kind} {at}: {old!r} became {new!r}, exit status {status}, said {said!r}")
        tools.figure(f"{kind}: {len(calls)} places, each {step}. of them failed once: {changed} answers less, {refused} times nothing at all")
        if not changed and not refused:
            raise Fail("no failure was felt")


def test_a_read_that_fails_makes_no_symbol_of_nothing(tools):
    check_each_failure(tools, "read")


def test_a_file_whose_status_cannot_be_had_makes_no_symbol_of_nothing(tools):
    check_each_failure(tools, "status")


def test_want_of_memory_makes_no_symbol_of_nothing(tools):
    check_each_failure(tools, "memory")


def program_with_lines(tools):
    """Its path, and questions about it."""
    functions = "".join(f"__attribute__((noinline)) int f{i}(int x) {{ return middle(x) + {i}; }}\n" for i in range(FUNCTIONS))
    calls = "".join(f"f{i}(1);" for i in range(FUNCTIONS))
    path = tools.path("inlining")
    tools.run("gcc", "-O1", "-g", "-o", path, tools.write("inlining.c", f"{INLINING}{functions}int main(void) {{ {calls} return 0; }}\n"))
    starts = {}
    for line in tools.run("nm", path).splitlines():
        fields = line.split()
        if re.fullmatch(r"f\d+", fields[-1]):
            starts[fields[-1]] = int(fields[0], 16)
    return path, [f"{path}+{start + 4:#x}" for start in list(starts.values())[:ASKED]]


def without_lines(lines):
    """The names: inlined functions have lines of their own, which are indented."""
    return [re.sub(r"(\(.*?\)).*", r"\1", line) for line in lines if not line.startswith(" ")]


def check_lines(what, whole, done):
    """Is all there, or is it said how much is lost? The number of lost answers; None: it said that there is nothing."""
    said = f"{what}: exit status {done.returncode}, said {done.stderr[-200:]!r}"
    if done.returncode < 0 or done.returncode >= 128:
        raise Fail(f"{what}: ended by a signal, {done.returncode}")
    if done.returncode in (1, 127):
        if not done.stderr and "[" not in done.stdout:
            raise Fail(f"{said}: no reason")
        return None
    lines = done.stdout.splitlines()
    unread = sum("[not readable" in line for line in lines) + sum("[out of memory" in line for line in lines)
    lost = LOST.search(done.stderr)
    if done.returncode == 0 and (lines != whole or lost):
        raise Fail(f"{said}: {len(lines)} lines of {len(whole)}, as if that were all")
    if done.returncode == 3 and not lost and not unread:
        raise Fail(f"{said}: not said what is lost")
    if not unread and without_lines(lines) != without_lines(whole):
        raise Fail(f"{said}: other names")
    if lost:
        without = sum(not re.search(r"\) \S+:", line) for line in lines if not line.startswith(" "))
        if int(lost[2]) != ASKED or int(lost[1]) < without - unread:
            raise Fail(f"{said}: {without} of {ASKED} answers have no line")
    return int(lost[1]) if lost else 0


def ask_for_lines(tools, questions, environment=None, limit_kb=None):
    command = [tools.program, "resolve", "--inlines", *questions]
    if limit_kb:
        command = ["sh", "-c", f'ulimit -v {limit_kb} && exec "$@"', "sh", *command]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=dict(os.environ, **(environment or {})))


def whole_answers(tools, questions):
    whole = ask_for_lines(tools, questions)
    lines = whole.stdout.splitlines()
    if whole.returncode or sum("inlining.c:" in line for line in lines) != 3 * ASKED:
        raise Fail(f"with all memory: {whole.returncode}, {whole.stdout[-300:]!r}")
    return lines


def test_lines_for_which_the_memory_is_limited_are_had_or_said_to_be_lost(tools):
    tools.need("gcc")
    _, questions = program_with_lines(tools)
    whole = whole_answers(tools, questions)
    counts = {"lost": 0, "whole": 0, "nothing": 0}
    for number in range(LIMITS):
        limit_kb = SMALLEST_KB + STEP_KB * number
        lost = check_lines(f"{limit_kb} kB", whole, ask_for_lines(tools, questions, limit_kb=limit_kb))
        counts["nothing" if lost is None else "lost" if lost else "whole"] += 1
    tools.figure(f"{LIMITS} limits of memory: " + ", ".join(f"{count} {what}" for what, count in counts.items()))
    if not counts["lost"] or not counts["whole"]:
        raise Fail(f"no limit was felt, or all: {counts}")


def test_lines_whose_reading_gets_no_memory_once_are_had_or_said_to_be_lost(tools):
    """Each call of libdw and libelf, some of which end the process then."""
    tools.need("gcc")
    reader = Reader(tools, os.getpid())
    _, questions = program_with_lines(tools)
    whole = whole_answers(tools, questions)
    count = felt = 0
    for name in ("/libdw.so.1", "/libelf.so.1"):
        environment = {"LD_PRELOAD": reader.library, "FAIL_OBJECT": name, "FAIL_LOG": reader.log}
        ask_for_lines(tools, questions, environment)
        if not os.path.exists(reader.log):
            raise Fail(f"no call of {name}")
        calls = reader.logged("memory")
        os.unlink(reader.log)
        count += len(calls)
        for place in calls:
            lost = check_lines(f"{name} {place}", whole, ask_for_lines(tools, questions, {**environment, "FAIL_PLACE": place}))
            felt += bool(lost)
    tools.figure(f"{count} allocations of libdw and libelf, {felt} of which lost lines when they failed")
    if not felt:
        raise Fail("no failure was felt")
