#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""golden.py BEFORE AFTER [--keep DIR]: do two builds give the same bytes?

Runs the commands of both build directories on fixed inputs (the recorded process of fixtures/recorded, a recording
that perf makes) and on one live process, and compares what they write: --json, relative maps, perf maps and perf.data.
The live process is a Python interpreter that sleeps; --pid PID takes another one, of .NET for example. Human text is
not compared. Times, process ids of our own and paths of the scratch directory are replaced before.

Prints `ok NAME` or `FAILED NAME: why`, a line each. --keep DIR keeps all outputs in DIR/before and DIR/after.
"""
import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RECORDED = os.path.join(ROOT, "fixtures", "recorded")
PRECOMPILED = os.path.join(RECORDED, "opt", "sample", "sample.dll")
# Parts that two runs of one build may write differently.
VOLATILE = re.compile(rb'"(\w*seconds|cpu_percent|looked_at|read_calls|read_bytes)": ?[0-9.e+-]+')
LIVE_ADDRESSES = 2000


def recorded_pid():
    return next(name for name in os.listdir(os.path.join(RECORDED, "proc")) if name.isdigit())


def executable_addresses(maps_path, count):
    """Spread evenly over all executable memory."""
    ranges = []
    with open(maps_path, encoding="utf-8", errors="replace") as maps:
        for line in maps:
            fields = line.split()
            if "x" in fields[1]:
                start, end = (int(part, 16) for part in fields[0].split("-"))
                ranges.append((start, end))
    total = sum(end - start for start, end in ranges)
    addresses = []
    for i in range(count):
        offset = i * total // count
        for start, end in ranges:
            if offset < end - start:
                addresses.append(f"{start + offset:#x}")
                break
            offset -= end - start
    return addresses


class Build:
    """One build directory, and where its outputs go."""

    def __init__(self, directory, scratch):
        self.program = os.path.join(os.path.abspath(directory), "dotnet-mapgen")
        self.scratch = scratch
        os.makedirs(scratch)
        self.environment = dict(os.environ, HOME=scratch, XDG_CACHE_HOME=os.path.join(scratch, "cache"))

    def run(self, arguments, text=None):
        arguments = [argument.replace("@", self.scratch) for argument in arguments]
        done = subprocess.run([self.program, *arguments], input=text, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              env=self.environment, check=False, timeout=300)
        return b"exit %d\n" % done.returncode + VOLATILE.sub(rb'"\1": 0', done.stdout).replace(self.scratch.encode(), b"@")

    def files(self, pattern):
        """Bytes of all files, by name below the scratch directory."""
        found = {}
        for path in sorted(glob.glob(os.path.join(self.scratch, pattern), recursive=True)):
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    found[os.path.relpath(path, self.scratch)] = file.read()
        return found


def stack_text(addresses):
    return "".join(f"\t{int(address, 16):16x} [unknown] ([unknown])\n" for address in addresses).encode()


def recorded_cases():
    pid = recorded_pid()
    maps = os.path.join(RECORDED, "proc", pid, "maps")
    addresses = executable_addresses(maps, 500)
    questions = "\n".join(addresses).encode() + b"\n"
    root = f"--root={RECORDED}"
    yield "list", ["list", root, "--json"], None, ()
    yield "list-images", ["list", root, pid, "--json"], None, ()
    yield "info", ["info", root, pid, "--json"], None, ()
    yield "resolve", ["resolve", root, pid, "--json"], questions, ()
    yield "resolve-lines", ["resolve", root, pid, "--lines", "--inlines", "--json"], questions, ()
    yield "resolve-file", ["resolve", f"{PRECOMPILED}+0x1000", f"{PRECOMPILED}+0x2000", "--json"], None, ()
    yield "symbolize", ["symbolize", root, f"--pid={pid}"], stack_text(addresses), ()
    yield "merge", ["merge", root, pid, "--output=@/merged.map", "--json"], None, ("merged.map",)
    yield "merge-short", ["merge", root, pid, "--output=-", "--names=short", "--tiers=strip"], None, ()
    for form in ("map", "r2rmap"):
        yield (f"generate-{form}", ["generate", PRECOMPILED, f"--output=@/{form}", f"--format={form}", "--json"], None,
               (f"{form}/**",))


def live_cases(pid):
    addresses = executable_addresses(f"/proc/{pid}/maps", LIVE_ADDRESSES)
    questions = "\n".join(addresses).encode() + b"\n"
    yield "live-list", ["list", pid, "--json"], None, ()
    yield "live-info", ["info", pid, "--json"], None, ()
    yield "live-resolve", ["resolve", pid, "--json"], questions, ()
    yield "live-resolve-lines", ["resolve", pid, "--lines", "--inlines", "--json"], questions, ()
    yield "live-symbolize", ["symbolize", f"--pid={pid}"], stack_text(addresses), ()
    yield "live-merge", ["merge", pid, "--output=@/live.map", "--json"], None, ("live.map",)


def perf_cases(recording):
    for name, more in (("elf", ()), ("anon", ("--via=perfmap",)), ("native", ("--native=all",))):
        yield (f"perf-fix-{name}", ["perf-fix", recording, f"--output=@/{name}.data", "--buildid-dir=@/buildid", "--json", *more],
               None, (f"{name}.data", "buildid/**"))


def record(scratch, pid):
    """A recording of the process; None where perf cannot."""
    path = os.path.join(scratch, "perf.data")
    command = ["perf", "record", "-q", "-e", "cpu-clock", "-g", "-o", path, "-p", pid, "--", "sleep", "1"]
    try:
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, timeout=60)
    except FileNotFoundError:
        return None
    return path if done.returncode == 0 and os.path.exists(path) else None


def compare(name, builds, arguments, text, patterns):
    outputs = []
    for build in builds:
        output = {"output": build.run(arguments, text)}
        with open(os.path.join(build.scratch, name + ".output"), "wb") as file:
            file.write(output["output"])
        for pattern in patterns:
            output.update(build.files(pattern))
        outputs.append(output)
    before, after = outputs
    different = [key for key in sorted(before.keys() | after.keys()) if before.get(key) != after.get(key)]
    print(f"FAILED {name}: other bytes: {', '.join(different)}" if different else f"ok {name} ({len(before)} outputs)")
    return not different


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", metavar="BEFORE", help="a build directory")
    parser.add_argument("after", metavar="AFTER", help="another one")
    parser.add_argument("--pid", help="a live process, instead of one of Python")
    parser.add_argument("--keep", metavar="DIR", help="keeps the outputs there")
    arguments = parser.parse_args()
    scratch = arguments.keep or tempfile.mkdtemp(prefix="golden-")
    sleeper = None
    try:
        builds = [Build(arguments.before, os.path.join(scratch, "before")), Build(arguments.after, os.path.join(scratch, "after"))]
        pid = arguments.pid
        if not pid:
            sleeper = subprocess.Popen([sys.executable, "-c", "print(flush=True)\nwhile True: pass"], stdout=subprocess.PIPE)
            sleeper.stdout.readline()
            pid = str(sleeper.pid)
        recording = record(scratch, pid)
        cases = [*recorded_cases(), *live_cases(pid), *(perf_cases(recording) if recording else ())]
        if not recording:
            print("skipped perf-fix: perf cannot record here")
        same = [compare(name, builds, command, text, patterns) for name, command, text, patterns in cases]
    finally:
        if sleeper:
            sleeper.kill()
            sleeper.wait()
        if not arguments.keep:
            shutil.rmtree(scratch, ignore_errors=True)
    return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main())
