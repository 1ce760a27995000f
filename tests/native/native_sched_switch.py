# SPDX-License-Identifier: MIT
"""Blocked times from sched:sched_switch, where a perf.data has no SWITCH records. The oracles are perf script, and recordings that
are made here, whose sums are known."""
import json
import os
import re
import struct
import subprocess

from native_report import MS, PID, USER, comm, expect_equal, folded, mapped, record_of, report, save
from native_tools import Fail, Skip

EVENT = 11
SLEEPS, PREEMPTED, RUNS_ON = 1, 0x100, 0
FORM = "<HBBi16siiq16sii"


def switch(time, tid, to, state=SLEEPS, previous=None, chain=(0x401010,)):
    """IDENTIFIER, IP, TID, TIME, CPU, PERIOD, CALLCHAIN, RAW: `tid` leaves and `to` comes. -1: it has ended; then `previous` has its number."""
    previous = tid if previous is None else previous
    raw = struct.pack(FORM, 372, 0, 0, previous, b"leaves", previous, 120, state, b"comes", to, 120)
    raw = struct.pack("<I", len(raw) + 4) + raw + b"\0" * 4
    pid, tid = (0xffffffff, 0xffffffff) if tid < 0 else (PID if tid else 0, tid)
    return record_of(9, 1, struct.pack("<QQIIQQQ", EVENT, chain[0], pid, tid, time * MS, 0, 1)
                     + struct.pack(f"<Q{len(chain) + 1}Q", len(chain) + 1, USER, *chain) + raw)


def perf_data(records, name=b"sched:sched_switch\0", period=1):
    """A perf.data with one event, a tracepoint, and its name."""
    kinds = 1 << 16 | 1 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 8 | 1 << 5 | 1 << 10
    attribute = struct.pack("<IIQQQQQ", 2, 128, 372, period, kinds, 0, 1 << 18) + b"\0" * 80
    data = b"".join(records)
    behind = 104 + len(data)
    names = struct.pack("<II", 1, 128) + attribute + struct.pack("<II", 1, len(name)) + name + struct.pack("<Q", EVENT)
    ids, attributes = struct.pack("<Q", EVENT), attribute
    features = struct.pack("<QQ", behind + 16, len(names))
    at_ids = behind + 16 + len(names)
    attributes += struct.pack("<QQ", at_ids, 8)
    header = b"PERFILE2" + struct.pack("<QQQQQQQQ4Q", 104, 144, at_ids + 8, len(attributes), 104, len(data), 0, 0, 1 << 12, 0, 0, 0)
    return header + data + features + names + ids + attributes


def test_waits_are_from_a_thread_that_leaves_to_one_that_comes(tools):
    tid, other = PID + 1, PID + 2
    path = save(tools, "sched.data", perf_data([
        comm(PID, "dotnet"), comm(tid, "worker"), comm(other, "other"), mapped(0x401000, 0x1000, "/nothing/of/this/name"),
        switch(100, tid, 0), switch(350, -1, tid, previous=other + 1),            # 250 ms, until another thread ends
        switch(400, tid, other, PREEMPTED), switch(430, other, tid),              # 30 ms without a processor
        switch(440, tid, other, RUNS_ON), switch(442, other, tid, SLEEPS),        # 2 ms: it gave the processor away
        switch(450, tid, 0), switch(460, tid, 0), switch(475, 0, tid),            # between the two it came back; 15 ms
        switch(500, tid, 0), switch(900, 0, 0)]))                                 # its end is not there; nor that of `other`
    waits = {frames[1]: count for frames, count in folded(tools, path, "off-cpu").items()}
    expect_equal(waits, {"worker": 265000, "other": 10000}, "microseconds of waits")
    text = report(tools, "off-cpu", "-i", path).stdout.decode()
    for expected in ("32 ms more: threads could run and had no processor, 2 times", "3 waits are left out", "only with -a"):
        if expected not in text:
            raise Fail(f"{expected!r} is not in {text}")
    samples = json.loads(report(tools, "cpu", "--format=json", "-i", path).stdout)["views"][0]
    expect_equal(samples["samples"], 11, "samples, which are counted as before")


def expect_no_times(tools, name, content, says):
    path = save(tools, name, content)
    done = report(tools, "off-cpu", "-i", path)
    if done.returncode != 3 or says not in done.stdout.decode():
        raise Fail(f"{name}: exit code {done.returncode}, {done.stdout.decode()}{done.stderr.decode()}")


def test_why_there_are_no_blocked_times_is_said(tools):
    tid = PID + 1
    begin = [comm(PID, "dotnet"), comm(tid, "worker")]
    leaves = [switch(time, tid, 0) for time in range(100, 200, 10)]
    expect_no_times(tools, "leaves.data", perf_data(begin + leaves), "only with -a")
    expect_no_times(tools, "container.data", perf_data(begin + [switch(100, tid, 0, previous=7), switch(200, 0, tid, previous=9)]), "fields")
    expect_no_times(tools, "some.data", perf_data(begin + [switch(100, tid, 0), switch(200, 0, tid)], period=10), "has no context switches")
    expect_no_times(tools, "other.data", perf_data(begin + [switch(100, tid, 0), switch(200, 0, tid)], name=b"sched:sched_waking\0"), "has no context switches")
    cut = switch(100, tid, 0)
    cut = struct.pack("<IHH", 9, 1, len(cut) - 16) + cut[8:-16]
    expect_no_times(tools, "cut.data", perf_data(begin + [cut]), "has")


PROGRAM = r"""
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof one, &one);
	pid_t busy = fork();
	if (busy == 0) {
		prctl(PR_SET_NAME, "keeps-busy");
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){0});
		for (;;)
			;
	}
	for (int i = 0; i < 100; i++)
		usleep(3000);
	kill(busy, SIGKILL);
	waitpid(busy, NULL, 0);
	return 0;
}
"""


def switches_of(tools, path, name):
    """(time in ns, "OUT", "PREEMPTED" or "IN") of the threads with a name, as perf script prints them, until they end."""
    text = tools.run("perf", "script", "-i", path, "-F", "time,event,trace", "-G", "--ns", "--show-task-events")
    found, ends = [], {}
    for match in re.finditer(r"(\d+)\.(\d{9}): +PERF_RECORD_EXIT\(\d+:(\d+)\)", text):
        ends[match[3]] = int(match[1]) * 10**9 + int(match[2])
    for match in re.finditer(r"(\d+)\.(\d{9}): +sched:sched_switch: prev_comm=(.*) prev_pid=(\d+) .*prev_state=(\S+) ==> next_comm=(.*) next_pid=(\d+) ", text):
        time = int(match[1]) * 10**9 + int(match[2])
        if match[3] == name:
            found.append((time, match[4], "PREEMPTED" if match[5].startswith("R") else "OUT"))
        if match[6] == name:
            found.append((time, match[7], "IN"))
    return [row for row in found if row[0] < ends.get(row[1], row[0] + 1)]


def test_waits_of_the_machine_are_those_of_perf_script(tools):
    """The program never waits while its processor idles: a kernel 6.18 was seen that gave perf no switch away from one processor's
    idle thread (BPF saw them all), for as long as the machine ran."""
    tools.need("gcc", "perf")
    program, path = tools.path("sleeps-often"), tools.path("machine.data")
    tools.run("gcc", "-O1", "-o", program, tools.write("sleeps.c", PROGRAM))
    done = subprocess.run(["perf", "record", "-q", "-g", "-a", "-e", "sched:sched_switch", "-m", "16M", "-o", path, program], capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise Skip(f"perf record: {done.stderr.strip()[:200]}")
    away = {"OUT": [], "PREEMPTED": []}
    left = {}
    for time, tid, what in switches_of(tools, path, "sleeps-often"):
        if what != "IN":
            left[tid] = (time, what)
        elif tid in left:
            since, how = left.pop(tid)
            away[how].append(time - since)
    if len(away["OUT"]) < 90:
        raise Fail(f"perf script shows {len(away['OUT'])} waits")
    view = json.loads(report(tools, "off-cpu", "--thread=^sleeps-often$", "--format=json", "-i", path).stdout)["views"][0]
    expect_equal(view["weight"], sum(away["OUT"]), "nanoseconds of waits")
    if os.cpu_count() > 1:
        tools.run("perf", "record", "-q", "-g", "-C", 0, "-e", "sched:sched_switch", "-o", path, program)
        done = report(tools, "off-cpu", "-i", path)
        if done.returncode != 3 or b"has no context switches" not in done.stdout:
            raise Fail(f"of one processor: {done.returncode}, {done.stdout.decode()}")
    tools.figure(f"{len(away['OUT'])} waits, {sum(away['OUT']) / 1e6:.1f} ms")
