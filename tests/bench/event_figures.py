# SPDX-License-Identifier: MIT
"""The cost of an event with its native stack for the target, beside EventPipe's own walk: processor time of one exception.

One line a figure, as bench.sh describes. Each round has a target of its own for each way: no session, a session without stacks (the
base), one with EventPipe's stacks, which dotnet-trace has too, and one with native stacks. The figure is the median of the rounds.
"""
import argparse
import os
import sys
import tempfile
import types

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "dotnet"))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from event_target import Recording, Target, about  # noqa: E402
from harness import Missing, Skip  # noqa: E402
from record_figures import figure  # noqa: E402

RUNS = 11
# Four times as many are below the budget of native stacks, which is 2,684 in 268 ms.
EXCEPTIONS = 500


def cost(context, stacks):
    """Nanoseconds of the target's processor time for one exception."""
    with Target() as target:
        recording = Recording(context, target.pid, os.path.join(context.scratch, "cost.trace.zip"), "-F", "1",
                              "--events=exceptions", f"--stacks={stacks}")
        recording.wait_until_ready()
        costs = []
        for _ in range(4):
            target.tell(f"cpu {EXCEPTIONS}")
            costs.append(int(target.process.stdout.readline()))
        recording.stop()
    thinned = about(recording.path)["event_streams"][0]["thinned_stacks"]
    if thinned:
        raise Skip(f"{thinned} stacks were left out: the cost is not that of an event with its stack")
    return min(costs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    arguments = parser.parse_args()
    mapgen = types.SimpleNamespace(program=os.path.join(ROOT, arguments.build, "dotnet-mapgen"))
    costs = {"none": [], "managed": [], "native": []}
    with tempfile.TemporaryDirectory(prefix="libsym-bench-") as scratch:
        context = types.SimpleNamespace(mapgen=mapgen, scratch=scratch)
        try:
            for _ in range(RUNS):
                for stacks, values in costs.items():
                    values.append(cost(context, stacks))
        except (Skip, Missing) as why:
            print(f"event_figures: {why}", file=sys.stderr)
            return
    native, managed, base = ([value / 1000 for value in costs[stacks]] for stacks in ("native", "managed", "none"))
    figure("event_stack_eventpipe_walk", [one - none for one, none in zip(native, base)],
           [one - none for one, none in zip(managed, base)], "us", 2)
    figure("event_target_cpu_eventpipe", native, managed, "us", 1)


if __name__ == "__main__":
    main()
