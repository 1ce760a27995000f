# SPDX-License-Identifier: MIT
"""perf-fix and native images that are stripped: stock perf shows a function where it showed an address.

The oracle of what a function is are the records in .eh_frame, as readelf prints them.
"""
import bisect
import collections
import glob
import itertools
import os
import re
import shutil
import subprocess

import perf_samples
import shapes
from harness import CACHE, Memory, Sample, Skip, expect, first_line
from live_perf_fix import buildid_dir, fix, only_mmap2_changed, record, run_perf

BOUNDS = re.compile(r"^(.+)!0x([0-9a-f]+)$")


def output_of(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    expect(done.returncode == 0, f"{command[0]}: {first_line(done.stderr)}")
    return done.stdout


class Stripped:
    """A stripped image: where an offset of the file is in memory, and the functions of .eh_frame."""

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
                return None if vaddr is None else (image, vaddr)
        return None


class Seen:
    """The frames in functions of stripped images that perf names, and those of its names that are wrong."""

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
        sample.stand_still()
        natives = Natives(sample.pid)
        fixed, done = fix(context, path)
        expect(re.search(r"native code: \d+ functions of \d+ stripped files, \d+ by their bounds", done.stdout), done.stdout)
        check_native(context, path, fixed, natives)
        only_mmap2_changed(path, fixed)
    gone, done = fix(context, path, codes=(3,))
    expect("gone" in done.stdout, done.stdout)
    check_native(context, path, gone, natives)


def delete(program):
    shutil.rmtree(os.path.dirname(program))


def update(program):
    """Another file takes the place of each library, as when a new version is installed."""
    for path in glob.glob(os.path.join(os.path.dirname(program), "*.so")):
        with open(path + ".new", "wb") as file:
            file.write(b"another version")
        os.replace(path + ".new", path)


def test_functions_of_native_files_that_are_gone_or_replaced_are_told_by_their_bounds(context):
    """perf reads neither, and says so of no frame."""
    published, why = shapes.publish(next(shape for shape in shapes.SHAPES if shape.title == "10.0 self-contained"))
    if published is None:
        raise Skip(why)
    for change in (delete, update):
        directory = context.directory("native-" + change.__name__)
        program = os.path.join(directory, "program", "sample")
        shutil.copytree(os.path.dirname(published.command[0]), os.path.dirname(program))
        path = os.path.join(directory, "perf.data")
        with Sample(shapes.Published(published.shape, os.path.dirname(program), [program])) as sample:
            natives = Natives(sample.pid)
            change(program)
            record(sample.pid, path)
            sample.stand_still()
            fixed, done = fix(context, path)
            expect(" 0 left" in done.stdout, done.stdout)
            check_native(context, path, fixed, natives)


PROGRAM = """
__attribute__((noinline)) static unsigned inner(unsigned n) { for (int i = 0; i < 2000; i++) n = n * 33 + i; return n; }
__attribute__((noinline)) unsigned outer(unsigned n) { return inner(n) + 1; }
int main(void) { volatile unsigned n = 1; for (;;) n = outer(n); }
"""


def start_gone(program):
    process = subprocess.Popen([program])  # returns when the program is executed
    os.unlink(program)
    return process


def start_in_memory(program):
    """As a program that is unpacked into a memory file."""
    fd = os.memfd_create("unpacked", 0)
    with open(program, "rb") as file:
        os.write(fd, file.read())
    return subprocess.Popen([f"/proc/self/fd/{fd}"], pass_fds=(fd,))


def test_functions_of_programs_of_which_no_file_is_left_have_names(context):
    """Perf can open none of them, whether they have symbols or not, and 'nothing left' was said of each."""
    if not shutil.which("gcc"):
        raise Skip("gcc is not installed")
    for start, options in itertools.product((start_gone, start_in_memory), ((), ("-s",))):
        directory = context.directory(f"left-{start.__name__}{''.join(options)}")
        program, path = os.path.join(directory, "spins"), os.path.join(directory, "perf.data")
        subprocess.run(["gcc", "-O1", "-x", "c", "-", "-o", program, *options], input=PROGRAM, text=True, check=True)
        with start(program) as process:
            try:
                record(process.pid, path, 0.3)
                fixed, done = fix(context, path, "--native=all")
            finally:
                process.kill()
        names = [chain[0].perf_name for chain in perf_samples.samples(fixed)[0] if chain and chain[0].address < 1 << 63]
        named = sum(bool(name) and (name in ("inner", "outer", "main") if not options else "!0x" in name) for name in names)
        context.figure(f"{start.__name__}, {'stripped' if options else 'with symbols'}: {named} of {len(names)} samples have names")
        expect(len(names) > 50 and named >= 0.99 * len(names), f"{named} of {len(names)}: {done.stdout}")


def test_functions_of_a_single_file_application_s_runtime_are_told_by_their_bounds(context):
    """Its host holds the runtime, and behind it the assemblies, which have stand-ins of their own."""
    published, why = shapes.publish(next(shape for shape in shapes.SHAPES if shape.title == "10.0 single-file"))
    if published is None:
        raise Skip(why)
    path = os.path.join(context.directory("native-single-file"), "perf.data")
    with Sample(published) as sample:
        record(sample.pid, path)
        sample.stand_still()
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
        record(sample.pid, path, 0.5, ("--call-graph", "dwarf,16384"))
        sample.stand_still()
        fixed, _ = fix(context, path)
    before, after = frames_of_samples(path), frames_of_samples(fixed)
    context.figure(f"call chains by DWARF: {len(before)} samples, {sum(before)} lines before, {sum(after)} after")
    expect(max(before) > 8, "no call chain was unwound")
    expect(before == after, f"{sum(one != other for one, other in zip(before, after))} chains differ")


WORK = """
#include <pthread.h>
static volatile long sum;
__attribute__((noinline)) static void inner(void) { for (int i = 0; i < 1000000; i++) sum += i; }
static void *run(void *unused) { for (;;) inner(); return unused; }
__attribute__((constructor)) static void begin(void) { pthread_t thread; pthread_create(&thread, 0, run, 0); }
"""


def stripped_library(directory, build_id="sha1"):
    """A library with work of its own, and its debug file, to which it has a link."""
    if not shutil.which("gcc") or not shutil.which("objcopy"):
        raise Skip("no gcc or objcopy")
    source, library = (os.path.join(directory, name) for name in ("work.c", "libwork.so"))
    debug = library + ".debug"
    with open(source, "w", encoding="ascii") as file:
        file.write(WORK)
    output_of("gcc", "-O1", "-shared", "-fPIC", f"-Wl,--build-id={build_id}", "-o", library, source)
    output_of("objcopy", "--only-keep-debug", library, debug)
    output_of("objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", library)
    return library, debug


def keep_below(directory, library, debug):
    """Moves the debug file to where its build-id tells, below a directory."""
    build_id = re.search(r"Build ID: (\w+)", output_of("readelf", "-n", library))[1]
    kept = os.path.join(directory, ".build-id", build_id[:2], build_id[2:] + ".debug")
    os.makedirs(os.path.dirname(kept))
    os.rename(debug, kept)
    return kept


def in_library(path):
    """How many frames in the library have a name, and how many only bounds."""
    frames = [line.strip() for line in run_perf(path, "script", "-i", path, "-F", "ip,sym,dso").splitlines() if "libwork.so)" in line]
    expect(len(frames) > 50, f"only {len(frames)} frames in the library")
    return sum(" inner (" in line for line in frames), sum(" libwork.so!0x" in line for line in frames)


def working(library):
    return subprocess.Popen(["sleep", "600"], env=dict(os.environ, LD_PRELOAD=library))


def check_alone(context, build_id):
    """A process that has nothing to do with .NET, and a library with a build-id of that kind."""
    library, debug = stripped_library(context.directory(f"native-alone-{build_id}"), build_id)
    os.unlink(debug)
    path = library + ".data"
    process = working(library)
    try:
        record(process.pid, path, 0.5)
        fixed, done = fix(context, path)
        expect("--native=all" in done.stderr and in_library(fixed) == (0, 0), f"it was not asked for: {done.stderr}")
        alive, done = fix(context, path, "--native=all")
        expect(f"process {process.pid} (sleep), live: native code: " in done.stdout, done.stdout)
        alive = in_library(alive)
    finally:
        process.kill()
        process.wait()
    gone, done = fix(context, path, "--native=all")
    expect(f"process {process.pid}, gone: native code: " in done.stdout, done.stdout)
    expect(alive == in_library(gone) and not alive[0] and alive[1] > 50, f"live {alive}, gone {in_library(gone)}")


def test_processes_without_dotnet_are_served_when_asked_for(context):
    check_alone(context, "sha1")


def fix_without_files_of(context, pid, path):
    """As for a process that ends while it is looked at: neither its root nor what it has mapped leads to a file."""
    if not shutil.which("strace"):
        raise Skip("no strace")
    fixed = path + ".without"
    output_of("strace", "-qq", "-o", "/dev/null", "-P", f"/proc/{pid}/root", "-P", f"/proc/{pid}/map_files",
              "-e", "inject=openat,open:error=ENOENT", context.mapgen.program, "perf-fix", "--native=all",
              "--buildid-dir", buildid_dir(fixed), "-o", fixed, path)
    return fixed


def test_several_processes_without_dotnet_have_one_line(context):
    library, debug = stripped_library(context.directory("native-several"))
    os.unlink(debug)
    path = library + ".data"
    processes = [working(library) for _ in range(3)]
    try:
        record(",".join(str(process.pid) for process in processes), path, 0.5)
        fixed, done = fix(context, path, "--native=all")
        counted = in_library(fixed)
        without_first = fix_without_files_of(context, processes[0].pid, path)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    expect(in_library(without_first) == counted, f"{in_library(without_first)} without the first one's files, {counted} with them")
    expect(re.search(r"^3 processes without .NET; native code of all: \d+ functions", done.stdout), done.stdout)
    named, bounds = in_library(fixed)
    expect(not named and bounds > 50, f"{named} names, {bounds} bounds")


def test_native_images_without_a_build_id_or_with_a_short_one_are_served(context):
    check_alone(context, "none")
    check_alone(context, "uuid")


GO_WORK = """package main

import (
	"fmt"
	"sort"
	"strings"
)

func fill(n int) []string {
	all := make([]string, 0, n)
	for i := 0; i < n; i++ {
		all = append(all, strings.Repeat(fmt.Sprint(i*7919%n), 3))
	}
	return all
}

func main() {
	for {
		sort.Strings(fill(20000))
	}
}
"""


def stripped_go_program(directory):
    """A program of Go without symbols, and (start, end, name) of its functions as Go's own nm has them."""
    if not shutil.which("go"):
        raise Skip("go is not installed")
    source, whole, stripped = (os.path.join(directory, name) for name in ("work.go", "whole", "stripped"))
    with open(source, "w", encoding="ascii") as file:
        file.write(GO_WORK)
    environment = dict(os.environ, CGO_ENABLED="0", GO111MODULE="off", GOTOOLCHAIN="local", GOCACHE=os.path.join(CACHE, "go"))
    done = subprocess.run(["go", "build", "-o", whole, source], env=environment, capture_output=True, text=True)
    expect(done.returncode == 0, f"go build: {first_line(done.stderr)}")
    output_of("strip", "-s", "-o", stripped, whole)
    rows = (line.split(None, 3) for line in output_of("go", "tool", "nm", "-size", whole).splitlines())
    return stripped, sorted((int(row[0], 16), int(row[0], 16) + int(row[1]), row[3]) for row in rows if row[2] in "tT")


def test_a_stripped_program_of_go_has_its_names(context):
    program, functions = stripped_go_program(context.directory("native-go"))
    path = program + ".data"
    process = subprocess.Popen([program], stdout=subprocess.DEVNULL)
    try:
        record(process.pid, path, 0.5)
        fixed, _ = fix(context, path, "--native=all")
    finally:
        process.kill()
        process.wait()
    starts = [row[0] for row in functions]
    named = wrong = 0
    for chain in perf_samples.samples(fixed)[0]:
        for frame in chain:
            row = functions[bisect.bisect_right(starts, frame.address) - 1]
            if row[0] <= frame.address < row[1]:
                named += frame.perf_name is not None
                wrong += frame.perf_name not in (row[2], re.sub(r"\.abi(0|internal)$", "", row[2]))
    context.figure(f"frames in functions of a stripped program of Go: {named} named by perf, {wrong} not as go tool nm does")
    expect(named > 200 and not wrong, f"{named} frames have names, {wrong} wrong or none")


def test_debug_files_that_perf_does_not_find_or_that_come_later_name_the_functions(context):
    library, debug = stripped_library(context.directory("native-debug"))
    tree = context.directory("native-debug-tree")
    kept = keep_below(tree, library, debug)
    path = library + ".data"

    with Sample(context.sdk(), {"LD_PRELOAD": library}) as sample:
        record(sample.pid, path, 0.5)
        sample.stand_still()
        expect(in_library(fix(context, path, "--native=none")[0]) == (0, 0), "it was not left to perf")
        named, bounds = in_library(fix(context, path)[0])
        expect(not named and bounds > 50, f"without its debug file: {named} names, {bounds} bounds")
        named, bounds = in_library(fix(context, path, "--debug-dir", tree)[0])
        expect(named > 50 and not bounds, f"with a debug file in DIR: {named} names, {bounds} bounds")
        context.mapgen.must("perf-fix", "--buildid-dir", buildid_dir(path), "--in-place", path)
        os.rename(kept, debug)
        context.mapgen.must("perf-fix", "--buildid-dir", buildid_dir(path), "--in-place", path)
        named, bounds = in_library(path)
        expect(named > 50 and not bounds, f"fixed again, with the debug file beside it: {named} names, {bounds} bounds")


def test_perf_fix_adds_the_program_whose_path_perf_does_not_record(context):
    """perf 6.1 leaves out a file whose path has a byte that is not ASCII."""
    directory = os.path.join(context.directory("fix-path"), "Zo\u00eb")
    os.makedirs(directory)
    source, program, path = (os.path.join(directory, name) for name in ("spin.c", "spin", "perf.data"))
    with open(source, "w", encoding="utf-8") as file:
        file.write("__attribute__((noinline)) int work(int x) { volatile int v = x; for (int i = 0; i < 1000; i++) v = v * 3 + 1; return v; }\n"
                   "int main(void) { for (;;) work(1); }\n")
    output_of("gcc", "-O1", "-o", program, source)
    spinning = subprocess.Popen([program])
    try:
        record(spinning.pid, path, seconds=0.5)
        fixed, done = fix(context, path)
    finally:
        spinning.kill()
        spinning.wait()
    names = collections.Counter(chain[0].perf_name for chain in perf_samples.samples(fixed)[0] if chain)
    context.figure(f"samples by name: {names}; {first_line(done.stdout)}")
    expect(names["work"] * 10 > 9 * sum(names.values()), str(names))
