# SPDX-License-Identifier: MIT
"""perf-fix on real processes: what stock perf shows afterwards, and that nothing but MMAP2 records changed.

Names come from perf alone here; the runtime's own rundown says whether they are right.
"""
import os
import re
import shutil
import signal
import struct
import subprocess

import perf_samples
import shapes
from harness import Memory, Sample, Skip, expect, first_line, remove_leftovers
from live_contract import csc_command
from live_frames import Methods, looked_up, percent
from live_nothing_set import Load, clean_environment, free_port, web_runtime
from perf_samples import perf
from waiting import wait_until_warm

MMAP2, LOST = 10, 2


def record(pid, path, seconds=1, options=(), frequency=499):
    """perf record with call chains of so much CPU time; fails or skips where that is not possible."""
    why = perf_samples.record(pid, seconds, path, frequency, options)
    if why:
        raise Skip(why)


def run_perf(path, *arguments):
    """Output of a perf command on the build-id cache that belongs to a recording."""
    if arguments[0] in ("script", "report"):
        arguments += perf_samples.NO_KERNEL_SYMBOLS
    done = subprocess.run([*perf(path), *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          errors="replace")
    expect(done.returncode == 0, f"perf {arguments[0]}: {first_line(done.stderr)}")
    return done.stdout


def buildid_dir(path):
    return path + ".buildid"


def fix(context, path, *options, codes=(0,)):
    """Fixes a recording into FIXED beside it, with the same build-id cache; its path."""
    fixed = path + ".fixed"
    done = context.mapgen.must("perf-fix", "--buildid-dir", buildid_dir(path), "-o", fixed, *options, path, codes=codes)
    if not os.path.lexists(buildid_dir(fixed)):
        os.symlink(buildid_dir(path), buildid_dir(fixed))
    return fixed, done


def records(path):
    """(offset, type, bytes) of every record of a file that is not compressed."""
    with open(path, "rb") as file:
        data = file.read()
    at, size = struct.unpack_from("<QQ", data, 40)
    end = at + size
    while at < end:
        kind, _, length = struct.unpack_from("<IHH", data, at)
        yield at, kind, data[at : at + length]
        at += length


def only_mmap2_changed(before, after):
    """Nothing else differs, byte for byte; how many records do."""
    with open(before, "rb") as one, open(after, "rb") as other:
        old, new = bytearray(one.read()), other.read()
    expect(len(old) == len(new), f"{len(old)} bytes became {len(new)}")
    changed = 0
    for (at, kind, was), (_, _, became) in zip(records(before), records(after)):
        if was != became:
            expect(kind == MMAP2, f"a record of type {kind} at {at:#x} was changed")
            changed += 1
            old[at : at + len(was)] = became
    expect(bytes(old) == new, "something outside of the records was changed")
    return changed


HEX_ROW = re.compile(r"(doublemapper|\[jit\]|\.dll\b|\.exe\b|\[JIT\]|perf-\d+\.map).*\b0x[0-9a-f]+\s*$")


def hex_rows(path):
    """Rows of perf report, leaves and callers, that lie in managed code and have no name."""
    text = run_perf(path, "report", "-i", path, "--stdio", "-g", "none", "--children", "--sort", "dso,sym")
    return [line for line in text.splitlines() if HEX_ROW.search(line)]


def covering(path, address):
    """Files of the MMAP2 records that hold an address, in the order of the recording, and how many records were lost."""
    files, lost = [], 0
    for _, kind, data in records(path):
        if kind == LOST:
            lost += struct.unpack_from("<Q", data, 16)[0]
        if kind == MMAP2:
            start, size = struct.unpack_from("<QQ", data, 16)
            if start <= address < start + size:
                files.append(data[72:].split(b"\0")[0].decode(errors="replace"))
    return f"{address:#x} lies in {', '.join(files) or 'no record'}; {lost} records were lost"


class Seen:
    """The names that perf gives to frames of a process."""

    def __init__(self, path, memory, methods):
        chains, unpaired = perf_samples.samples(path)
        expect(len(chains) > 100, f"only {len(chains)} samples")
        expect(unpaired * 100 <= len(chains), f"{unpaired} samples of {len(chains)} are not in perf script's output")
        self.frames = {"jit": 0, "r2r": 0}
        self.methods = self.named_methods = 0
        self.fillers = self.filler_samples = 0
        self.unnamed, self.wrong = [], []
        for chain in chains:
            self.filler_samples += bool(chain) and chain[0].perf_name == "[unnamed code]"
            for frame, address in zip(chain, looked_up(chain)):
                kind = memory.kind_of(address)
                if kind in self.frames:
                    self._add(kind, frame, address, methods.at(address) if methods else None)

    def _add(self, kind, frame, address, method):
        self.frames[kind] += 1
        self.fillers += frame.perf_name == "[unnamed code]"
        if frame.perf_name is None:
            self.unnamed.append((kind, hex(address)))
        if method is None:
            return
        self.methods += 1
        if frame.perf_name is not None:
            self.named_methods += 1
            if f"{method[3]}::{method[4]}" not in frame.perf_name:
                self.wrong.append((hex(address), frame.perf_name, method[3:5]))


def check_fixed(context, path, fixed, sample, memory, methods):
    """Every managed frame is named by perf alone, and none wrongly."""
    before, after = Seen(path, memory, methods), Seen(fixed, memory, methods)
    total = sum(after.frames.values())
    context.figure(f"managed frames: {after.frames['jit']} jitted, {after.frames['r2r']} precompiled; without a name "
                   f"in perf script: {len(before.unnamed)} before, {len(after.unnamed)} after")
    context.figure(f"frames named [unnamed code], in memory of which the runtime tells nothing: {after.fillers}")
    if methods:
        context.figure(f"frames in methods of the runtime's rundown named right: "
                       f"{percent(after.named_methods - len(after.wrong), after.methods)} of {after.methods}")
    expect(min(after.frames.values()) > 100, f"not enough frames: {after.frames}")
    expect(not after.wrong, f"{len(after.wrong)} wrong names, first {after.wrong[:1]}")
    expect(not after.unnamed, f"{len(after.unnamed)} of {total} managed frames without a name: "
                              f"{[(kind, covering(path, int(at, 16))) for kind, at in after.unnamed[:3]]}")
    left = hex_rows(fixed)
    context.figure(f"hex rows in managed mappings in perf report: {len(hex_rows(path))} before, {len(left)} after")
    expect(not left, f"{len(left)} hex rows: {left[:2]}")
    expect(sample is None or sample.alive(), "the process ended")
    return after


class Recorded:
    """A recording of a process that was still compiling, fixed while it did. From then on it stands still, until the tests end."""

    def __init__(self, context, environment):
        self.path = os.path.join(context.directory("fix-" + "-".join(environment)), "perf.data")
        self.sample = Sample(context.sdk(), environment)
        record(self.sample.pid, self.path)
        self.memory = Memory(self.sample.pid)
        self.fixed, self.done = fix(context, self.path)
        self.methods = Methods(context.rundown(self.sample.pid))
        self.sample.stand_still()
        remove_leftovers(self.sample.pid)


def fix_sample(context, environment, forget=None):
    """Checks what became of a recording; with `forget`, of a copy without what that takes out of it."""
    recorded = context.once(("fixed", *environment), lambda: (Recorded(context, environment), None))
    path, fixed, done = recorded.path, recorded.fixed, recorded.done
    if forget:
        path = os.path.join(context.directory("fix-without-" + forget.__name__ + "-".join(environment)), "perf.data")
        shutil.copy(recorded.path, path)
        forget(path)
        fixed, done = fix(context, path)
    expect("from the live process" in done.stdout, f"it does not say where names come from: {done.stdout}")
    after = check_fixed(context, path, fixed, recorded.sample, recorded.memory, recorded.methods)
    said = re.search(r"(\d+) of \d+ samples in memory with jitted code lie", done.stdout)
    expect(int(said[1] if said else 0) == after.filler_samples, f"{after.filler_samples} samples are unnamed code: {done.stdout}")
    return path, fixed


def test_perf_report_shows_every_managed_name_after_perf_fix(context):
    path, fixed = fix_sample(context, {})
    changed = only_mmap2_changed(path, fixed)
    context.figure(f"records changed: {changed}, all MMAP2")
    expect(changed > 10, "hardly a record was changed")


def test_perf_fix_names_a_process_of_which_perf_recorded_no_mapping(context):
    """Its samples lie outside of all that was recorded: perf-fix adds what the process has mapped, and counts them when it is gone."""
    path = os.path.join(context.directory("fix-no-synth"), "perf.data")
    with Sample(context.sdk(), {}) as sample:
        record(sample.pid, path, options=("--synth=no",))
        memory = Memory(sample.pid)
        fixed, done = fix(context, path)
        expect("mappings were not recorded; they were added" in done.stdout, done.stdout)
        methods = Methods(context.rundown(sample.pid))
        sample.stand_still()
        check_fixed(context, path, fixed, sample, memory, methods)
    gone = context.mapgen.must("perf-fix", "--buildid-dir", buildid_dir(path), "-o", path + ".gone", path, codes=(3,))
    told = re.search(r"(\d+) of (\d+) samples, of 1 processes, lie outside of all recorded mappings", gone.stdout)
    expect(told and int(told[1]) * 2 > int(told[2]), gone.stdout)


def overwrite(path, at, data):
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)


def records_of(path, name):
    """(size, start, position) of the MMAP2 records of files whose path has a text in it, the largest first."""
    found = ((*struct.unpack_from("<QQ", data, 16)[::-1], at) for at, kind, data in records(path)
             if kind == MMAP2 and name in data[72:].split(b"\0")[0])
    return sorted(found, reverse=True)


def forget_growth(path):
    """Cuts the largest record of a code heap in two and keeps the front, as perf does with what is mapped while it starts."""
    size, _, at = records_of(path, b"/memfd:doublemapper")[0]
    expect(size >= 0x4000, f"the largest code heap has {size} bytes")
    overwrite(path, at + 24, struct.pack("<Q", size // 2 & ~0xFFF))


def forget_largest(path, name):
    """The records of the largest memory of that name now describe another file elsewhere. Perf has no record of what is
    new while it starts."""
    forgotten = records_of(path, name)[0][1]
    for _, start, at in records_of(path, name):
        if start == forgotten:
            overwrite(path, at + 16, struct.pack("<QQ", 0x1000, 0x1000))
            overwrite(path, at + 72, b"/x\0")
    expect("no record" in covering(path, forgotten), f"the records of {name} are still there")


def test_perf_fix_names_code_that_was_mapped_before_perf_listened(context):
    fix_sample(context, {}, forget_growth)


def test_perf_fix_names_a_code_heap_and_an_assembly_of_which_no_record_tells(context):
    def forget_both(path):
        forget_largest(path, b"/memfd:doublemapper")
        forget_largest(path, b"/System.Private.CoreLib.dll")

    fix_sample(context, {}, forget_both)


def move_in_file(path):
    """The largest code heap was mapped from elsewhere: what the process has there now is another one."""
    _, _, at = records_of(path, b"/memfd:doublemapper")[0]
    with open(path, "rb") as file:
        file.seek(at + 32)
        offset = struct.unpack("<Q", file.read(8))[0]
    overwrite(path, at + 32, struct.pack("<Q", offset + (1 << 40)))


def test_perf_fix_names_code_that_is_gone_by_the_map_that_the_process_writes(context):
    for environment, codes, said in (({"DOTNET_PerfMapEnabled": "1"}, (0,), r"[1-9]\d* names of freed code from its perf map"),
                                     ({"DOTNET_PerfMapEnabled": "0"}, (3,), r" [1-9]\d* left")):
        path = os.path.join(context.directory("fix-moved-" + environment["DOTNET_PerfMapEnabled"]), "perf.data")
        with Sample(context.sdk(), environment) as sample:
            record(sample.pid, path)
            sample.stand_still()
            move_in_file(path)
            fixed, done = fix(context, path, codes=codes)
        expect(re.search(said, done.stdout), f"it does not say so: {done.stdout}")
        expect(codes == (3,) or not hex_rows(fixed), f"hex rows: {hex_rows(fixed)[:2]}")


def test_perf_report_of_the_compiler_after_perf_fix(context):
    directory = context.directory("fix-csc")
    path = os.path.join(directory, "perf.data")
    process = subprocess.Popen(csc_command(context, directory), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, env=clean_environment())
    try:
        wait_until_warm(process, 2)
        record(process.pid, path, frequency=1999)
        process.send_signal(signal.SIGSTOP)
        memory = Memory(process.pid)
        # Memory that has been freed since is listed; whether a frame lies there is checked below.
        fixed, _ = fix(context, path, codes=(0, 3))
        check_fixed(context, path, fixed, None, memory, None)
    finally:
        process.kill()
        process.wait()
        remove_leftovers(process.pid)


def test_perf_report_of_a_web_application_after_perf_fix(context):
    path = os.path.join(context.directory("fix-web"), "perf.data")
    port = free_port()
    with Sample(web_runtime(context), argument=port) as sample:
        with Load(port):
            wait_until_warm(sample.process, 1.5)
            record(sample.pid, path)
            memory = Memory(sample.pid)
            fixed, _ = fix(context, path)
            methods = Methods(context.rundown(sample.pid))
        check_fixed(context, path, fixed, sample, memory, methods)


def test_perf_fix_without_write_xor_execute(context):
    path, fixed = fix_sample(context, {"DOTNET_EnableWriteXorExecute": "0"})
    only_mmap2_changed(path, fixed)


def test_perf_fix_without_write_xor_execute_names_a_code_heap_of_which_no_record_tells(context):
    def forget_anonymous(path):
        forget_largest(path, b"//anon")

    fix_sample(context, {"DOTNET_EnableWriteXorExecute": "0"}, forget_anonymous)


def test_perf_fix_of_code_that_nothing_names_says_why_and_ends_with_3(context):
    """Precompiled code is named all the same."""
    path = os.path.join(context.directory("fix-no-way"), "perf.data")
    with Sample(context.sdk(), {"DOTNET_EnableDiagnostics": "0"}) as sample:
        record(sample.pid, path, 0.5)
        sample.stand_still()
        _, done = fix(context, path, "--jit=rundown", codes=(3,))
    expect("jitted code: " in done.stderr and "diagnostics" in done.stderr, f"it does not say why: {done.stderr}")
    expect(re.search(r"precompiled code: [1-9]\d* names", done.stdout), done.stdout)


def test_perf_fix_of_a_program_compiled_ahead_of_time_says_what_names_it(context):
    """perf reads the symbols of its ELF file: nothing is to be fixed, and nothing is missing."""
    published, why = shapes.publish(next(shape for shape in shapes.SHAPES if shape.title == "10.0 nativeaot with .dbg"))
    if published is None:
        raise Skip(f"cannot be built: {why}")
    path = os.path.join(context.scratch, "ahead.data")
    with Sample(published, {}) as sample:
        record(sample.pid, path, 0.5)
        sample.stand_still()
        done = context.mapgen.must("perf-fix", "-o", path + ".fixed", "--buildid-dir", buildid_dir(path), path)
    said = done.stdout + done.stderr
    expect("NativeAOT: the methods are in an ELF file, named by" in said, f"it says {said[:400]!r}")
    expect("no names" not in said and "names are gone" not in said, f"it says {said[:400]!r}")
