# SPDX-License-Identifier: MIT
"""The program of tests/dotnet/events, its recordings, and what independent readers find in those."""
import bisect
import collections
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import zipfile

import live_record
from harness import ROOT, Skip, build_environment, build_project, built, expect, need, remove_leftovers

sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
import nettrace_events  # noqa: E402
from waiting import is_in_time  # noqa: E402

# Tracepoints with probes, and the events that pass them.
PROBES = {"GCStart_V2": 1, "GCTriggered": 35, "AllocationSampled": 303, "GCAllocationTick_V4": 10, "ContentionStart_V2": 81,
          "ExceptionThrown_V1": 80, "ThreadPoolWorkerThreadAdjustmentAdjustment": 55}

Counted = collections.namedtuple("Counted", "gen0 gen1 gen2 exceptions waits")
Sample = collections.namedtuple("Sample", "comm tid time event frames")


def events_program():
    artifacts = built("events")
    why = build_project("tests/dotnet/events", artifacts)
    if why:
        raise Skip(f"the program does not build: {why}")
    return os.path.join(artifacts, "bin", "events", "release", "events.dll")


class Target:
    """The program; ask() has it do something and returns what it counts since it started."""

    def __init__(self, version="10.0", environment=None, before=(), command=None):
        words = [*before, *(command or [live_record.dotnet_of(version), events_program()])]
        variables = dict(build_environment(), DOTNET_ROLL_FORWARD="LatestMajor", **(environment or {}))
        variables.pop("DOTNET_ROOT", None)
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=variables)
        self.pid = self.process.pid
        if not self.process.stdout.readline():
            self.process.kill()
            raise Skip(f"the program of {version} does not start")

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def answer(self):
        return Counted(*map(int, self.process.stdout.readline().split()))

    def ask(self, line):
        self.tell(line)
        return self.answer()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()
        remove_leftovers(self.pid)


def thread_names(pid):
    """[] for a process that has ended."""
    names = []
    with contextlib.suppress(OSError):
        for tid in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{tid}/comm", encoding="utf-8") as file:
                names.append(file.read().strip())
    return names


class Recording:
    """record in the background; start() returns when the session is there, stop() what it has printed."""

    def __init__(self, context, pid, path, *words, before=()):
        self.path = path
        # One line of progress would be on a terminal; the file of the session is the sign.
        self.process = subprocess.Popen([*before, context.mapgen.program, "record", str(pid), "-o", path, *words],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.pid = pid

    def wait_until_ready(self):
        """Until the runtime has a connection with us, which one of our threads receives, and (from .NET 6 on) a thread that sends:
        it answers before it has begun to take events."""
        def is_ready():
            return "events" in thread_names(self.process.pid) and thread_names(self.pid).count(".NET EventPipe") != 1
        is_in_time(lambda: self.process.poll() is not None or is_ready(), 120, 0.005)

    def stop(self, expected=0):
        self.process.send_signal(signal.SIGINT)
        return self.wait(expected)

    def wait(self, expected=0):
        out, errors = self.process.communicate(timeout=120)
        if self.process.returncode == 1 and "perf_event_open" in errors:
            raise Skip(errors.strip())
        expect(self.process.returncode == expected, f"record: {self.process.returncode} {out} {errors}")
        return out + errors


def about(path):
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("recording.json"))


def events_of(path, member="events.nettrace"):
    with zipfile.ZipFile(path) as archive:
        return nettrace_events.read(archive.read(member))


def _script(path, scratch, fields):
    need("perf")
    with zipfile.ZipFile(path) as archive:
        archive.extract("perf.data", scratch)
    done = subprocess.run(["perf", "script", "--ns", "-i", os.path.join(scratch, "perf.data"), "-F", fields],
                          capture_output=True, text=True, errors="replace", check=False)
    expect(done.returncode == 0, f"perf script ends with {done.returncode}: {done.stderr[-500:]}")
    return done.stdout


def cpu_times_of(path, scratch):
    """Times of CPU samples, in nanoseconds."""
    return [int(seconds) * 10**9 + int(nanoseconds)
            for seconds, nanoseconds in re.findall(r"(\d+)\.(\d{9}):\s+cpu-clock", _script(path, scratch, "time,event"))]


def samples_of(path, scratch):
    """Native stacks of events, as stock perf reads them: frames innermost first."""
    found = []
    for sample in _script(path, scratch, "comm,tid,time,event,ip,sym").split("\n\n"):
        lines = sample.strip("\n").split("\n")
        head = re.match(r"\s*(.+?)\s+(\d+)\s+(\d+)\.(\d+):\s+dotnet:(\w+):", lines[0])
        if head:
            frames = [line.split(None, 1)[1].split("+0x")[0].split("@")[0] for line in lines[1:]]
            found.append(Sample(head[1], int(head[2]), int(head[3]) * 10**9 + int(head[4]), head[5], frames))
    return found


def match(events, samples):
    """(events that have a sample, events that could have one, samples without an event); a sample belongs to the event before it."""
    times = collections.defaultdict(list)
    wanted = {PROBES[sample.event] for sample in samples}
    for event in events:
        if event.provider.endswith("DotNETRuntime") and event.id in wanted:
            times[event.thread, event.id].append(event.time)
    for list_of_times in times.values():
        list_of_times.sort()
    taken, strangers = set(), 0
    for sample in sorted(samples, key=lambda sample: sample.time):
        key = sample.tid, PROBES[sample.event]
        place = bisect.bisect_right(times.get(key, []), sample.time) - 1
        if place < 0 or (key, place) in taken:
            strangers += 1
        taken.add((key, place))
    return len(taken) - strangers, sum(map(len, times.values())), strangers
