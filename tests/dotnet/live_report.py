# SPDX-License-Identifier: MIT
"""report on recordings of .NET: a lock convoy that measures its own waits, names where neither process nor .NET are, and saved maps."""
import json
import os
import re
import shutil
import subprocess

from harness import ROOT, Sample, Skip, build_environment, build_project, built, expect, need, remove_leftovers, sdk_runtime

ROUNDS = 40
ATTEMPTS = 6


def at_once():
    """Words before a command whose threads run as soon as they can, on a busy machine too: a thread that is preempted while
    it waits is not off the CPU, and the program cannot tell the two apart."""
    words = ["chrt", "--fifo", "1"]
    return words if shutil.which("chrt") and not subprocess.run([*words, "true"], capture_output=True, check=False).returncode else []


def convoy(context):
    """A recording of the convoy from its start to its end, and its own waits: (path, count, milliseconds)."""
    artifacts = built("convoy")
    why = build_project("tests/dotnet/convoy", artifacts)
    if why:
        raise Skip(f"the convoy does not build: {why}")
    program = os.path.join(artifacts, "bin", "convoy", "release", "convoy.dll")
    path = os.path.join(context.scratch, "convoy.trace.zip")
    for _ in range(ATTEMPTS):
        done = subprocess.run([context.mapgen.program, "record", "--off-cpu", "-o", path, "--", *at_once(), shutil.which("dotnet"), program, str(ROUNDS)],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, env=build_environment())
        if "perf_event_open" in done.stderr:
            raise Skip(done.stderr.strip())
        expect(done.returncode == 0, f"record: {done.stderr.strip()}")
        own = re.search(r"^(\d+) (\d+)$", done.stdout, re.M)
        expect(own, f"the convoy has not said its waits: {done.stdout!r}")
        if "too busy" not in done.stdout:
            return path, int(own[1]), int(own[2])
    raise Skip("records were lost in each attempt: the machine is too busy")


def test_report_charges_the_right_caller_of_a_convoy(context):
    path, count, milliseconds = convoy(context)
    done = context.mapgen.must("report", "off-cpu", "--format=folded", "--names=full", "-i", path)
    waits = 0
    for line in done.stdout.splitlines():
        stack, microseconds = line.rsplit(" ", 1)
        if "Convoy::Reserve" in stack and "Convoy::Hold" not in stack and "Thread::Sleep" not in stack:
            waits += int(microseconds)
    share = waits / 1000 / milliseconds
    expect(0.95 <= share <= 1.05, f"{waits / 1000:.0f} ms are charged to Reserve, which has waited {milliseconds} ms in {count} waits")
    text = context.mapgen.must("report", "off-cpu", "-i", path).stdout
    expect(re.search(r"Convoy\.Reserve.* lock$", text, re.M), f"no wait for a lock in Convoy.Reserve: {text}")


def test_report_says_where_the_owner_of_a_lock_was(context):
    """Each thread of the convoy sleeps in Hold() while it has the lock."""
    artifacts = built("convoy")
    why = build_project("tests/dotnet/convoy", artifacts)
    if why:
        raise Skip(f"the convoy does not build: {why}")
    path = os.path.join(context.scratch, "owners.trace.zip")
    with subprocess.Popen([shutil.which("dotnet"), os.path.join(artifacts, "bin", "convoy", "release", "convoy.dll"), "10000"],
                          stdout=subprocess.PIPE, env=build_environment()) as program:
        program.stdout.readline()
        done = subprocess.run([context.mapgen.program, "record", str(program.pid), "--events=contention", "--off-cpu", "-d", "3", "-o", path],
                              capture_output=True, text=True, timeout=120)
        program.kill()
    if "perf_event_open" in done.stderr:
        raise Skip(done.stderr.strip())
    expect(done.returncode == 0, f"record: {done.stderr.strip()}")
    locks = json.loads(context.mapgen.must("report", "contention", "--format=json", "-i", path).stdout)["locks"]
    expect(locks and locks[0]["from"].startswith("Convoy.Reserve"), f"no wait in Reserve: {locks}")
    expect(locks[0]["owner_in"].startswith("Convoy.Hold -> Thread.Sleep"), f"the owner was in {locks[0]['owner_in']}")


def test_report_is_the_same_where_neither_process_nor_dotnet_are(context):
    """Below an empty root: no /proc, no /usr/share/dotnet, no /tmp."""
    need("unshare")
    path, _, _ = convoy(context)
    script = ("mount -t tmpfs none /tmp && mount -t tmpfs none /usr/share && mount -t tmpfs none /usr/lib/debug 2>/dev/null; "
              "mount -t tmpfs none /proc && exec \"$@\"")
    elsewhere = shutil.copy(path, os.path.join(context.scratch, "carried.zip"))
    program = shutil.copy(context.mapgen.program, os.path.join(context.scratch, "program"))
    for words in (("off-cpu",), ("cpu", "--by=tree"), ("cpu", "--format=json"), ("off-cpu", "--format=folded"), ("off-cpu", "--by=line", "--top=0"),
                  ("off-cpu", "--by=line", "--format=speedscope"), ("off-cpu", "--format=pprof"), ("off-cpu", "--format=html")):
        here = context.mapgen.must("report", *words, "-i", elsewhere).stdout
        there = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", program, "report", *words, "-i", elsewhere],
                               capture_output=True, text=True, errors="surrogateescape", timeout=60)
        if "Operation not permitted" in there.stderr:
            raise Skip(there.stderr.strip())
        expect(there.returncode == 0, f"report: {there.stderr.strip()}")
        expect(there.stdout == here, f"report {' '.join(words)} differs where there is no .NET")


def test_lines_of_waits_are_those_of_the_source(context):
    """The source says where a function calls what it waits in."""
    path, _, _ = convoy(context)
    with open(os.path.join(ROOT, "tests", "dotnet", "convoy", "Convoy.cs"), encoding="utf-8") as file:
        source = file.read().splitlines()
    # The calls of each, and where code of the runtime can run without a call: at the beginning, and at the end of a loop.
    calls = {"Convoy.Hold": ("Thread.Sleep",), "lambda in Convoy.Main": ("Reserve()", "for ("),
             "Convoy.Reserve": ("lock (gate)", "Hold()", "Stopwatch", "Interlocked", "}")}
    stacks = context.mapgen.must("report", "off-cpu", "--by=line", "--format=folded", "-i", path).stdout
    seen = {}
    for name, approximate, line in re.findall(r"([^;]+?)(?:\([^()]*\))? \(Convoy\.cs:(~?)(\d+)\)", stacks):
        name = name.replace("lambda()", "lambda")
        if name in calls and not approximate:
            seen.setdefault(name, set()).add(int(line))
            expect(any(call in source[int(line) - 1] for call in calls[name]), f"{name}: line {line} is {source[int(line) - 1].strip()!r}")
    for name, call in (("Convoy.Reserve", "lock (gate)"), ("Convoy.Reserve", "Hold()"), ("Convoy.Hold", "Thread.Sleep"), ("lambda in Convoy.Main", "Reserve()")):
        expect(any(call in source[line - 1] for line in seen.get(name, ())), f"no wait of {name} in {call}: {seen}")


def test_report_names_every_managed_frame(context):
    import json
    path, _, _ = convoy(context)
    kinds = json.loads(context.mapgen.must("check", "--json", "-i", path).stdout)["quality"]["kinds"]
    for kind in ("jitted", "precompiled"):
        expect(kinds[kind]["frames"] == kinds[kind]["named"] > 0, f"{kind}: {kinds[kind]}")


def test_saved_map_names_precompiled_code_too(context):
    """The process is gone, and its .NET files are not there: below --root there is nothing."""
    need("perf")
    runtime, why = sdk_runtime()
    if why:
        raise Skip(why)
    maps, empty, data = (os.path.join(context.scratch, name) for name in ("maps", "empty", "gone.data"))
    os.makedirs(maps)
    os.makedirs(empty)
    with Sample(runtime) as sample:
        done = subprocess.run(["perf", "record", "-q", "-g", "-F", "999", "-p", str(sample.pid), "-o", data, "--", "sleep", "1"], capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise Skip(done.stderr.strip()[:200])
        context.mapgen.must("merge", "-o", os.path.join(maps, f"perf-{sample.pid}.map"), sample.pid)
        pid = sample.pid
    remove_leftovers(pid)
    ids = os.path.join(context.scratch, "ids")
    words = ("perf-fix", "--root", empty, "--buildid-dir", ids, "-o", data + ".fixed")
    without = context.mapgen.run(*words, data)
    missing = [line for line in without.stderr.splitlines() if "not on this machine" in line]
    expect(len(missing) == 1 and re.search(r"\d+ \.NET files are not on this machine \(\S+\.dll, \.\.\.\)", missing[0]), f"not one line about missing files: {without.stderr!r}")
    fixed = context.mapgen.run(*words, "--perf-maps", maps, data)
    expect("not on this machine" not in fixed.stderr, f"the saved map does not serve: {fixed.stderr.strip()}")
    text = subprocess.run(["perf", "--buildid-dir", ids, "script", "-i", data + ".fixed", "-F", "ip,sym,dso"], capture_output=True, text=True, timeout=60).stdout
    unnamed = [line for line in text.splitlines() if ".dll" in line and "[unknown]" in line]
    expect(".dll" in text and not unnamed, f"precompiled frames without a name: {unnamed[:3]}")
