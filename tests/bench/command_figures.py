# SPDX-License-Identifier: MIT
"""Figures of dotnet-mapgen as a command: generate over a whole shared framework, merge of a large process.

One line a figure, as bench.sh describes; the median of several runs. Where a
goal is a number and not a peer, peer and ratio are none.
"""
import argparse
import glob
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "dotnet"))

import crossgen_v1  # noqa: E402
from harness import Mapgen, Sample, Skip, sdk_runtime  # noqa: E402

RUNS = 7
CROSSGEN_RUNS = 3


def figure(name, ours, goal, unit, note=""):
    verdict = "ok" if ours <= goal else "short"
    print(f"{name} ours={ours:.3f}{unit} peer=none ratio=none goal={goal:g}{unit} {note}{verdict}", flush=True)


def measured(mapgen, *arguments):
    """(CPU seconds, wall seconds, peak MB) of one run."""
    begin = time.monotonic()
    process = subprocess.Popen([mapgen.program, *map(str, arguments)], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=mapgen.environment)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 3):
        raise RuntimeError(f"{arguments} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - begin, usage.ru_maxrss / 1024


def median(rows, column):
    return statistics.median(row[column] for row in rows)


def newest_frameworks(dotnet):
    """The directories of the newest NETCore.App and AspNetCore.App beside a dotnet program."""
    shared = os.path.join(os.path.dirname(os.path.realpath(dotnet)), "shared")
    for name in ("Microsoft.NETCore.App", "Microsoft.AspNetCore.App"):
        versions = sorted(glob.glob(os.path.join(shared, name, "*")))
        if versions:
            yield versions[-1]


def generate_figures(mapgen, scratch):
    frameworks = list(newest_frameworks(shutil.which("dotnet")))
    rows = []
    for number in range(RUNS):
        output = os.path.join(scratch, f"maps{number}")
        rows.append(measured(mapgen, "generate", *frameworks, "-o", output))
        count = len(os.listdir(output))
        shutil.rmtree(output)
    figure("generate_framework_cpu", median(rows, 0), 0.5, "s", f"images={count} ")
    figure("generate_framework_memory", median(rows, 2), 100, "MB", f"images={count} ")


def crossgen_figures(mapgen, scratch):
    """All images of 3.1.3, by its own crossgen, one run an image as it was used, and by ours; in turn."""
    crossgen = crossgen_v1.Crossgen(scratch)
    ours, theirs = [], []
    for number in range(CROSSGEN_RUNS):
        output = os.path.join(scratch, f"ours{number}")
        ours.append(measured(mapgen, "generate", *crossgen.directories, "-o", output))
        maps = os.path.join(scratch, f"theirs{number}")
        os.mkdir(maps)
        before = os.times()
        for image in crossgen.images():
            crossgen.make_map(image, maps)
        after = os.times()
        theirs.append(after.children_user - before.children_user + after.children_system - before.children_system)
    peer, own = statistics.median(theirs), median(ours, 0)
    print(f"generate_all_of_3_1_cpu ours={own:.3f}s peer={peer:.3f}s ratio={peer / own:.1f} goal=30 peer is crossgen 3.1.3 "
          f"{'ok' if peer / own >= 30 else 'short'}", flush=True)


def plant_jitted(sample, wanted):
    """As many lines of jitted methods as a large service has, where the process writes no map itself."""
    with open(sample.map_path, "w", encoding="ascii") as output:
        for number in range(wanted):
            output.write(f"{0x10000000 + number * 64:x} 40 instance void [app] App.Type{number // 20}::Method{number}(int32)[Tier0]\n")


def merge_figures(mapgen, _):
    runtime, why = sdk_runtime()
    if not runtime:
        raise RuntimeError(why)
    first, second = [], []
    with Sample(runtime, {"DOTNET_PerfMapEnabled": "0"}) as sample:
        sample.stand_still()  # its own work is not what is measured
        for _ in range(RUNS):
            plant_jitted(sample, 40000)
            first.append(measured(mapgen, "merge", sample.pid))
            second.append(measured(mapgen, "merge", sample.pid))
        with open(sample.map_path, "rb") as file:
            symbols = file.read().count(b"\n")
    note = f"symbols={symbols} "
    for name, rows, goal in (("merge_first", first, 0.3), ("merge_unchanged", second, 0.3)):
        figure(name + "_cpu", median(rows, 0), goal, "s", note)
        figure(name + "_wall", median(rows, 1), goal, "s", note)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    arguments = parser.parse_args()
    if not shutil.which("dotnet"):
        print("command figures: no .NET SDK")
        return
    with tempfile.TemporaryDirectory(dir="/var/tmp") as scratch:
        mapgen = Mapgen(arguments.build, scratch)
        for figures in (generate_figures, crossgen_figures, merge_figures):
            try:
                figures(mapgen, scratch)
            except (RuntimeError, OSError, AssertionError, Skip) as why:
                print(f"{figures.__name__}: {why}")


if __name__ == "__main__":
    main()
