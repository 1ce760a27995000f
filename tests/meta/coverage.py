#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lines that the tests have run, for each folder and in all, by gcov.

Usage: coverage.py DIRECTORY [--files] [--lines FILE]
DIRECTORY has the objects and counts of a build with GCOV=1. --files lists each file; --lines names the lines of one that no test has run.
"""
import argparse
import collections
import json
import os
import subprocess
import sys

FOLDERS = ("libsym", "mapgen", "symsrv")
LEFT_OUT = ("libsym/examples/",)
AT_ONCE = 40


def objects(directory):
    for place, _, names in os.walk(directory):
        folder = os.path.relpath(place, directory)
        if folder.split(os.sep)[0] in FOLDERS:
            yield from (os.path.join(place, name) for name in names if name.endswith(".gcno"))


def counts(directory):
    """{file: {line: how often}}; a header's line counts for all that include it."""
    found = collections.defaultdict(dict)
    notes = sorted(objects(directory))
    for first in range(0, len(notes), AT_ONCE):
        # A program that was killed while it wrote its counts leaves a file that gcov cannot read.
        done = subprocess.run(["gcov", "--json-format", "--stdout", *notes[first:first + AT_ONCE]], capture_output=True, text=True,
                              errors="replace")
        for text in done.stdout.splitlines():
            try:
                files = json.loads(text)["files"]
            except json.JSONDecodeError:
                continue
            for file in files:
                lines = found[os.path.normpath(file["file"])]
                for line in file["lines"]:
                    number = line["line_number"]
                    lines[number] = max(lines.get(number, 0), line["count"])
    return {file: lines for file, lines in found.items() if file.split(os.sep)[0] in FOLDERS and not file.startswith(LEFT_OUT)}


def share(rows):
    run, count = (sum(row[i] for row in rows) for i in (0, 1))
    return f"{100 * run / max(1, count):5.1f} %  {run:6} of {count:6} lines"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory")
    parser.add_argument("--files", action="store_true")
    parser.add_argument("--lines")
    parser.add_argument("--without", default="", help="files that do not count, by their names without .c, with commas between")
    options = parser.parse_args()
    without = set(filter(None, options.without.split(",")))
    files = {file: lines for file, lines in counts(options.directory).items() if os.path.splitext(os.path.basename(file))[0] not in without}
    if options.lines:
        print(" ".join(str(line) for line, count in sorted(files[options.lines].items()) if not count))
        return
    rows = {file: (sum(count > 0 for count in lines.values()), len(lines)) for file, lines in files.items()}
    folders = collections.defaultdict(list)
    for file, row in rows.items():
        folders[os.path.dirname(file)].append(row)
    if options.files:
        for file, row in sorted(rows.items(), key=lambda item: item[1][0] - item[1][1]):
            print(f"{share([row])}  {file}")
    for folder in sorted(folders):
        print(f"{share(folders[folder])}  {folder}/")
    print(f"{share(rows.values())}  in all")


if __name__ == "__main__":
    sys.exit(main())
