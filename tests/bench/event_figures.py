# SPDX-License-Identifier: MIT
"""The cost of an event with its stack for the thread that fires it, native beside EventPipe's own walk.

One line a figure, as bench.sh describes. One target runs under four ways in turn, another one first in each round: no session, a
session without stacks, one with EventPipe's stacks, which dotnet-trace has too, and one with native stacks. It measures the processor
time of its thread for an event. `event_cost_` is that above no session; `event_stack_` is that above a session without stacks, the
stack alone. The median of a Kestrel's allocations in its requests is 25 managed frames; 6 are those of a program that does nothing.
"""
import argparse
import collections
import os
import statistics
import sys
import tempfile
import types

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "dotnet"))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from event_target import Recording, Target, about  # noqa: E402
from harness import Missing, Skip  # noqa: E402
from record_figures import figure  # noqa: E402

ROUNDS, BATCHES, WARM_BATCHES = 11, 4, 20
WAYS = ("nothing", "none", "managed", "native")
DEPTHS = (25, 6)
# Batches of exceptions and allocations together are below the budget of native stacks, which is 2,684 in 268 ms; waits take longer.
EVENTS = {"exception": 300, "allocation": 300, "wait": 60}


def cost(target, kind, depth):
    """Microseconds of one event."""
    costs = []
    for _ in range(BATCHES):
        target.tell(f"cost {kind} {depth} {EVENTS[kind]}")
        costs.append(int(target.process.stdout.readline()) / EVENTS[kind] / 1000)
    return statistics.median(costs)


def costs_of(target):
    return {(depth, kind): cost(target, kind, depth) for depth in DEPTHS for kind in EVENTS}


def costs_under(context, target, way):
    if way == "nothing":
        return costs_of(target)
    recording = Recording(context, target.pid, os.path.join(context.scratch, "cost.trace.zip"), "-F", "1",
                          "--events=exceptions,alloc,contention", f"--stacks={way}")
    recording.wait_until_ready()
    found = costs_of(target)
    recording.stop()
    told = about(recording.path)
    missing = told["event_streams"][0]["thinned_stacks"] + told["losses"]["lost_event_stacks"]
    if missing:
        raise Skip(f"{missing} stacks were left out: the cost is not that of an event with its stack")
    return found


def above(costs, way, base, key):
    return [one[key] - other[key] for one, other in zip(costs[way], costs[base])]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    arguments = parser.parse_args()
    mapgen = types.SimpleNamespace(program=os.path.join(ROOT, arguments.build, "dotnet-mapgen"))
    costs = collections.defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="libsym-bench-") as scratch:
        context = types.SimpleNamespace(mapgen=mapgen, scratch=scratch)
        try:
            with Target() as target:
                for _ in range(WARM_BATCHES):
                    cost(target, "exception", DEPTHS[0])
                    cost(target, "allocation", DEPTHS[0])
                for number in range(ROUNDS):
                    for turn in range(len(WAYS)):
                        way = WAYS[(number + turn) % len(WAYS)]
                        costs[way].append(costs_under(context, target, way))
        except (Skip, Missing) as why:
            print(f"event_figures: {why}", file=sys.stderr)
            return
    for depth in DEPTHS:
        for kind in EVENTS:
            for name, base in (("cost", "nothing"), ("stack", "none")):
                figure(f"event_{name}_{kind}_{depth}_frames", above(costs, "native", base, (depth, kind)),
                       above(costs, "managed", base, (depth, kind)), "us", 2)


if __name__ == "__main__":
    main()
