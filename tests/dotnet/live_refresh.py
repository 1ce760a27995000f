# SPDX-License-Identifier: MIT
"""A resolver that is held while a runtime starts: a refresh takes up the assemblies that come.

Through libsym.so itself, as a tool in another language would. The oracle is the
runtime's rundown of its precompiled methods.
"""
import ctypes
import os
import signal
import subprocess
import time

from harness import ROOT, Memory, Sample, expect, remove_leftovers
from live_rundown import has_name

RESOLVED, MAPPED = 0, 4


class Answer(ctypes.Structure):
    """The beginning of struct sym_answer."""
    _fields_ = [("address", ctypes.c_uint64), ("status", ctypes.c_int), ("source", ctypes.c_int),
                ("name", ctypes.c_char_p)]


class Held:
    """A snapshot with a resolver over it."""

    def __init__(self, context, pid):
        self.library = ctypes.CDLL(os.path.join(ROOT, context.build, "libsym.so"))
        self.library.sym_result_at.restype = ctypes.POINTER(Answer)
        for name in ("sym_snapshot_open", "sym_resolver_create", "sym_result_create", "sym_resolver_resolve",
                     "sym_resolver_refresh", "sym_error_message"):
            getattr(self.library, name).restype = ctypes.c_void_p
        self.library.sym_error_message.restype = ctypes.c_char_p
        self.snapshot, self.resolver, self.result = (ctypes.c_void_p() for _ in range(3))
        self.must(self.library.sym_snapshot_open(pid, None, ctypes.byref(self.snapshot)))
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

    def ask(self, addresses):
        """[(status, name)]"""
        count = len(addresses)
        self.must(self.library.sym_resolver_resolve(self.resolver, (ctypes.c_uint64 * count)(*addresses),
                                                    ctypes.c_size_t(count), self.result))
        answers = [self.library.sym_result_at(self.result, ctypes.c_size_t(i)).contents for i in range(count)]
        return [(answer.status, (answer.name or b"").decode(errors="surrogateescape")) for answer in answers]


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
    expect(held.refresh() in (0, MAPPED), "the next refresh")
    expect(held.ask([row[1] for row in rows]) == after, "names changed with another refresh")


def test_a_held_resolver_takes_up_assemblies_that_are_loaded(context):
    context.oracle()
    process = start_and_stop(context.sdk())
    try:
        first = assemblies(process.pid)
        held = Held(context, process.pid)
        process.send_signal(signal.SIGCONT)
        expect(process.stdout.readline().strip() == "ready", "the sample did not start")
        time.sleep(1)
        compare(context, process, held, first)
        held.close()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        remove_leftovers(process.pid)
