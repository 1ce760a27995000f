#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints the lines of C outside tests, without blank lines and comments, a folder a line.

    count_lines.py [--files] [--apart PATTERN] [REVISION]

Without REVISION: the files as they are now. With --apart the sum is split in two: files whose path has the regular
expression, and the rest.
"""
import argparse
import re
import subprocess
from collections import Counter

SOURCE = re.compile(r"(libsym|mapgen|symsrv)/.*\.[ch]")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)


def git(*words):
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout


def source_files(revision):
    listed = git("ls-tree", "-r", "--name-only", revision) if revision else git("ls-files")
    return [name for name in listed.splitlines() if SOURCE.fullmatch(name)]


def read(name, revision):
    if revision:
        return git("show", f"{revision}:{name}")
    with open(name, encoding="utf-8") as file:
        return file.read()


def count(text):
    """Strings are kept: what looks like a comment in one is none."""
    code = COMMENT.sub(lambda found: found[0] if found[0][0] in "\"'" else " ", text)
    return sum(1 for line in code.splitlines() if line.strip())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", action="store_true")
    parser.add_argument("--apart", type=re.compile)
    parser.add_argument("revision", nargs="?")
    options = parser.parse_args()
    lines = {name: count(read(name, options.revision)) for name in source_files(options.revision)}
    places = Counter()
    for name, number in lines.items():
        places[name if options.files else name.rsplit("/", 1)[0]] += number
    for place in sorted(places):
        print(f"{places[place]:7} {place}")
    print(f"{sum(lines.values()):7} in all")
    if options.apart:
        apart = sum(number for name, number in lines.items() if options.apart.search(name))
        print(f"{apart:7} in files of --apart")
        print(f"{sum(lines.values()) - apart:7} in the rest")


if __name__ == "__main__":
    main()
