# SPDX-License-Identifier: MIT
"""dotnet-mapgen watch: the map stays complete while a process goes on, at next to no cost.

The oracle is the perf map that the same process writes about itself, read when
it stands still.
"""
import json
import os
import signal
import subprocess
import time

import shapes
from harness import Sample, Skip, expect, read_map
from live_contract import LINE, TIER, read_methods, reload_runtime, torture_runtime
from live_refresh import wait_for_more
from runner import exclusive
from waiting import is_in_time, wait_for_turns, wait_until


# Between two looks at a map of 100,000 lines, which takes a tenth of a second.
PAUSE_SECONDS = 0.3


class Watch:
    """A running `watch --json`."""

    def __init__(self, context, pid, *options):
        self.process = subprocess.Popen([context.mapgen.program, "watch", str(pid), "--json", *options],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env=context.mapgen.environment)

    def report(self, end=None, codes=(0,)):
        """Its report at the end; `end` is a signal that ends it."""
        if end:
            self.process.send_signal(end)
        output, errors = self.process.communicate(timeout=120)
        expect(self.process.returncode in codes, f"exit code {self.process.returncode}: {errors.strip()}")
        return json.loads(output)


def named_methods(path):
    """{start: (size, name without tier)} of a map of ours."""
    methods = {}
    with open(path, "rb") as file:
        for line in file:
            match = LINE.match(line.rstrip(b"\n"))
            if match and TIER.search(match[3]):
                methods[int(match[1], 16)] = (int(match[2], 16), TIER.sub(b"", match[3]))
    return methods


def test_a_watched_map_has_what_is_compiled_meanwhile(context):
    output = os.path.join(context.scratch, "watched.map")
    with Sample(context.sdk(), {"DOTNET_PerfMapEnabled": "3"}) as sample:
        watch = Watch(context, sample.pid, "-o", output, "--interval=0.5", "--jit=memory")
        wait_until(lambda: os.path.exists(output), "no map was written")
        first = named_methods(output)
        wait_for_more(sample, read_methods(sample.map_path)[0])
        sample.stand_still()
        theirs, _ = read_methods(sample.map_path)
        ours, wrong = until_told(output, lambda ours: [start for start, method in theirs.items() if ours.get(start) != method])
        report = watch.report(signal.SIGTERM)
    context.figure(f"{len(first)} methods at first, {len(ours)} in the end: {len(theirs) - len(wrong)} of {len(theirs)} as "
                   f"the runtime has them; {report['refreshes']} refreshes, {report['changes']} with changes, "
                   f"{report['added']} lines added, {report['cpu_percent']:.2f} % of a core")
    expect(report["end"] == "signal", f"it says that it ended by {report['end']}")
    expect(len(ours) > len(first) + 20, "nothing was compiled meanwhile")
    expect(not wrong, f"{len(wrong)} methods differ, first: {theirs[wrong[0]] if wrong else None}")


def until_told(path, differing, seconds=30):
    """A watch, and the runtime that it listens to, may tell somewhat later. (our methods, what differs in the end)"""
    found = {}

    def is_told():
        found["ours"] = named_methods(path)
        found["wrong"] = differing(found["ours"])
        return not found["wrong"]
    is_in_time(is_told, seconds, 0.5)
    return found["ours"], found["wrong"]


def differing_but_freed(theirs, ours, way):
    """(what differs, how many freed dynamic methods are not known); dynamic methods have no signature there: the
    default takes it from the map."""
    wrong, freed = [], 0
    for start, (size, name) in theirs.items():
        mine = ours.get(start)
        if b" dynamicClass::" in name:
            if mine is None:
                freed += 1
                continue
            if way != "auto":
                name = name[name.index(b"dynamicClass"):name.index(b"(", name.index(b"dynamicClass"))]
        if mine != (size, name):
            wrong.append((name, mine))
    return wrong, freed


def compare_followed(context, title, sample, way):
    """Methods that the runtime reports one by one are those that it writes."""
    output = os.path.join(context.scratch, f"followed-{title}.map")
    watch = Watch(context, sample.pid, "-o", output, "--interval=0.5", "--jit=" + way)
    wait_until(lambda: os.path.exists(output), "no map was written")
    first = named_methods(output)
    theirs = wait_for_more(sample, read_methods(sample.map_path)[0])
    ours, wrong = until_told(output, lambda ours: differing_but_freed(theirs, ours, way)[0])
    report = watch.report(signal.SIGTERM)
    freed = differing_but_freed(theirs, ours, way)[1]
    total = len(theirs) - freed
    context.figure(f"{title}: {len(first)} methods at first, {len(ours)} in the end, {total - len(wrong)} of "
                   f"{total} as the runtime has them, {freed} freed dynamic ones aside; {report['cpu_percent']:.2f} % of a core")
    expect(report["jit"]["way"] == "rundown" and report["failed_refreshes"] == 0, f"it says {report}")
    expect(len(ours) > len(first) + 20, "nothing was compiled meanwhile")
    expect(not wrong, f"{len(wrong)} methods differ, first: {wrong[:1]}")


def test_a_watch_follows_what_core_3_1_tells(context):
    with Sample(context.npm(), {"COMPlus_PerfMapEnabled": "1"}) as sample:
        compare_followed(context, "3.1", sample, "auto")


def test_a_watch_follows_what_the_runtime_tells(context):
    with Sample(context.sdk(), {"DOTNET_PerfMapEnabled": "3"}) as sample:
        compare_followed(context, "net10.0", sample, "rundown")


def test_a_watch_that_was_begun_on_a_stopped_process_names_it_when_it_goes_on(context):
    output = os.path.join(context.scratch, "begun-stopped.map")
    with Sample(context.sdk(), {"DOTNET_PerfMapEnabled": "0"}) as sample:
        sample.stand_still()
        watch = Watch(context, sample.pid, "-o", output, "--interval=0.2", "--jit=rundown")
        wait_until(lambda: os.path.exists(output), "no map was written")
        first = named_methods(output)
        sample.process.send_signal(signal.SIGCONT)
        wait_until(lambda: len(named_methods(output)) > len(first) + 100, "jitted code is not named", 20, PAUSE_SECONDS)
        report = watch.report(signal.SIGTERM, codes=(0, 3))  # it has said that names were missing
    expect(report["jit"]["way"] == "rundown", f"it says {report}")


def stop_three_times(context, sample, output):
    watch = Watch(context, sample.pid, "-o", output, "--interval=0.2", "--jit=rundown")
    try:
        wait_until(lambda: os.path.exists(output), "no map was written")
        for _ in range(3):
            wait_for_turns(watch.process, 5)
            sample.stand_still()
            wait_for_turns(watch.process, 5)
            stopped, names = os.stat(output).st_ino, named_methods(output)
            expect(names, "names went while it stood still")
            sample.process.send_signal(signal.SIGCONT)
            wait_until(lambda before=stopped: os.stat(output).st_ino != before, "nothing was added after it went on", 20)
        return watch.report(signal.SIGTERM)
    finally:
        watch.process.kill()
        watch.process.wait()


def test_a_watch_goes_on_after_its_process_was_stopped(context):
    """So much comes and goes that what the runtime tells has gaps, and it cannot be asked while it is stopped."""
    for attempt in range(6):
        with Sample(torture_runtime(context), argument="churn:40000") as sample:
            try:
                report = stop_three_times(context, sample, os.path.join(context.scratch, f"stopped{attempt}.map"))
            except Exception:
                # Runtimes that unload while they are asked die of it now and then (README).
                if sample.alive() or sample.process.returncode not in (-signal.SIGSEGV, -signal.SIGABRT):
                    raise
                continue
        context.figure(f"{report['failed_refreshes']} of {report['refreshes']} looks failed, stopped three times")
        expect(report["jit"]["way"] == "rundown", f"it says {report}")
        return
    raise Skip("the runtime died of being asked, each time")


def lines_of(path):
    with open(path, "rb") as file:
        return set(file)


@exclusive  # its CPU time is measured
def test_watching_a_settled_process_finds_little_to_do(context):
    """And all of it: precodes too, which come with types and not with code, and are looked for ever more seldom."""
    watched, early, late = (os.path.join(context.scratch, f"settled.{name}") for name in ("watched", "early", "late"))
    with Sample(torture_runtime(context), argument="settle") as sample:
        other = Watch(context, sample.pid, "--for=20", "-o", watched)
        watch = Watch(context, sample.pid, "--for=20")
        wait_for_turns(watch.process, 8)
        context.mapgen.must("merge", sample.pid, "-o", early)
        report = watch.report()
        other.report()
        rows = read_map(sample.map_path)
        context.mapgen.must("merge", sample.pid, "-o", late)
    missing = (lines_of(early) & lines_of(late)) - lines_of(watched)
    expect(not missing, f"{len(missing)} lines are missing in what was watched, first {sorted(missing)[:1]}")
    context.figure(f"{len(rows)} lines, {report['refreshes']} refreshes, {report['changes']} with changes: "
                   f"{report['cpu_percent']:.2f} % of one core (goal: under 1 %)")
    expect(report["end"] == "time" and report["refreshes"] >= 15, f"{report['refreshes']} refreshes")
    expect(report["changes"] < report["refreshes"] / 2, f"{report['changes']} changes in {report['refreshes']} refreshes")


def test_a_watch_ends_with_its_process_and_leaves_a_whole_map(context):
    with Sample(context.sdk(), {"DOTNET_PerfMapEnabled": "0"}, resting=True) as sample:
        watch = Watch(context, sample.pid, "--interval=0.2")
        wait_until(lambda: os.path.exists(sample.map_path), "no map was written")
        wait_for_turns(watch.process, 5)
        sample.process.send_signal(signal.SIGKILL)
        sample.process.wait()
        report = watch.report()
        with open(sample.map_path, "rb") as file:
            text = file.read()
        rows = read_map(sample.map_path)
    expect(report["end"] == "process", f"it says that it ended by {report['end']}")
    expect(text.endswith(b"\n") and len(rows) > 10000, f"{len(rows)} lines")
    expect(all(a[0] + a[1] <= b[0] for a, b in zip(rows, rows[1:])), "lines overlap or are not sorted")


def watched_until_killed(context, seconds):
    """The report of a watch with a long interval on a process that is killed: (report, methods at first, in the end, differing, freed, all)."""
    output = os.path.join(context.scratch, f"ended-{seconds}.map")
    with Sample(context.sdk(), {"DOTNET_PerfMapEnabled": "3"}) as sample:
        watch = Watch(context, sample.pid, "-o", output, "--interval=900", "--jit=rundown")
        wait_until(lambda: os.path.exists(output), "no map was written")
        first = named_methods(output)
        wait_until(lambda: len(read_methods(sample.map_path)[0].keys() - first.keys()) >= 20, "nothing was compiled meanwhile",
                   pause=PAUSE_SECONDS)
        theirs, _ = read_methods(sample.map_path)
        time.sleep(seconds)  # the runtime sends its events in turns
        sample.process.send_signal(signal.SIGKILL)
        sample.process.wait()
        report = watch.report()
    ours = named_methods(output)
    wrong, freed = differing_but_freed(theirs, ours, "rundown")
    return report, first, ours, wrong, freed, theirs


def test_a_watch_has_what_the_runtime_told_before_its_process_ended(context):
    """However long its interval is: what has come since the last look is taken in the end. What a busy runtime has not sent dies with it."""
    for seconds in (1, 4, 10):
        report, first, ours, wrong, freed, theirs = watched_until_killed(context, seconds)
        if report["changes"] and not wrong:
            break
    context.figure(f"{len(first)} methods at first, {len(ours)} in the end, {len(wrong)} of {len(theirs)} not as the runtime has them, "
                   f"{freed} freed; {seconds} s after the last")
    expect(report["end"] == "process" and report["changes"] == 1, f"it says {report}")
    expect(not wrong, f"{len(wrong)} methods differ, first: {wrong[:1]}")


def test_a_watch_names_what_hot_reload_adds_while_it_goes_on(context):
    """They are in no metadata that can be read: it starts with the data contract and switches to events."""
    directory = context.directory("reloaded")
    output, sign = os.path.join(directory, "watched.map"), os.path.join(directory, "wait")
    with open(sign, "w", encoding="ascii"):
        pass
    with Sample(reload_runtime(context), {"DOTNET_MODIFIABLE_ASSEMBLIES": "debug"}, argument=directory) as sample:
        watch = Watch(context, sample.pid, "-o", output, "--interval=0.3")
        wait_until(lambda: os.path.exists(output), "nothing was written")
        os.unlink(sign)
        wanted = {b"Hot.Old::Added", b"Hot.New::Other", b"Hot.New::Generic"}

        def missing():
            with open(output, "rb") as file:
                text = file.read()
            return {name for name in wanted if name not in text}

        wait_until(lambda: not missing(), lambda: f"without a name: {missing()}", 30, PAUSE_SECONDS)
        report = watch.report(signal.SIGINT)
    expect(report["jit"]["way"] == "rundown" and any("asked over its diagnostics socket" in note for note in report["notes"]),
           f"it does not say how: {report['jit']} {report['notes']}")


def test_a_watch_that_is_told_keeps_former_bodies_that_hot_reload_has_edited(context):
    """A list of the runtime has the newest bodies only, and the second one comes after five seconds: a thread may be in a former one."""
    directory = context.directory("edited")
    output, sign = os.path.join(directory, "watched.map"), os.path.join(directory, "wait")
    with open(sign, "w", encoding="ascii"):
        pass

    def bodies():
        return {start for start, _, name in read_map(output) if "Hot.Old::Changed" in name}

    with Sample(reload_runtime(context), {"DOTNET_MODIFIABLE_ASSEMBLIES": "debug"}, argument=directory) as sample:
        watch = Watch(context, sample.pid, "-o", output, "--interval=0.3", "--jit=rundown")
        wait_until(lambda: os.path.exists(output), "nothing was written")
        former = bodies()
        os.unlink(sign)
        wait_until(lambda: bodies() - former, "the new body has no name", 30, PAUSE_SECONDS)
        wait_for_turns(watch.process, 30)
        later = bodies()
        watch.report(signal.SIGINT)
    expect(len(former) == 1 and former < later, f"a former body has no name: {former} {later}")


def test_a_watch_appends_where_the_runtime_writes(context):
    with Sample(context.sdk(), {"DOTNET_PerfMapEnabled": "1"}) as sample:
        inode = os.stat(sample.map_path).st_ino
        watch = Watch(context, sample.pid, "--interval=0.3")
        wait_until(lambda: any("[PreJIT]" in row[2] for row in read_map(sample.map_path)), "nothing was appended",
                   pause=PAUSE_SECONDS)
        before = len(read_map(sample.map_path))
        wait_until(lambda: len(read_map(sample.map_path)) > before, "the runtime adds no line", pause=PAUSE_SECONDS)
        wait_for_turns(watch.process, 5)
        report = watch.report(signal.SIGINT)
        rows = read_map(sample.map_path)
        expect(os.stat(sample.map_path).st_ino == inode, "the runtime's file was replaced")
    precompiled = [row for row in rows if row[2].endswith("[PreJIT]")]
    context.figure(f"{before} lines after the first look, {len(rows)} in the end; {report['refreshes']} refreshes")
    expect(len(precompiled) == len(set(precompiled)), "lines were appended twice")
    expect(len(rows) > before, "the runtime's own lines are lost")


def begin_to_write(context, runtime, title):
    """A perf map only when it is asked for; what is known to go wrong is said first, and every method is in it."""
    with Sample(runtime, {"DOTNET_PerfMapEnabled": "0"}, resting=True) as sample:
        context.mapgen.must("merge", sample.pid, "-o", os.path.join(context.scratch, "unasked.map"))
        expect(not os.path.exists(sample.map_path), f"{title}: a perf map is written unasked")
        rundown = [row for row in context.rundown(sample.pid) if row[0] == "jit"]
        done = context.mapgen.must("merge", sample.pid, "--jit=perfmap", "--enable-perfmap", "--json")
        report = json.loads(done.stdout)
        rows = {start: (size, name) for start, size, name in read_map(sample.map_path)}
        again = context.mapgen.must("merge", sample.pid, "--jit=perfmap", "--enable-perfmap")
    expect(report["notes"][0].startswith("known of perf maps"),
           f"{title}: what goes wrong is not said first: {report['notes']}")
    expect("already" in again.stderr, f"{title}: asked twice: {again.stderr}")
    missing = [row for row in rundown if rows.get(row[1], (0, ""))[0] != row[2]]
    precompiled = sum(name.endswith("[PreJIT]") for _, name in rows.values())
    context.figure(f"{title}: {len(rundown) - len(missing)} of {len(rundown)} jitted methods of the rundown are in the map, "
                   f"{precompiled} precompiled ones")
    expect(len(rundown) > 100 and not missing, f"{title}: {len(missing)} methods are missing, first {missing[:1]}")
    expect(precompiled > 10000, f"{title}: no precompiled methods")


def test_a_runtime_begins_to_write_a_perf_map_when_asked_and_only_then(context):
    begin_to_write(context, context.sdk(), "10.0")


def test_runtimes_8_and_9_begin_to_write_a_perf_map_when_asked(context):
    for title in ("8.0 self-contained", "9.0 self-contained", "8.0 single-file"):
        published, why = shapes.publish(next(shape for shape in shapes.SHAPES if shape.title == title))
        if published is None:
            raise Skip(why)
        begin_to_write(context, published, title)


def test_core_3_1_cannot_be_made_to_write_a_perf_map(context):
    with Sample(context.npm(), {"COMPlus_PerfMapEnabled": "0"}) as sample:
        done = context.mapgen.run("merge", sample.pid, "--enable-perfmap")
        expect(done.returncode == 1 and ".NET 8" in done.stderr, f"exit code {done.returncode}: {done.stderr}")
        expect(not os.path.exists(sample.map_path), "a map was written")
