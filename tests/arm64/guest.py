# SPDX-License-Identifier: MIT
"""Inside the emulated machine: tests of tests/dotnet on programs that were published for it, since it has no SDK.

Usage: guest.py BUILD PROGRAMS [WORD]; the checkout is the directory above."""
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests", "dotnet"), os.path.join(ROOT, "tests", "native")]

import live_contract  # noqa: E402
import live_refresh  # noqa: E402
import live_rundown  # noqa: E402
import live_stack  # noqa: E402
import native_record  # noqa: E402
from harness import Memory, Runtime, Sample, expect, read_map  # noqa: E402
from live_frames import Methods  # noqa: E402
from live_tests import Context  # noqa: E402
from native_tools import Tools  # noqa: E402
from runner import run  # noqa: E402


def test_names_the_torture_program_as_its_own_map_does(context):
    """So slow a machine collects dynamic methods before the program has settled; the runtime's rundown has them no more either."""
    live_contract.compare_settled(context, "torture", live_contract.torture_runtime(context), "settle", {})


BARRIERS = ["JIT_ByRefWriteBarrier", "JIT_CheckedWriteBarrier", "JIT_WriteBarrier"]


def check_write_barrier(context, runtime, way):
    """There is no time for samples in an emulated machine: what lies in front of the barrier is code of libcoreclr.so."""
    path = os.path.join(context.scratch, "barrier.map")
    with Sample(runtime, {"DOTNET_PerfMapEnabled": "0"}) as sample:
        context.mapgen.must("merge", "--jit=" + way, "-o", path, sample.pid)
        rows = sorted((start, size, name) for start, size, name in read_map(path) if name in BARRIERS)
        expect([name for _, _, name in rows] == BARRIERS, f"{runtime.framework}, {way}: {rows}")
        begin, barrier = rows[0][0], rows[2][0]
        with open(f"/proc/{sample.pid}/mem", "rb") as memory:
            memory.seek(begin)
            code, first = memory.read(barrier - begin), memory.read(4)
    with open(os.path.join(os.path.dirname(runtime.sample), "libcoreclr.so"), "rb") as file:
        expect(file.read().count(code) == 1, f"{code.hex()} is no code of libcoreclr.so")
    expect(first.hex() == "cffd9fc8", f"the barrier begins with {first.hex()}, and not with stlr x15, [x14]")
    context.figure(f"{runtime.framework}, {way}: {[(hex(start), size, name) for start, size, name in rows]}")


def test_the_write_barrier_has_its_name(context):
    check_write_barrier(context, context.sdk(), "memory")
    check_write_barrier(context, context.sdk(), "rundown")
    check_write_barrier(context, context.once("sample 9.0", None), "rundown")


def running(context, pid):
    """The running function, sample by sample. Without call chains: perf has no time for them in an emulated machine."""
    data = os.path.join(context.scratch, "running.data")
    run_perf("record", "-q", "-e", "cpu-clock:u", "-F", "499", "-p", str(pid), "-o", data, "--", "sleep", "10")
    return [int(line, 16) for line in run_perf("script", "-i", data, "-F", "ip").split()]


def run_perf(*arguments):
    done = subprocess.run(["perf", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    expect(done.returncode == 0, f"perf {arguments[0]}: {done.stderr}")
    return done.stdout


def test_code_between_methods_of_net_9_is_known(context):
    """Stubs and the write barrier had no name: 10 % of all samples in one run."""
    with Sample(context.once("sample 9.0", None), {"DOTNET_PerfMapEnabled": "0"}) as sample:
        leaves, memory = running(context, sample.pid), Memory(sample.pid)
        methods = Methods(context.rundown(sample.pid))
        answers = context.mapgen.resolve(sample.pid, sorted(set(leaves)))
    between = [answers[leaf]["name"] for leaf in leaves if memory.kind_of(leaf) not in ("native", "r2r") and methods.at(leaf) is None]
    wrong = [answers[leaf] for leaf in leaves if methods.at(leaf) and answers[leaf]["name"] in ("[runtime stub]", *BARRIERS)]
    named = sum(name is not None for name in between)
    context.figure(f"{named} of {len(between)} samples between methods are known, of {len(leaves)}: {Counter(between).most_common(5)}")
    expect(not wrong, f"methods are taken for stubs: {wrong[:2]}")
    expect(len(between) > 50 and named >= 0.8 * len(between), f"{named} of {len(between)} are known")


class Recorded:
    """The program of tests/native/native_record.py, built outside: no frame pointers, a signal handler, a thread that waits in libc."""

    def __init__(self, context):
        self.process = subprocess.Popen([context.once("recorded", None)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.pid = self.process.pid
        expect(self.process.stdout.readline() == b"ready\n", "the program did not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def quality_of(context, path):
    return json.loads(context.mapgen.must("check", "--json", "-i", path).stdout)["quality"]


def test_record_writes_whole_stacks_of_native_code(context):
    path = os.path.join(context.scratch, "native.trace.zip")
    with Recorded(context) as program:
        context.mapgen.must("record", program.pid, "-o", path, "-d", 20, "-F", 20, "--off-cpu")
    tools = Tools(context.build, context.scratch)
    with zipfile.ZipFile(path) as archive:
        data = archive.extract("perf.data", context.scratch)
    on_cpu, waiting = (native_record.stacks(tools, data, event) for event in ("cpu-clock", "context-switches"))
    ordinary = [chain for chain in on_cpu if "main" in chain and "handler" not in chain]
    count = native_record.expect_most(ordinary, ["inner", "middle", "outer", "work", "main"], "ordinary code")
    # Debian's libc has no names of start_thread and of what called it.
    waits = native_record.expect_most(waiting, ["wait_here", "waiter"], "waiting")
    handled = [chain for chain in on_cpu if "handler" in chain]
    cut = [chain for chain in handled if "raise_it" not in chain or chain[-1] != "_start"]
    expect(handled and not cut, f"{len(cut)} of {len(handled)} stacks end at the signal frame: {cut[:1]}")
    quality = quality_of(context, path)
    expect(quality["whole_stacks"] >= 0.99 * quality["stacks"], f"{quality['whole_stacks']} of {quality['stacks']} stacks are whole: {quality['cut']}")
    context.figure(f"{quality['whole_stacks']} of {quality['stacks']} stacks are whole: {count} ordinary ones, {len(handled)} of a signal handler, {waits} of a thread that waits")


def test_stack_shows_whole_stacks_of_native_code(context):
    with Recorded(context) as program:
        report = json.loads(context.mapgen.must("stack", "--json", program.pid).stdout)
    for thread in report["threads"]:
        guessed = [frame["name"] for frame in thread["frames"] if frame["guessed"]]
        expect(thread["whole"] and not guessed, f"{thread['end']}, {guessed} of {[frame['name'] for frame in thread['frames']]}")


def test_record_marks_managed_frames_that_frame_pointers_gave(context):
    """Unwind codes of managed code are read on x86-64 only."""
    path = os.path.join(context.scratch, "managed.trace.zip")
    with Sample(context.sdk(), {"DOTNET_PerfMapEnabled": "0"}) as sample:
        context.mapgen.must("record", sample.pid, "-o", path, "-d", 20, "-F", 20)
    quality = quality_of(context, path)
    kinds, stacks, whole = quality["kinds"], quality["stacks"], quality["whole_stacks"]
    context.figure(f"{whole} of {stacks} stacks are whole, {quality['guessed_stacks']} have guessed frames; {kinds}; {quality['cut']}")
    expect(stacks > 50 and whole >= 0.95 * stacks, f"{whole} of {stacks} stacks are whole: {quality['cut']}")
    expect(sum(cause["count"] for cause in quality["cut"]) == stacks - whole, f"stacks end early without a reason: {quality}")
    expect(all(kinds[kind]["frames"] == kinds[kind]["named"] > 0 for kind in ("jitted", "precompiled")), f"managed frames have no name: {kinds}")
    expect(quality["guessed_stacks"] > 0.5 * stacks, "hardly a stack has a frame that is marked as guessed")


TESTS = (
    test_record_writes_whole_stacks_of_native_code,
    test_stack_shows_whole_stacks_of_native_code,
    live_stack.test_stack_has_the_frames_that_the_program_has_itself,
    test_record_marks_managed_frames_that_frame_pointers_gave,
    live_rundown.test_map_has_every_method_of_the_rundown,
    live_rundown.test_map_has_every_precompiled_method_when_the_runtime_writes_no_map,
    live_contract.test_names_a_linq_app_as_its_own_map_does,
    test_names_the_torture_program_as_its_own_map_does,
    live_contract.test_reads_a_process_that_was_started_with_nothing_set,
    live_contract.test_a_rundown_names_what_the_runtime_wrote,
    live_refresh.test_a_refresh_names_what_was_compiled_meanwhile_by_contract,
    live_refresh.test_a_refresh_names_what_was_compiled_meanwhile_by_rundown,
    test_the_write_barrier_has_its_name,
    test_code_between_methods_of_net_9_is_known,
)


class Program(Runtime):
    """A self-contained program: there is nothing to start it with."""

    def __init__(self, programs, directory, name, framework="net10.0"):
        super().__init__(None, os.path.join(programs, directory, name), framework, directory)
        self.command = [self.sample]


def main():
    build, programs = sys.argv[1:3]
    word = "".join(sys.argv[3:])
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    with tempfile.TemporaryDirectory(dir="/var/tmp") as scratch:
        context = Context(build, scratch)
        context.have("sdk", Program(programs, "sample", "sample"))
        context.have("torture", Program(programs, "torture", "torture"))
        context.have("sample 9.0", Program(programs, "sample-9.0", "sample", "net9.0"))
        context.have("recorded", os.path.join(programs, "native", "recorded"))
        context.have("stacks", [os.path.join(programs, "stacks", "stacks")])
        context.have("oracle", os.path.join(programs, "oracle", "oracle"))
        for test in (test for test in TESTS if word in test.__name__):
            state, line = run("arm64 " + test.__name__.removeprefix("test_").replace("_", " "), test, context)
            counts[state] += 1
            if state == "failed":
                print(line, flush=True)
    print(f"arm64: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] or counts["skipped"] else 0


if __name__ == "__main__":
    sys.exit(main())
