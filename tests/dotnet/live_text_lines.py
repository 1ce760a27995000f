# SPDX-License-Identifier: MIT
"""symbolize --lines: source lines in the text of real tools.

The oracles: the program's own StackTrace, and the source itself: the line of a caller has the call.
"""
import os
import re
import shutil

import live_lines
import live_pdb
import live_perf_lines
import live_symbolize
from harness import Sample, expect

SOURCES = "fixtures/src/sample"
METHOD = re.compile(r"\[sample\] Sample\.[\w.+<>`]*::(\w+)\(")


def source(name):
    with open(os.path.join(SOURCES, name), encoding="utf-8") as file:
        return file.read().splitlines()


def check_calls(context, stacks, what):
    """`stacks`: of each (text of a frame, file, line or None), innermost first. A caller's line contains the callee's name."""
    texts = {name: source(name) for name in os.listdir(SOURCES) if name.endswith(".cs")}
    right, wrong, lines = 0, [], 0
    for stack in stacks:
        for callee, caller in zip(stack, stack[1:]):
            called = METHOD.search(callee[0])
            lines += caller[2] is not None
            if not called or not METHOD.search(caller[0]) or caller[2] is None:
                continue
            if f"{called.group(1)}(" in texts[caller[1]][caller[2] - 1]:
                right += 1
            else:
                wrong.append((callee, caller))
    context.figure(f"{what}: {lines} frames with a line; {right} of {right + len(wrong)} lines of callers have the call")
    expect(right >= 10, f"only {right} calls were looked at")
    expect(not wrong, f"{len(wrong)} lines without the call, first: {wrong[:2]}")


def place_of(text):
    file, _, line = text.rpartition(":")
    return (file, int(line)) if line.isdigit() else (file, None)


def stacks_of_perf_script(text):
    stacks = [[]]
    for line in text.split("\n"):
        if line.startswith("\t"):
            stacks[-1].append((line, None, None))
        elif line.startswith("  ") and stacks[-1]:
            stacks[-1][-1] = (stacks[-1][-1][0], *place_of(line[2:]))
        else:
            stacks.append([])
    return stacks


def without_lines(text):
    return "\n".join(line for line in text.split("\n") if not re.match(r"^  \S+:~?\d+$", line))


def test_lines_stand_in_the_text_of_perf_script(context):
    with Sample(live_pdb.with_pdb(context)) as sample:
        sample.wait_for_worker()
        text, _ = live_symbolize.record(context, sample, "-F", "+pid")
        done = context.mapgen.must("symbolize", "--lines", stdin=text)
        plain = context.mapgen.must("symbolize", stdin=text).stdout
        again = context.mapgen.must("symbolize", "--lines", stdin=done.stdout).stdout
    check_calls(context, stacks_of_perf_script(done.stdout), "perf script")
    expect("managed frames have no source line" in done.stderr, f"the framework has no PDB here: {done.stderr}")
    expect(without_lines(done.stdout) == without_lines(plain), "more than lines was added")
    expect(again == done.stdout, "its own output was changed")


def test_lines_stand_in_the_text_of_bpftrace(context):
    live_symbolize.need_bpf()
    with Sample(live_pdb.with_pdb(context)) as sample:
        sample.wait_for_worker()
        text = live_symbolize.bpftrace(context, sample.pid, "ustack")
        pairs = live_symbolize.symbolize(context, text, "--lines", "-p", sample.pid)
    stacks = [[]]
    for _, line in pairs:
        frame = re.match(r"^    (.*\+\d+)(?:@(.*))?$", line)
        if frame:
            stacks[-1].append((frame.group(1), *(place_of(frame.group(2)) if frame.group(2) else (None, None))))
        else:
            stacks.append([])
    check_calls(context, stacks, "bpftrace")


def test_lines_stand_in_the_text_of_gdb(context):
    """gdb unwinds no managed frame: only the first one of a thread can be looked at."""
    gdb = live_symbolize.need("gdb", "gdb")
    with live_perf_lines.Dividing("dividing-jitted") as dividing:
        text = live_symbolize.output_of(gdb, "-q", "-batch", "-p", dividing.pid, "-ex", "thread apply all bt")
        out = context.mapgen.must("symbolize", "--lines", "-p", str(dividing.pid), stdin=text).stdout
    with open("fixtures/src/dividing/Dividing.cs", encoding="utf-8") as file:
        source_lines = file.read().splitlines()
    begin = next(number for number, line in enumerate(source_lines, 1) if " void Divide(" in line)
    found = re.findall(r"^#0 .*Dividing\.Program::Divide\(.* at Dividing\.cs:~?(\d+)$", out, re.MULTILINE)
    context.figure(f"gdb: Divide at lines {found}, it begins at {begin}")
    expect(len(found) == 1 and begin < int(found[0]) <= len(source_lines), f"lines {found}: {[line for line in out.splitlines() if 'Divide' in line]}")


def test_lines_in_the_text_of_eu_stack_are_those_of_stacktrace(context):
    with live_lines.Lines([shutil.which("dotnet"), live_lines.program()]) as lines:
        text = live_symbolize.output_of(live_symbolize.need("eu-stack", "elfutils"), "-p", lines.pid, codes=(0, 1))
        out = context.mapgen.must("symbolize", "--lines", stdin=text).stdout
    found, tid = {}, None
    for before, line in zip(out.split("\n"), out.split("\n")[1:]):
        head = re.match(r"^TID (\d+):$", line)
        tid = int(head.group(1)) if head else tid
        if line.startswith("    ") and before.startswith("#") and "[lines]" in before and ":~" not in line:
            found.setdefault(tid, []).append(place_of(line.strip()))
    compared, wrong = 0, []
    for thread in lines.threads:
        if "catch" in thread["name"] or "finally" in thread["name"]:
            continue  # the frame that threw is still on the stack; StackTrace leaves it out
        theirs = [(os.path.basename(frame["place"][0]), frame["place"][1]) for frame in thread["frames"] if frame["place"]]
        for place in found.get(thread["tid"], ())[1:]:  # the first one waits at another place by now
            compared += 1
            if place not in theirs:
                wrong.append((thread["name"], place))
    context.figure(f"eu-stack: {compared} lines, {len(wrong)} that StackTrace does not have")
    expect(compared > 50, f"only {compared} lines were compared")
    expect(not wrong, f"lines that StackTrace does not have: {wrong[:3]}")
