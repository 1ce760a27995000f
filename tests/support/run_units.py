#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs programs of unit tests (Criterion): run_units.py [--filter PATTERN] PROGRAM...

With SECOND_RUN in the environment a few tests that fail run a second time, alone, as in runner.py. The synthesis of
Criterion counts what came of the second run; the last lines say which tests failed first.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading

from runner import MOST_SECOND_RUNS, SECOND_RUN, adopt_orphans, end_children

# Criterion's message for a test that the pattern leaves out.
NOT_CHOSEN = "The test was skipped."


def command(program, pattern, report):
    # Each of Criterion's processes maps memory of the first one over whatever it has at that address: the code of
    # the tests, when the kernel chose its place at random.
    return ["setarch", "-R", program, "--timeout", "300", f"--json={report}", *(["--filter", pattern] if pattern else [])]


def results_of(report):
    """(suite/test, status, messages) of each test that was chosen; [] where the report is missing."""
    try:
        with open(report, encoding="utf-8", errors="replace") as file:
            suites = json.load(file, strict=False)["test_suites"]
    except (OSError, ValueError):
        return []
    return [(f"{suite['name']}/{test['name']}", test["status"], test.get("messages", []))
            for suite in suites for test in suite["tests"] if test.get("messages") != [NOT_CHOSEN]]


def run(words, take):
    """Calls `take` with each line; the exit code. What tests have left behind would hold the pipe, and ends with the program."""
    def end_all():
        process.wait()
        end_children()

    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as process:
        ending = threading.Thread(target=end_all)
        ending.start()
        for line in process.stdout:
            take(line)
        ending.join()
    return process.returncode


def passes_alone(program, name, report):
    print(f"    {name} runs again", flush=True)
    lines = []
    status = run(command(program, name, report), lines.append)
    if status:
        print("".join(line for line in lines if "Synthesis" not in line), end="")
    return not status


def run_program(program, pattern, report):
    """(exit code, names that passed in their second run only)"""
    synthesis = ""

    def take(line):
        nonlocal synthesis
        if "Synthesis" in line and "Tested:" in line:
            synthesis = line
        else:
            print(line, end="", flush=True)

    status = run(command(program, pattern, report), take)
    results = results_of(report)
    for name, state, messages in results:
        if state == "SKIPPED":
            print(f"skipped {name}: {' '.join(messages)}", flush=True)
    tested = sum(state != "SKIPPED" for _, state, _ in results)
    failed = [name for name, state, _ in results if state not in ("PASSED", "SKIPPED")]
    if not SECOND_RUN or not status or not failed or len(failed) > MOST_SECOND_RUNS:
        print(synthesis, end="", flush=True)
        return status, []
    mended = [name for name in failed if passes_alone(program, name, report)]
    left = len(failed) - len(mended)
    print(f"[====] Synthesis: Tested: {tested} | Passing: {tested - left} | Failing: {left} | Crashing: 0", flush=True)
    return (1 if left else 0), mended


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--filter")
    parser.add_argument("programs", nargs="+")
    options = parser.parse_args()
    status, mended = 0, []
    adopt_orphans()
    with tempfile.TemporaryDirectory() as scratch:
        for program in options.programs:
            code, names = run_program(program, options.filter, os.path.join(scratch, "report"))
            status = status or code
            mended += names
    for name in mended:
        print(f"failed in its first run, {name}")
    return status


if __name__ == "__main__":
    sys.exit(main())
