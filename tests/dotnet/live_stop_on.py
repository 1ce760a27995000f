# SPDX-License-Identifier: MIT
"""record --stop-on: a long collection and a starving thread pool end a recording, and are in it. For an exception: live_events.py."""
import json
import os

from event_target import Recording, Target
from harness import build_environment, expect
from live_event_views import eventful, running


def read(context, view, path):
    return json.loads(context.mapgen.must("report", view, "-i", path, "--format=json").stdout)


def test_a_recording_stops_after_a_collection_that_is_longer_than_was_said(context):
    path = os.path.join(context.scratch, "pause.trace.zip")
    with Target() as target:
        recording = Recording(context, target.pid, path, "--events=exceptions", "--stop-on=gc-pause>0.001ms", "--ring=5")
        recording.wait_until_ready()
        target.ask("work 40")
        said = recording.wait()
    expect("stopped by --stop-on=gc-pause>0.001ms" in said, said)
    report = read(context, "gc", path)
    expect(report["collections"] and report["longest_pause_ms"] > 0.001, f"{report}")


def test_a_recording_stops_when_the_thread_pool_starves(context):
    path = os.path.join(context.scratch, "starvation.trace.zip")
    environment = dict(build_environment(), DOTNET_ROLL_FORWARD="LatestMajor")
    environment.pop("DOTNET_ROOT", None)
    with running(eventful("10.0"), env=environment) as program:
        expect(program.stdout.readline() == "ready\n", "the program has not started")
        recording = Recording(context, program.pid, path, "--events=gc", "--stop-on=pool-starvation", "--ring=60")
        recording.wait_until_ready()
        program.stdin.write("starve\n")
        program.stdin.flush()
        said = recording.wait()
    expect("stopped by --stop-on=pool-starvation" in said, said)
    report = read(context, "threadpool", path)
    expect(report["starvations"] > 0 and report["changes"][-1]["reason"] == "starvation", f"{report}")
