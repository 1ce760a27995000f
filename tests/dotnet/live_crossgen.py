# SPDX-License-Identifier: MIT
"""Our relative maps against those of a real crossgen and a real crossgen2: the scripts of their own beside this file."""
import os
import shutil
import subprocess

import crossgen2_maps
import crossgen_v1
from harness import ROOT, Runtime, Sample, Skip, expect


def test_relative_maps_equal_those_of_crossgen(context):
    script = os.path.join(ROOT, "tests", "dotnet", "check-crossgen.sh")
    if not os.path.exists(script):
        raise Skip("there is no comparison with crossgen yet")
    if not shutil.which("dotnet"):
        raise Skip("no .NET SDK to fetch the runtime pack with")
    done = subprocess.run([script], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env=dict(os.environ, BUILD=context.build))
    lines = done.stdout.strip().splitlines()
    for line in lines:
        if line.startswith("skipped "):
            raise Skip(line.split(": ", 1)[-1])
    for line in lines[-3:]:
        context.figure(line)
    expect(done.returncode == 0, (lines or done.stderr.strip().splitlines() or ["no output"])[-1])


def test_maps_of_packages_equal_those_of_crossgen(context):
    """NuGet packages that crossgen itself has compiled."""
    crossgen = crossgen_v1.Crossgen(context.scratch)
    images, maps, ours = (context.directory(f"crossgen-{name}") for name in ("images", "maps", "ours"))
    refused = {}
    for path in crossgen_v1.package_files():
        why = crossgen.compile(path, images)
        if why:
            refused[os.path.basename(path)] = why
            continue
        code = crossgen.make_map(os.path.join(images, os.path.basename(path)), maps)
        expect(code == 0, f"crossgen ended with {code} for {path}")
    context.mapgen.must("generate", images, "-o", ours)
    rows = equal = 0
    for name in sorted(os.listdir(maps)):
        counted, same, difference = crossgen_v1.compare(os.path.join(maps, name), os.path.join(ours, name))
        rows, equal = rows + counted, equal + same
        expect(difference is None, f"{name}: {difference}")
    context.figure(f"{len(os.listdir(maps))} maps, {rows} rows, {equal} equal" +
                   "".join(f"; {name} does not compile: {why}" for name, why in refused.items()))
    expect(len(os.listdir(maps)) >= 2 and equal == rows, f"{equal} of {rows} rows in {os.listdir(maps)}")


def test_r2rmaps_equal_those_of_crossgen2(context):
    lines, failures = crossgen2_maps.check_all(context, quick=True, say=False)
    for line in lines:
        context.figure(line)
    expect(not failures, failures[0] if failures else "")


def compile_sample(compiler, context, directory, options):
    """The sample precompiled by crossgen2 with a map beside it; the path of the map."""
    sample = context.sdk().sample
    shutil.copytree(os.path.dirname(sample), directory)
    shutil.copytree(crossgen2_maps.compiled(compiler, crossgen2_maps.Build("sample", options), [sample]), directory, dirs_exist_ok=True)
    return os.path.join(directory, "sample.ni.r2rmap")


def merged(context, pid, maps):
    """Lines of a merge with the maps of a directory, and what it said."""
    out = os.path.join(context.scratch, "merged")
    done = context.mapgen.must("merge", "--output", out, "--jit=none", "--maps", maps, pid)
    with open(out, encoding="utf-8", errors="surrogateescape") as file:
        return file.read().splitlines(), done.stderr


def test_map_of_crossgen2_is_used_for_its_own_image_only(context):
    """The same IL compiled twice: MVID and signature of the two maps are equal, their rows are not."""
    compiler = crossgen2_maps.Compiler("10")
    directory = os.path.join(context.scratch, "crossgen2")
    own = compile_sample(compiler, context, os.path.join(directory, "own"), ())
    other = compile_sample(compiler, context, os.path.join(directory, "other"), ("--Od",))
    with open(own, encoding="utf-8") as file:
        rows = file.read().splitlines()
    with open(other, encoding="utf-8") as file:
        other_rows = file.read().splitlines()
    expect(rows[:5] == other_rows[:5] and rows != other_rows, "the two compilations are not what this test is about")
    runtime = context.sdk()
    program = Runtime(runtime.dotnet, own.removesuffix(".ni.r2rmap") + ".dll", runtime.framework, "")
    # The dialect distinguishes its names from those of the tables: they have no assembly.
    main = next(row.split(" ", 2)[2] for row in rows if "::Main(" in row)
    with Sample(program, resting=True) as sample:
        lines, said = merged(context, sample.pid, os.path.dirname(own))
        expect("not used" not in said, said)
        expect(any(line.endswith(f" {main}[PreJIT]") for line in lines), f"no line of the map: {main}")
        expect(not any(line.split(" ", 2)[2].startswith(("0", "1")) for line in lines), "a header row became a line")
        lines, said = merged(context, sample.pid, os.path.dirname(other))
        expect("another compilation" in said, f"the map of another compilation is used: {said}")
        expect(not any(f" {main}[PreJIT]" in line for line in lines), "a name of the other map")
        expect(any("[sample] Sample.Program::Main(" in line for line in lines), "the method has no name any more")
        forged = os.path.join(directory, "forged")
        os.mkdir(forged)
        with open(os.path.join(forged, os.path.basename(own)), "w", encoding="utf-8") as file:
            file.write("\n".join(["FFFFFFFF 00 " + "A5" * 16, *rows[1:]]) + "\n")
        lines, said = merged(context, sample.pid, forged)
        signature = rows[0].split(" ")[2].lower()
        expect("a5" * 16 in said and signature in said, f"the refusal does not say both signatures: {said}")


def test_perfview_reads_our_r2rmaps(context):
    """Its own reader, over maps of shipped images and of one that names no signature."""
    oracle = context.oracle()
    runtime = os.path.join(os.path.dirname(os.path.realpath(shutil.which("dotnet"))), "shared", "Microsoft.NETCore.App")
    framework = os.path.join(runtime, sorted(os.listdir(runtime))[-1])
    own = os.path.join(ROOT, "fixtures", "recorded", "opt", "sample", "sample.dll")
    images = [os.path.join(framework, name + ".dll") for name in ("System.Private.CoreLib", "System.Linq")] + [own]
    out = context.directory("perfview")
    context.mapgen.must("generate", "--format=r2rmap", "-o", out, *images)
    read = 0
    for name in sorted(os.listdir(out)):
        with open(os.path.join(out, name), encoding="utf-8") as file:
            lines = [line.rstrip("\n").split(" ", 2) for line in file]
        header, rows = lines[:5], lines[5:]
        rows = [row for i, row in enumerate(rows) if not i or rows[i - 1][0] != row[0]]
        last_bytes = [f"{int(rva, 16) + int(size, 16) - 1:x}" for rva, size, _ in rows]
        done = subprocess.run(["dotnet", oracle, "r2rmap", os.path.join(out, name)], input="\n".join(last_bytes) + "\n",
                              capture_output=True, text=True)
        expect(done.returncode == 0, f"PerfView's reader refuses {name}: {done.stderr.strip().splitlines()[:1]}")
        answers = done.stdout.splitlines()
        expect(answers[0] == f"{header[0][2].lower()} 1 Linux X64 Default", f"{name}: the header is read as {answers[0]}")
        wrong = [(row, answer) for row, answer in zip(rows, answers[1:]) if answer != f"{row[0]} {row[2]}"]
        expect(not wrong and len(answers) == len(rows) + 1, f"{name}: {len(wrong)} names differ, first {wrong[:1]}")
        read += len(rows)
    context.figure(f"{len(os.listdir(out))} maps, {read} methods")
    expect(len(os.listdir(out)) == 3 and read > 40000, f"{os.listdir(out)}: {read} methods")
