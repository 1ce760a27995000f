# SPDX-License-Identifier: MIT
"""The cost of the example profiler, beside profile-bpfcc on the same process: own CPU time, time in the kernel a sample.

One line a figure, as bench.sh describes. Needs root, BPF, clang and libbpf.
"""
import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "dotnet"))

from harness import ROOT, Sample, sdk_runtime  # noqa: E402

RUNS = 3
SECONDS = 3
HERTZ = 99


def measured(command):
    """(CPU seconds of the program itself, what it said)."""
    with open(os.devnull, "wb") as nothing:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=nothing, stderr=subprocess.PIPE)
        said = process.stderr.read().decode(errors="replace")
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError((said.strip().splitlines() or ["no output"])[-1])
    return usage.ru_utime + usage.ru_stime, said


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    arguments = parser.parse_args()
    program = os.path.join(ROOT, arguments.build, "examples", "stack_profiler")
    subprocess.run(["make", "-s", f"BUILD={arguments.build}", "profiler"], cwd=ROOT, stdin=subprocess.DEVNULL,
                   capture_output=True, check=False)
    peer = shutil.which("profile-bpfcc", path=os.environ.get("PATH", "") + ":/usr/sbin")
    runtime, why = sdk_runtime()
    if not os.path.exists(program) or not peer or not runtime:
        print(f"profiler figures: {why or 'make profiler, profile-bpfcc'} is missing")
        return
    ours, peers, each = [], [], []
    try:
        with Sample(runtime) as sample:
            for _ in range(RUNS):
                seconds, said = measured([program, "-v", "-p", str(sample.pid), "-d", str(SECONDS), "-F", str(HERTZ)])
                ours.append(seconds)
                each.append(int(re.search(r"(\d+) ns each", said).group(1)))
                peers.append(measured([peer, "-f", "-p", str(sample.pid), "-F", str(HERTZ), str(SECONDS)])[0])
    except RuntimeError as error:
        print(f"profiler figures: {error}")
        return
    own, other = statistics.median(ours), statistics.median(peers)
    print(f"profiler_own_cpu ours={own:.3f}s peer={other:.3f}s ratio={other / own:.1f} goal=1 "
          f"{'ok' if own <= other else 'short'}", flush=True)
    load = statistics.median(each) * HERTZ / 1e7
    print(f"profiler_load ours={load:.3f}% peer=none ratio=none goal=0.1% ns_a_sample={statistics.median(each)} hertz={HERTZ} "
          f"{'ok' if load <= 0.1 else 'short'}", flush=True)


if __name__ == "__main__":
    main()
