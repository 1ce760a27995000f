# SPDX-License-Identifier: MIT
"""Stacks of code that was compiled a moment before: they may come before the names of the code."""
import json
import os

from event_target import Recording
from harness import build_environment, expect
from live_event_views import eventful, running


def check(context, version):
    path = os.path.join(context.scratch, f"new-{version}.trace.zip")
    environment = dict(build_environment(), DOTNET_ROLL_FORWARD="LatestMajor")
    environment.pop("DOTNET_ROOT", None)
    with running(eventful(version), env=environment) as program:
        expect(program.stdout.readline() == "ready\n", "the program has not started")
        recording = Recording(context, program.pid, path, "--events=exceptions,contention,gc")
        recording.wait_until_ready()
        # Nothing of what it does now was called before.
        program.stdin.write("go\n")
        program.stdin.flush()
        own = json.loads(program.stdout.readline())
        said = recording.stop()
    expect("with native stacks" in said, said)
    text = context.mapgen.must("report", "events", "-i", path, "--event=/(Exception|Contention|GC)", "--format=json").stdout
    events = json.loads(text)["events"]
    thrown = [event["stack"] for event in events if event["event"] == "ExceptionThrown"]
    expect(len(thrown) == sum(own["exceptions"].values()), f"{len(thrown)} exceptions, the program has counted {own['exceptions']}")
    unknown = [event for event in events if "[unknown]" in event["stack"]]
    expect(not unknown, f"{len(unknown)} of {len(events)} stacks have frames without a name, first: {unknown[:1]}")


def test_code_that_is_new_has_names_8(context):
    check(context, "8.0")


def test_code_that_is_new_has_names_9(context):
    check(context, "9.0")
