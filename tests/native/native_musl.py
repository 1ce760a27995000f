# SPDX-License-Identifier: MIT
"""Stacks of programs of musl's C library, which has no unwind tables: by frame pointers, marked as guessed. The oracles are the
program's source and perf, whose kernel follows frame pointers."""
import collections
import json
import subprocess

from native_record import record, stacks
from native_tools import Fail
from sampling import sampling

CHAIN = ["inner", "middle", "outer", "work", "main"]
PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#define KEEP __attribute__((noinline, noclone))
volatile unsigned long count;
KEEP static void inner(int rounds) { volatile char room[200]; for (int i = 0; i < rounds; i++) count += room[i % 200] = (char)i; }
KEEP static void middle(int rounds) { inner(rounds); count++; }
KEEP static void outer(int rounds) { middle(rounds); count++; }
KEEP static void wait_here(void) { usleep(700); count++; }
KEEP static void *waiter(void *unused) { for (;;) wait_here(); return unused; }
KEEP static void work(void) { for (int i = 0; i < 300; i++) outer(100000); count++; }
int main(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, waiter, NULL);
	printf("ready\n");
	fflush(stdout);
	for (;;)
		work();
}
"""


class Running:
    """The program while it runs: of musl and without unwind tables of its own, but with frame pointers."""

    def __init__(self, tools, name, *flags, compiler="musl-gcc", tables=False):
        tools.need("musl-gcc", "gcc", "perf")
        path = tools.path(name)
        tools.run(compiler, "-O2", "-pthread", "-fno-omit-frame-pointer", *([] if tables else ["-fno-asynchronous-unwind-tables"]), *flags, "-o", path,
                  tools.write(f"{name}.c", PROGRAM))
        self.process = subprocess.Popen([path], stdout=subprocess.PIPE)
        self.pid = self.process.pid

    def __enter__(self):
        if self.process.stdout.readline() != b"ready\n":
            raise Fail("the program did not start")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def expect_chains(found, what):
    """Nearly all samples in `inner` have all of its callers."""
    have = [chain for chain in found if chain[0] == CHAIN[0]]
    whole = [chain for chain in have if chain[:len(CHAIN)] == CHAIN]
    if len(have) < 20 or len(whole) < 0.97 * len(have):
        bad = collections.Counter(" ".join(chain) for chain in have if chain not in whole).most_common(3)
        raise Fail(f"{what}: {len(whole)} of {len(have)} of {len(found)} chains are as in the source; {bad}")
    return len(whole)


def check_recording(tools, name, *flags):
    data, archive, theirs = (tools.path(name + end) for end in (".data", ".trace.zip", ".perf.data"))
    rate, seconds = sampling(1200, 0.7)
    with Running(tools, name, *flags) as running:
        done = record(tools, running.pid, "-o", data, "-d", seconds, "-F", rate)
        again = record(tools, running.pid, "-o", archive, "-d", seconds, "-F", rate, "--off-cpu")
        tools.run("perf", "record", "-q", "-e", "cpu-clock:u", "--call-graph", "fp", "-F", rate, "-p", running.pid, "-o", theirs, "--", "sleep", seconds)
    if done.returncode or again.returncode:
        raise Fail(f"{done.stderr}{again.stderr}")
    count = expect_chains([chain for chain in stacks(tools, data, "cpu-clock") if chain], "ours")
    expect_chains([chain for chain in stacks(tools, theirs, "cpu-clock") if chain], "perf's")
    quality = json.loads(tools.run(tools.program, "check", "--json", "-i", archive))["quality"]
    if quality["guessed_stacks"] < 0.97 * quality["stacks"] or not quality["cut"]:
        raise Fail(f"frames are not marked as guessed: {quality}")
    # A wait that began before the recording has no stack; few do, since 97 % of all are guessed.
    reasons = {cause["reason"] for cause in quality["cut"]} - {"no stack was recorded"}
    if reasons != {"no unwind table"} or sum(cause["count"] for cause in quality["cut"]) + quality["whole_stacks"] != quality["stacks"]:
        raise Fail(f"stacks end early without a reason: {quality}")
    waits = tools.run(tools.program, "report", "off-cpu", "--format=folded", "-i", archive)
    if ";waiter;" not in waits:
        raise Fail("the thread that waits in musl has no caller outside of it")
    tools.figure(f"{count} chains by frame pointers, {quality['guessed_stacks']} of {quality['stacks']} marked")


def test_programs_of_musl_are_recorded_by_frame_pointers(tools):
    check_recording(tools, "musl-shared")


def test_static_programs_of_musl_are_recorded_by_frame_pointers(tools):
    check_recording(tools, "musl-static", "-static")


def thread_of(tools, running):
    """The thread that calculates; asked again until it is in `inner`, which has set up its frame."""
    for _ in range(100):
        report = json.loads(tools.run(tools.program, "stack", "--json", running.pid))
        thread = next(thread for thread in report["threads"] if thread["tid"] == running.pid)
        names = [frame["name"] for frame in thread["frames"]]
        if names[:len(CHAIN)] == CHAIN:
            return report, thread
    raise Fail(f"its stack is {names}")


def test_stack_marks_what_frame_pointers_gave(tools):
    for name, flags in (("musl-shared", ()), ("musl-static", ("-static",))):
        with Running(tools, name, *flags) as running:
            report, thread = thread_of(tools, running)
            text = tools.run(tools.program, "stack", running.pid)
        if not all(frame["guessed"] for frame in thread["frames"][1:]) or thread["frames"][0]["guessed"]:
            raise Fail(f"{name}: {thread['frames']}")
        if any(thread["whole"] for thread in report["threads"]) or "(the stack ends here: no unwind table)" not in text or "~main" not in text:
            raise Fail(f"{name}: {text}")


def tables(tools, running):
    process = json.loads(tools.run(tools.program, "check", "--json", running.pid))["process"]
    return process["unwind_tables"], tools.run(tools.program, "check", running.pid)


def test_check_says_which_images_have_no_unwind_tables(tools):
    for name, flags, says in (("musl-shared", (), "through musl-shared, libc.so by frame pointers"), ("musl-static", ("-static",), "through musl-static by")):
        with Running(tools, name, *flags) as running:
            there, text = tables(tools, running)
        if there or says not in text:
            raise Fail(f"{name}: {there}, {text}")
    with Running(tools, "glibc", compiler="gcc", tables=True) as running:
        there, text = tables(tools, running)
    if not there or "yes (by unwind tables)" not in text:
        raise Fail(f"glibc: {there}, {text}")
