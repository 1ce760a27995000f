# SPDX-License-Identifier: MIT
"""report counters on a program that publishes known values by every kind of EventCounter and instrument."""
import json
import os
import subprocess

from event_target import Recording
from harness import Skip, build_environment, build_project, built, expect, remove_leftovers
from live_event_views import dotnet_of

VALUES = 100
COUNTERS = "Contoso-Counters:1:5:EventCounterIntervalSec=0.5"
METERS = 'System.Diagnostics.Metrics:2:4:SessionId=1;RefreshInterval=0.5;Metrics="Contoso.Other,Contoso.Meters"'


def report(context, version, events):
    """The rows by counter, and all of the report."""
    path = os.path.join(context.scratch, f"counters-{version}.trace.zip")
    artifacts = built("meters")
    why = build_project("tests/dotnet/meters", artifacts)
    if why:
        raise Skip(f"the program does not build: {why}")
    variables = dict(build_environment(), DOTNET_ROLL_FORWARD="LatestMajor")
    variables.pop("DOTNET_ROOT", None)
    command = [dotnet_of(version), os.path.join(artifacts, "bin", "meters", "release", "meters.dll")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=variables) as program:
        try:
            expect(program.stdout.readline() == "ready\n", "the program has not started")
            recording = Recording(context, program.pid, path, f"--events={events}", "--stacks=none")
            recording.wait_until_ready()
            program.stdin.write(f"{VALUES}\n")
            program.stdin.flush()
            expect(program.stdout.readline() == "\n", "the program has ended")
            recording.stop()
        finally:
            program.kill()
            program.communicate()
            remove_leftovers(program.pid)
    read = json.loads(context.mapgen.must("report", "counters", "-i", path, "--format=json", "--top=0").stdout)
    return {row["counter"]: row for row in read["counters"]}, read, path


def total(row):
    return round(row["mean"] * row["count"])


def check(context, version):
    rows, read, path = report(context, version, f"{COUNTERS},{METERS}")
    totals = {"orders[route=/a]": 2 * VALUES, "orders[route=/b]": VALUES, "seen": 5 * VALUES, "latency count": VALUES,
              "latency sum": VALUES * (VALUES + 1) // 2, "bytes": 10 * VALUES, "requests": 3 * VALUES, "time": VALUES + 99}
    expect({name: total(rows[name]) for name in totals} == totals, f"totals {rows}, and not {totals}")
    last = {"open": VALUES * 3 // 4 - VALUES // 4 * 2, "depth": 3, "temperature[room=a]": 21.5, "temperature[room=b]": 19, "queue": 7}
    expect({name: rows[name]["last"] for name in last} == last, f"last values {rows}, and not {last}")
    expect((rows["time"]["min"], rows["time"]["max"], rows["time"]["count"]) == (1, 100, VALUES), f"{rows['time']}")
    expect(rows["ratio"]["last"] is None and rows["ratio"]["count"] == 0, f"what is no number: {rows['ratio']}")
    # The values lie in at most two intervals, and quantiles in buckets that are about a percent wide.
    for name, quantile in (("latency p50", 50), ("latency p95", 95), ("latency p99", 99)):
        expect(0.4 * quantile < rows[name]["min"] <= rows[name]["max"] < 101 and rows[name]["unit"] == "ms", f"{name}: {rows[name]}")
    expect(len(rows) == read["count"] == 17, f"{read['count']} counters: {list(rows)}")
    folded = context.mapgen.must("report", "counters", "-i", path, "--format=folded", codes=(3,))
    expect(not folded.stdout and "has no stacks" in folded.stderr, f"{folded}")
    text = context.mapgen.must("report", "counters", "-i", path).stdout
    expect("latency p99" in text and "ratio" in text, text)


def test_counters_have_the_values_of_the_program_10(context):
    check(context, "10.0")


def test_counters_have_the_values_of_the_program_8(context):
    check(context, "8.0")


def test_time_series_beyond_the_limit_of_meters_are_counted(context):
    rows, read, path = report(context, "10.0", f"{COUNTERS},{METERS};MaxTimeSeries=3;MaxHistograms=0")
    expect(not any("latency" in name for name in rows), f"{list(rows)}")
    expect(read["event_losses"]["meter_limits"] == 2, f"{read['event_losses']}")
    text = context.mapgen.must("report", "counters", "-i", path).stdout
    expect("2 limits of Meters were reached" in text, text)
