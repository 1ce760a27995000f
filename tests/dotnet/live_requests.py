# SPDX-License-Identifier: MIT
"""Requests of ASP.NET and HttpClient, and a Meter: a real Kestrel counts what it has answered."""
import json
import os
import shutil
import subprocess

from event_target import Recording
from harness import Skip, build_environment, build_project, built, expect, remove_leftovers

REQUESTS, METER_MS = 200, 2500
# Without the flow of activities in tasks no EventSource has any.
EVENTS = ("System.Threading.Tasks.TplEventSource:80:4,Microsoft.AspNetCore.Hosting,System.Net.Http,"
          "System.Diagnostics.Metrics:FFFFFFFF:4:SessionId=1;Metrics=Contoso.Shop;RefreshInterval=1")


def record(context, path):
    """How many requests the server has answered."""
    artifacts = built("kestrel")
    why = build_project("tests/dotnet/kestrel", artifacts)
    if why:
        raise Skip(f"the server does not build: {why}")
    command = [shutil.which("dotnet"), os.path.join(artifacts, "bin", "kestrel", "release", "kestrel.dll")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=build_environment()) as server:
        try:
            expect(server.stdout.readline() == "ready\n", "the server has not started")
            recording = Recording(context, server.pid, path, f"--events={EVENTS}")
            recording.wait_until_ready()
            server.stdin.write(f"{REQUESTS} {METER_MS}\n")
            server.stdin.flush()
            answered = int(server.stdout.readline())
            recording.stop()
        finally:
            server.kill()
            server.communicate()
            remove_leftovers(server.pid)
    return answered


def test_requests_of_a_real_server_begin_and_end_in_different_threads(context):
    path = os.path.join(context.scratch, "kestrel.trace.zip")
    answered = record(context, path)
    events = json.loads(context.mapgen.must("report", "events", "-i", path, "--format=json").stdout)
    counts = {(row["activity"], row["request"]): row["count"] for row in events["activities"]}
    expect(counts.get(("Microsoft.AspNetCore.Hosting/Request", "GET /order")) == answered == REQUESTS, f"{answered} requests: {counts}")
    expect(counts.get(("System.Net.Http/Request", "127.0.0.1/order")) == REQUESTS, f"requests of the client: {counts}")
    expect(not events["event_losses"]["unfinished"], f"{events['event_losses']}")
    few = context.mapgen.must("report", "events", "-i", path, "--top=1").stdout
    expect("more activities; --top=0" in few and few.count("Request ") == 1, f"--top=1 has other activities: {few}")
    counters = json.loads(context.mapgen.must("report", "counters", "-i", path, "--format=json").stdout)
    orders = [row for row in counters["counters"] if row["counter"] == "orders"]
    expect(len(orders) == 1 and orders[0]["provider"] == "Contoso.Shop" and round(orders[0]["mean"] * orders[0]["count"]) == REQUESTS, f"{counters}")
