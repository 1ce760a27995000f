# SPDX-License-Identifier: MIT
"""merge beside a runtime that keeps writing: nothing of either side is lost."""
import contextlib
import glob
import os
import re
import shutil
import signal
import subprocess

from harness import Sample, Skip, expect, read_map, without_tier
from live_contract import read_ours, torture_runtime
from waiting import is_in_time, wait_until

MAP_ON = {"DOTNET_PerfMapEnabled": "1"}


def content(path):
    with open(path, "rb") as file:
        return file.read()


def whole_lines(data, what):
    """Every line is START SIZE NAME, and the last one is whole."""
    expect(data.endswith(b"\n"), f"{what}: the last line is torn")
    for line in data.splitlines():
        fields = line.split(b" ", 2)
        expect(len(fields) == 3 and int(fields[0], 16) and int(fields[1], 16) >= 0, f"{what}: bad line {line[:80]!r}")


def counted(text):
    """The counts of merge for the process, without the number of lines that it wrote."""
    return re.findall(r"(\d+) (images|precompiled symbols|lines of the runtime|functions without a name|linkage stubs)", text)


def precompiled(rows):
    return [row for row in rows if row[2].endswith("[PreJIT]")]


def writers_of(path):
    """The processes that have a file open."""
    found = set()
    for link in glob.glob("/proc/[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            if os.readlink(link) == path:
                found.add(int(link.split("/")[2]))
    return found


def wait_for_growth(path, size, seconds=30):
    """Until the runtime has added to its map; a sample whose code has all been jitted is not kept waiting."""
    return is_in_time(lambda: os.path.getsize(path) > size, seconds)


def test_append_keeps_our_lines_and_the_runtimes(context):
    with Sample(context.sdk(), MAP_ON) as sample:
        before = content(sample.map_path)
        inode = os.stat(sample.map_path).st_ino
        done = context.mapgen.must("merge", sample.pid, "--mode=append")
        merged = content(sample.map_path)
        expect(os.stat(sample.map_path).st_ino == inode, "the file is another one")
        expect(merged.startswith(before), "the runtime's own lines were changed")
        whole_lines(merged, "after merge")
        ours = precompiled(read_map(sample.map_path))
        expect(len(ours) > 1000, f"only {len(ours)} precompiled methods")
        if not wait_for_growth(sample.map_path, len(merged)):
            raise Skip("the runtime jitted nothing more in 30 s")
        grown = content(sample.map_path)
        expect(grown.startswith(merged), "lines were overwritten when the runtime wrote on")
        whole_lines(grown, "after the runtime wrote on")
        context.figure(f"{len(ours)} lines added, runtime added {len(grown) - len(merged)} bytes behind them; said: "
                       f"{done.stdout.strip().splitlines()[-1]}")


def test_second_merge_writes_nothing(context):
    with Sample(context.sdk(), {"DOTNET_PerfMapEnabled": "0"}, resting=True) as sample:
        sample.stand_still()  # else it has jitted more in between
        said = counted(context.mapgen.must("merge", sample.pid).stdout)
        first_state = os.stat(sample.map_path)
        first = content(sample.map_path)
        again = counted(context.mapgen.must("merge", sample.pid).stdout)
        expect(said and said == again, f"counted {said}, then {again}")
        second_state = os.stat(sample.map_path)
        expect(content(sample.map_path) == first, "the bytes changed")
        expect((first_state.st_ino, first_state.st_mtime_ns) == (second_state.st_ino, second_state.st_mtime_ns),
               "the file was written again")
        expect(first_state.st_mode & 0o777 == 0o644, f"its mode is {first_state.st_mode & 0o777:o}")
        whole_lines(first, "the map")


LIBRARY = """
static __attribute__((noinline)) int hidden(int x) { return x * 31 + 7; }
__attribute__((noinline)) int exported(int x) { return hidden(x) + hidden(x + 1); }
"""


def stripped_library(directory):
    """A stripped library whose debug file is to lie in .debug beside it: (library, what a map has for `hidden`, where to put the file, it)."""
    source, library, debug = (os.path.join(directory, name) for name in ("late.c", "liblate.so", "liblate.so.debug"))
    with open(source, "w", encoding="utf-8") as file:
        file.write(LIBRARY)
    for command in (["gcc", "-O1", "-g", "-shared", "-fPIC", "-o", library, source], ["objcopy", "--only-keep-debug", library, debug],
                    ["strip", library], ["objcopy", f"--add-gnu-debuglink={debug}", library]):
        if not shutil.which(command[0]):
            raise Skip(f"{command[0]} is not installed")
        subprocess.run(command, check=True, timeout=60)
        if command[0] == "gcc":
            table = subprocess.run(["nm", library], check=True, capture_output=True, text=True, timeout=60).stdout
    vaddr = next(int(line.split()[0], 16) for line in table.splitlines() if line.endswith(" hidden"))
    place = os.path.join(directory, ".debug", "liblate.so.debug")
    os.makedirs(os.path.dirname(place))
    aside = os.path.join(directory, "aside")
    os.rename(debug, aside)
    return library, f"liblate.so!0x{vaddr:x}", place, aside


def names_in(path):
    return {name for *_, name in read_map(path)}


def test_debug_files_that_were_installed_since_are_seen(context):
    """As dotnet-mapgen fetch-symbols or a package brings them: who reads the map has the names now, so the next merge takes out the bounds
    that stood for them, and the one after it has nothing to do."""
    library, bounds, place, aside = stripped_library(context.directory("late"))
    with Sample(context.sdk(), {"DOTNET_PerfMapEnabled": "0", "LD_PRELOAD": library}, resting=True) as sample:
        sample.stand_still()
        context.mapgen.must("merge", sample.pid)
        expect(bounds in names_in(sample.map_path), "no bounds of a stripped library")
        expect("was complete" in context.mapgen.must("merge", sample.pid).stdout, "the second merge does it all again")
        os.rename(aside, place)
        said = context.mapgen.must("merge", sample.pid).stdout
        expect(bounds not in names_in(sample.map_path), f"{bounds} stayed: {said}")
        expect("was complete" in context.mapgen.must("merge", sample.pid).stdout, "the fourth merge does it all again")


def test_second_append_adds_no_line_twice(context):
    with Sample(context.sdk(), MAP_ON, resting=True) as sample:
        context.mapgen.must("merge", sample.pid, "--mode=append")
        first = len(precompiled(read_map(sample.map_path)))
        context.mapgen.must("merge", sample.pid, "--mode=append")
        rows = precompiled(read_map(sample.map_path))
        expect(len(rows) == len(set(rows)), f"{len(rows) - len(set(rows))} lines stand there twice")
        expect(len(rows) >= first, "lines have gone")


def test_two_appends_at_once_add_no_line_twice(context):
    with Sample(context.sdk(), MAP_ON, resting=True) as sample:
        merges = [subprocess.Popen([context.mapgen.program, "merge", "--mode=append", str(sample.pid)], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=context.mapgen.environment) for _ in range(3)]
        codes = [merge.wait(timeout=120) for merge in merges]
        expect(codes == [0, 0, 0], f"exit codes {codes}")
        rows = precompiled(read_map(sample.map_path))
        expect(len(rows) > 1000 and len(rows) == len(set(rows)), f"{len(rows) - len(set(rows))} of {len(rows)} lines stand there twice")


def without_last_lines(path, count):
    """A map as a runtime has it that has jitted so many methods and is about to write them down."""
    data = content(path)
    lines = data[:data.rindex(b"\n") + 1].splitlines(keepends=True)
    os.truncate(path, sum(map(len, lines[:-count])))


def test_what_was_appended_is_counted_alike_by_the_next_merge(context):
    with Sample(context.sdk(), MAP_ON, resting=True) as sample:
        sample.stand_still()
        without_last_lines(sample.map_path, 8)
        said = []
        for _ in range(2):
            said.append(counted(context.mapgen.must("merge", "--mode=append", sample.pid).stdout))
        expect(said[0] and said[0] == said[1], f"counted {said[0]}, then {said[1]}")


def test_what_a_wrecked_line_hides_from_others_is_appended(context):
    """The runtime loses the newline behind a name that is not ASCII: perf and BCC see no line in what is glued on."""
    with Sample(torture_runtime(context), MAP_ON, argument="settle") as sample:
        sample.stand_still()

        def unseen():
            lines = (re.match(rb"(?:0x)?([0-9A-Fa-f]+) [0-9A-Fa-f]+ .", line) for line in content(sample.map_path).split(b"\n"))
            return set(methods) - {int(line[1], 16) for line in lines if line}

        methods = read_ours(context, sample.pid)[0]
        before = unseen()
        context.mapgen.must("merge", "--mode=append", sample.pid)
        after, size = unseen(), os.path.getsize(sample.map_path)
        context.mapgen.must("merge", "--mode=append", sample.pid)
        context.figure(f"of {len(methods)} methods {len(before)} had no line of their own, {len(after)} have none then")
        expect(before, "the runtime wrecked no line")
        expect(not after, f"nobody sees {[methods[start] for start in after][:3]}")
        expect(os.path.getsize(sample.map_path) == size, "they were appended twice")


def test_replace_and_undo(context):
    with Sample(context.sdk(), MAP_ON, resting=True) as sample:
        inode = os.stat(sample.map_path).st_ino
        context.mapgen.must("merge", sample.pid, "--mode=replace")
        rows = read_map(sample.map_path)
        expect(os.stat(sample.map_path).st_ino != inode, "the runtime's file was not replaced")
        expect(os.stat(sample.map_path + ".runtime").st_ino == inode, "the runtime's file is not kept as .runtime")
        expect(all(rows[i][0] + rows[i][1] <= rows[i + 1][0] for i in range(len(rows) - 1)), "not sorted and disjoint")
        expect(len(precompiled(rows)) > 1000, "no precompiled methods")
        context.mapgen.must("merge", "--undo", sample.pid)
        expect(os.stat(sample.map_path).st_ino == inode, "undo did not put the runtime's file back")
        expect(not os.path.exists(sample.map_path + ".runtime"), "undo left the link behind")
        expect(not precompiled(read_map(sample.map_path)), "undo left our lines")


def test_nothing_is_appended_behind_half_a_line(context):
    with Sample(context.sdk(), MAP_ON, resting=True) as sample:
        sample.stand_still()
        with open(sample.map_path, "ab") as file:
            file.write(b"7f0000001000 10 half of a na")
        before = content(sample.map_path)
        refused = context.mapgen.run("merge", "--mode=append", sample.pid)
        expect(refused.returncode == 1 and "ends within a line" in refused.stderr, f"{refused.returncode}: {refused.stderr}")
        expect(content(sample.map_path) == before, "something was appended")
        done = context.mapgen.must("merge", sample.pid)
        merged = content(sample.map_path)
        expect("ends within a line" in done.stderr and b"half of a na" not in merged, f"half a name is in the map: {done.stderr}")
        whole_lines(merged, "after merge")
        context.mapgen.must("merge", "--undo", sample.pid)
        expect(content(sample.map_path).startswith(before), "the runtime's map is not back")


def test_one_method_has_one_name(context):
    """Precompiled and jitted code of one method carry one name, tier aside."""
    output = os.path.join(context.scratch, "names.map")
    context.oracle()
    with Sample(context.sdk(), MAP_ON) as sample:
        wait_until(lambda: sum("[OptimizedTier1]" in name or "[Instrumented" in name for *_, name in read_map(sample.map_path)) >= 500,
                   "tiering compiled few methods again", 300, 0.2)
        rundown = context.rundown(sample.pid)
        context.mapgen.must("merge", sample.pid, "-o", output)
        own = {start: name for start, _, name in read_map(sample.map_path)}
    names = {start: name for start, _, name in read_map(output)}
    jitted, ours = {}, {}
    for kind, start, _, owner, method in rundown:
        if kind == "jit" and start in own:
            jitted.setdefault((owner, method), set()).add(without_tier(own[start]))
        elif kind == "r2r" and start in names:
            ours.setdefault((owner, method), set()).add(without_tier(names[start]))
    both = [key for key in ours if key in jitted]
    differ = [key for key in both if not ours[key] & jitted[key]]
    # Overloads share type and method name: only those with one signature on both sides say anything.
    differ = [(*ours[key], *jitted[key]) for key in differ if len(ours[key]) == 1 and len(jitted[key]) == 1]
    two_names = [pair for pair in differ if pair[0].split("(")[0] != pair[1].split("(")[0]]
    context.figure(f"{len(both)} methods ran precompiled and jitted; {len(two_names)} have two names")
    for one, other in set(differ) - set(two_names):
        context.figure(f"overloads, one jitted and one not: {one} and {other}")
    expect(len(both) > 100, f"only {len(both)} methods ran in both forms")
    expect(not two_names, f"{len(two_names)} methods have two names, first {two_names[:1]}")


class MapStates:
    """The runtime's map as it was, and what is found in its place after each kill."""

    def __init__(self, context, sample):
        self.context, self.sample = context, sample
        sample.stand_still()
        self.before = content(sample.map_path)
        self.seen = {}

    def note(self, state):
        self.seen[state] = self.seen.get(state, 0) + 1

    def states(self):
        return ", ".join(f"{state} {count}" for state, count in sorted(self.seen.items()))


class Replaced(MapStates):
    def __init__(self, context, sample):
        super().__init__(context, sample)
        self.new = None

    def reset(self):
        self.new = self.new or content(self.sample.map_path)
        self.context.mapgen.run("merge", "--undo", self.sample.pid)
        expect(content(self.sample.map_path) == self.before, "undo did not put the runtime's lines back")

    def look(self):
        data = content(self.sample.map_path)
        expect(data in (self.before, self.new), "neither the old map nor the new one")
        kept = self.sample.map_path + ".runtime"
        expect(data == self.before or content(kept) == self.before, "the runtime's lines were lost")
        self.note("old" if data == self.before else "new")


class Appended(MapStates):
    def reset(self):
        # In place: the runtime holds the file open, and appends to it.
        os.truncate(self.sample.map_path, len(self.before))

    def look(self):
        # A process of its own may finish an append after merge has ended.
        wait_until(lambda: writers_of(self.sample.map_path) <= {self.sample.pid}, "an append does not end")
        data = content(self.sample.map_path)
        expect(data.startswith(self.before), "the runtime's lines were changed")
        whole_lines(data, "after a kill")
        self.note("old" if data == self.before else "whole lines added")


# Everything by which merge changes a file. A process that ends elsewhere leaves what the last of these has left.
CHANGING_CALLS = ("write,pwrite64,writev,pwritev,openat,openat2,rename,renameat,renameat2,link,linkat,unlink,unlinkat,"
                  "fchmod,fchown,ftruncate,fallocate,fcntl,pidfd_getfd,copy_file_range,sendfile")
READING = re.compile(r"openat2?\((?!.*O_(?:WRONLY|RDWR|CREAT|TRUNC|TMPFILE))|fcntl\(\d+, F_(?:GET|DUP)")


def strace(context, mode, sample, *options):
    return subprocess.run(["strace", "-qq", "-e", "signal=none", *options, context.mapgen.program, "merge", str(sample.pid), f"--mode={mode}"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          env=context.mapgen.environment, timeout=120).returncode


def changing_calls(context, mode, sample):
    """[(name, n)]: the n-th call of that name changes something; strace counts each name by itself."""
    log = os.path.join(context.scratch, "calls")
    expect(strace(context, mode, sample, "-o", log, "-e", f"trace={CHANGING_CALLS}") == 0, "no run came to its end")
    counts, calls = {}, []
    for line in content(log).decode(errors="replace").splitlines():
        name = line.partition("(")[0]
        counts[name] = counts.get(name, 0) + 1
        if not READING.match(line):
            calls.append((name, counts[name]))
    return calls


def kill_at_every_change(context, sample, mode, check):
    """Ends merge by SIGKILL at each of the system calls by which it changes something, before that call."""
    if not shutil.which("strace"):
        raise Skip("strace is not installed (package strace)")
    context.mapgen.must("merge", sample.pid, f"--mode={mode}")
    check.reset()
    calls = changing_calls(context, mode, sample)
    check.look()
    whole = 0
    for name, count in calls:
        check.reset()
        code = strace(context, mode, sample, "-o", os.devnull, "-e", f"trace={name}",
                      "-e", f"inject={name}:signal=KILL:when={count}")
        # A run may have fewer calls than the first one.
        whole += code == 0
        expect(code in (0, -signal.SIGKILL, 128 + signal.SIGKILL), f"strace ended with {code} at {name} {count}")
        check.look()
    expect(whole * 4 <= len(calls), f"{whole} of {len(calls)} runs came to their end")
    context.figure(f"killed at each of {len(calls)} system calls; states seen: {check.states()}")
    expect(len(calls) > 3, f"only {calls} change something")
    expect(len(check.seen) == 2, "only one state was seen")


def test_killed_replace_leaves_the_old_map_or_the_new_one(context):
    with Sample(context.sdk(), MAP_ON, resting=True) as sample:
        kill_at_every_change(context, sample, "replace", Replaced(context, sample))


def test_killed_append_leaves_whole_lines(context):
    with Sample(context.sdk(), MAP_ON, resting=True) as sample:
        kill_at_every_change(context, sample, "append", Appended(context, sample))
