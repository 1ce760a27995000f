# SPDX-License-Identifier: MIT
"""Every method that the runtime's own rundown lists is in our map: start, size, type and name."""
import bisect
import os
import re

import shapes
from harness import Runtime, Sample, Skip, build_project, built, expect, read_map

MADE_STUB = re.compile(r"(?:0x)?([0-9a-f]+) [0-9a-f]+ stub<\d+> Generate(?:Dispatch|Resolve|Lookup|VTableCall)Stub")


def has_name(ours, wanted):
    """The rundown of .NET 3.1 has no signatures of dynamic methods: there is the name alone."""
    return f" {wanted}(" in ours or ours == wanted or ours.startswith(wanted + "[")


def missing_methods(context, pid, kinds, rundown=None):
    """Compares our map with the rundown, one from before: ({kind: (found, all)}, a line for each method that differs)."""
    output = os.path.join(context.scratch, "rundown.map")
    rundown = [row for row in rundown or context.rundown(pid) if row[0] in kinds]
    context.mapgen.must("merge", pid, "-o", output)
    symbols = {start: (size, name) for start, size, name in read_map(output)}
    bad = set()
    for row in rundown:
        _, start, size, owner, method = row
        ours = symbols.get(start)
        if ours is None or ours[0] != size or not has_name(ours[1], f"{owner}::{method}"):
            bad.add(row)
    if bad:
        # The runtime collects dynamic methods without callers, as those of its own reflection.
        gone = bad - set(context.rundown(pid))
        bad -= gone
        rundown = [row for row in rundown if row not in gone]
    counts = {}
    for row in rundown:
        good, total = counts.get(row[0], (0, 0))
        counts[row[0]] = good + (row not in bad), total + 1
    return counts, [f"{kind} {start:x} {size:x} {owner}::{method}, ours {symbols.get(start)}"
                    for kind, start, size, owner, method in sorted(bad)]


def compare(context, environment, kinds):
    context.oracle()
    with Sample(context.sdk(), environment, resting=True) as sample:
        counts, missing = missing_methods(context, sample.pid, kinds)
    for kind, (good, total) in sorted(counts.items()):
        context.figure(f"{kind}: {good} of {total} methods of the rundown are in the map "
                       f"({100 * good / total:.2f} %, goal 100 %)")
    for line in missing[:5]:
        context.figure("differs: " + line)
    for kind in kinds:
        expect(counts.get(kind, (0, 0))[1] > 0, f"the rundown has no methods of kind {kind}")
    expect(not missing, f"{len(missing)} methods differ, first: {missing[:1]}")


def test_map_has_every_method_of_the_rundown(context):
    compare(context, {"DOTNET_PerfMapEnabled": "1"}, ("jit", "r2r", "dynamic"))


def test_map_has_every_precompiled_method_when_the_runtime_writes_no_map(context):
    compare(context, {"DOTNET_PerfMapEnabled": "0", "DOTNET_TieredCompilation": "0"}, ("r2r",))


def namesake_runtime(context):
    """The SDK's runtime with a program that loads another assembly of its own name from memory."""
    def make():
        artifacts = built("namesake")
        why = build_project("fixtures/src/namesake", artifacts)
        if why:
            return None, f"the program does not build: {why}"
        sdk = context.sdk()
        return Runtime(sdk.dotnet, os.path.join(artifacts, "bin", "namesake", "release", "same.dll"), sdk.framework, "namesake"), None
    return context.once("namesake", make)


def test_an_assembly_from_memory_is_not_taken_for_a_file_of_its_name(context):
    """The oracle is the runtime's own map. By rundown the one without a file has no signatures, by contract it has its own."""
    for way in ("rundown", "memory", "auto"):
        output = os.path.join(context.scratch, f"namesake.{way}")
        with Sample(namesake_runtime(context), {"DOTNET_PerfMapEnabled": "1"}, argument="") as sample:
            context.mapgen.must("merge", sample.pid, f"--jit={way}", "-o", output)
            ours, own = ({start: name for start, _, name in read_map(path) if "Same.Calc::Price" in name and "[precode]" not in name}
                         for path in (output, sample.map_path))
        expect(any("Price(int32)" in name for name in own.values()) and any("Price(string)" in name for name in own.values()), f"own map: {own}")
        expect(ours.keys() == own.keys(), f"{way}: {ours}, the runtime has {own}")
        wrong = [name for start, name in ours.items() if name != own[start] and "(" in name]
        expect(not wrong, f"{way}: {wrong}, the runtime has {own}")


def test_stubs_have_their_names_where_the_runtime_cannot_be_asked(context):
    """They are read from its memory; the oracle is the runtime's own map, which is not read for this."""
    published, why = shapes.publish(next(shape for shape in shapes.SHAPES if shape.title == "8.0 self-contained"))
    if published is None:
        raise Skip(f"cannot be built: {why}")
    output = os.path.join(context.scratch, "unasked.map")
    with Sample(published, {"DOTNET_EnableDiagnostics": "0", "DOTNET_PerfMapEnabled": "3"}, resting=True) as sample:
        with open(f"/tmp/perf-{sample.pid}.map", encoding="utf-8", errors="replace") as lines:
            made = [int(match[1], 16) for match in map(MADE_STUB.match, lines) if match]
        context.mapgen.must("merge", sample.pid, "--jit=rundown", "-o", output, codes=(0, 3))
    ours = sorted((start, start + size) for start, size, name in read_map(output) if name == "[runtime stub]")
    starts = [start for start, _ in ours]
    missing = []
    for start in made:
        at = bisect.bisect_right(starts, start) - 1
        if at < 0 or start >= ours[at][1]:
            missing.append(start)
    expect(len(made) > 50, f"the runtime tells of {len(made)} stubs of virtual calls")
    expect(not missing, f"{len(missing)} of {len(made)} stubs have no name, first {missing[:1]}")
    context.figure(f"stubs of virtual calls with a name: {len(made)} of {len(made)}, of a runtime that cannot be asked")
