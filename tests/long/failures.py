#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each call that can fail is made to fail once for each place that it is called from, in every command.

tests/support/preload/fail_once.c says what a place is. The same result as without the failure is right, and so is a report with
exit code 1 or 3; everything else is not: a signal, a wait without end, another result without a word, a file left behind.
Usage: failures.py --build DIR [--quick] [NAME...]
"""
import argparse
import collections
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

from long_inputs import HERE, Inputs, Target, read, write

PRELOAD = os.path.join(HERE, "..", "support", "preload", "fail_once.c")
QUICK_PLACES = 30  # of each command in `make check`
LONGEST_SECONDS = 120  # what waits without end does so on a busy machine as well
RUNS_FOR_WHOLE_STACKS = 10
SHOWN = 12
# After a failure of these the file that was to be removed stays.
REMOVERS = ("unlink", "unlinkat", "rmdir", "rename", "renameat", "renameat2", "readdir64", "closedir", "fdopendir", "opendir")
# EIO is what the kernel answers for memory that is not mapped: no failure, so it need not be reported.
ANSWERS = ("process_read_memory",)
# A reason in the place of a name, which is a report as well.
REASONS = ("[", "not readable", "error", "reason", "trouble")

Result = collections.namedtuple("Result", "code out err files before")


class Case:
    """A command line. The files in the directories `outputs` belong to the result; of recordings only their names do. `reset` runs
    before each run. `broken` returns what was damaged beside the result. `cut` matches the message about a stack that ends early: that
    output counts as reported although the exit code is that of a whole one, and a busy machine causes it as well. `ignored` matches
    what may differ between two runs."""

    def __init__(self, name, *words, stdin=None, outputs=(), names_alone=False, reset=lambda: None, codes=(0, 3), ignored=None,
                 broken=lambda: None, cut=None):
        self.name, self.words, self.stdin, self.outputs = name, [str(word) for word in words], stdin, outputs
        self.names_alone, self.cut = names_alone, cut
        self.reset, self.codes, self.ignored, self.broken = reset, codes, ignored, broken


def files_below(directories, names_alone):
    found = {}
    for directory in directories:
        for place, _, names in os.walk(directory):
            for name in names:
                path = os.path.join(place, name)
                if not os.path.islink(path) or os.path.dirname(path).endswith("/maps"):
                    if os.path.exists(path):
                        found[path] = b"" if names_alone else read(path)
                else:
                    found[path] = os.readlink(path).encode()
    return found


class Runner:
    def __init__(self, build, scratch, target):
        self.build, self.scratch, self.target = os.path.abspath(build), scratch, target
        self.program = os.path.join(self.build, "dotnet-mapgen")
        self.log = os.path.join(scratch, "places")
        self.cache = os.path.join(scratch, "cache")
        self.counting = self.counting_code()
        self.library = os.path.join(scratch, "fail_once.so")
        subprocess.run(["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-shared", "-fPIC", "-O1", "-fno-builtin", "-fexceptions", "-static-libgcc",
                        "-o", self.library, PRELOAD], check=True)

    def run(self, case, place=None):
        if os.path.exists(self.log):
            os.unlink(self.log)
        shutil.rmtree(self.cache, ignore_errors=True)
        case.reset()
        self.target.wait_until_it_waits()
        before = files_below(case.outputs, case.names_alone)
        environment = dict(os.environ, XDG_CACHE_HOME=self.cache, LC_ALL="C.UTF-8", LD_PRELOAD=self.library,
                           FAIL_OBJECT="/dotnet-mapgen", FAIL_LOG=self.log)
        if place:
            environment["FAIL_PLACE"] = place
        done = subprocess.run([self.program, *case.words], input=case.stdin, capture_output=True, env=environment,
                              timeout=LONGEST_SECONDS, **({} if case.stdin is not None else {"stdin": subprocess.DEVNULL}))
        out = re.sub(case.ignored, b"", done.stdout) if case.ignored else done.stdout
        return Result(done.returncode, out, done.stderr, files_below(case.outputs, case.names_alone), before)

    def run_whole(self, case):
        """A run without any failure whose stacks are whole."""
        for _ in range(RUNS_FOR_WHOLE_STACKS):
            result = self.run(case)
            if not case.cut or not any(re.search(case.cut, line) for line in result.out.splitlines()):
                break
        return result

    def places(self):
        """[(function, hash, addresses)] of the last run."""
        if not os.path.exists(self.log):
            return []
        found = []
        for line in read(self.log).decode().splitlines():
            words = line.split()
            addresses = [int(word, 16) for word in words[2:] if word != "failed"]
            if not any(start <= address < end for address in addresses for start, end in self.counting):
                found.append((words[0], words[1], words[2:]))
        return found

    def counting_code(self):
        """[(start, end)] of what writes the counts of a build with GCOV=1, whose calls are not the command's."""
        lines = subprocess.run(["nm", "-S", self.program], capture_output=True, text=True, check=True).stdout.splitlines()
        rows = [line.split() for line in lines if "gcov_" in line]
        return [(int(row[0], 16), int(row[0], 16) + int(row[1], 16)) for row in rows if len(row) == 4]

    def where(self, addresses):
        """Function and line of each address."""
        done = subprocess.run(["addr2line", "-sfe", self.program, *(f"{int(word, 16) - 1:#x}" for word in addresses if word != "failed")],
                              capture_output=True, text=True)
        lines = done.stdout.splitlines()
        return " < ".join(f"{name} {line}" for name, line in zip(lines[::2], lines[1::2]))


def new_lines(new, old):
    return set(new.splitlines()) - set(old.splitlines())


def difference(result, expected):
    """The first line that differs, or the file."""
    if result.out != expected.out:
        for old, new in itertools.zip_longest(expected.out.splitlines(), result.out.splitlines(), fillvalue=b"(end)"):
            if old != new:
                return f"{new[-150:].decode(errors='replace')!r} for {old[-150:].decode(errors='replace')!r}"
    changed = [os.path.basename(path) for path in set(result.files) | set(expected.files) if result.files.get(path) != expected.files.get(path)]
    return f"other files: {changed}" if changed else "the same result"


def fault(case, function, result, expected):
    """The fault of a result, or None; and how it went."""
    if result.code < 0:
        return f"signal {-result.code}", ""
    same = result.out == expected.out and result.files == expected.files
    if result.code == expected.code and same:
        return None, "equal"
    if case.cut and result.code == expected.code and any(re.search(case.cut, line) for line in new_lines(result.out, expected.out)):
        return None, "reported"
    left = set(result.files) - set(expected.files) - set(result.before)
    if left and function not in REMOVERS and result.code != 3:
        return f"exit code {result.code}, left behind: {sorted(os.path.basename(path) for path in left)}", ""
    # bcc ends as env(1) does where the tool cannot be started.
    if result.code not in (1, 3) and not (function.startswith("exec") and result.code == 126 and result.err):
        return f"exit code {result.code} with {difference(result, expected)}, said {result.err[-100:]!r}", ""
    said = new_lines(result.err, expected.err)
    reasons = any(word.encode() in line for line in new_lines(result.out, expected.out) for word in REASONS)
    if not said and not reasons:
        return f"exit code {result.code} and nothing said", ""
    return None, "reported"


def check(runner, case, quick):
    expected = runner.run_whole(case)
    if expected.code not in case.codes:
        return [f"alone: exit code {expected.code}: {expected.err[-300:]!r}"], "not begun"
    places = runner.places()
    again = runner.run_whole(case)
    if again._replace(err=b"") != expected._replace(err=b""):
        return [f"two runs differ without any failure: {difference(again, expected)}"], "not begun"
    if quick and len(places) > QUICK_PLACES:
        places = [places[i * len(places) // QUICK_PLACES] for i in range(QUICK_PLACES)]
    counts, wrong, slowest = collections.Counter(), [], (0, "", [])
    begin = time.monotonic()
    for function, place, addresses in places:
        started = time.monotonic()
        try:
            result = runner.run(case, place)
        except subprocess.TimeoutExpired:
            wrong.append(f"{function}: no end after {LONGEST_SECONDS} s: {runner.where(addresses)}")
            continue
        if not runner.places():
            counts["not met again"] += 1
            continue
        why, how = fault(case, function, result, expected)
        where = runner.where(addresses) if why else ""
        if any(word in where for word in ANSWERS) and result.code == expected.code:
            why, how = None, "answered"
        why = case.broken() or why
        slowest = max(slowest, (time.monotonic() - started, function, addresses))
        counts[how if why is None else "wrong"] += 1
        if why:
            wrong.append(f"{function} ({place}): {why}: {where}")
    summary = ", ".join(f"{count} {how}" for how, count in sorted(counts.items()))
    slow = f", {slowest[0]:.0f} s of them {slowest[1]}: {runner.where(slowest[2])}" if slowest[0] > 2 else ""
    return wrong, f"{len(places)} places: {summary}; {time.monotonic() - begin:.0f} s{slow}"


def empty(directory):
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)


def cases(inputs, target):
    out = inputs.path("out")
    pid, rec = inputs.pid, ("--root", inputs.recorded)
    core, core_addresses = inputs.core()
    perf = inputs.recorded_perf_data()
    stripped, debug = inputs.debug_tree()
    stacks = inputs.stack_text(inputs.recorded_addresses())
    addresses = [hex(address) for address in target.addresses()]
    recorded = [hex(address) for address in inputs.recorded_addresses()]
    questions = "".join(line + "\n" for line in addresses).encode()

    def new_out():
        empty(out)

    def own_map():
        empty(out)
        target.put_map_back()

    def whole_lines():
        target.put_map_back(target.map_text.rpartition(b"\n")[0] + b"\n")

    def map_is_lost():
        return "the file that the process writes is lost" if target.map_is_lost() else None

    def replaced():
        own_map()
        subprocess.run([os.path.join(inputs.build, "dotnet-mapgen"), "merge", "--jit=none", "--mode=replace", str(target.pid)], capture_output=True)

    def installed():
        empty(out)
        subprocess.run([os.path.join(inputs.build, "dotnet-mapgen"), "standin", "install", inputs.assembly, "--debug-tree", out], capture_output=True)

    def in_place():
        empty(out)
        shutil.copy(perf, os.path.join(out, "perf.data"))

    def fixed():
        in_place()
        subprocess.run([os.path.join(inputs.build, "dotnet-mapgen"), "perf-fix", *rec, "--in-place", "--buildid-dir", os.path.join(out, "ids"),
                        os.path.join(out, "perf.data")], capture_output=True)

    maps = inputs.path("maps")

    yield Case("list recorded", "list", *rec)
    yield Case("list as JSON", "list", *rec, "--json")
    yield Case("list one", "list", target.pid)
    yield Case("info recorded", "info", pid, *rec)
    yield Case("info", "info", target.pid, "--json")
    yield Case("generate file", "generate", inputs.assembly, "-o", out, reset=new_out, outputs=(out,))
    yield Case("generate process", "generate", target.pid, "--format=r2rmap", "-o", out, reset=new_out, outputs=(out,))
    yield Case("generate into the cache", "generate", inputs.assembly)
    yield Case("merge to standard output", "merge", target.pid, "--jit=none", "-o", "-", reset=own_map)
    yield Case("merge to a file", "merge", target.pid, "-o", os.path.join(out, "map"), reset=own_map, outputs=(out,))
    yield Case("merge by append", "merge", target.pid, "--jit=perfmap", reset=whole_lines, outputs=(maps,), broken=map_is_lost)
    yield Case("merge by replacement", "merge", target.pid, "--jit=rundown", "--mode=replace", reset=own_map, outputs=(maps,), broken=map_is_lost)
    yield Case("merge of half a line", "merge", target.pid, "--jit=none", reset=own_map, outputs=(maps,), broken=map_is_lost)
    yield Case("merge undone", "merge", target.pid, "--undo", reset=replaced, outputs=(maps,), broken=map_is_lost)
    yield Case("watch", "watch", target.pid, "--for=0.1", "--interval=0.05", "-o", os.path.join(out, "map"), reset=own_map, outputs=(out,),
               ignored=rb"\d+ refreshes|watched for [\d.]+ s|;[^;]*s of CPU.*")
    yield Case("resolve recorded", "resolve", pid, *rec, *recorded)
    yield Case("resolve from standard input", "resolve", target.pid, stdin=questions, reset=own_map)
    yield Case("resolve with lines", "resolve", target.pid, "--lines", "--inlines", "--json", *addresses, reset=own_map)
    yield Case("resolve a file", "resolve", "--lines", "--inlines", *inputs.library_questions())
    yield Case("resolve by debug file", "resolve", "--lines", "--debug-dir", debug, stripped + "+0x1000", stripped + "+0x1020")
    yield Case("resolve a core", "resolve", "--core", core, *map(hex, core_addresses))
    yield Case("symbolize recorded", "symbolize", *rec, "-v", stacks)
    yield Case("symbolize", "symbolize", target.pid, stdin=read(inputs.stack_text(target.addresses(), pid=target.pid)), reset=own_map)
    yield Case("symbols offline", "fetch-symbols", target.pid, "--offline", codes=(0, 1, 3))
    yield Case("symbols of no server", "fetch-symbols", target.pid, "--server", "http://127.0.0.1:9", "--debug-tree", out, reset=new_out, outputs=(out,), codes=(0, 1, 3))
    yield Case("bcc", "bcc", "--", "/bin/true", codes=(0,))
    yield Case("perf-fix", "perf-fix", *rec, perf, "-o", os.path.join(out, "fixed"), "--buildid-dir", os.path.join(out, "ids"), reset=new_out, outputs=(out,))
    yield Case("perf-fix by maps", "perf-fix", *rec, perf, "--via=perfmap", "-o", os.path.join(out, "fixed"), "--buildid-dir", os.path.join(out, "ids"),
               reset=new_out, outputs=(out,))
    yield Case("perf-fix in place", "perf-fix", *rec, os.path.join(out, "perf.data"), "--in-place", "--buildid-dir", os.path.join(out, "ids"),
               reset=in_place, outputs=(out,))
    yield Case("perf-fix undone", "perf-fix", "--undo", os.path.join(out, "perf.data"), "--buildid-dir", os.path.join(out, "ids"), reset=fixed, outputs=(out,))
    yield Case("standin install", "standin", "install", inputs.assembly, "--debug-tree", out, reset=new_out, outputs=(out,))
    yield Case("standin list", "standin", "list", "--debug-tree", out, reset=installed, outputs=(out,))
    yield Case("standin remove", "standin", "remove", "--debug-tree", out, reset=installed, outputs=(out,))


def cases_of_recordings(inputs, target):
    """Two recordings never hold the same."""
    out, steady = inputs.path("out"), inputs.recorded_perf_data()
    archive = inputs.path("busy.trace.zip")
    # Parts that a busy machine changes: figures, and the lines that say what was left out.
    counted = (rb"; [\d.]+ % of stacks whole|\d+ CPU samples|\d+ context switches|[\d.]+ (s|ms|%)"
               rb"|(?m:^  (\d+ (records|waits|context switches|stacks?|samples) |the kernel left out )[^\n]*\n)")
    # A thread that was stopped a moment ago still runs, or is still stopped.
    moment = rb'held for at most [\d.]+ ms|"held_us": \d+|"state": "\w?"|(?m:  (running|sleeping|in uninterruptible sleep|stopped)$)'
    cut = rb'no stack: |the stack ends here|"whole": false|^thread \d+$|"name": ""'

    def new_out():
        empty(out)

    with inputs.busy() as pid:
        subprocess.run([os.path.join(inputs.build, "dotnet-mapgen"), "record", pid, "--for=0.3", "--off-cpu", "-o", archive],
                       check=True, capture_output=True)
    yield Case("stack", "stack", target.pid, ignored=moment, cut=cut)
    yield Case("stack as JSON", "stack", target.pid, "--json", ignored=moment, cut=cut)
    for name, file in (("perf.data", steady), ("an archive", archive)):
        yield Case(f"report of {name}", "report", "-i", file)
        yield Case(f"report of {name} as folded stacks", "report", "cpu", "-i", file, "--format=folded")
    yield Case("report by threads", "report", "threads", "-i", archive)
    yield Case("report of waiting", "report", "off-cpu", "-i", archive, "--by=tree")
    with inputs.busy() as pid:
        yield Case("record to perf.data", "record", pid, "--for=0.1", "-o", os.path.join(out, "r.data"), reset=new_out, outputs=(out,),
                   names_alone=True, ignored=counted)
        yield Case("record to an archive", "record", pid, "--for=0.1", "--off-cpu", "-o", os.path.join(out, "r.trace.zip"), reset=new_out,
                   outputs=(out,), names_alone=True, ignored=counted)


def link_maps(inputs, target):
    """A directory with links to the target's maps alone."""
    directory = os.path.join(inputs.scratch, "maps")
    os.makedirs(directory, exist_ok=True)
    for name in ("", ".runtime"):
        os.symlink(f"/tmp/perf-{target.pid}.map{name}", os.path.join(directory, "map" + name))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    passed = True
    with tempfile.TemporaryDirectory(prefix="libsym-failures-") as scratch:
        inputs = Inputs(scratch)
        inputs.build = os.path.abspath(options.build)
        with Target(inputs) as target:
            runner = Runner(options.build, scratch, target)
            link_maps(inputs, target)
            for case in itertools.chain(cases(inputs, target), cases_of_recordings(inputs, target)):
                name = "one call fails: " + case.name
                if options.names and not any(word in case.name for word in options.names):
                    continue
                wrong, summary = check(runner, case, options.quick)
                print(f"    {summary}")
                for line in wrong[:SHOWN]:
                    print("    " + line)
                print(f"FAILED {name}: {len(wrong)} places" if wrong else f"ok {name}", flush=True)
                passed = passed and not wrong
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
