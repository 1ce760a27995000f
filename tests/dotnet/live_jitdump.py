# SPDX-License-Identifier: MIT
"""Jitted code named by the jitdump of a real .NET process, and by nothing else.

The oracle is the perf map that the runtime writes beside the dump; it is
emptied before we look, and the ways into the runtime are switched off.
"""
import os

from harness import Sample, expect, read_map, without_tier


# Two threads compile, the program's own and that of the tiers.
COMPILING = 2


def read_oracle(sample):
    """The whole map of a process that stands still; later lines win. Then nothing is in it any more.

    A method gets its line first and then its record in the dump, and its thread may stand between them.
    """
    sample.stand_still()
    lines = list(read_map(sample.map_path))
    rows = {start: (size, name) for start, size, name in lines if name.isascii()}
    for start, _, _ in lines[-COMPILING:]:
        rows.pop(start, None)
    os.truncate(sample.map_path, 0)
    return rows


def test_names_jitted_code_by_the_jitdump_of_the_process(context):
    # Granularity 2: stubs one by one, which keeps the dump of 10.0.12 whole.
    environment = {"DOTNET_PerfMapEnabled": "1", "DOTNET_PerfMapStubGranularity": "2"}
    with Sample(context.sdk(), environment) as sample:
        rows = read_oracle(sample)
        methods = {start: without_tier(name) for start, (size, name) in rows.items()
                   if size and not name.startswith("stub")}
        answers = context.mapgen.resolve(sample.pid, list(methods), "--jit=perfmap")
    same = [start for start, name in methods.items() if answers[start]["name"] == name]
    sources = {answers[start]["source"] for start in same}
    wrong = [(methods[start], answers[start]["name"]) for start in methods
             if answers[start]["resolved"] and start not in same]
    context.figure(f"{len(same)} of {len(methods)} methods of the map named alike, by {sorted(sources)}; "
                   f"{len(wrong)} otherwise")
    expect(len(methods) > 100, f"only {len(methods)} methods")
    expect(sources == {"jitdump"}, f"named by {sources}")
    expect(not wrong, f"{len(wrong)} names differ: {wrong[:2]}")
    expect(len(same) == len(methods), f"{len(methods) - len(same)} methods have no name")


def test_gives_no_wrong_name_by_a_jitdump_that_the_runtime_gave_up(context):
    """10.0.12 gives its dump up in the second record and unmaps it; the map goes on."""
    with Sample(context.sdk(), {"DOTNET_PerfMapEnabled": "1"}) as sample:
        rows = read_oracle(sample)
        size = os.path.getsize(f"/tmp/jit-{sample.pid}.dump")
        methods = [start for start, (_, name) in rows.items() if not name.startswith("stub")]
        answers = context.mapgen.resolve(sample.pid, methods, "--jit=perfmap")
    named = {start: answers[start]["name"] for start in methods if answers[start]["resolved"]}
    wrong = [start for start, name in named.items() if without_tier(rows[start][1]) != name]
    context.figure(f"dump of {size} bytes; {len(named)} of {len(methods)} methods named, {len(wrong)} of them wrong")
    expect(not wrong, f"{len(wrong)} wrong names")
