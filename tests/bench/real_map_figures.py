# SPDX-License-Identifier: MIT
"""real_map_figures.py --build DIR: loading the perf map that .NET writes of a real process.

The processes are the compiler of C# and F# Interactive. Their maps have some 10,000 lines, and other shapes than a made-up
one: stubs inside blocks that were reported before, the same start twice, some dozen heaps. Each is measured as it is, and as
it would be had the process gone on so until there are a million lines: repeated, with each heap going on behind itself.
"""
import argparse
import bisect
import glob
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "dotnet"))

from contract_figures import Context  # noqa: E402
from harness import remove_leftovers, sdk_runtime  # noqa: E402
from live_contract import csc_command  # noqa: E402

LINES = 1000000
GAP_BYTES = 1 << 20  # between two heaps
HEAP_BYTES = 1 << 30


def fsi_command(runtime, scratch):
    programs = glob.glob(os.path.join(os.path.dirname(os.path.realpath(runtime.dotnet)), "sdk", "*", "FSharp", "fsi.dll"))
    script = os.path.join(scratch, "one.fsx")
    with open(script, "w", encoding="ascii") as file:
        file.write('printfn "%d" (List.sum [ 1 .. 100 ])\n')
    return [runtime.dotnet, programs[0], script] if programs else None


def map_of(command):
    """The lines of the map that the program has written when it ends."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env=dict(os.environ, DOTNET_PerfMapEnabled="1"))
    process.wait()
    try:
        with open(f"/tmp/perf-{process.pid}.map", "rb") as file:
            return file.readlines()
    finally:
        remove_leftovers(process.pid)


def heaps_of(rows):
    """[(start, end)] of what is no farther apart than GAP_BYTES."""
    heaps = []
    for start, end in sorted((start, start + size) for start, size, _ in rows):
        if heaps and start - heaps[-1][1] <= GAP_BYTES:
            heaps[-1][1] = max(heaps[-1][1], end)
        else:
            heaps.append([start, end])
    return heaps


def repeat(lines, path):
    rows = [(int(start, 16), int(size, 16), name) for start, size, name in (line.split(b" ", 2) for line in lines)]
    heaps = heaps_of(rows)
    # Where each row goes at first, and how much farther each time.
    places = []
    for start, _, _ in rows:
        number = bisect.bisect_right(heaps, [start, 1 << 64]) - 1
        first, end = heaps[number]
        places.append((0x7000_0000_0000 + number * HEAP_BYTES + start - first, (end - first + 0xffff) & ~0xffff))
    with open(path, "wb") as file:
        for i in range(LINES):
            (place, step), (_, size, name) = places[i % len(rows)], rows[i % len(rows)]
            file.write(b"%x %x %s" % (place + i // len(rows) * step, size, name))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    program = os.path.join(parser.parse_args().build, "bench", "bench_perfmap")
    runtime, why = sdk_runtime()
    if not runtime:
        print(f"figures of real maps: {why}")
        return
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="libsym-bench-") as scratch:
        for name, command in (("csc", csc_command(Context(runtime), scratch)), ("fsi", fsi_command(runtime, scratch))):
            if not command:
                print(f"figures of real maps: no {name} beside the SDK")
                continue
            path = os.path.join(scratch, "map")
            lines = map_of(command)
            with open(path, "wb") as file:
                file.writelines(lines)
            subprocess.run([program, name, path], check=False)
            repeat(lines, path)
            subprocess.run([program, name + "_million", path], check=False)


if __name__ == "__main__":
    main()
