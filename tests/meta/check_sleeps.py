# SPDX-License-Identifier: MIT
"""Prints sleeps of tests that tests/meta/sleeps.txt does not list, and rows of it that are no longer true.

Reads names of files. Tests wait for what they need to see (tests/support/waiting.py, waiting.h). tests/bench measures time and is
left out, and so are C# programs, which are what is recorded.
"""
import collections
import os
import re
import sys

SLEEP = re.compile(r"\b(?:time|asyncio)\.sleep\(|\b(?:u|nano|clock_nano)?sleep\(|\bpoll\(NULL, 0,|^\s*sleep\s+[0-9.$]")
WAITING = ("tests/support/waiting.py", "tests/support/waiting.h", "tests/meta/check_sleeps.py")
TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sleeps.txt")


def allowed():
    """{(file, kind): count}; each kind is explained in the head of the table."""
    rows, kinds = collections.Counter(), set()
    with open(TABLE, encoding="utf-8") as file:
        for line in file:
            kinds.update(re.findall(r"^# (\w+): ", line))
            if not line.startswith("#") and line.strip():
                count, kind, name = line.split("\t")[:3]
                if kind not in kinds:
                    print(f"{TABLE}: {kind} is no kind")
                rows[name.strip()] += int(count)
    return rows


def main():
    found = collections.Counter()
    for name in sys.stdin.read().split():
        if name.startswith("tests/") and not name.startswith("tests/bench/") and name not in WAITING and name.endswith((".py", ".c", ".h", ".sh")):
            with open(name, encoding="utf-8") as file:
                found[name] += sum(len(SLEEP.findall(line)) for line in file if not re.match(r"\s*(?:\*|/\*|//|#)", line))
    rows = allowed()
    for name in sorted(set(found) | set(rows)):
        if found[name] > rows[name]:
            print(f"{name}: sleeps {found[name]} times: wait for the event (tests/support/waiting.py, waiting.h), or name its kind in tests/meta/sleeps.txt")
        elif found[name] < rows[name]:
            print(f"{name}: sleeps {found[name]} times, not {rows[name]} as tests/meta/sleeps.txt says")


main()
