# SPDX-License-Identifier: MIT
"""report --by=line of a plain perf.data: while the process lives, and when it is gone.

The oracle is the source: the line of a method lies between its declaration and the next one.
"""
import json
import os
import re

import live_pdb
import live_text_lines
import perf_samples
from harness import Sample, Skip, expect, remove_leftovers

SECONDS = 0.8
DECLARATION = re.compile(r"^\s+(?:(?:public|private|internal|protected|static|async|override)\s)+[^=;]*?\b(\w+)(?:<\w+>)?\(")


def method_at(file, line):
    """The method whose body has this line."""
    for text in reversed(live_text_lines.source(file)[:line]):
        found = DECLARATION.match(text)
        if found:
            return found.group(1)
    return None


def by_line(context, data, *options):
    done = context.mapgen.must("report", "cpu", "--by=line", "--format=json", "--top=0", "-i", data, *options)
    report = json.loads(done.stdout)
    return report, [row for row in report["views"][0]["rows"] if row.get("line")]


def test_perf_data_has_lines_while_the_process_lives(context):
    data = os.path.join(context.scratch, "lines.data")
    with Sample(live_pdb.with_pdb(context)) as sample:
        sample.wait_for_worker()
        why = perf_samples.record(sample.pid, SECONDS, data)
        if why:
            raise Skip(why)
        _, rows = by_line(context, data)
        text = context.mapgen.must("report", "cpu", "--by=line", "-i", data).stdout
        pid, maps = sample.pid, context.directory("line-maps")
        context.mapgen.must("merge", "-o", os.path.join(maps, f"perf-{pid}.map"), pid)
    own = [row for row in rows if "[sample] Sample." in row["full_name"] and re.search(r"::\w+\(", row["full_name"]) and "__" not in row["full_name"]]
    wrong = [row for row in own if method_at(os.path.basename(row["file"]), row["line"]) != re.search(r"::(\w+)\(", row["full_name"]).group(1)]
    context.figure(f"{len(rows)} rows with a line, {len(own)} of the program's methods, {len(wrong)} in another method")
    expect(len(own) > 10, f"only {len(own)} lines of the program")
    expect(not wrong, f"lines of other methods, first: {wrong[:2]}")
    expect("places in managed code have no source line (no PDB" in text, f"the framework has no PDB here: {text[-400:]}")
    remove_leftovers(pid)
    report, rows = by_line(context, data, f"--perf-maps={maps}")
    expect(not [row for row in rows if "[sample]" in row["full_name"]], "jitted code of a process that is gone has a line")
    expect("the process is gone" in (report["losses"]["line_reason"] or ""), f"reason: {report['losses']['line_reason']}")
