# SPDX-License-Identifier: MIT
"""A resolver that is held while a process goes on: a refresh takes up the assemblies that come, and what is compiled.

Through libsym.so itself, as a tool in another language would. The oracles are the
runtime's rundown of its precompiled methods, and the perf map that it writes of its jitted ones.
"""
import ctypes
import os
import signal
import subprocess
import time

import shapes
from harness import ROOT, Memory, Sample, Skip, expect, remove_leftovers
from live_contract import check_numbers, read_methods, torture_runtime
from live_rundown import has_name
from waiting import is_in_time, wait_until

RESOLVED = 0
NOTHING, APPENDED, ENDED, MAPPED = 0, 1, 3, 4
CONTRACT, RUNDOWN = 1, 2
IN_RUNTIME = 5


class Options(ctypes.Structure):
    """The beginning of struct sym_snapshot_opts."""
    _fields_ = [("size", ctypes.c_size_t), ("root", ctypes.c_char_p), ("relative_map_dirs", ctypes.c_void_p),
                ("flags", ctypes.c_uint32), ("jit", ctypes.c_uint32)]


class Answer(ctypes.Structure):
    """The beginning of struct sym_answer."""
    _fields_ = [("address", ctypes.c_uint64), ("status", ctypes.c_int), ("source", ctypes.c_int),
                ("name", ctypes.c_void_p), ("tier", ctypes.c_char_p), ("offset_bytes", ctypes.c_uint64),
                ("size_bytes", ctypes.c_uint64)]


class Held:
    """A snapshot with a resolver over it; `way` is where the names of jitted code come from."""

    def __init__(self, context, pid, way=0):
        self.library = ctypes.CDLL(os.path.join(ROOT, context.build, "libsym.so"))
        self.library.sym_result_at.restype = ctypes.POINTER(Answer)
        for name in ("sym_snapshot_open", "sym_resolver_create", "sym_result_create", "sym_resolver_resolve",
                     "sym_resolver_refresh", "sym_error_message"):
            getattr(self.library, name).restype = ctypes.c_void_p
        self.library.sym_error_message.restype = ctypes.c_char_p
        self.snapshot, self.resolver, self.result = (ctypes.c_void_p() for _ in range(3))
        options = Options(ctypes.sizeof(Options), None, None, 0, way)
        self.must(self.library.sym_snapshot_open(pid, ctypes.byref(options), ctypes.byref(self.snapshot)))
        self.must(self.library.sym_resolver_create(self.snapshot, ctypes.byref(self.resolver)))
        self.must(self.library.sym_result_create(ctypes.byref(self.result)))

    def must(self, error):
        expect(not error, error and self.library.sym_error_message(ctypes.c_void_p(error)).decode())

    def close(self):
        self.library.sym_result_destroy(self.result)
        self.library.sym_resolver_destroy(self.resolver)
        self.library.sym_snapshot_close(self.snapshot)

    def refresh(self):
        found = ctypes.c_int()
        self.must(self.library.sym_resolver_refresh(self.resolver, ctypes.byref(found)))
        return found.value

    def answers(self, addresses):
        """They live until the next question."""
        count = len(addresses)
        self.must(self.library.sym_resolver_resolve(self.resolver, (ctypes.c_uint64 * count)(*addresses),
                                                    ctypes.c_size_t(count), self.result))
        return [self.library.sym_result_at(self.result, ctypes.c_size_t(i)).contents for i in range(count)]

    def ask(self, addresses):
        """[(status, name)]"""
        return [(answer.status, text_at(answer.name).decode(errors="surrogateescape"))
                for answer in self.answers(addresses)]

    def methods(self, starts):
        """{start: (size, name)} of those that the runtime itself named at these starts."""
        return {start: (answer.size_bytes, text_at(answer.name)) for start, answer in zip(starts, self.answers(starts))
                if answer.status == RESOLVED and answer.source == IN_RUNTIME and not answer.offset_bytes}

    def texts(self, starts):
        """[(where a name is, what is there)], to be looked at again."""
        return [(answer.name, text_at(answer.name)) for answer in self.answers(starts) if answer.name]


def text_at(address):
    return ctypes.string_at(address) if address else b""


def start_and_stop(runtime):
    """A process that stands still as soon as it has its runtime, and nothing of the application."""
    process = subprocess.Popen([*runtime.command, str(Sample.LONGEST_SECONDS)], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    while process.poll() is None:
        with open(f"/proc/{process.pid}/maps", encoding="utf-8", errors="replace") as maps:
            if "/libcoreclr.so" in maps.read():
                break
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    return process


def assemblies(pid):
    return {row[3] for row in Memory(pid).rows if row[3].endswith(".dll")}


def compare(context, process, held, first):
    came = assemblies(process.pid) - first
    memory = Memory(process.pid)
    rows = [row for row in context.rundown(process.pid)
            if row[0] == "r2r" and memory.path_of(row[1]) in came]
    before = held.ask([row[1] for row in rows])
    found = held.refresh()
    after = held.ask([row[1] for row in rows])
    named = [has_name(name, f"{row[3]}::{row[4]}") for row, (_, name) in zip(rows, after)]
    context.figure(f"{len(first)} assemblies at first, {len(came)} later: {sum(named)} of {len(rows)} of their methods "
                   f"in the rundown are named after a refresh")
    expect(len(came) > 3 and len(rows) > 50, "nothing was loaded meanwhile")
    # Where assemblies come to lie the runtime may have had memory of its own.
    expect(all(status != RESOLVED for status, _ in before), "something was known before the refresh")
    expect(found == MAPPED, f"the refresh says {found}")
    wrong = [(row, answer) for row, answer, good in zip(rows, after, named) if not good]
    expect(not wrong, f"{len(wrong)} differ, first {wrong[:1]}")
    expect(held.refresh() in (NOTHING, APPENDED, MAPPED), "the next refresh")
    expect(held.ask([row[1] for row in rows]) == after, "names changed with another refresh")


def test_a_held_resolver_takes_up_assemblies_that_are_loaded(context):
    context.oracle()
    process = start_and_stop(context.sdk())
    try:
        first = assemblies(process.pid)
        held = Held(context, process.pid)
        process.send_signal(signal.SIGCONT)
        expect(process.stdout.readline().strip() == "ready", "the sample did not start")
        wait_until(lambda: len(assemblies(process.pid) - first) > 3, "no assembly is loaded")
        compare(context, process, held, first)
        held.close()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        remove_leftovers(process.pid)


# ---- jitted code ----------------------------------------------------------------------------


def differing(theirs, ours):
    """Rows of the runtime's map that differ in ours. Freed dynamic methods do not count: a rundown has no signature for them."""
    wrong = []
    for start, (size, name) in theirs.items():
        mine = ours.get(start)
        if b" dynamicClass::" in name:
            short = name[name.index(b"dynamicClass"):name.index(b"(", name.index(b"dynamicClass"))]
            if mine is None or mine == (size, short):
                continue
        if mine != (size, name):
            wrong.append((hex(start), name, mine))
    return wrong


def refresh_until_told(held, theirs, seconds):
    """The runtime sends its events in portions, so methods in its map now may arrive somewhat later. (what refreshes said, what differs)"""
    said, wrong = set(), []

    def is_told():
        said.add(held.refresh())
        wrong[:] = differing(theirs, held.methods(list(theirs)))
        return not wrong
    is_in_time(is_told, seconds, 0.2)
    return said, wrong


def follow(context, title, sample, way, go_on, told_within=0):
    """Three times the process goes on, and `go_on` returns the runtime's map as of then, given what was known; a refresh follows."""
    held = Held(context, sample.pid, way)
    first, _ = read_methods(sample.map_path)
    texts = held.texts(list(first))
    held.refresh()
    brought = 0
    for _ in range(3):
        theirs = go_on(first)
        come = [start for start in theirs if start not in first]
        before = held.methods(come)
        said, wrong = refresh_until_told(held, theirs, told_within)
        stale = [name for address, name in texts if text_at(address) != name]
        context.figure(f"{title}: {len(come)} of {len(theirs)} methods are new, {len(before)} of these named before the "
                       f"refresh, {len(theirs) - len(wrong)} of all named after it; {len(texts)} names handed out before, "
                       f"{len(stale)} changed")
        # Some may have arrived already: the text that the runtime wrote is read first.
        brought += len(come) - len(before)
        expect(len(come) > 20, "nothing was compiled meanwhile")
        expect(said & {APPENDED, MAPPED} or len(before) == len(come), f"the refresh says {said}")
        expect(not wrong, f"{len(wrong)} methods differ, first: {wrong[:1]}")
        expect(not stale, f"names changed under those who have them: {stale[:1]}")
        first = theirs
        texts += held.texts(list(theirs))
    # An idle process has sent nothing by itself.
    expect(brought or way != CONTRACT, "no refresh brought a name")
    return held


def test_a_refresh_names_what_was_compiled_meanwhile_by_contract(context):
    def go_on(known):
        sample.process.send_signal(signal.SIGCONT)
        wait_for_more(sample, known)
        sample.stand_still()
        return read_methods(sample.map_path)[0]
    with Sample(context.sdk(), {"DOTNET_PerfMapEnabled": "3"}) as sample:
        held = follow(context, "contract", sample, CONTRACT, go_on)
        found = held.refresh()
        expect(found in (NOTHING, MAPPED), f"the refresh of a process that stands still says {found}")
        held.close()


def wait_for_more(sample, known, seconds=30):
    """The runtime's map when it has a hundred methods that were not known, or as it is in the end."""
    theirs = {}

    def has_more():
        theirs.update(read_methods(sample.map_path)[0])
        return len(theirs.keys() - known.keys()) >= 100
    is_in_time(has_more, seconds, 0.1)
    return theirs


TOLD_SECONDS = 30


def follow_rundown(context, title, runtime, environment):
    with Sample(runtime, environment) as sample:
        held = follow(context, title, sample, RUNDOWN, lambda known: wait_for_more(sample, known), TOLD_SECONDS)
        held.close()
        expect(context.rundown(sample.pid) and sample.alive(), "the process did not survive the end of its session")


def test_a_refresh_names_what_was_compiled_meanwhile_by_rundown(context):
    follow_rundown(context, "rundown, net10.0", context.sdk(), {"DOTNET_PerfMapEnabled": "3"})


def test_a_refresh_names_what_core_3_1_compiled_meanwhile(context):
    follow_rundown(context, "rundown, 3.1", context.npm(), {"COMPlus_PerfMapEnabled": "1"})


def test_a_refresh_names_what_net_8_and_9_compiled_meanwhile(context):
    for title in ("8.0 self-contained", "9.0 self-contained"):
        published, why = shapes.publish(next(shape for shape in shapes.SHAPES if shape.title == title))
        if published is None:
            raise Skip(why)
        follow_rundown(context, "rundown, " + title, published, {"DOTNET_PerfMapEnabled": "3"})


def test_a_refresh_names_what_was_under_way_when_it_began_to_listen(context):
    """A method whose compilation began before a session has no event in it; the runtime lists it only afterwards."""
    gate = os.path.join(context.scratch, "compiled-now")
    with Sample(torture_runtime(context), {"DOTNET_PerfMapEnabled": "3"}, argument="compiling:" + gate) as sample:
        held = Held(context, sample.pid, RUNDOWN)
        first, _ = read_methods(sample.map_path)
        held.methods(list(first))
        held.refresh()
        with open(gate, "w", encoding="utf-8"):
            pass
        expect(sample.process.stdout.readline().strip() == "done", "the method was not compiled")
        theirs, _ = read_methods(sample.map_path)
        late = [start for start, (_, name) in theirs.items() if b"::RefersToOthers(" in name]
        expect(len(late) == 1 and late[0] not in first, f"it was compiled at {late}")
        _, wrong = refresh_until_told(held, theirs, TOLD_SECONDS)
        held.close()
    context.figure(f"compiled while a session began: {len(theirs) - len(wrong)} of {len(theirs)} methods named")
    expect(not wrong, f"{len(wrong)} methods differ, first: {wrong[:1]}")


def count_numbers(held, sample):
    """(right by the machine code, wrong) of the dynamic methods that are named number123."""
    theirs, _ = read_methods(sample.map_path)
    return check_numbers(sample.pid, {start: (size, name + b"()") for start, (size, name) in
                                      held.methods(list(theirs)).items() if b"::number" in name})


def test_a_refresh_names_nothing_by_events_that_the_runtime_had_no_room_for(context):
    """120,000 dynamic methods are made and freed while no event is read; 16 MB of events fit into the runtime's buffer."""
    with Sample(torture_runtime(context), {"DOTNET_PerfMapEnabled": "3"}, argument="churn:8000:120000") as sample:
        held = Held(context, sample.pid, RUNDOWN)
        held.methods(list(read_methods(sample.map_path)[0]))
        held.refresh()
        expect(sample.process.stdout.readline().strip() == "done", "the program ended")
        # Where it was slow to tell, more than one refresh may be needed to learn of all that is missing.
        counted = []

        def is_told():
            held.refresh()
            counted[:] = count_numbers(held, sample)
            return not counted[1] and counted[0] >= 400
        is_in_time(is_told, TOLD_SECONDS, 0.2)
        held.close()
    right, wrong = counted
    context.figure(f"events that were lost: {right} dynamic methods named as their machine code says, {len(wrong)} otherwise")
    expect(not wrong and right >= 400, f"{right} right, {len(wrong)} wrong, first {list(wrong.items())[:1]}")


def test_a_refresh_asks_no_process_that_is_stopped_or_gone(context):
    with Sample(context.sdk(), {"DOTNET_PerfMapEnabled": "3"}) as sample:
        held = Held(context, sample.pid, RUNDOWN)
        first, _ = read_methods(sample.map_path)
        before = held.methods(list(first))
        begin = time.monotonic()
        # Once in the middle of being stopped: it may be asked still, and does not answer any more.
        sample.process.send_signal(signal.SIGSTOP)
        held.refresh()
        before.update(held.methods(list(first)))
        sample.stand_still()
        held.refresh()  # memory that it mapped until then
        for _ in range(3):
            expect(held.refresh() in (NOTHING, MAPPED), "something was found in a process that stands still")
        stopped_seconds = time.monotonic() - begin
        expect(held.methods(list(first)) == before, "names went while it stood still")
        sample.process.send_signal(signal.SIGCONT)
        held.refresh()
        theirs = wait_for_more(sample, first)
        _, wrong = refresh_until_told(held, theirs, TOLD_SECONDS)
        expect(not wrong, f"{len(wrong)} methods differ, first: {wrong[:1]}")
        sample.process.kill()
        sample.process.wait()
        begin = time.monotonic()
        # Events sent before come first.
        found = held.refresh()
        expect(ENDED in (found, held.refresh() if found == APPENDED else found), "it is not told that the process has ended")
        expect(not differing(theirs, held.methods(list(theirs))), "names went with the process")
        held.close()
        gone_seconds = time.monotonic() - begin
    context.figure(f"four refreshes of a stopped process {stopped_seconds:.2f} s, one of an ended one {gone_seconds:.2f} s")
    expect(stopped_seconds < 2 and gone_seconds < 2, "something was waited for")


def test_a_refresh_never_misnames_methods_that_come_and_go(context):
    """A thousand dynamic methods a second: what is named is what the runtime says was there at some time."""
    with Sample(torture_runtime(context), {"DOTNET_PerfMapEnabled": "3"}, argument="churn:1000") as sample:
        held = Held(context, sample.pid, CONTRACT)
        wrong, asked = [], 0
        theirs = {}
        for _ in range(10):
            theirs = wait_for_more(sample, theirs)
            held.refresh()
            ours = held.methods(list(theirs))
            later, _ = read_methods(sample.map_path)
            for start, method in ours.items():
                # The later line of two about one place may have come while we looked.
                asked += 1
                if method not in (theirs.get(start), later.get(start)):
                    wrong.append((hex(start), method, theirs.get(start), later.get(start)))
        held.close()
    context.figure(f"{asked} answers in ten refreshes while methods come and go, {len(wrong)} wrong")
    expect(asked > 5000 and not wrong, f"{len(wrong)} of {asked} wrong, first: {wrong[:1]}")
