# SPDX-License-Identifier: MIT
"""dotnet-mapgen stack; the oracles are eu-stack and what the program's source says."""
import json
import os
import re
import signal
import subprocess

from native_tools import Fail
from waiting import wait_until

# Each thread waits in another call of libc, behind two functions of its own; built without frame pointers.
PROGRAM = r"""
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
#define KEEP __attribute__((noinline, noclone))
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static pthread_barrier_t begun;
static int pipes[2];
volatile unsigned long count;
KEEP static void in_condition(void) { pthread_mutex_lock(&mutex); for (;;) pthread_cond_wait(&condition, &mutex); }
KEEP static void in_semaphore(void) { sem_wait(&semaphore); count++; }
KEEP static void in_read(void) { char byte; if (read(pipes[0], &byte, 1)) count++; }
KEEP static void in_poll(void) { poll(NULL, 0, -1); count++; }
KEEP static void in_sleep(void) { sleep(10000); count++; }
static void (*const ways[])(void) = { in_condition, in_semaphore, in_read, in_poll, in_sleep, in_sleep, in_sleep };
KEEP static void call(int way) { char room[200 * (way + 1)]; room[way] = (char)way; ways[way](); count += room[way]; }
static void *run(void *number)
{
	prctl(PR_SET_NAME, (long)number == 3 ? "a\033[31m;b" : "worker");
	pthread_barrier_wait(&begun);
	call((int)(long)number);
	return NULL;
}
int main(void)
{
	pthread_t thread;
	if (pipe(pipes))
		return 1;
	pthread_barrier_init(&begun, NULL, 8);
	for (long i = 0; i < 7; i++)
		pthread_create(&thread, NULL, run, (void *)i);
	pthread_barrier_wait(&begun);
	usleep(100000);
	printf("%d\n", getpid());
	fflush(stdout);
	pause();
}
"""


# futex, read, poll and clock_nanosleep of x86-64.
PAUSE, WAITS = "34", {"202", "0", "7", "230"}


class Waiting:
    """The program above, while it waits; `words` run it."""

    def __init__(self, tools, *words):
        tools.need("gcc")
        path = tools.path("waiting")
        tools.run("gcc", "-O2", "-fomit-frame-pointer", "-pthread", "-o", path, tools.write("waiting.c", PROGRAM))
        self.process = subprocess.Popen([*words, path], stdout=subprocess.PIPE)
        self.pid = 0

    def __enter__(self):
        self.pid = int(self.process.stdout.readline() or 0)
        if not self.pid:
            raise Fail("the program did not start")
        def all_wait():
            calls = self.calls()
            return calls.pop(self.pid, None) == PAUSE and len(calls) == 7 and set(calls.values()) <= WAITS
        wait_until(all_wait, lambda: f"its threads do not wait: {self.calls()}")
        return self

    def calls(self):
        """Number of the system call in which each thread is."""
        found = {}
        for tid in os.listdir(f"/proc/{self.pid}/task"):
            with open(f"/proc/{self.pid}/task/{tid}/syscall", encoding="ascii") as file:
                found[int(tid)] = file.read().split()[0]
        return found

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGKILL)
        self.process.communicate()


def bare(name):
    """Without a version and the spelling of libc's own names, of which each tool prefers another one."""
    return re.sub(r"^_*(GI___|libc_)?", "", name.split("@")[0])


def ours_of(report):
    return {thread["tid"]: [bare(frame["name"]) for frame in thread["frames"]] for thread in report["threads"]}


def theirs_of(text):
    """Functions of each thread that eu-stack prints, innermost first."""
    found = {}
    for line in text.splitlines():
        head = re.match(r"TID (\d+):", line)
        frame = re.match(r"#\d+\s+0x[0-9a-f]+\s+(\S.*)", line)
        if head:
            frames = found[int(head[1])] = []
        elif frame:
            frames.append(bare(frame[1].strip()))
        elif line.startswith("#"):
            frames.append("")
    return found


def same_function(ours, theirs):
    """eu-stack has no name for a function of a stripped file, where we have its start."""
    return ours == theirs or (not theirs and ("!0x" in ours or ours))


def test_stack_has_the_frames_of_eu_stack(tools):
    tools.need("eu-stack")
    with Waiting(tools) as program:
        report = json.loads(tools.run(tools.program, "stack", "--json", program.pid))
        theirs = theirs_of(tools.run("eu-stack", "-p", str(program.pid)))
    ours = ours_of(report)
    if set(ours) != set(theirs) or len(ours) != 8:
        raise Fail(f"threads {sorted(ours)}, eu-stack has {sorted(theirs)}")
    for tid, frames in theirs.items():
        names = ours[tid]
        if len(names) != len(frames) or not all(map(same_function, names, frames)):
            raise Fail(f"thread {tid}: {names}, eu-stack has {frames}")
    if not all(thread["whole"] for thread in report["threads"]):
        raise Fail("a stack is not whole")
    tools.figure(f"{sum(map(len, theirs.values()))} frames of {len(theirs)} threads are those of eu-stack")


def test_stack_shows_equal_stacks_once(tools):
    with Waiting(tools) as program:
        text = tools.run(tools.program, "stack", program.pid)
    first, *rest = text.splitlines()
    heads = [line for line in rest if not line.startswith(" ")]
    if not re.match(rf"waiting \(PID {program.pid}\): 8 threads in 6 groups, each thread held for at most \d+\.\d\d ms", first):
        raise Fail(f"the first line is {first}")
    if heads[0] != "3 threads  worker  sleeping" or len(heads) != 6:
        raise Fail(f"groups: {heads}")
    if "\033" in text or not any("a?[31m;b" in head for head in heads):
        raise Fail(f"the name of a thread: {heads}")


def test_stack_of_a_core_file_is_that_of_the_process(tools):
    tools.need("gdb")
    with Waiting(tools) as program:
        live = json.loads(tools.run(tools.program, "stack", "--json", program.pid))
        tools.run("gdb", "-p", str(program.pid), "-batch", "-nx", "-ex", f"generate-core-file {tools.path('waiting.core')}")
    core = json.loads(tools.run(tools.program, "stack", "--json", f"--core={tools.path('waiting.core')}"))
    if ours_of(core) != ours_of(live) or len(core["threads"]) != 8:
        raise Fail(f"{ours_of(core)} of the core file, {ours_of(live)} of the process")


def refused(tools, pid, word, *words):
    """`stack` prints one line with the word and nothing else."""
    done = subprocess.run([*words, tools.program, "stack", str(pid)], capture_output=True, text=True, check=False)
    if done.returncode != 1 or word not in done.stderr or len(done.stderr.splitlines()) != 1 or done.stdout:
        raise Fail(f"{word}: {done}")


def test_stack_says_why_it_shows_nothing(tools):
    tools.need("strace", "setpriv")
    with Waiting(tools) as program:
        refused(tools, program.pid, str(program.pid), "setpriv", "--reuid=65534", "--clear-groups")
    refused(tools, program.pid, "there is none")
    with Waiting(tools, "strace", "-f", "-q", "-o", "/dev/null") as program:
        refused(tools, program.pid, "tracer")
