# SPDX-License-Identifier: MIT
"""report on a nettrace file of version 6 from the recorder of dotnet-trace collect-linux; TraceEvent reads the same file.

No runtime writes this version. dotnet-trace itself wants user_events of the kernel first; its recorder samples without them.
"""
import collections
import json
import os
import platform
import subprocess
import sys

import crossgen2_maps
from event_target import Target
from harness import ROOT, Skip, expect

PACKAGE = ("dotnet-trace", "10.0.750501")
LIBRARY = os.path.join("tools", "net8.0", "any", "runtimes", "linux-x64", "native", "librecordtrace.so")
PROGRAM = os.path.join(ROOT, "tests", "dotnet", "record_trace.py")
SPIN_MS = 1000


def library():
    if platform.machine() != "x86_64":
        raise Skip("the recorder is for x86-64")
    why = crossgen2_maps.fetch([PACKAGE])
    if why:
        raise Skip(why)
    return os.path.join(crossgen2_maps.pack(*PACKAGE), LIBRARY)


def record(path):
    with Target(environment={"DOTNET_PerfMapEnabled": "1"}) as target:
        # The recorder reads the names of methods that are compiled when it starts.
        target.ask(f"spin {SPIN_MS // 10}")
        words = ["--on-cpu", "--off-cpu", "--format", "nettrace", "--log-mode", "disabled", "--out", path, "--pid", str(target.pid)]
        with subprocess.Popen([sys.executable, PROGRAM, library(), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as recorder:
            try:
                if recorder.stdout.readline() != "started\n":
                    raise Skip(f"the recorder does not start: {recorder.stderr.read()[-200:]}")
                # A loop in the runtime and calls of the kernel: the recorder has names for the latter only.
                target.ask(f"spin {SPIN_MS}")
                target.ask("threads 400")
                recorder.communicate("stop\n", timeout=100)
            finally:
                recorder.kill()
        return target.pid


def by_provider(counts):
    sums = collections.Counter()
    for provider, count in counts:
        sums[provider] += count
    return dict(sums)


def test_a_nettrace_file_of_version_6_has_the_events_that_traceevent_finds_and_names(context):
    path = os.path.join(context.scratch, "v6.nettrace")
    pid = record(path)
    with open(path, "rb") as file:
        expect(file.read(16) == b"Nettrace" + bytes([0, 0, 0, 0, 6, 0, 0, 0]), "the file is not of version 6")
    done = subprocess.run(["dotnet", context.oracle(), "events", path], capture_output=True, text=True, timeout=100)
    expect(done.returncode == 0, f"TraceEvent: {done.stderr.strip()}")
    kinds = json.loads(done.stdout)["kinds"]
    theirs = by_provider((name.rsplit(" ", 1)[0], row["count"]) for name, row in kinds.items())
    events = json.loads(context.mapgen.must("report", "events", "-i", path, "--format=json", "--top=0").stdout)
    ours = by_provider((row["provider"], row["count"]) for row in events["kinds"])
    expect(ours == theirs, f"events {ours}, and not {theirs}")
    losses = events["event_losses"]
    expect(not losses["unknown_kinds"] and not losses["missing_stacks"] and not losses["data_end_early"], f"{losses}")

    check_names(context, path, pid, sum(row["count"] for row in events["kinds"] if row["event"] == "cpu"))


def check_names(context, path, pid, samples):
    """How deep its stacks are, and which names the file has, is the recorder's affair; it reads perf maps when it begins."""
    listed = {name: json.loads(context.mapgen.must("report", "events", "-i", path, f"--event=/{name}$", "--format=json").stdout)["events"]
              for name in ("ProcessMapping", "ProcessSymbol")}
    symbols = {json.loads(row["fields"].split(" Name=", 1)[1]) for row in listed["ProcessSymbol"]}
    expect(any('/libcoreclr.so"' in row["fields"] for row in listed["ProcessMapping"]), "no mapping has the name of libcoreclr.so")
    cpu = json.loads(context.mapgen.must("report", "cpu", "-i", path, "--format=json", "--top=0").stdout)
    view = cpu["views"][0]
    expect(cpu["pid"] == pid and view["samples"] == samples > 10, f"{samples} events, {view['samples']} samples")
    named = [row["full_name"] for row in view["rows"] if row["named"] and row["kind"] in ("kernel", "native", "runtime")]
    strange = [name for name in named if name not in symbols]
    expect(named and not strange, f"{len(named)} names; not in the file: {strange}")
    expect(any(row["image"].endswith("/libcoreclr.so") for row in view["rows"]), "no frame is in libcoreclr.so")
    managed = any("Events::Spin" in name for name in symbols)
    expect(not managed or any(row["name"] == "Events.Spin" for row in view["rows"]), "Events.Spin has no name")
    context.figure(f"{samples} samples, {len(named)} native names, Events.Spin {'named' if managed else 'not in the file'}")
