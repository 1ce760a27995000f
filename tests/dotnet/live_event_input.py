# SPDX-License-Identifier: MIT
"""record --events on processes that answer wrongly, late or not at all: what is lost is said, memory is bounded, the target goes on."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys

import shapes
from event_target import Recording, Target, about
from harness import ROOT, Sample, Skip, expect
from live_containers import in_namespaces

LYING = os.path.join(ROOT, "tests", "dotnet", "lying_runtime.py")
FLOOD_EVENTS = 5000000


class LyingRuntime:
    def __init__(self, *words):
        dotnet = shutil.which("dotnet")
        if not dotnet:
            raise Skip("dotnet is not installed")
        listed = subprocess.run([dotnet, "--list-runtimes"], capture_output=True, text=True).stdout
        name, version, directory = next(line.split(" ", 2) for line in listed.splitlines() if line.startswith("Microsoft.NETCore.App "))
        library = os.path.join(directory.strip("[]"), version, "libcoreclr.so")
        self.process = subprocess.Popen([sys.executable, LYING, library, *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        expect(self.process.stdout.readline() == "ready\n", f"{name} {version}: the process has not started")
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with open(f"/proc/{self.pid}/stat", encoding="utf-8") as file:
            start = file.read().rsplit(")", 1)[1].split()[19]
        self.process.kill()
        self.process.communicate()
        os.unlink(f"/tmp/dotnet-diagnostic-{self.pid}-{start}-socket")


def peak_kb(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return int(re.search(r"VmHWM:\s+(\d+)", file.read())[1])


def record_lie(context, *words, expected, seconds="1"):
    """(what record has said, the recording)"""
    path = os.path.join(context.scratch, f"{words[0]}.trace.zip")
    with LyingRuntime(*words) as runtime:
        said = Recording(context, runtime.pid, path, "--events=gc", "--stacks=managed", "-d", seconds).wait(expected=expected)
        expect(runtime.process.poll() is None, "the process has ended")
    return said, path


def test_a_socket_whose_reply_is_shorter_than_it_says_is_one_line(context):
    said, path = record_lie(context, "header", expected=3)
    lines = [line for line in said.splitlines() if "no events of process" in line]
    expect(len(lines) == 1 and not about(path)["event_streams"], said)


def check_damaged_stream(context, lie):
    said, path = record_lie(context, lie, expected=0)
    expect("they end early: " in said, said)
    expect(about(path)["event_streams"][0]["ended"], "the recording does not say that the stream ends early")
    done = context.mapgen.must("report", "events", "-i", path, codes=(3,))
    expect("The stream of events is not whole" in done.stdout, done.stdout + done.stderr)


def test_a_block_that_is_larger_than_the_stream_ends_the_events(context):
    check_damaged_stream(context, "block")


def test_an_event_that_is_larger_than_its_block_ends_the_events(context):
    check_damaged_stream(context, "event")


def test_a_million_events_a_second_are_read_in_bounded_memory(context):
    path = os.path.join(context.scratch, "million.trace.zip")
    with LyingRuntime("flood", FLOOD_EVENTS) as runtime:
        recording = Recording(context, runtime.pid, path, "--events=gc", "--stacks=managed")
        recording.wait_until_ready()
        # Events from before the recording are not counted.
        print("go", file=runtime.process.stdin, flush=True)
        expect(runtime.process.stdout.readline() == "sent\n", "the events were not sent")
        memory = peak_kb(recording.process.pid)
        recording.stop()
    report = json.loads(context.mapgen.must("report", "events", "-i", path, "--format=json").stdout)
    count, dropped = report["count"], report["event_losses"]["dropped"]
    expect(count + dropped == FLOOD_EVENTS, f"{count} events and {dropped} dropped, of {FLOOD_EVENTS}")
    expect(memory < 256 << 10, f"{memory} KiB")
    context.figure(f"{count} of {FLOOD_EVENTS} events, {memory >> 10} MiB")


def test_a_runtime_that_is_stopped_from_the_start_is_one_line(context):
    path = os.path.join(context.scratch, "stopped-before.trace.zip")
    with Target() as target:
        os.kill(target.pid, signal.SIGSTOP)
        os.waitpid(target.pid, os.WUNTRACED)
        said = Recording(context, target.pid, path, "--events=exceptions", "-d", "0.2").wait(expected=3)
        os.kill(target.pid, signal.SIGCONT)
        lines = [line for line in said.splitlines() if "no events of process" in line]
        expect(len(lines) == 1 and "is stopped (SIGSTOP)" in lines[0], said)
        expect(target.ask("throw 5").exceptions == 5, "the target does not go on")


def child_of(pid):
    """The program of a process in a PID namespace: unshare waits for it."""
    while True:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
            children = file.read().split()
        if not children:
            return pid
        pid = int(children[0])


def test_events_of_a_pid_namespace_have_their_native_stacks(context):
    path = os.path.join(context.scratch, "namespace.trace.zip")
    with Target(before=in_namespaces()) as target:
        pid = child_of(target.pid)
        recording = Recording(context, pid, path, "--events=exceptions,contention")
        recording.wait_until_ready()
        last = target.ask("throw 40")
        target.ask("work 4")
        said = recording.stop()
    expect("with native stacks" in said, said)
    lock = json.loads(context.mapgen.must("report", "contention", "-i", path, "--format=json").stdout)["locks"][0]
    expect(lock["last_owner_tid"] == pid, f"the lock of thread {pid} belongs to {lock['last_owner_tid']}")
    report = json.loads(context.mapgen.must("report", "exceptions", "-i", path, "--format=json").stdout)
    losses = report["event_losses"]
    expect(report["count"] == last.exceptions + 16 == 56, f"{report['count']} of {last}")
    # Threads that lived too short for their ids to be read have no stacks, which is counted.
    expect(losses["matched_stacks"] >= 40 and not losses["missing_stacks"], f"{losses}")


def test_a_program_compiled_ahead_without_events_is_one_line(context):
    published, why = shapes.publish(next(shape for shape in shapes.SHAPES if shape.title == "10.0 nativeaot with .dbg"))
    if published is None:
        raise Skip(f"cannot be built: {why}")
    path = os.path.join(context.scratch, "ahead.trace.zip")
    with Sample(published, {}) as sample:
        said = Recording(context, sample.pid, path, "--events", "-d", "0.2").wait(expected=3)
    lines = [line for line in said.splitlines() if "no events of process" in line]
    expect(len(lines) == 1 and "EventSourceSupport" in lines[0], said)
