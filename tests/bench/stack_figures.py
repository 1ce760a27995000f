# SPDX-License-Identifier: MIT
"""How long `stack` holds a process, beside gdb and eu-stack.

One line a figure, as bench.sh describes. The process says itself for how long it did not run: a real-time thread
reads the clock every 20 us, and prints the longest gap when it is asked. The tools take turns; each figure is the median.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import tempfile

RUNS = 11
THREADS = 40
PROGRAM = r"""
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static atomic_uint_fast64_t longest_ns;
static uint64_t now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000ull + t.tv_nsec; }
/* Real-time, so that only a stop keeps it from running; it sleeps between two looks. */
static void *watch_clock(void *unused)
{
	const struct sched_param high = { .sched_priority = 50 };
	const struct timespec pause = { .tv_nsec = 20000 };
	pthread_setschedparam(pthread_self(), SCHED_FIFO, &high);
	for (uint64_t before = now(), after;; before = after) {
		nanosleep(&pause, NULL);
		after = now();
		if (after - before > atomic_load(&longest_ns))
			atomic_store(&longest_ns, after - before);
	}
	return unused;
}
static int deep(int depth) { volatile int room[50]; room[depth] = depth; if (!depth) pause(); return deep(depth - 1) + room[depth]; }
static void *wait_deep(void *unused) { deep(30); return unused; }
int main(void)
{
	pthread_t thread;
	char line[16];
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread, NULL, wait_deep, NULL);
	pthread_create(&thread, NULL, watch_clock, NULL);
	for (;;) {
		printf("%lu\n", (unsigned long)atomic_exchange(&longest_ns, 0));
		fflush(stdout);
		if (!fgets(line, sizeof(line), stdin))
			return 0;
	}
}
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    program = os.path.join(parser.parse_args().build, "dotnet-mapgen")
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "held")
        subprocess.run(["gcc", "-O1", f"-DTHREADS={THREADS}", "-pthread", "-x", "c", "-", "-o", path], input=PROGRAM.encode(), check=True)
        target = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        pid = str(target.pid)
        tools = {"ours": [program, "stack", pid], "idle": ["true"]}
        if shutil.which("eu-stack"):
            tools["eu-stack"] = ["eu-stack", "-p", pid]
        if shutil.which("gdb"):
            tools["gdb"] = ["gdb", "-p", pid, "-batch", "-nx", "-ex", "thread apply all bt"]
        held = {name: [] for name in tools}
        target.stdout.readline()
        for _ in range(RUNS):
            for name, command in tools.items():
                for is_read in (False, True):
                    target.stdin.write("\n")
                    target.stdin.flush()
                    longest_ms = int(target.stdout.readline()) / 1e6
                    if is_read:
                        held[name].append(longest_ms)
                    else:
                        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        target.kill()
    ours, floor = (statistics.median(held[name]) for name in ("ours", "idle"))
    print(f"a process held by nothing, the longest gap of a thread: {floor:.2f} ms")
    for name in ("eu-stack", "gdb"):
        if name not in held:
            continue
        peer = statistics.median(held[name])
        print(f"a thread held by stack, beside {name} ours={ours:.2f}ms peer={peer:.2f}ms ratio={peer / ours:.1f} goal=10 "
              f"{'ok' if peer >= 10 * ours else 'short'}", flush=True)


if __name__ == "__main__":
    main()
