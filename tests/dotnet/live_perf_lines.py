# SPDX-License-Identifier: MIT
"""C# lines in stock perf after perf-fix: perf report -s srcline, and what addr2line makes of the symbol file."""
import glob
import os
import re
import subprocess

from harness import ROOT, Sample, expect, need
from live_pdb import with_pdb
from live_perf_fix import buildid_dir, fix, record, run_perf


def methods_of(path):
    """First and last line of each method of a C# file, by name: what is between a declaration and the brace of its indent."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    found = {}
    for number, line in enumerate(lines, 1):
        declared = re.match(r"( +)(?:public|private|internal)(?: static)?(?: async)? [\w<>\[\], ().?]+ (\w+)\(.*\)$", line)
        if declared:
            end = next(at for at in range(number, len(lines)) if lines[at].startswith(declared[1] + "}"))
            found[declared[2]] = (number, end + 1)
    return found


def test_perf_report_shows_lines_of_source(context):
    need("perf", "addr2line")
    path = os.path.join(context.directory("perf-lines"), "perf.data")
    with Sample(with_pdb(context)) as sample:
        record(sample.pid, path, seconds=6)
        sample.stand_still()
        fixed, _ = fix(context, path)
    rows = run_perf(fixed, "report", "-i", fixed, "--stdio", "--no-children", "-g", "none", "-s", "sym,srcline")
    methods = methods_of(os.path.join(ROOT, "fixtures", "src", "sample", "Works.cs"))
    expect("Pairs" in methods and "Deep" in methods, f"methods of the source: {methods}")
    compared = 0
    for line in rows.splitlines():
        found = re.search(r"Sample\.[\w`+<>\[\],.]*?(?:<(\w+)>d__\d+)?::(\w+)\(.* Works\.cs:(\d+)$", line)
        name = found and (found[1] or found[2])
        if name not in methods or name == "Run":
            continue
        first, last = methods[name]
        expect(first <= int(found[3]) <= last, f"{name} is in lines {first} to {last}: {line.strip()}")
        compared += 1
    expect(sum("Works.cs:" in line for line in rows.splitlines()) > 0, "no lines: " + " ".join(rows.split())[:3000])
    files = glob.glob(os.path.join(buildid_dir(path), "**", "*jit*", "**", "elf"), recursive=True)
    expect(files, "no symbol file of jitted code")
    table = subprocess.run(["readelf", "--debug-dump=decodedline", files[0]], capture_output=True, text=True)
    expect(table.returncode == 0 and not table.stderr, f"readelf: {table.stderr}")
    known = re.findall(r"^\S*Works\.cs +(\d+) +0x([0-9a-f]+)", table.stdout, re.M)
    expect(known, "no rows in the line table")
    asked = subprocess.run(["addr2line", "-e", files[0], *(address for _, address in known)], capture_output=True, text=True).stdout.splitlines()
    wrong = [(line, address, shown) for (line, address), shown in zip(known, asked)
             if line != "0" and not re.search(rf"Works\.cs:{line}( |$)", shown) and (address, ) not in {(other,) for l, other in known if l != line}]
    expect(not wrong, f"addr2line says otherwise: {wrong[:3]}")
    context.figure(f"{compared} methods compared, {len(known)} rows, by addr2line as by readelf")
