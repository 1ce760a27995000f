#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Damaged copies of everything that is read, each through a whole command: no crash, and no copy takes more than a second of CPU.

damage.c makes the copies by their number, so the same number is the same copy tomorrow, as long as the samples are the same.
Usage: check_damage.py --build build/san [--count N] [--first N] [NAME...]
"""
import argparse
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

from long_inputs import FRAMEWORK, ROOT, Inputs, Target, extent, read, run, write

SANITIZERS = "abort_on_error=1:detect_leaks=0:allocator_may_return_null=1:print_stacktrace=1:log_path="
# Copies that all end in the same way are not read.
FEWEST_RESULTS = 3
DEBUG_FORMS = ("-gdwarf-5", "-gdwarf-4", "-gz", "-gsplit-dwarf", "-gdwarf-5 -fdebug-types-section", "-gdwarf-4 -gz=zlib", "-g1")
CODE = """
namespace outer { template <class T> struct Holder { T value; T twice() const { volatile T v = value; return v + v; } }; }
static inline __attribute__((always_inline)) int inlined(int x) { volatile int v = x; return v * 3; }
__attribute__((noinline)) int exported(int x) { outer::Holder<int> h{x}; return h.twice() + inlined(x); }
__attribute__((noinline)) long other(long x) { outer::Holder<long> h{x}; for (int i = 0; i < 3; i++) x += h.twice(); return x; }
"""
BUNDLE_SIGNATURE = bytes.fromhex("8b1202b96a612038727b930214d7a032" "13f5b9e6efae3318ee3b2dce24b36aae")
BUNDLE_PROGRAM = """
__attribute__((used, section(".data"))) static volatile const unsigned char place[40] = { 0, 0, 0, 0, 0, 0, 0, 0, SIGNATURE };
int main(void) { return place[0]; }
"""


def corpus(name):
    directory = os.path.join(ROOT, "fixtures", "corpus", name)
    return sorted(os.path.join(directory, file) for file in os.listdir(directory))


class Damage:
    """A kind of file: samples, where the damaged copy lies, and the command that reads it there."""

    def __init__(self, name, samples, copy, *command):
        self.name, self.samples, self.copy, self.command = name, samples, copy, [str(word) for word in command]


def debug_files(inputs):
    """One program with debug information of several forms, and offsets in it."""
    found = []
    for number, flags in enumerate(DEBUG_FORMS):
        path = inputs.path(f"dwarf/{number}.so")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        run("g++", "-O1", "-shared", "-fPIC", "-nostdlib", "-Wl,--build-id", *flags.split(), "-o", path, "-x", "c++", "-", input=CODE,
            cwd=os.path.dirname(path))
        found.append(path)
    offset, size = extent(found[0], "_Z8exportedi")
    # And of the corpus, whose code lies there.
    return found, [hex(offset + step) for step in range(0, size + 64, 5)] + [hex(place) for place in range(0x40, 0xA00, 0x30)]


def length_text(text):
    return bytes([len(text)]) + text.encode()


def bundle(inputs):
    """A single-file application of .NET 6 and later, as its host finds it: the program, an assembly, the manifest."""
    path = inputs.path("bundle/app")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    signature = ", ".join(str(byte) for byte in BUNDLE_SIGNATURE)
    run("gcc", "-O1", "-s", "-o", path, "-x", "c", "-", input=BUNDLE_PROGRAM.replace("SIGNATURE", signature))
    content = bytearray(read(path))
    content += bytes(-len(content) % 4096)
    assembly, at = read(inputs.assembly), len(content)
    content += assembly
    header = len(content)
    content += struct.pack("<III", 6, 0, 1) + length_text("abcdefghijkl") + struct.pack("<QQQQQ", 0, 0, 0, 0, 0)
    content += struct.pack("<QQQB", at, len(assembly), 0, 1) + length_text("sample.dll")
    place = content.index(BUNDLE_SIGNATURE) - 8
    content[place:place + 8] = struct.pack("<Q", header)
    return write(path, bytes(content)), at


def recorded_bundle(inputs):
    """A recorded process that runs the bundle; (root, pid, path of the bundle, addresses)."""
    program, at = bundle(inputs)
    root, pid = inputs.path("bundle-root"), "77"
    path = write(os.path.join(root, "opt/app"), read(program))
    proc = os.path.join(root, "proc", pid)
    base, second = 0x400000, 0x7F0000000000
    maps = ""
    for line in run("readelf", "-lW", path).splitlines():
        words = line.split()
        if words and words[0] == "LOAD":
            offset, vaddr, size = (int(words[i], 16) for i in (1, 2, 4))
            rights = ("r" if "R" in words[6:9] else "-") + ("w" if "W" in words[6:9] else "-") + ("x" if "E" in words[6:9] else "-")
            start, end = base + vaddr & ~4095, base + vaddr + size + 4095 & ~4095
            maps += f"{start:x}-{end:x} {rights}p {offset & ~4095:08x} 08:01 77 /opt/app\n"
    # As the runtime maps the assembly: its headers, and its code where its rva wants it.
    maps += f"{second:x}-{second + 0x1000:x} r--p {at:08x} 08:01 77 /opt/app\n"
    maps += f"{second + 0x10000:x}-{second + 0x19000:x} r-xp {at:08x} 08:01 77 /opt/app\n"
    maps += f"7f1000000000-7f1000001000 r-xp 00000000 08:01 78 /{FRAMEWORK}/libcoreclr.so\n"
    write(os.path.join(root, FRAMEWORK, "libcoreclr.so"), bytes(4096))
    write(os.path.join(proc, "maps"), maps.encode())
    for name in ("stat", "status"):
        content = read(os.path.join(inputs.recorded, "proc", inputs.pid, name)).replace(inputs.pid.encode(), pid.encode())
        write(os.path.join(proc, name), content)
    os.symlink("/opt/app", os.path.join(proc, "exe"))
    return root, pid, path, [base + 0x1040, second + 0x10200, second + 0x12000]


def jitdumps(target):
    """The corpus, for this process and its jitted code: pid 7 and address 0x1000 in each record."""
    found = []
    for seed in corpus("jitdump"):
        content = read(seed)
        content = content[:20] + struct.pack("<I", target.pid) + content[24:]
        content = content.replace(struct.pack("<II", 7, 7), struct.pack("<II", target.pid, target.pid))
        content = content.replace(struct.pack("<Q", 0x1000), struct.pack("<Q", target.page + 0x300))
        found.append(write(target.dump_path + "." + os.path.basename(seed), content))
    return found


def streams(inputs, target):
    """The corpus, with its method in this process's jitted code: a command that asks for it alone reads no other names."""
    found = []
    for seed in corpus("nettrace"):
        content = read(seed).replace(struct.pack("<Q", 0x7F0000001000), struct.pack("<Q", target.page + 0x800))
        found.append(write(inputs.path("stream." + os.path.basename(seed)), content))
    return found


def recording(inputs):
    """An archive of a busy process."""
    archive = inputs.path("busy.trace.zip")
    with inputs.busy() as pid:
        run(inputs.program, "record", pid, "--for=0.2", "--off-cpu", "-o", archive)
    return archive


def kinds(inputs, target, archive):
    out, rec = inputs.path("out"), ("--root", inputs.recorded)
    perf = inputs.recorded_perf_data()
    copy = inputs.path("copy")
    yield Damage("perf.data", [perf, perf, *corpus("perf_data")], copy, "perf-fix", *rec, copy, "-o", out, "--buildid-dir", inputs.path("ids"))
    stacks = inputs.stack_text(inputs.recorded_addresses())
    yield Damage("stack text", [stacks, *corpus("stack_text")], copy, "symbolize", *rec, "-v", copy)
    yield Damage("reported perf.data", [perf, perf, *corpus("perf_data")], copy, "report", "cpu", "-i", copy, "--by=tree")
    yield Damage("reported recording", [recording(inputs)], copy, "report", "off-cpu", "-i", copy, "--by=thread")
    yield Damage("reported folded stacks", [inputs.folded_stacks()], copy, "report", "cpu", "-i", copy, "--format=folded")
    core, addresses = inputs.core()
    yield Damage("core", [core, core, *corpus("elf_core")], copy, "resolve", "--core", copy, "--lines", *map(hex, addresses))
    yield Damage("R2R", [inputs.assembly, *corpus("r2r")], copy + ".dll", "generate", copy + ".dll", "-o", inputs.path("maps"))
    files, offsets = debug_files(inputs)
    yield Damage("ELF and DWARF", [*files, *corpus("dwarf"), *corpus("image"), *corpus("elf_names")], copy, "resolve", "--lines", "--inlines",
                 *(f"{copy}+{offset}" for offset in offsets))
    root, pid, path, addresses = recorded_bundle(inputs)
    sample = shutil.copy(path, inputs.path("bundle-sample"))
    yield Damage("bundle", [sample], path, "merge", pid, "--root", root, "-o", "-")
    sample = shutil.copy(target.dump_path, inputs.path("dump-sample"))
    yield Damage("jitdump", [sample, *jitdumps(target)], target.dump_path, "resolve", target.pid, "--lines",
                 *(hex(target.page + offset) for offset in (4, 0x104, 0x304, 0x30C)))
    yield Damage("nettrace", streams(inputs, target), inputs.stream, "resolve", target.pid, "--jit=rundown",
                 *(hex(target.page + offset) for offset in range(0, 0x1000, 0x20)))
    path, start, size = archive
    sample = shutil.copy(path, inputs.path("archive-sample"))
    yield Damage("zip", [sample, sample, *corpus("zip")], path, "resolve", target.pid, *(hex(target.archive + at) for at in range(0, size, 256)))


def check(damage, kind, first, count, findings):
    directory = os.path.join(findings, kind.name.replace(" ", "-"))
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    options = SANITIZERS + os.path.join(directory, "report")
    done = subprocess.run([damage, kind.copy, str(first), str(count), directory, *kind.samples, "--", *kind.command], capture_output=True, text=True,
                          errors="replace", env=dict(os.environ, ASAN_OPTIONS=options, UBSAN_OPTIONS=options), stdin=subprocess.DEVNULL)
    lines = done.stdout.splitlines()
    summary = lines[-1] if lines else done.stderr.strip()
    match = re.match(rf"done {count}, crashed 0, slow 0, .* results (\d+);", summary)
    passed = done.returncode == 0 and match and int(match.group(1)) >= min(count, FEWEST_RESULTS)
    for line in [] if passed else lines[:60]:
        print("    " + line)
    print(f"    {summary}")
    print(f"ok damaged copies of {kind.name}" if passed else f"FAILED damaged copies of {kind.name}: {summary}; they are in {directory}", flush=True)
    return bool(passed)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build/san")
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    damage = os.path.abspath(os.path.join(options.build, "tests/long/damage"))
    findings = os.path.abspath(os.path.join(options.build, "damage"))
    passed = True
    with tempfile.TemporaryDirectory(prefix="libsym-damage-") as scratch:
        os.environ["XDG_CACHE_HOME"] = os.path.join(scratch, "cache")
        inputs = Inputs(scratch)
        inputs.program = os.path.abspath(os.path.join(options.build, "dotnet-mapgen"))
        path, start = inputs.archive()
        size = os.path.getsize(path) - start & ~4095
        with Target(inputs, path, start, size) as target:
            for kind in kinds(inputs, target, (path, start, size)):
                if not options.names or any(word in kind.name for word in options.names):
                    passed = check(damage, kind, options.first, options.count, findings) and passed
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
