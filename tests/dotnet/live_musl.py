# SPDX-License-Identifier: MIT
"""The runtime as it is built for musl, Alpine's C library: its jitted and precompiled code, named from outside as ever.

The runtime is the real one. What starts it is a program of our own (tests/dotnet/musl), because .NET's hosts need a C++ library for
musl, which Debian does not have; of that its compiler's support library is enough for the runtime itself.
"""
import collections
import json
import os
import shutil
import subprocess

import shapes
from harness import ROOT, Sample, Skip, expect
from event_target import Recording, Target, events_of, events_program
from live_contract import compare_rundown, compare_settled
from live_events import check_counts

SOURCES = os.path.join(ROOT, "tests", "dotnet", "musl")
SHAPE = shapes.Shape("10.0", "musl", ("-r", "linux-musl-x64", "--self-contained", "-p:UseAppHost=true"))


class MuslRuntime:
    """The runtime that Sample starts."""

    def __init__(self, directory, application):
        self.command = [os.path.join(directory, "host"), application]
        self.environment = {"LD_LIBRARY_PATH": directory, "LD_PRELOAD": os.path.join(directory, "compat.so")}


def _compiler_file(name):
    return subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()


def _make(context):
    if not shutil.which("musl-gcc"):
        return None, "musl-gcc is not installed (Debian: musl-tools)"
    published, why = shapes.publish(SHAPE)
    if not published:
        return None, why
    directory = context.directory("musl")
    archive = _compiler_file("libsupc++.a")
    for command in (["-o", "host", os.path.join(SOURCES, "host.c")],
                    ["-shared", "-fPIC", "-o", "compat.so", os.path.join(SOURCES, "compat.c")],
                    ["-shared", "-Wl,-soname,libstdc++.so.6", "-o", "libstdc++.so.6", "-Wl,--whole-archive", archive, "-Wl,--no-whole-archive",
                     "-Wl,-u,_ZSt20__throw_length_errorPKc", "-Wl,-u,_ZSt28__throw_bad_array_new_lengthv", _compiler_file("libstdc++.a")]):
        done = subprocess.run(["musl-gcc", "-O1", *command], cwd=directory, capture_output=True, text=True)
        if done.returncode:
            return None, f"musl-gcc: {done.stderr.strip().splitlines()[:1]}"
    shutil.copy(_compiler_file("libgcc_s.so.1"), directory)
    return MuslRuntime(directory, os.path.join(published.directory, "sample.dll")), None


def laid_out(context, runtime, program):
    """The command that runs a program on the runtime for musl, which looks for assemblies beside the program."""
    host, sample = runtime.command
    directory = context.directory("musl-program")
    for name in os.listdir(os.path.dirname(sample)):
        if not os.path.lexists(os.path.join(directory, name)):
            os.symlink(os.path.join(os.path.dirname(sample), name), os.path.join(directory, name))
    return [host, shutil.copy(program, directory)]


def musl(context):
    return context.once("musl", lambda: _make(context))


def test_musl_runtime_is_named_as_its_own_map_has_it(context):
    runtime = musl(context)
    compare_settled(context, "musl", runtime, Sample.LONGEST_SECONDS, runtime.environment)


def test_musl_runtime_is_named_by_a_rundown(context):
    runtime = musl(context)
    with Sample(runtime, dict(runtime.environment, DOTNET_PerfMapEnabled="3")) as sample:
        compare_rundown(context, "musl", sample, "rundown")


def test_musl_runtime_has_its_precompiled_code_named(context):
    runtime = musl(context)
    with Sample(runtime, runtime.environment, resting=True) as sample:
        report = json.loads(context.mapgen.must("info", sample.pid, "--json").stdout)
        with open(f"/proc/{sample.pid}/maps", encoding="utf-8") as maps:
            files = {line.split()[-1] for line in maps}
    expect(any("musl" in path for path in files) and not any(path.endswith("/libc.so.6") for path in files), "that is not musl")
    expect(report["precompiled_methods"] > 500, "hardly any precompiled method has a name")


def test_musl_runtime_is_recorded_by_frame_pointers(context):
    """musl's own functions have no unwind tables: the caller of each wait is marked, and each stack ends where musl began the thread."""
    runtime = musl(context)
    path = os.path.join(context.scratch, "musl.trace.zip")
    with Sample(runtime, dict(runtime.environment, DOTNET_PerfMapEnabled="0")) as sample:
        done = context.mapgen.run("record", sample.pid, "-o", path, "-d", 3, "-F", 200, "--off-cpu")
        if done.returncode and "perf_event_open" in done.stderr:
            raise Skip(done.stderr.strip())
        process = json.loads(context.mapgen.must("check", "--json", sample.pid).stdout)["process"]
        threads = json.loads(context.mapgen.must("stack", "--json", sample.pid).stdout)["threads"]
    quality = json.loads(context.mapgen.must("check", "--json", "-i", path).stdout)["quality"]
    # A busy machine loses samples of switches; record counts them.
    lost = sum(cause["count"] for cause in quality["cut"] if cause["reason"] == "no stack was recorded")
    kinds, stacks = quality["kinds"], quality["stacks"] - lost
    in_musl = sum(cause["count"] for cause in quality["cut"] if cause["reason"] == "no unwind table" and os.path.basename(cause["image"]) in ("libc.so", "host"))
    context.figure(f"{stacks} stacks, {quality['guessed_stacks']} with guessed frames, {in_musl} end in musl; {kinds}")
    expect(not process["unwind_tables"], "check says that every image has unwind tables")
    expect(all(kinds[kind]["frames"] == kinds[kind]["named"] > 100 for kind in ("jitted", "precompiled")), f"managed frames have no name: {kinds}")
    expect(quality["guessed_stacks"] > 0.1 * stacks, "hardly a frame is marked as guessed")
    expect(sum(cause["count"] for cause in quality["cut"]) + quality["whole_stacks"] == quality["stacks"], f"stacks end early without a reason: {quality}")
    expect(in_musl + quality["whole_stacks"] > 0.98 * stacks, f"stacks end early elsewhere: {quality['cut']}")
    expect(any(frame["guessed"] for thread in threads for frame in thread["frames"]), "stack marks nothing as guessed")
    ends = collections.Counter(thread["end"] for thread in threads)
    expect(ends["no unwind table"] > 0.8 * len(threads), f"the stacks of threads end otherwise: {ends}")


def test_musl_runtime_has_events_with_managed_stacks(context):
    """It has no tracepoints for native ones."""
    runtime = musl(context)
    path = os.path.join(context.scratch, "musl-events.trace.zip")
    with Target(environment=runtime.environment, command=laid_out(context, runtime, events_program())) as target:
        recording = Recording(context, target.pid, path, "--events=gc,alloc,exceptions,contention")
        recording.wait_until_ready()
        first = target.ask("nothing")
        last = target.ask("work 40")
        said = recording.stop()
    expect("with managed stacks" in said and "native ones are not possible" in said, said)
    check_counts(events_of(path), first, last)
    views = {view: json.loads(context.mapgen.must("report", view, "-i", path, "--format=json", "--top=0").stdout)
             for view in ("gc", "alloc", "exceptions", "contention")}
    thrown = {row["type"]: row for row in views["exceptions"]["types"]}
    expect(thrown["OrderException"]["count"] == last.exceptions - first.exceptions, f"{thrown}")
    expect(thrown["OrderException"]["from"].startswith("Events.Find"), f"{thrown}")
    expect(len(views["gc"]["collections"]) == last.gen0 - first.gen0, f"{len(views['gc']['collections'])} collections, {last}")
    expect(any(row["type"] == "System.Byte[]" and "Events.Allocate" in row["from"] for row in views["alloc"]["types"]), f"{views['alloc']['types']}")
    waits = sum(row["waits"] for row in views["contention"]["locks"] if "Events.Reserve" in row["from"])
    expect(waits == last.waits - first.waits, f"{views['contention']['locks']}, {last}")
    context.figure(f"{last.exceptions} exceptions, {last.gen0} collections, {waits} waits: as the program counts")
