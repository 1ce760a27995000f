# SPDX-License-Identifier: MIT
"""Every image of the frameworks of .NET 2.1 to 11, of ASP.NET and of the SDK: no method that is not understood.

Read as files, by the program that `make bench` measures with: what the
library counts of a signature that it cannot decode, and of a runtime function
that no method owns, is not in any list of symbols.
"""
import os
import re
import shutil
import subprocess

import crossgen2_maps
import shapes
from harness import ROOT, Skip, expect, npm_program

RUNTIME_PACK = "Microsoft.NETCore.App.Runtime.linux-x64"
PACKS = [("3.1", "3.1.3"), ("8.0", "8.0.31"), ("9.0", "9.0.22"), ("11.0", "11.0.0")]


def sdk_root():
    dotnet = shutil.which("dotnet")
    return os.path.dirname(os.path.realpath(dotnet)) if dotnet else None


def frameworks():
    """(title, directories) of what can be had, and what cannot."""
    found, missing = [], []
    program, why = npm_program("dotnet-2.1-linux-x64")
    if program:
        found.append(("2.1", [os.path.join(os.path.dirname(program), "shared", "Microsoft.NETCore.App")]))
    else:
        missing.append(f"2.1: {why}")
    for title, version in PACKS:
        why = crossgen2_maps.fetch([(RUNTIME_PACK, version)])
        if why:
            missing.append(f"{title}: {why}")
        else:
            found.append((title, [os.path.join(crossgen2_maps.pack(RUNTIME_PACK, version), "runtimes", "linux-x64")]))
    root = sdk_root()
    for title, below in (("10", "shared/Microsoft.NETCore.App"), ("ASP.NET 10", "shared/Microsoft.AspNetCore.App"), ("SDK 10", "sdk")):
        if root and os.path.isdir(os.path.join(root, below)):
            found.append((title, [os.path.join(root, below)]))
        else:
            missing.append(f"{title}: not installed")
    return found, missing


def count(context, directories):
    program = os.path.join(ROOT, context.build, "bench", "bench_r2r")
    if not os.path.exists(program):
        raise Skip("bench_r2r is not built")
    done = subprocess.run([program, *directories], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return {name: float(value) for name, value in re.findall(r"(\w+)=([0-9.]+)", done.stdout)}, done.stderr


def test_every_method_of_every_framework_is_understood(context):
    found, missing = frameworks()
    images = methods = 0
    for title, directories in found:
        figures, said = count(context, directories)
        context.figure(f"{title:10} {figures['images']:4.0f} images, {figures['methods']:6.0f} methods, "
                       f"{figures['undecodable']:.0f} undecodable, {figures['ownerless']:.0f} without owner, "
                       f"{figures['unnamed']:.0f} without name, thunks of {figures['thunk_images']:.0f} images in "
                       f"{figures['thunk_lines']:.0f} lines, {figures['debug_infos']:.0f} maps to IL with {figures['map_entries']:.0f} entries")
        for fact in ("undecodable", "ownerless", "unnamed", "failed", "bad_debug_infos"):
            expect(figures[fact] == 0, f"{title}: {figures[fact]:.0f} {fact}: {said.splitlines()[:1]}")
        expect(figures["thunk_lines"] == figures["thunk_images"], f"{title}: an image with several lines of thunks")
        expect(figures["fragile"] == (1 if title == "2.1" else 0), f"{title}: {figures['fragile']:.0f} fragile images")
        if title == "2.1":
            expect(figures["images"] == 154, f"2.1 has 154 ReadyToRun images, read {figures['images']:.0f}")
        images += figures["images"]
        methods += figures["methods"]
    context.figure(f"together {images:.0f} images, {methods:.0f} methods")
    if missing:
        raise Skip("; ".join(missing))
    expect(images >= 850 and methods >= 1000000, f"{images:.0f} images with {methods:.0f} methods are not all")


def test_other_images_of_2_1_are_named_in_full(context):
    """All but the core library, a fragile image: as many rows as there are methods, in each of the 154 maps."""
    program, why = npm_program("dotnet-2.1-linux-x64")
    if not program:
        raise Skip(why)
    directory = os.path.join(os.path.dirname(program), "shared", "Microsoft.NETCore.App")
    out = os.path.join(context.scratch, "maps-2.1")
    done = context.mapgen.must("generate", directory, "-o", out, codes=(3,))
    rows = 0
    for name in os.listdir(out):
        with open(os.path.join(out, name), encoding="utf-8", errors="surrogateescape") as file:
            rows += sum(1 for _ in file)
    figures, _ = count(context, [directory])
    context.figure(f"{len(os.listdir(out))} maps, {rows} rows of {figures['methods']:.0f} methods")
    expect(len(os.listdir(out)) == 154, f"{len(os.listdir(out))} maps, 154 images")
    expect(rows == figures["methods"] and rows > 70000, f"{rows} rows, {figures['methods']:.0f} methods")
    expect(done.stderr.count("fragile native image") == 1 and "System.Private.CoreLib" in done.stderr,
           f"the core library's reason: {done.stderr.strip().splitlines()[:1]}")
