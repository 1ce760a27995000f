# SPDX-License-Identifier: MIT
"""record --events on a program that counts for itself; readers of the files are perf and a reader of nettrace of our own tests."""
import collections
import json
import os
import re
import select
import signal
import struct
import subprocess
import sys
import zipfile

from event_target import Recording, Target, about, cpu_times_of, events_of, events_program, match, samples_of, thread_names
from harness import ROOT, Skip, expect
from live_record import STARTS, dotnet_of

# In a few hundred events, four are within what chance does to the share.
CHANCE = 4

# Without these capabilities there is no BPF.
BY_TRACEFS = ("setpriv", "--bounding-set=-bpf,-sys_admin")


def older_kernel(missing):
    return sys.executable, os.path.join(ROOT, "tests", "dotnet", "older_kernel.py"), missing


def need_tracefs():
    if not os.path.exists("/sys/kernel/tracing/uprobe_events"):
        raise Skip("tracefs is not mounted")


BY_THREAD = older_kernel("bpf,tracefs")


def runtime_events(events, number):
    return [event for event in events if event.provider == "Microsoft-Windows-DotNETRuntime" and event.id == number]


def check_counts(events, before, after):
    """The events are those that the program has counted."""
    generations = collections.Counter(struct.unpack_from("<I", event.payload, 4)[0] for event in runtime_events(events, 1))
    gen0, gen1, gen2 = (after[i] - before[i] for i in range(3))
    expect((generations[0], generations[1], generations[2]) == (gen0 - gen1, gen1 - gen2, gen2),
           f"collections {dict(generations)}, the program has counted {gen0}, {gen1}, {gen2}")
    thrown = len(runtime_events(events, 80))
    expect(thrown == after.exceptions - before.exceptions, f"{thrown} exceptions, the program has counted {after.exceptions}")


def reaches_start(frames):
    """The program `dotnet` is stripped: its _start, the only caller of __libc_start_main, may have no name."""
    return frames[-1] in STARTS or frames[-2:] == ["__libc_start_main", "[unknown]"]


def check_native(context, version, *words, before=()):
    path = os.path.join(context.scratch, f"native-{version}.trace.zip")
    with Target(version) as target:
        recording = Recording(context, target.pid, path, "--events=gc,alloc,exceptions,contention", *words, before=before)
        recording.wait_until_ready()
        first = target.ask("nothing")
        last = target.ask("work 40")
        said = recording.stop()
    expect("with native stacks" in said, said)
    events, samples = events_of(path), samples_of(path, context.scratch)
    check_counts(events, first, last)
    waits = sum(sample.event == "ContentionStart_V2" and sample.comm == "waiter" for sample in samples)
    expect(waits == last.waits - first.waits, f"{waits} waits for the lock, the program has counted {last.waits}")
    with_stack, all_events, strangers = match(events, samples)
    expect(not strangers, f"{strangers} native stacks belong to no event")
    expect(all_events - with_stack <= max(CHANCE, all_events / 100), f"{all_events - with_stack} of {all_events} events have no stack")
    ends = collections.Counter(sample.frames[-1] for sample in samples if not reaches_start(sample.frames))
    expect(sum(ends.values()) <= max(CHANCE, len(samples) / 100), f"stacks that do not reach the thread's start end in {ends}")
    context.figure(f".NET {version}: {with_stack} of {all_events} events have a native stack, "
                   f"{len(samples) - sum(ends.values())} of {len(samples)} reach the thread's start")
    return about(path)


def test_events_have_native_stacks_and_the_counts_of_the_program_10(context):
    told = check_native(context, "10.0")
    expect(told["event_streams"][0]["stacks"] == "native" and not told["event_streams"][0]["stacks_reason"], told)


def test_events_have_native_stacks_and_the_counts_of_the_program_8(context):
    check_native(context, "8.0")


def test_exceptions_that_are_thrown_in_catch_blocks_have_whole_stacks(context):
    path = os.path.join(context.scratch, "again.trace.zip")
    with Target() as target:
        recording = Recording(context, target.pid, path, "--events=exceptions")
        recording.wait_until_ready()
        target.ask("again 40")
        said = recording.stop()
    expect("with native stacks" in said, said)
    stacks = samples_of(path, context.scratch)
    ends = collections.Counter(sample.frames[-1] for sample in stacks if sample.frames[-1] not in STARTS)
    expect(len(stacks) == 120 and not ends, f"{len(stacks)} of 120 stacks; some do not reach the thread's start: {ends}")


def check_managed(context, version):
    path = os.path.join(context.scratch, f"managed-{version}.trace.zip")
    with Target(version) as target:
        recording = Recording(context, target.pid, path, "--events=gc,exceptions", "--stacks=managed")
        recording.wait_until_ready()
        first = target.ask("nothing")
        last = target.ask("work 40")
        said = recording.stop()
    expect("with managed stacks" in said, said)
    events = events_of(path)
    check_counts(events, first, last)
    # Throw, Find(0), Find(1), ...: at least so many frames.
    short = sum(len(event.stack) < 5 for event in runtime_events(events, 80))
    expect(not short, f"{short} exceptions have no managed stack")
    return said


def test_events_have_managed_stacks_10(context):
    check_managed(context, "10.0")


def test_events_have_managed_stacks_3_1(context):
    check_managed(context, "3.1")


def test_events_of_3_1_fall_back_to_managed_stacks_and_say_why(context):
    path = os.path.join(context.scratch, "fallback.trace.zip")
    with Target("3.1") as target:
        recording = Recording(context, target.pid, path, "--events=exceptions")
        recording.wait_until_ready()
        # 3.1 answers before it has turned its events on, and gives no sign of that.
        target.ask("spin 500")
        last = target.ask("throw 3")
        said = recording.stop()
    expect("with managed stacks" in said and "native ones are not possible" in said, said)
    stacks = [event.stack for event in runtime_events(events_of(path), 80)]
    expect(len(stacks) == last.exceptions and all(stacks), f"{len(stacks)} events, {last}")


def check_threads(context, name, before=()):
    """A thread that cannot be made would end the runtime: the kernel reads the path of an inherited uprobe in clone().

    .NET 10 itself loses events of threads that end at once: 1 to 57 of 1,000 in 11 of 25 recordings with --stacks=none."""
    path = os.path.join(context.scratch, f"{name}.trace.zip")
    with Target() as target:
        recording = Recording(context, target.pid, path, "--events=exceptions", before=before)
        recording.wait_until_ready()
        first = target.ask("nothing")
        last = target.ask("threads 1000")
        said = recording.stop()
        expect(target.process.poll() is None, "the target has ended")
    expect(last.exceptions - first.exceptions == 1000, f"{last} of 1000 threads have run")
    expect("with native stacks" in said, said)
    return match(events_of(path), samples_of(path, context.scratch))


def expect_each_exception_once(with_stack, all_events, strangers):
    """An event that the runtime has lost leaves its native stack, which is counted as one without an event."""
    expect(990 <= all_events + strangers <= 1000, f"{all_events} events, {strangers} native stacks without an event, 1000 exceptions")
    expect(all_events - with_stack <= 10, f"{with_stack} of {all_events} events have a native stack")


def test_a_target_that_makes_1000_threads_survives_probes(context):
    expect_each_exception_once(*check_threads(context, "threads"))


def test_a_target_that_makes_1000_threads_survives_probes_by_tracefs(context):
    need_tracefs()
    with_stack, all_events, strangers = check_threads(context, "tracefs", before=BY_TRACEFS)
    context.figure(f"{with_stack} of {all_events} events have a native stack, {strangers} stacks have no event")
    expect_each_exception_once(with_stack, all_events, strangers)
    with open("/sys/kernel/tracing/uprobe_events", encoding="utf-8") as file:
        left = [line for line in file if "dotnet_mapgen_" in line and not os.path.exists(f"/proc/{re.search('dotnet_mapgen_([0-9]+)/', line)[1]}")]
    expect(not left, f"left in tracefs: {left}")


def test_a_target_that_makes_1000_threads_survives_probes_by_thread(context):
    """Threads that have ended before they are seen have no stacks; a stack of another event would be worse."""
    with_stack, all_events, strangers = check_threads(context, "by-thread", before=BY_THREAD)
    context.figure(f"{with_stack} of {all_events} events have a native stack")
    expect(not strangers, f"{strangers} stacks have no event")


def check_without_samples(context, name, before=()):
    """The records of threads come from events of processors where these are permitted, else from events of threads."""
    path = os.path.join(context.scratch, f"{name}.trace.zip")
    with Target() as target:
        recording = Recording(context, target.pid, path, "--events=exceptions", "--frequency=0", before=before)
        recording.wait_until_ready()
        subprocess.run([sys.executable, "-c", ""], check=True)
        target.ask("again 4")
        recording.stop()
    told = about(path)
    expect(not told["cpu_samples"] and not told["frequency_hz"], f"{told}")
    with zipfile.ZipFile(path) as archive:
        archive.extract("perf.data", context.scratch)
    tasks = subprocess.run(["perf", "script", "--show-task-events", "--show-mmap-events", "-F", "pid,event", "-i",
                            os.path.join(context.scratch, "perf.data")], capture_output=True, text=True, check=True).stdout
    pids = set(re.findall(r"PERF_RECORD_\w+[^\n]* (\d+)/\d+:|PERF_RECORD_\w+\((\d+):", tasks))
    expect(pids and all(str(target.pid) in pair for pair in pids), f"records of {pids}, the target is {target.pid}")
    return path, target.pid


def test_a_recording_without_cpu_samples_has_events_and_their_threads(context):
    path, first = check_without_samples(context, "only-events")
    samples = samples_of(path, context.scratch)
    ends = collections.Counter(sample.frames[-1] for sample in samples if sample.frames[-1] not in STARTS)
    expect(len(samples) == 12 and not ends, f"{len(samples)} of 12 stacks; some do not reach the thread's start: {ends}")
    expect(all(sample.tid != first for sample in samples), "the exceptions are of a thread that was made later")


def test_a_recording_without_cpu_samples_needs_no_rights_over_processors(context):
    path, _ = check_without_samples(context, "only-events-by-thread", before=("setpriv", "--bounding-set=-bpf,-perfmon,-sys_admin"))
    stacks = [event.stack for event in runtime_events(events_of(path), 80)]
    expect(len(stacks) == 12 and all(stacks), f"{len(stacks)} of 12 managed stacks")


def test_probes_by_thread_follow_threads_that_appear(context):
    path = os.path.join(context.scratch, "follow.trace.zip")
    with Target() as target:
        recording = Recording(context, target.pid, path, "--events=exceptions", before=BY_THREAD)
        recording.wait_until_ready()
        target.ask("throw 40")
        last = target.ask("flood 1")
        said = recording.stop()
        expect(target.ask("throw 1").exceptions == last.exceptions + 1, "the target does not go on")
    expect("with native stacks" in said, said)
    samples = samples_of(path, context.scratch)
    main = [sample for sample in samples if sample.tid == target.pid]
    expect(len(main) == 40, f"{len(main)} of 40 events of the first thread have a native stack")
    expect(len(samples) > len(main), "no thread that was made later has a native stack")
    ends = collections.Counter(sample.frames[-1] for sample in samples if not reaches_start(sample.frames))
    expect(sum(ends.values()) <= max(CHANCE, len(samples) / 100), f"stacks that do not reach the thread's start end in {ends}")
    context.figure(f"{last.exceptions} exceptions, {len(samples)} native stacks")


# ---- what goes wrong ---------------------------------------------------------

def test_events_end_with_a_target_that_is_killed(context):
    path = os.path.join(context.scratch, "killed.trace.zip")
    with Target() as target:
        recording = Recording(context, target.pid, path, "--events=exceptions")
        recording.wait_until_ready()
        target.ask("throw 5")
        target.process.kill()
        said = recording.wait()
    expect("they end early" in said, said)
    expect(about(path)["event_streams"][0]["ended"], "the recording does not say that the stream ends early")
    expect(len(runtime_events(events_of(path), 80)) <= 5, "more exceptions than were thrown")
    report = subprocess.run([context.mapgen.program, "report", "-i", path], capture_output=True, text=True)
    expect(report.returncode == 0, f"the report of it: {report.returncode} {report.stderr}")


def test_events_of_a_target_that_is_stopped_are_kept_as_far_as_they_came(context):
    path = os.path.join(context.scratch, "stopped.trace.zip")
    with Target() as target:
        recording = Recording(context, target.pid, path, "--events=exceptions")
        recording.wait_until_ready()
        target.ask("throw 5")
        os.kill(target.pid, signal.SIGSTOP)
        os.waitpid(target.pid, os.WUNTRACED)
        said = recording.stop()
        os.kill(target.pid, signal.SIGCONT)
        expect("is stopped (SIGSTOP)" in said, said)
        # The session ends with our connection, and the target goes on.
        after = target.ask("throw 5")
    expect(after.exceptions == 10, f"{after}")


def test_a_process_without_a_diagnostics_socket_is_one_line(context):
    path = os.path.join(context.scratch, "without.trace.zip")
    with Target(environment={"DOTNET_EnableDiagnostics": "0"}) as target:
        recording = Recording(context, target.pid, path, "--events", "-d", "0.2")
        said = recording.wait(expected=3)
    lines = [line for line in said.splitlines() if "no events of process" in line]
    expect(len(lines) == 1 and "DOTNET_EnableDiagnostics=0" in lines[0], said)
    expect(not about(path)["event_streams"], "there are events")


def test_a_process_without_a_runtime_is_one_line(context):
    path = os.path.join(context.scratch, "sleep.trace.zip")
    process = subprocess.Popen(["sleep", "60"])
    said = Recording(context, process.pid, path, "--events", "-d", "0.2").wait(expected=3)
    process.kill()
    process.wait()
    expect("has no .NET runtime" in said, said)


def losses_of(path):
    """(left out, of these by the kernel, without a probe, lost): native stacks of events."""
    stream = about(path)["event_streams"][0]
    return stream["thinned_stacks"], stream["thinned_in_kernel"], stream["unprobed_events"], about(path)["losses"]["lost_event_stacks"]


def check_flood(context, name, before=()):
    path = os.path.join(context.scratch, f"{name}.trace.zip")
    with Target() as target:
        recording = Recording(context, target.pid, path, "--events=exceptions", before=before)
        recording.wait_until_ready()
        last = target.ask("flood 2")
        with open(f"/proc/{recording.process.pid}/status", encoding="utf-8") as file:
            peak_kb = int(re.search(r"VmHWM:\s+(\d+)", file.read())[1])
        said = recording.stop()
        expect(target.ask("throw 1").exceptions == last.exceptions + 1, "the target does not go on")
    stream, events = about(path)["event_streams"][0], runtime_events(events_of(path), 80)
    samples = samples_of(path, context.scratch)
    expect(len(events) <= last.exceptions + 1, f"{len(events)} events of {last.exceptions}")
    expect(len(events) == last.exceptions or stream["gaps"], f"{len(events)} of {last.exceptions} events, and no gap: {said}")
    missing = len(events) - len(samples)
    thinned, _, unprobed, lost = losses_of(path)
    expect(missing <= thinned + unprobed + lost, f"{missing} events have no stack, {thinned} + {unprobed} + {lost} are counted")
    # Rings of the kernel count too: 320 MiB.
    expect(peak_kb < 1 << 20, f"{peak_kb} KiB")
    context.figure(f"{last.exceptions} exceptions in 2 s, {len(events)} events, {len(samples)} stacks, {thinned} left out, {unprobed} without probe, "
                   f"{stream['gaps']} gaps, {peak_kb >> 10} MiB")


def test_a_flood_of_events_is_bounded_and_what_is_lost_is_counted(context):
    check_flood(context, "flood")


def test_a_flood_of_events_is_bounded_with_probes_by_tracefs(context):
    need_tracefs()
    check_flood(context, "flood-tracefs", before=BY_TRACEFS)


def test_a_flood_of_events_is_bounded_with_probes_by_thread(context):
    check_flood(context, "flood-thread", before=BY_THREAD)


BURST = 40000


def check_budget(context, name, before=()):
    """A burst of exceptions in one thread, faster than the budget, as the recorder is stopped: (left out, of these by the kernel, lost)."""
    path = os.path.join(context.scratch, f"{name}.trace.zip")
    with Target() as target:
        recording = Recording(context, target.pid, path, "--events=exceptions", before=before)
        recording.wait_until_ready()
        recording.process.send_signal(signal.SIGSTOP)
        first = target.ask("nothing")
        last = target.ask(f"throw {BURST}")
        recording.process.send_signal(signal.SIGCONT)
        said = recording.stop()
    expect(last.exceptions - first.exceptions == BURST, f"{last}")
    events, samples = runtime_events(events_of(path), 80), samples_of(path, context.scratch)
    thinned, in_kernel, unprobed, lost = losses_of(path)
    expect(len(events) == BURST, f"{len(events)} events of {BURST}: the budget leaves stacks out, not events")
    expect(len(samples) + thinned + lost == BURST and not unprobed, f"{len(samples)} stacks, {thinned} left out, {lost} lost, {unprobed} without probe")
    beyond = sum(max(0, count - (10000 << 28) // 10**9) for count in collections.Counter(event.time >> 28 for event in events).values())
    if not beyond:
        raise Skip("the machine is too busy: a thread fires fewer events than the budget permits")
    expect(thinned + lost, f"nothing was left out or lost, by the times of events {beyond} are beyond the budget")
    expect(not thinned or f"{thinned} events have no native stack: there were too many a second" in said, said)
    # A hit is some microseconds after its event, so it may be of the next window. Where the reader leaves out, some are lost before.
    expect(abs(thinned - beyond) <= beyond / 20 + lost, f"{thinned} stacks were left out, by the times of events {beyond}")
    context.figure(f"{BURST} exceptions, {len(samples)} stacks, {thinned} left out, {in_kernel} by the kernel, {lost} lost")
    return thinned, in_kernel


def test_stacks_beyond_the_budget_are_left_out_by_the_kernel(context):
    thinned, in_kernel = check_budget(context, "budget")
    expect(thinned == in_kernel > 0, f"{thinned} stacks were left out, {in_kernel} by the kernel")


def test_stacks_beyond_the_budget_are_left_out_by_the_kernel_with_probes_by_tracefs(context):
    need_tracefs()
    thinned, in_kernel = check_budget(context, "budget-tracefs", before=older_kernel("links"))
    expect(thinned == in_kernel > 0, f"{thinned} stacks were left out, {in_kernel} by the kernel")


def test_stacks_beyond_the_budget_are_left_out_with_probes_by_tracefs_without_bpf(context):
    need_tracefs()
    check_budget(context, "budget-tracefs-without", before=BY_TRACEFS)


def test_stacks_beyond_the_budget_are_left_out_with_probes_by_thread(context):
    check_budget(context, "budget-thread", before=BY_THREAD)


def test_managed_stacks_beyond_the_budget_are_counted(context):
    path = os.path.join(context.scratch, "flood-managed.trace.zip")
    with Target() as target:
        recording = Recording(context, target.pid, path, "--events=exceptions", "--stacks=managed")
        recording.wait_until_ready()
        target.ask("flood 2")
        said = recording.stop()
    windows = collections.Counter(event.time >> 28 for event in runtime_events(events_of(path), 80))
    beyond = sum(max(0, count - (10000 << 28) // 10**9) for count in windows.values())
    counted = about(path)["event_streams"][0]["managed_stacks_beyond_budget"]
    # Events of several threads are not quite in the order of time, so some count as of the window before.
    expect(abs(counted - beyond) <= beyond / 20, f"{counted} managed stacks beyond the budget, by their times there are {beyond}")
    expect(bool(beyond) == ("managed stacks beyond 10000 a second" in said), said)


def test_a_recording_stops_after_an_exception_and_keeps_what_came_just_before(context):
    path = os.path.join(context.scratch, "ring.trace.zip")
    with Target() as target:
        recording = Recording(context, target.pid, path, "--events=gc", "--stop-on=exception=OrderException", "--ring=0.3", "-F", "999")
        recording.wait_until_ready()
        target.ask("spin 1000")
        target.ask("throw 1")
        said = recording.wait()
    expect("stopped by --stop-on=exception=OrderException" in said, said)
    told, events = about(path), events_of(path)
    expect(len(runtime_events(events, 80)) == 1, "the exception is not in the recording")
    times = cpu_times_of(path, context.scratch)
    expect(times and min(times) >= told["begin_ns"], f"samples of {min(times)}, the recording begins at {told['begin_ns']}")
    expect(len(times) < told["cpu_samples"], "no sample was left out")


def test_top_has_the_rates_of_the_program(context):
    with Target() as target:
        top = subprocess.Popen([context.mapgen.program, "top", str(target.pid), "--batch", "--top=1"], stdout=subprocess.PIPE, text=True)
        try:
            heads = (line for line in top.stdout if line.startswith("events (PID "))
            next(heads)  # the session has begun
            before = target.ask("nothing")
            after = target.ask("work 400")
            thrown = after.exceptions - before.exceptions
            shown = []
            for head in heads:
                rates = re.search(r"  GC ([0-9.]+) %  .*  alloc ([0-9.]+) ([kMG]?B)/s  exceptions (\d+)/s  threads", head)
                expect(rates, head)
                shown.append((int(rates[4]), float(rates[2])))
                if len(shown) == 3:
                    break
        finally:
            top.kill()
            top.communicate()
    # A picture is of two seconds, on a busy machine of more.
    seen = 2 * sum(rate for rate, _ in shown)
    expect(0 < seen <= thrown + 3 and any(amount for _, amount in shown), f"{shown}, the program has thrown {thrown}")
    context.figure(f"{seen} of {thrown} exceptions by the rates of pictures of two seconds")


def test_list_shows_the_name_that_stands_for_the_pid(context):
    """A program that `dotnet` runs is called so by the kernel."""
    with Target() as target:
        done = subprocess.run([context.mapgen.program, "list", "--json"], capture_output=True, text=True)
        names = {process["pid"]: process["name"] for process in json.loads(done.stdout)}
        expect(names.get(target.pid) == "events", f"{target.pid} is not called events: {names}")
        shown = subprocess.run([context.mapgen.program, "list"], capture_output=True, text=True).stdout
        expect(re.search(rf"^ *{target.pid} .* events$", shown, re.M), shown)


def test_events_prints_what_the_program_throws_with_names_as_in_csharp(context):
    with Target() as target:
        words = ["events", "--events=exceptions", "--stacks=managed", str(target.pid)]
        running = subprocess.Popen([context.mapgen.program, *words], stdout=subprocess.PIPE, text=True)
        try:
            thrown, frames = 0, []
            while not thrown:  # the session has begun when the first one arrives
                target.ask("throw 1")
                if select.select([running.stdout], [], [], 1)[0]:
                    thrown += "ExceptionThrown" in running.stdout.readline()
            while len(frames) < 5:
                line = running.stdout.readline()
                expect(line, "it has ended")
                frames.append(line.strip())
        finally:
            running.terminate()
            running.communicate()
    own = [frame for frame in frames if frame.startswith("Events.")]
    expect(own == ["Events.Find(int)"] * len(own) and len(own) >= 3, f"frames: {frames}")


def expect_managed_owner(context, path):
    view = json.loads(context.mapgen.must("report", "contention", "-i", path, "--format=json").stdout)
    row = view["locks"][0]
    expect(row["last_owner_tid"] is None and row["last_owner"] == "managed thread 1", f"{row}")
    expect(view["runtime"].startswith(".NET 11."), f"the runtime is {view['runtime']}")


def test_owners_of_locks_of_11_are_managed_threads(context):
    path = os.path.join(context.scratch, "owners-11.trace.zip")
    with Target("11.0") as target:
        recording = Recording(context, target.pid, path, "--events=contention")
        recording.wait_until_ready()
        # One wait alone is not always in the recording of a busy machine: the runtime answers before it writes events.
        for _ in range(10):
            target.ask("work 4")
        recording.stop()
    expect_managed_owner(context, path)


def test_owners_of_locks_of_a_program_that_record_started(context):
    """When the recording begins, it has no runtime yet."""
    path = os.path.join(context.scratch, "owners-started.trace.zip")
    command = [context.mapgen.program, "record", "-o", path, "--events=contention", "--"]
    with Target("11.0", command=[*command, dotnet_of("11.0"), events_program()]) as target:
        while "events" not in thread_names(target.pid):
            target.ask("spin 20")
        target.ask("work 4")
        target.process.communicate()
    expect_managed_owner(context, path)
