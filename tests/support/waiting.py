# SPDX-License-Identifier: MIT
"""How tests wait: until something is seen, with a deadline.

A test that sleeps for a time and hopes fails on a busy machine and wastes time on an idle one. So tests wait for a
line, a file, or the state that /proc shows. check-style allows sleeps here and in the rows of tests/meta/sleeps.txt.
"""
import os
import time

from runner import Fail

PAUSE_SECONDS = 0.02


def is_in_time(holds, seconds, pause=PAUSE_SECONDS):
    """Whether `holds` becomes true within this time."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


def wait_until(holds, why, seconds=60, pause=PAUSE_SECONDS):
    """Waits until `holds` is true. The test fails with `why` (text, or a function that makes it) when it never is."""
    if not is_in_time(holds, seconds, pause):
        raise Fail(f"not within {seconds} s: {why() if callable(why) else why}")


def cpu_seconds(pid):
    """CPU time of a process, user and system."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_until_warm(process, seconds):
    """Waits until a process has used so much CPU time, so that most of its code is compiled."""
    def is_warm():
        if process.poll() is not None:
            raise Fail("the process ended too early")
        return cpu_seconds(process.pid) >= seconds
    wait_until(is_warm, lambda: f"the process has run {cpu_seconds(process.pid)} s of {seconds} s", 60 * seconds + 60, 0.1)


def sleeps(pid):
    """How often the first thread of a process has waited for something."""
    with open(f"/proc/{pid}/task/{pid}/status", encoding="utf-8", errors="replace") as file:
        return int(file.read().split("\nvoluntary_ctxt_switches:")[1].split()[0])


def wait_for_turns(process, count):
    """Waits until a program that looks, then sleeps for its interval, has looked again so often."""
    first = sleeps(process.pid)

    def has_looked():
        if process.poll() is not None:
            raise Fail("the program ended too early")
        return sleeps(process.pid) >= first + count
    wait_until(has_looked, "the program does not look again")


def is_pending(pid, number):
    """Whether a signal was sent to a process and has not arrived yet."""
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
        masks = [int(line.split()[1], 16) for line in file if line.startswith(("SigPnd", "ShdPnd"))]
    return any(mask >> (number - 1) & 1 for mask in masks)
