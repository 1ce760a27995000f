# SPDX-License-Identifier: MIT
"""Source lines of managed frames in cores, collectible assemblies and composite images; what is read for them.

The oracle is the one of live_lines.py: the program's own StackTrace with file information.
"""
import json
import re
import shutil
import signal
import subprocess

from harness import expect, need
from live_core import gcore
import live_lines
from live_lines import Lines, program


def compare_core(context, core, lines):
    """As live_lines.compare(), but by the whole of what a core says of each thread."""
    report = json.loads(context.mapgen.must("stack", f"--core={core}", "--json", codes=(0, 3)).stdout)
    returns = {thread["tid"]: [frame["address"] for frame in thread["frames"] if frame["return_address"]] for thread in report["threads"]}
    wanted = sorted({address for chain in returns.values() for address in chain})
    text = context.mapgen.must("resolve", f"--core={core}", "--lines", "--return-addresses", "--json",
                               stdin="\n".join(wanted) + "\n", codes=(0, 3)).stdout
    answers = {answer["input"]: answer for answer in json.loads(text)}
    return live_lines.compare(lines, {tid: [answers[address] for address in chain] for tid, chain in returns.items()})


def expect_equal(context, result, title):
    context.figure(f"{title}: {result.il} IL offsets and {result.lines} lines are those of StackTrace; {result.nearest} approximate, "
                   f"{result.foreign} frames on other walks; {dict(result.kinds)}")
    expect(not result.wrong, f"{title}: {len(result.wrong)} differ, first: {result.wrong[:1]}")
    expect(result.lines > 150, f"{title}: only {result.lines} lines were compared")
    expect(result.foreign * 10 < result.il, f"{title}: {result.foreign} frames of StackTrace are not in our stacks")


def test_lines_in_a_core_are_those_of_stacktrace(context):
    """The process is gone when the core is read."""
    with Lines([shutil.which("dotnet"), program()]) as lines:
        core = gcore(context, lines.pid)
    expect_equal(context, compare_core(context, core, lines), "core")


def test_lines_of_collectible_assemblies_are_those_of_stacktrace(context):
    with Lines([shutil.which("dotnet"), program(), "collectible"]) as lines:
        found = live_lines.chains(context, lines)
    expect_equal(context, live_lines.compare(lines, found), "collectible")


def read_calls(context, pid, address, *options):
    """The calls and bytes by which resolve reads memory of a process."""
    path = f"{context.scratch}/calls"
    subprocess.run(["strace", "-f", "-e", "trace=process_vm_readv", "-o", path, context.mapgen.program, "resolve", str(pid), address, *options],
                   stdin=subprocess.DEVNULL, capture_output=True, check=True, env=context.mapgen.environment)
    with open(path, encoding="utf-8") as file:
        sizes = [int(size) for size in re.findall(r"process_vm_readv.* = ([0-9]+)$", file.read(), re.MULTILINE)]
    return len(sizes), sum(sizes)


def test_nothing_is_read_for_lines_before_an_address_asks(context):
    """The process is stopped: its memory is the same each time."""
    need("strace")
    with Lines([shutil.which("dotnet"), program()]) as lines:
        found = live_lines.chains(context, lines)
        jitted = next(answer for chain in found.values() for answer in chain if answer["tier"] == "QuickJitted" and answer["line"])
        native = next(answer for chain in found.values() for answer in chain if answer["source"] in ("elf", "dwarf", "eh_frame"))
        lines.process.send_signal(signal.SIGSTOP)
        plain, ours = read_calls(context, lines.pid, native["input"]), read_calls(context, lines.pid, native["input"], "--lines")
        names, one = read_calls(context, lines.pid, jitted["input"]), read_calls(context, lines.pid, jitted["input"], "--lines")
    context.figure(f"(calls, bytes) of a native address {plain}, with lines {ours}; of a jitted one {names}, with its line {one}")
    expect(plain == ours, f"--lines read more for a native address: {ours}, not {plain}")
    expect(one[0] > names[0], "reading a line was not seen")
    expect(one[0] - names[0] <= 24 and one[1] - names[1] <= 1 << 18, f"the line of one method took {one}, its name {names}")
