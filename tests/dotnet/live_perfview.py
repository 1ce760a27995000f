# SPDX-License-Identifier: MIT
"""record --perfview: the recording as PerfView opens it. The oracle is its own reader, TraceEvent 4 from NuGet."""
import collections
import os
import subprocess

from harness import Sample, Skip, expect


def counts_of_report(context, path):
    """How many samples have each function innermost."""
    counts = collections.Counter()
    for line in context.mapgen.must("report", "cpu", "--format=folded", "--names=full", "-i", path).stdout.splitlines():
        stack, count = line.rsplit(" ", 1)
        # Folded text marks functions of the kernel; TraceEvent takes the brackets of "[runtime stub]" away.
        counts[stack.rpartition(";")[2].removesuffix("_[k]").strip("[]")] += int(count)
    return counts


def counts_of_trace_event(context, path):
    done = subprocess.run(["dotnet", context.oracle(), "perfscript", path], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    expect(not done.returncode, f"TraceEvent: {done.stderr.strip()[:300]}")
    total, *rows = (line.split("\t", 1) for line in done.stdout.splitlines())
    counts = collections.Counter()
    for count, name in rows:
        counts[name.partition("!")[2].strip("[]")] += int(count)
    return int(total[0]), counts


def test_record_perfview_writes_what_trace_event_reads(context):
    path = os.path.join(context.scratch, "perfview.trace.zip")
    with Sample(context.sdk()) as sample:
        done = context.mapgen.run("record", str(sample.pid), "-F", "499", "-d", "2", "--perfview", "-o", path)
    if "perf_event_open" in done.stderr:
        raise Skip(done.stderr.strip())
    expect(not done.returncode, done.stderr)
    ours = counts_of_report(context, path)
    total, theirs = counts_of_trace_event(context, path)
    # TraceEvent leaves out the last sample of every text, of perf's own too.
    missing, more = ours - theirs, theirs - ours
    context.figure(f"TraceEvent reads {total} samples of {sum(ours.values())}, in {len(theirs)} functions")
    expect(len(ours) > 3 and total > 20, f"only {total} samples")
    expect(total == sum(ours.values()) - 1 and sum(missing.values()) == 1 and not more,
           f"{sum(ours.values())} samples, TraceEvent reads {total}; only ours: {list(missing)[:3]}; only theirs: {list(more)[:3]}")
