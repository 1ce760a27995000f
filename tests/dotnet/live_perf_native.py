# SPDX-License-Identifier: MIT
"""perf-fix and native images that are stripped: stock perf shows a function where it showed an address.

The oracle of what a function is are the records in .eh_frame, as readelf prints them.
"""
import bisect
import collections
import glob
import os
import re
import shutil
import subprocess

import perf_samples
import shapes
from harness import Memory, Sample, Skip, expect, first_line
from live_perf_fix import buildid_dir, fix, only_mmap2_changed, record, run_perf

BOUNDS = re.compile(r"^(.+)!0x([0-9a-f]+)$")


def output_of(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    expect(done.returncode == 0, f"{command[0]}: {first_line(done.stderr)}")
    return done.stdout


class Stripped:
    """A stripped image: where a place in the file is in memory, and the functions that .eh_frame tells of."""

    def __init__(self, path):
        self.path = path
        self.loads = [tuple(int(number, 16) for number in numbers) for numbers in
                      re.findall(r"^ +LOAD +(0x\S+) (0x\S+) 0x\S+ (0x\S+)", output_of("readelf", "-lW", path), re.MULTILINE)]
        rows = re.findall(r" FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)", output_of("readelf", "-W", "--debug-dump=frames", path))
        self.functions = sorted({(int(a, 16), int(b, 16)) for a, b in rows if a != b})

    def vaddr(self, file_offset):
        for offset, vaddr, size in self.loads:
            if offset <= file_offset < offset + size:
                return file_offset - offset + vaddr
        return None

    def function_at(self, vaddr):
        at = bisect.bisect_right(self.functions, (vaddr, float("inf"))) - 1
        return self.functions[at] if at >= 0 and vaddr < self.functions[at][1] else None


def is_elf(path):
    """False where there is no such file (memory has names, too)."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def is_stripped(path):
    """No symbol table, nor a debug file of that build-id."""
    if ".symtab" in output_of("readelf", "-SW", path):
        return False
    build_id = re.search(r"Build ID: (\w+)", output_of("readelf", "-n", path))
    return bool(build_id) and not os.path.exists(f"/usr/lib/debug/.build-id/{build_id[1][:2]}/{build_id[1][2:]}.debug")


class Natives:
    """The stripped images of a process, and where they are mapped."""

    def __init__(self, pid):
        self.images, self.rows = {}, []
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                fields = line.rstrip("\n").split(None, 5)
                if len(fields) == 6 and "x" in fields[1] and self._image(fields[5]):
                    start, end = (int(part, 16) for part in fields[0].split("-"))
                    self.rows.append((start, end, int(fields[2], 16), self.images[fields[5]]))

    def _image(self, path):
        if path not in self.images:
            self.images[path] = Stripped(path) if is_elf(path) and is_stripped(path) else None
        return self.images[path]

    def place_of(self, address):
        """(image, vaddr) or None."""
        for start, end, offset, image in self.rows:
            if start <= address < end:
                vaddr = image.vaddr(address - start + offset)
                return vaddr is not None and (image, vaddr) or None
        return None


class Seen:
    """What perf names of the frames in stripped images that lie in a function, and which names of its are wrong."""

    def __init__(self, path, natives):
        chains, _ = perf_samples.samples(path)
        self.counts, self.wrong, self.unnamed = collections.Counter(), [], []
        for chain in chains:
            for frame in chain:
                place = natives.place_of(frame.address)
                function = place and place[0].function_at(place[1])
                if function:
                    self._add(frame, place, function)

    def _add(self, frame, place, function):
        image, vaddr = place
        bounds = BOUNDS.match(frame.perf_name or "")
        self.counts["all"] += 1
        if frame.perf_name is None:
            self.unnamed.append((image.path, hex(vaddr)))
        elif not bounds:
            self.counts["named"] += 1
        else:
            self.counts["bounds"] += 1
            if (bounds[1], int(bounds[2], 16)) != (os.path.basename(image.path), function[0]):
                self.wrong.append((frame.perf_name, hex(vaddr), hex(function[0])))


def check_native(context, path, fixed, natives):
    before, after = Seen(path, natives), Seen(fixed, natives)
    context.figure(f"frames in functions of stripped images: {after.counts['all']}; without a name in perf script: "
                   f"{len(before.unnamed)} before, {len(after.unnamed)} after, {after.counts['bounds']} told by bounds, "
                   f"{len(after.wrong)} of them not as readelf has them")
    expect(after.counts["bounds"] > 100, f"not enough frames: {after.counts}")
    expect(after.counts["all"] == before.counts["all"], f"{before.counts['all']} frames became {after.counts['all']}")
    expect(not after.unnamed, f"{len(after.unnamed)} frames without a name, first {after.unnamed[:2]}")
    expect(not after.wrong, f"{len(after.wrong)} wrong bounds, first {after.wrong[:2]}")


def frames_of_samples(path):
    """How many frames each sample has."""
    text = run_perf(path, "script", "-i", path, "-F", "tid,time,ip,sym")
    return [len(block.splitlines()) for block in text.split("\n\n") if block.strip()]


def test_functions_of_stripped_native_code_are_told_by_their_bounds(context):
    path = os.path.join(context.directory("native"), "perf.data")
    with Sample(context.sdk()) as sample:
        record(sample.pid, path)
        natives = Natives(sample.pid)
        fixed, done = fix(context, path)
        expect(re.search(r"native code: \d+ stripped files, \d+ functions by their bounds", done.stdout), done.stdout)
        check_native(context, path, fixed, natives)
        only_mmap2_changed(path, fixed)
    gone, done = fix(context, path, codes=(3,))
    expect("gone" in done.stdout, done.stdout)
    check_native(context, path, gone, natives)


def test_functions_of_a_single_file_application_s_runtime_are_told_by_their_bounds(context):
    """Its host holds the runtime, and behind it the assemblies, which have stand-ins of their own."""
    published, why = shapes.publish(next(shape for shape in shapes.SHAPES if shape.title == "10.0 single-file"))
    if published is None:
        raise Skip(why)
    path = os.path.join(context.directory("native-single-file"), "perf.data")
    with Sample(published) as sample:
        record(sample.pid, path)
        natives, memory = Natives(sample.pid), Memory(sample.pid)
        fixed, _ = fix(context, path)
        check_native(context, path, fixed, natives)
        chains, _ = perf_samples.samples(fixed)
        frames = [frame for chain in chains for frame in chain if memory.kind_of(frame.address) in ("jit", "native")]
    managed = [frame for frame in frames if "[System.Private.CoreLib]" in (frame.perf_name or "")]
    expect(len(managed) > 100, f"only {len(managed)} frames in the bundle's largest assembly have names")
    standin, = glob.glob(os.path.join(buildid_dir(path), "dotnet-mapgen", "sample", "*", "elf"))
    expect(os.path.getsize(standin) < os.path.getsize(published.command[0]) / 2, "the stand-in has the bundle in it")


def test_call_chains_by_dwarf_are_unwound_as_before(context):
    """perf looks for the unwind tables in the file that it has for the build-id."""
    path = os.path.join(context.directory("native-dwarf"), "perf.data")
    with Sample(context.sdk()) as sample:
        record(sample.pid, path, 3, ("--call-graph", "dwarf,16384"))
        fixed, _ = fix(context, path)
    before, after = frames_of_samples(path), frames_of_samples(fixed)
    context.figure(f"call chains by DWARF: {len(before)} samples, {sum(before)} lines before, {sum(after)} after")
    expect(max(before) > 8, "no call chain was unwound")
    expect(before == after, f"{sum(one != other for one, other in zip(before, after))} chains differ")


def test_stripped_native_code_is_annotated(context):
    path = os.path.join(context.directory("native-annotate"), "perf.data")
    with Sample(context.sdk()) as sample:
        record(sample.pid, path)
        fixed, _ = fix(context, path)
    rows = run_perf(fixed, "report", "-i", fixed, "--stdio", "--no-children", "-g", "none", "--sort", "sym", "--dsos", "libcoreclr.so")
    hottest = re.search(r"\[\.\] (libcoreclr\.so!0x([0-9a-f]+))", rows)
    expect(hottest, f"no function of libcoreclr.so is told by its bounds: {rows[-200:]}")
    text = run_perf(fixed, "annotate", "-i", fixed, "--stdio", "-s", hottest[1])
    lines = re.findall(r"^\s+[0-9.]+ :\s+([0-9a-f]+):\s+\w+", text, re.MULTILINE)
    context.figure(f"perf annotate {hottest[1]}: {len(lines)} instructions")
    expect(lines and int(lines[0], 16) == int(hottest[2], 16), f"no instructions from {hottest[2]} on: {text[:300]}")


WORK = """
#include <pthread.h>
static volatile long sum;
__attribute__((noinline)) static void inner(void) { for (int i = 0; i < 1000000; i++) sum += i; }
static void *run(void *unused) { for (;;) inner(); return unused; }
__attribute__((constructor)) static void begin(void) { pthread_t thread; pthread_create(&thread, 0, run, 0); }
"""


def stripped_library(directory):
    """A library with work of its own, and where its debug file belongs; that is in a tree of its own first."""
    source, library, tree = (os.path.join(directory, name) for name in ("work.c", "libwork.so", "tree"))
    debug = library + ".debug"
    with open(source, "w", encoding="ascii") as file:
        file.write(WORK)
    output_of("gcc", "-O1", "-shared", "-fPIC", "-Wl,--build-id=sha1", "-o", library, source)
    output_of("objcopy", "--only-keep-debug", library, debug)
    output_of("objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", library)
    build_id = re.search(r"Build ID: (\w+)", output_of("readelf", "-n", library))[1]
    kept = os.path.join(tree, ".build-id", build_id[:2], build_id[2:] + ".debug")
    os.makedirs(os.path.dirname(kept))
    os.rename(debug, kept)
    return library, debug, tree, kept


def test_debug_files_that_perf_does_not_find_or_that_come_later_name_the_functions(context):
    if not shutil.which("gcc") or not shutil.which("objcopy"):
        raise Skip("no gcc or objcopy")
    library, debug, tree, kept = stripped_library(context.directory("native-debug"))
    path = library + ".data"

    def shown(fixed):
        frames = [line.strip() for line in run_perf(fixed, "script", "-i", fixed, "-F", "ip,sym,dso").splitlines() if "libwork.so)" in line]
        expect(len(frames) > 50, f"only {len(frames)} frames in the library")
        return sum(" inner (" in line for line in frames), sum(" libwork.so!0x" in line for line in frames)

    with Sample(context.sdk(), {"LD_PRELOAD": library}) as sample:
        record(sample.pid, path)
        expect(shown(fix(context, path, "--native=none")[0]) == (0, 0), "it was not left to perf")
        named, bounds = shown(fix(context, path)[0])
        expect(not named and bounds > 50, f"without its debug file: {named} names, {bounds} bounds")
        named, bounds = shown(fix(context, path, "--debug-dir", tree)[0])
        expect(named > 50 and not bounds, f"with a debug file in DIR: {named} names, {bounds} bounds")
        context.mapgen.must("perf-fix", "--buildid-dir", buildid_dir(path), "--in-place", path)
        os.rename(kept, debug)
        context.mapgen.must("perf-fix", "--buildid-dir", buildid_dir(path), "--in-place", path)
        named, bounds = shown(path)
        expect(named > 50 and not bounds, f"fixed again, with the debug file beside it: {named} names, {bounds} bounds")
