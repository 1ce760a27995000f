# SPDX-License-Identifier: MIT
"""standin: names in live perf top, and nothing left behind.

perf knows one place for them, so these tests write below /usr/lib/debug and need root.
"""
import os
import signal
import subprocess

from harness import Sample, Skip, expect
from perf_samples import perf

EXCLUSIVE = True  # BPF programs and perf top see the whole machine

PLACE = "/usr/lib/debug"


def tree():
    """Every path below the place of debug files that may come from us."""
    found = set()
    for directory, names, files in os.walk(PLACE):
        names[:] = [name for name in names if name != ".build-id"]
        found.update(os.path.join(directory, name) for name in names + files)
    return found


def top(context, pid, at_least=30):
    """The first rows of live perf top that lie in assemblies."""
    # perf top draws again whenever it can read something, and the end of a file can always be read.
    silent, held = os.pipe()
    command = ["timeout", "-s", "INT", "60", *perf(os.path.join(context.scratch, "top")), "top", "--stdio",
               "-e", "cpu-clock", "-p", str(pid), "-d", "1", "--sort", "dso,sym"]
    rows = []
    with subprocess.Popen(command, stdin=silent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace") as process:
        for line in process.stdout:
            if "%" in line and ".dll" in line:
                rows.append(line)
            if len(rows) == at_least:
                process.send_signal(signal.SIGINT)
        said = process.stderr.read()
    os.close(silent)
    os.close(held)
    if not rows:
        why = f"perf top shows no assembly: {said.strip()[:200]}"
        raise Skip(why)
    return rows


def bare(rows):
    return [row for row in rows if " 0x0" in row]


def test_live_perf_top_names_precompiled_code(context):
    if os.geteuid():
        raise Skip("writing below /usr/lib/debug needs root")
    before = tree()
    with Sample(context.sdk(), {"DOTNET_TieredCompilation": "0"}) as sample:
        without = top(context, sample.pid)
        done = context.mapgen.must("standin", "install", sample.pid)
        try:
            rows = top(context, sample.pid)
            listed = context.mapgen.must("standin", "list").stdout.splitlines()
            again = context.mapgen.must("standin", "install", sample.pid)
        finally:
            context.mapgen.must("standin", "remove")
    context.figure(f"rows of assemblies in perf top: {len(bare(without))} of {len(without)} are numbers before, "
                   f"{len(bare(rows))} of {len(rows)} after")
    expect(any("System.Private.CoreLib.dll (in use)" in line for line in listed), f"list does not show them: {listed[:2]}")
    expect("standin: 0 installed" in again.stdout, f"installed twice: {again.stdout}")
    expect(not bare(rows), f"numbers in assemblies: {bare(rows)[:2]}")
    left = tree() ^ before
    expect(not left, f"remove left {sorted(left)[:3]}: {done.stdout}")


def test_standin_puts_nothing_over_foreign_files(context):
    place = context.directory("standin-foreign")
    with Sample(context.sdk()) as sample, Sample(context.sdk()) as other:
        with open(f"/proc/{sample.pid}/maps", encoding="utf-8") as maps:
            path = next(line.split(None, 5)[5].strip() for line in maps if "System.Private.CoreLib.dll" in line)
        theirs = place + path
        os.makedirs(os.path.dirname(theirs))
        with open(theirs, "w", encoding="ascii") as file:
            file.write("somebody's")
        done = context.mapgen.must("standin", "install", "--debug-tree", place, sample.pid, codes=(3,))
        expect("was not created by dotnet-mapgen" in done.stderr, f"it does not say that a file was there: {done.stderr}")
        expect(str(other.pid) in done.stdout, f"it does not say which other process sees them: {done.stdout}")
        context.mapgen.must("standin", "remove", "--debug-tree", place)
    found = [os.path.join(directory, name) for directory, _, files in os.walk(place) for name in files]
    expect(found == [theirs], f"what is left: {found}")
    with open(theirs, encoding="ascii") as file:
        expect(file.read() == "somebody's", "a foreign file was changed")
