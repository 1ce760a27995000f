# SPDX-License-Identifier: MIT
"""C# lines in stock perf after perf-fix: perf report -s srcline, perf annotate -l, and what addr2line makes of the symbol file.

The oracles are the source text, the instructions as objdump shows them, readelf and addr2line.
"""
import glob
import os
import re
import shutil
import subprocess

from harness import ROOT, Sample, build_environment, build_project, built, expect, need, stop
from live_pdb import with_pdb
from live_perf_annotate import hottest
from live_perf_fix import buildid_dir, fix, record, run_perf


def methods_of(path):
    """First and last line of each method of a C# file, by class and name: from the declaration to the brace of its indent."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    found, type_name = {}, None
    for number, line in enumerate(lines, 1):
        type_line = re.match(r" {4}\w[\w ]* (?:class|struct) (\w+)", line)
        type_name = type_line[1] if type_line else type_name
        declared = re.match(r"( {8})(?:public|private|internal)(?: static)?(?: async)? [\w<>\[\], ().?]+ (\w+)\(.*\)$", line)
        if declared:
            end = next(at for at in range(number, len(lines)) if lines[at].startswith(declared[1] + "}"))
            found[type_name, declared[2]] = (number, end + 1)
    return found


MANAGED_ROW = re.compile(r"Sample\.(\w+)[\w`+<>\[\],.]*?::(?:<(\w+)>)?(\w+)\(.* Works\.cs:(\d+)$")


def compare(rows, methods):
    """How many rows of perf report have a line inside of their method. Line 0: the compiler recorded none there."""
    compared = 0
    for row in rows.splitlines():
        found = MANAGED_ROW.search(row.rstrip())
        if not found or (found[1], found[2] or found[3]) not in methods or found[4] == "0":
            continue
        first, last = methods[found[1], found[2] or found[3]]
        expect(first <= int(found[4]) <= last, f"{found[1]}.{found[2] or found[3]} is in lines {first} to {last}: {row.strip()}")
        compared += 1
    return compared


def test_perf_report_shows_lines_of_source(context):
    need("perf", "addr2line")
    path = os.path.join(context.directory("perf-lines"), "perf.data")
    with Sample(with_pdb(context)) as sample:
        record(sample.pid, path, seconds=1.5)
        sample.stand_still()
        fixed, _ = fix(context, path)
    rows = run_perf(fixed, "report", "-i", fixed, "--stdio", "--children", "-g", "none", "-s", "sym,srcline")
    methods = methods_of(os.path.join(ROOT, "fixtures", "src", "sample", "Works.cs"))
    expect(("Orders", "Run") in methods and ("Containers", "Run") in methods, f"methods of the source: {methods}")
    compared = compare(rows, methods)
    expect(compared >= 3, f"only {compared} rows of perf report were compared: {' '.join(rows.split())[:3000]}")
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
    context.figure(f"{compared} rows compared with the source, {len(known)} rows of the table, by addr2line as by readelf")


class Dividing:
    """The program of fixtures/src/dividing; it runs in one method, which divides on one line."""

    def __init__(self, name, *properties):
        artifacts = built(name)
        why = build_project("fixtures/src/dividing", artifacts, *properties)
        expect(why is None, f"the program does not build: {why}")
        kind = "publish" if properties else "bin"
        found = glob.glob(os.path.join(artifacts, kind, "dividing", "release*", "dividing.dll"))
        expect(found, "the build has no program")
        self.process = subprocess.Popen([shutil.which("dotnet"), found[0]], stdout=subprocess.PIPE, text=True, env=build_environment())
        self.pid = self.process.pid

    def __enter__(self):
        expect(self.process.stdout.readline() == "ready\n", "the program did not begin")
        return self

    def stand_still(self):
        stop(self.process)

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def check_dividing(context, kind, dso, *properties):
    """perf's word for the line that divides, and for the instruction that does."""
    need("perf", "objdump")
    with open(os.path.join(ROOT, "fixtures", "src", "dividing", "Dividing.cs"), encoding="utf-8") as file:
        wanted = [f"Dividing.cs:{number}" for number, text in enumerate(file, 1) if text.endswith("// divides\n")]
    expect(len(wanted) == 1, "the source has one line that divides")
    path = os.path.join(context.directory("perf-lines-" + kind), "perf.data")
    with Dividing("dividing-" + kind, *properties) as program:
        record(program.pid, path, 0.5)
        program.stand_still()
        fixed, _ = fix(context, path)
    symbol = hottest(fixed, dso, "::Divide(")
    rows = run_perf(fixed, "report", "-i", fixed, "--stdio", "--no-children", "-g", "none", "-s", "sym,srcline")
    shown = [row.split()[-1] for row in rows.splitlines() if symbol in row]
    expect(shown and shown[0] == wanted[0], f"perf report shows {shown} for {symbol}, not {wanted}")
    text = run_perf(fixed, "annotate", "-i", fixed, "--stdio", "-l", "-s", symbol)
    summary = re.search(r"Sorted summary for file .*\n-+\n\n\s+[\d.]+ (\S+)", text)
    expect(summary and summary[1] == wanted[0], f"perf annotate -l sums up {summary and summary[1]}, not {wanted[0]}")
    source = divisions = 0
    for line in text.splitlines():
        is_instruction = re.match(r"\s+[\d.]+ :\s+[0-9a-f]+:\s+(\w+)", line)
        if is_instruction and is_instruction[1] in ("idiv", "div", "sdiv"):
            expect(source.endswith("// divides"), f"the division belongs to the line: {source}")
            divisions += 1
        elif not is_instruction:
            source = line
    expect(divisions, f"perf annotate shows no division: {text[:2000]}")
    context.figure(f"perf report and perf annotate -l show {shown[0]} for {symbol}")


def test_perf_annotate_shows_lines_of_jitted_code(context):
    check_dividing(context, "jitted", "doublemapper")


def test_perf_annotate_shows_lines_of_precompiled_code(context):
    check_dividing(context, "precompiled", "dividing.dll",
                   "-t:Publish", "-r", "linux-x64", "--self-contained", "false", "-p:PublishReadyToRun=true")
