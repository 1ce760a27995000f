# SPDX-License-Identifier: MIT
"""The processor time of a web server per request while its events are recorded, ours beside dotnet-trace with the same keywords.

One line a figure, as bench.sh describes. Kestrel and HttpClient of one process make a fixed number of requests under each way in
turn, another one first in each round. dotnet-trace has managed stacks and takes no CPU samples. Ours are without samples too, with
native, managed and no stacks; `_samples` is the default, with native stacks and 99 samples a second. The floor is no tool.
"""
import argparse
import collections
import os
import shutil
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

import crossgen2_maps  # noqa: E402
import waiting  # noqa: E402
from event_target import Recording  # noqa: E402
from harness import Missing, Skip, build_environment, build_project, built, remove_leftovers  # noqa: E402
from live_nettrace_v6 import PACKAGE  # noqa: E402
from record_figures import figure  # noqa: E402

ROUNDS, REQUESTS, WARM_REQUESTS = 11, 1000, 4000
# The groups of a bare --events on .NET 10: gc, alloc, exceptions, contention, threadpool.
PROVIDER = "Microsoft-Windows-DotNETRuntime:0x8000001c001:4"
CPUCLOCK_SCHED = 2


class Server:
    """Kestrel, which asks itself."""

    def __init__(self):
        artifacts = built("kestrel")
        why = build_project("tests/dotnet/kestrel", artifacts)
        if why:
            raise Skip(f"the server does not build: {why}")
        command = [shutil.which("dotnet"), os.path.join(artifacts, "bin", "kestrel", "release", "kestrel.dll")]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=build_environment())
        self.pid = self.process.pid
        if self.process.stdout.readline() != "ready\n":
            raise Skip("the server has not started")

    def cpu_us(self):
        """Processor time of all its threads."""
        return time.clock_gettime(~self.pid << 3 | CPUCLOCK_SCHED) * 1e6

    def ask(self, requests):
        """Microseconds of processor time of one request."""
        before = self.cpu_us()
        self.process.stdin.write(f"{requests} 0\n")
        self.process.stdin.flush()
        self.process.stdout.readline()
        return (self.cpu_us() - before) / requests

    def has_session(self):
        """Whether a thread sends events, beside the one that answers at the diagnostics socket."""
        tasks = f"/proc/{self.pid}/task"
        names = [open(f"{tasks}/{tid}/comm", encoding="utf-8").read().strip() for tid in os.listdir(tasks)]
        return names.count(".NET EventPipe") > 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()
        remove_leftovers(self.pid)


def peer_command(server, scratch):
    program = os.path.join(crossgen2_maps.pack(*PACKAGE), "tools", "net8.0", "any", "dotnet-trace.dll")
    return ["dotnet", program, "collect", "-p", str(server.pid), "--providers", PROVIDER, "--rundown", "false", "-o", f"{scratch}/peer.nettrace"]


def cost_under_peer(server, scratch):
    environment = dict(build_environment(), DOTNET_ROLL_FORWARD="LatestMajor")
    with subprocess.Popen(peer_command(server, scratch), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          env=environment) as peer:
        waiting.wait_until(server.has_session, "dotnet-trace has begun no session")
        cost = server.ask(REQUESTS)
        peer.send_signal(signal.SIGINT)
    if peer.returncode:
        raise Skip(f"dotnet-trace ends with {peer.returncode}")
    return cost


def cost_under(context, server, words):
    recording = Recording(context, server.pid, os.path.join(context.scratch, "ours.trace.zip"), "--events", *words)
    recording.wait_until_ready()
    cost = server.ask(REQUESTS)
    recording.stop()
    return cost


def measure(context, server):
    """{way: microseconds of a request in each round}"""
    ways = {"floor": lambda: server.ask(REQUESTS), "peer": lambda: cost_under_peer(server, context.scratch)}
    for stacks in ("native", "managed", "none"):
        words = ["--frequency=0", f"--stacks={stacks}"]
        ways[stacks] = lambda words=words: cost_under(context, server, words)
    ways["samples"] = lambda: cost_under(context, server, [])
    costs = collections.defaultdict(list)
    for number in range(ROUNDS):
        for turn in range(len(ways)):
            way = list(ways)[(number + turn) % len(ways)]
            costs[way].append(ways[way]())
            waiting.wait_until(lambda: not server.has_session(), "a session does not end")
    return costs


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    arguments = parser.parse_args()
    # A shell has its background jobs ignore it, and dotnet-trace would never end.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    mapgen = types.SimpleNamespace(program=os.path.join(ROOT, arguments.build, "dotnet-mapgen"))
    with tempfile.TemporaryDirectory(prefix="libsym-bench-") as scratch:
        try:
            why = crossgen2_maps.fetch([PACKAGE])
            if why:
                raise Skip(why)
            with Server() as server:
                server.ask(WARM_REQUESTS)
                costs = measure(types.SimpleNamespace(mapgen=mapgen, scratch=scratch), server)
        except (Skip, Missing) as why:
            print(f"request_figures: {why}", file=sys.stderr)
            return
    print(f"request_cpu_floor={statistics.median(costs['floor']):.3g}us without a tool", flush=True)
    for way in costs:
        if way not in ("floor", "peer"):
            figure(f"request_cpu_{way}", costs[way], costs["peer"], "us", 1)


if __name__ == "__main__":
    main()
