#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints the circles of source files that call each other, one a line, and their number.

    count_circles.py [--most N] [BUILD]

A file calls another one when its object file needs a symbol that the other defines (nm). Files are in one circle when each
of them calls all others, directly or through files between. With --most, more than N circles are an error.
"""
import argparse
import os
import subprocess
import sys

DEFINED = set("TDBRVWGCS")


def object_files(build):
    for part in ("libsym", "mapgen", "symsrv"):
        for directory, _, names in os.walk(os.path.join(build, part)):
            for name in sorted(names):
                path = os.path.join(directory, name)
                source = os.path.relpath(path, build)[:-2] + ".c"
                # An object file of a source that was moved or deleted may still be there.
                if name.endswith(".o") and "/examples/" not in path and os.path.exists(source):
                    yield source, path


def symbols(path):
    done = subprocess.run(["nm", path], capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        fields = line.split()
        yield fields[-2], fields[-1]


def read_calls(build):
    """{file: files that it calls}"""
    owners, needs = {}, {}
    for source, path in object_files(build):
        part = source.split("/")[0]
        for kind, name in symbols(path):
            if kind in DEFINED:
                owners[part, name] = source
            elif kind == "U":
                needs.setdefault(source, set()).add(name)
    calls = {}
    for source, names in needs.items():
        part = source.split("/")[0]
        found = {owners.get((part, name)) or owners.get(("libsym", name)) for name in names}
        calls[source] = found - {None, source}
    return calls


def reached_from(source, calls):
    reached, waiting = set(), list(calls.get(source, ()))
    while waiting:
        file = waiting.pop()
        if file not in reached:
            reached.add(file)
            waiting.extend(calls.get(file, ()))
    return reached


def find_circles(calls):
    reached = {source: reached_from(source, calls) for source in calls}
    circles, seen = [], set()
    for source in sorted(calls):
        if source in seen or source not in reached[source]:
            continue
        circle = sorted(file for file in reached[source] if source in reached.get(file, ()))
        seen.update(circle)
        circles.append(circle)
    return circles


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--most", type=int)
    parser.add_argument("build", nargs="?", default="build")
    options = parser.parse_args()
    calls = read_calls(options.build)
    if not calls:
        sys.exit("FAILED circles of files: nothing is built")
    circles = find_circles(calls)
    for circle in circles:
        print(f"    {len(circle)} files: {' '.join(circle)}")
    text = f"{len(circles)} circles of {sum(map(len, circles))} files, of {len(calls)}"
    if options.most is not None and len(circles) > options.most:
        print(f"FAILED circles of files: {text}, at most {options.most} are allowed")
        return 1
    print(f"ok circles of files: {text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
