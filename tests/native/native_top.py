# SPDX-License-Identifier: MIT
"""dotnet-mapgen top; the oracle is the program, which says where it spends its time. One of its functions has a name that is not ASCII."""
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios

from native_tools import Fail, Skip

# About three quarters of its CPU time in `mжch`, one quarter in `less`; both below `work`. It leaves most of a processor to others.
PROGRAM = r"""
#include <stdio.h>
#include <unistd.h>
#define KEEP __attribute__((noinline, noclone))
volatile unsigned long count;
KEEP static void mжch(void) { for (int i = 0; i < 300000; i++) count += i; }
KEEP static void less(void) { for (int i = 0; i < 100000; i++) count += i; }
KEEP static void work(void) { mжch(); less(); count++; }
int main(void)
{
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		work();
		usleep(2000);
	}
}
"""


class Burning:
    def __init__(self, tools):
        tools.need("gcc")
        path = tools.path("burning")
        tools.run("gcc", "-O1", "-fomit-frame-pointer", "-o", path, tools.write("burning.c", PROGRAM))
        self.process = subprocess.Popen([path], stdout=subprocess.PIPE)
        self.process.stdout.readline()
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def top(tools, *words):
    done = subprocess.run([tools.program, "top", *map(str, words)], capture_output=True, text=True, check=False, timeout=60)
    if done.returncode == 1 and "perf_event_open" in done.stderr:
        raise Skip(f"no events: {done.stderr.strip()}")
    return done


def shares_of(text, pid):
    """Total shares of work, mжch and less in a picture."""
    rows = {line.split()[-1]: line.split() for line in text.splitlines()[2:]}
    if not text.startswith(f"burning (PID {pid})  CPU ") or not {"work", "mжch", "less"} <= rows.keys():
        raise Fail(text)
    return tuple(float(rows[name][0]) for name in ("work", "mжch", "less"))


def test_top_shows_where_the_time_goes(tools):
    """A picture of a process that gets little of a busy machine has few samples: one of several must have the true shares."""
    seen = []
    with Burning(tools) as program:
        for _ in range(6):
            seen.append(shares_of(top(tools, program.pid, "--batch", "-n", 1, "-F", 997, "--no-kernel").stdout, program.pid))
            total, much, less = seen[-1]
            if total >= 95 and 60 < much < 90 and 10 < less < 40:
                return
    raise Fail(f"shares of work, much and less: {seen}")


def test_top_ends_with_the_process(tools):
    with Burning(tools) as program:
        running = subprocess.Popen([tools.program, "top", str(program.pid), "--batch"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        first = running.stdout.readline()
        program.process.kill()
        # These also return the text that readline() has buffered.
        rest, said = running.stdout.read(), running.stderr.read()
        running.wait(timeout=60)
    if "perf_event_open" in said:
        raise Skip(f"no events: {said.strip()}")
    if running.returncode or "burning" not in first or not rest:
        raise Fail(f"{running.returncode}: {first}{rest}{said}")


def test_top_fits_a_narrow_terminal(tools):
    with Burning(tools) as program:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 8, 20, 0, 0))
        running = subprocess.Popen([tools.program, "top", str(program.pid)], stdin=theirs, stdout=theirs, stderr=subprocess.PIPE)
        os.close(theirs)
        seen = b""
        for _ in range(1000):
            if seen.count(b"\033[H") > 1:
                break
            try:
                seen += os.read(ours, 4096)
            except OSError:
                break
        running.send_signal(signal.SIGINT)
        said = running.stderr.read().decode()
        running.wait(timeout=60)
        os.close(ours)
    if "perf_event_open" in said:
        raise Skip(f"no events: {said.strip()}")
    lines = re.sub(r"\033\[[HJ]", "", seen.decode()).split("\r\n")
    if running.returncode or max(map(len, lines)) > 20 or " mж" not in seen.decode() or seen.count(b"\033[H") < 2:
        raise Fail(f"{running.returncode}, {lines[:20]}, {said}")


def test_top_ends_with_a_signal(tools):
    """Whenever it comes: right after a picture, while the next one is made, or before the first."""
    with Burning(tools) as program:
        for pictures in (0, 1, 2, 2):
            running = subprocess.Popen([tools.program, "top", str(program.pid), "--batch"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            heads = 0
            while heads < pictures:
                line = running.stdout.readline()
                if not line:
                    raise Skip(f"no events: {running.stderr.read()}")
                heads += line.startswith("burning (PID")
            running.send_signal(signal.SIGINT)
            try:
                running.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                running.kill()
                raise Fail(f"it goes on after a signal behind picture {pictures}") from None
            if pictures and running.returncode:
                raise Fail(f"exit code {running.returncode}")
