# SPDX-License-Identifier: MIT
"""The cost of `record` beside `perf record`, on a web application under load: own processor time, and that of the application; and `top`
beside `perf top`.

One line a figure, as bench.sh describes. The tools take turns, another one first in each round; each figure is the median, and
spread has the quartiles of the ratios of the rounds. perf only copies stacks
(--call-graph dwarf) or follows frame pointers (-g); `record` unwinds and names what it records.
"""
import argparse
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import types

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "dotnet"))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

import live_record  # noqa: E402
import waiting  # noqa: E402
from harness import Missing, Skip  # noqa: E402

RUNS = 11
SECONDS = 4
TOP_RUNS, TOP_PICTURES, TOP_TRIES = 3, 5, 3


class EndedEarly(RuntimeError):
    """A tool that is to run until it is interrupted has ended."""


def run_with_load(command, server, script):
    """(CPU seconds of the tool, CPU seconds of the server a request)."""
    before = waiting.cpu_seconds(server.pid)
    load = subprocess.Popen(["wrk", "-t1", "-c12", f"-d{SECONDS}s", "-s", script, f"http://127.0.0.1:{server.port}/"],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    tool = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    requests = int(re.search(r"(\d+) requests in", load.communicate()[0])[1])
    used = waiting.cpu_seconds(server.pid) - before
    _, status, usage = os.wait4(tool.pid, 0)
    tool.returncode = os.waitstatus_to_exitcode(status)
    if tool.returncode or not requests:
        raise RuntimeError(f"{command[0]} {command[1]}: {tool.returncode}, {requests} requests")
    return usage.ru_utime + usage.ru_stime, used / requests


def run_top(command, server, script, seconds):
    """CPU seconds of a tool that goes on until it is interrupted; it is, after `seconds`, unless that is None."""
    load = subprocess.Popen(["wrk", "-t1", "-c12", "-d600s", "-s", script, f"http://127.0.0.1:{server.port}/"], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        tool = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if seconds is not None:
            time.sleep(seconds)
            # Leaves the status for wait4(), which has the CPU time.
            ended = os.waitid(os.P_PID, tool.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            os.kill(tool.pid, signal.SIGINT)
        _, status, usage = os.wait4(tool.pid, 0)
        tool.returncode = os.waitstatus_to_exitcode(status)
    finally:
        load.kill()
        load.wait()
    if seconds is not None and ended:
        raise EndedEarly(f"{command[0]} {command[1]} ended by itself before {seconds} s had passed")
    return usage.ru_utime + usage.ru_stime


def peer_top(server, script):
    """CPU seconds of perf top. It ends early now and then; such a run measures nothing."""
    for attempt in range(TOP_TRIES):
        try:
            return run_top(["perf", "top", "--stdio", "-g", "-p", str(server.pid)], server, script, 2 * TOP_PICTURES)
        except EndedEarly:
            if attempt + 1 == TOP_TRIES:
                raise
    return None


def top_figure(program, server, script):
    ours, peer = [], []
    for _ in range(TOP_RUNS):
        ours.append(run_top([program, "top", str(server.pid), "--batch", "-n", str(TOP_PICTURES)], server, script, None))
        peer.append(peer_top(server, script))
    figure("top_own_cpu_perf_top", ours, peer, "s", 1)


def figure(name, ours, peer, unit, most):
    """Medians of two lists of runs, side by side."""
    ratio = statistics.median(ours) / statistics.median(peer)
    low, _, high = statistics.quantiles([one / other for one, other in zip(ours, peer)])
    print(f"{name} ours={statistics.median(ours):.3g}{unit} peer={statistics.median(peer):.3g}{unit} ratio={ratio:.2f} spread={low:.2f}..{high:.2f} "
          f"goal={most} {'ok' if ratio <= most else 'short'}", flush=True)


def record_figures(results):
    own = {name: [cpu for cpu, _ in runs] for name, runs in results.items()}
    target = {name: [each * 1e6 for _, each in runs] for name, runs in results.items()}
    figure("record_own_cpu_fp", own["record"], own["fp"], "s", 3)
    figure("record_own_cpu_dwarf", own["record"], own["dwarf"], "s", 1)
    figure("record_target_cpu_dwarf", target["record"], target["dwarf"], "us", 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    arguments = parser.parse_args()
    program = os.path.join(ROOT, arguments.build, "dotnet-mapgen")
    results = {name: [] for name in ("record", "fp", "dwarf")}
    with tempfile.TemporaryDirectory(prefix="libsym-record-", dir="/var/tmp") as scratch:
        context = types.SimpleNamespace(scratch=scratch)
        try:
            with live_record.Server(context, "10.0") as server:
                server.stop_load()
                commands = {
                    "record": [program, "record", str(server.pid), "-F", "99", "-d", str(SECONDS), "-o", f"{scratch}/r.data"],
                    "fp": ["perf", "record", "-q", "-F", "99", "-g", "-p", str(server.pid), "-o", f"{scratch}/f.data", "sleep", str(SECONDS)],
                    "dwarf": ["perf", "record", "-q", "-F", "99", "--call-graph", "dwarf", "-p", str(server.pid), "-o", f"{scratch}/d.data",
                              "sleep", str(SECONDS)]}
                for number in range(RUNS):
                    for turn in range(len(commands)):
                        name = list(commands)[(number + turn) % len(commands)]
                        results[name].append(run_with_load(commands[name], server, f"{scratch}/requests.lua"))
                record_figures(results)
                top_figure(program, server, f"{scratch}/requests.lua")
        except (Missing, Skip, OSError, RuntimeError) as error:
            print(f"record figures: {error}")
            return


if __name__ == "__main__":
    main()
