# SPDX-License-Identifier: MIT
"""Small inputs for every command, made in a directory of their own: a process that never changes, a recorded one, a core file,
files of every format that is read. Knows nothing of what is tested with them."""
import contextlib
import os
import shutil
import struct
import subprocess
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = os.path.dirname(os.path.abspath(__file__))
RECORDED = os.path.join(ROOT, "fixtures", "recorded")
FRAMEWORK = "shared/Microsoft.NETCore.App/10.0.12"
TEXT_RVA, TEXT_DISTANCE = 0x10200, 0x10000

LIBRARY = """
static __attribute__((noinline)) int hidden(int x) { volatile int v = x; return v * 31 + 7; }
static inline __attribute__((always_inline)) int inlined(int x)
{
	volatile int v = x;
	return v * 3;
}
__attribute__((noinline)) int exported(int x)
{
	return hidden(x) + inlined(x);
}
"""
BUSY = """
#include <unistd.h>
__attribute__((noinline)) long work(long n) { volatile long left = n; while (left > 0) left--; return left; }
int main(void) { work(100000); write(1, "\\n", 1); for (;;) work(100000); }
"""
# Without a C library, so that a core of it is small.
TINY = """
static __attribute__((noinline)) long call(long number, long a)
{
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a) : "rcx", "r11", "memory");
	return result;
}
void _start(void) { for (;;) call(34, 0); }
"""


def run(*words, **options):
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True, **options).stdout


def write(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)
    return path


def read(path):
    with open(path, "rb") as file:
        return file.read()


def extent(path, name):
    """(file offset, size) of a function of an ELF file, by nm and readelf."""
    for line in run("nm", "-S", path).splitlines():
        words = line.split()
        if len(words) == 4 and words[3] == name:
            vaddr, size = int(words[0], 16), int(words[1], 16)
    for line in run("readelf", "-lW", path).splitlines():
        words = line.split()
        if words and words[0] == "LOAD":
            offset, start, length = int(words[1], 16), int(words[2], 16), int(words[4], 16)
            if start <= vaddr < start + length:
                return vaddr - start + offset, size
    raise ValueError(name)


# ---- perf.data ----------------------------------------------------------------

def record(kind, payload, misc=2):
    payload += bytes(-len(payload) % 8)
    return struct.pack("<IHH", kind, misc, 8 + len(payload)) + payload


def text(value):
    value = value.encode() + b"\0"
    return value + bytes(-len(value) % 8)


def mmap2(pid, start, size, offset, path, protection=5):
    return record(10, struct.pack("<IIQQQIIQQII", pid, pid, start, size, offset, 8, 1, 77, 0, protection, 2) + text(path))


def perf_data(pid, mappings, addresses, time=1):
    """With samples of IP, TID, TIME and a call chain, as `perf record -g` writes them."""
    ip, tid, when, chain = 1, 2, 4, 32
    attribute = struct.pack("<IIQQQQQ", 0, 128, 0, 10000, ip | tid | when | chain, 0, 1 << 18 | 1 << 8 | 1 << 23) + bytes(128 - 48)
    data = record(3, struct.pack("<II", pid, pid) + text("target") + struct.pack("<IIQ", pid, pid, time))
    for mapping in mappings:
        data += mmap2(pid, *mapping)
    for number, address in enumerate(addresses):
        frames = [0xFFFFFFFFFFFFFE00, address, *addresses[:3]]
        data += record(9, struct.pack("<QIIQQ", address, pid, pid, time + number, len(frames)) + struct.pack(f"<{len(frames)}Q", *frames))
    at = 104 + 144
    return b"PERFILE2" + struct.pack("<QQQQQQQQ4Q", 104, 144, 104, 144, at, len(data), 0, 0, 0, 0, 0, 0) + attribute + bytes(16) + data


# ---- all of them ------------------------------------------------------------------

class Target:
    """A running target; addresses of what it has mapped."""

    def __init__(self, inputs, *archive):
        self.process = subprocess.Popen([inputs.target, inputs.assembly, inputs.runtime, inputs.stream, *map(str, archive)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.base, self.page, self.function, self.archive = (int(word, 16) for word in self.process.stdout.readline().split())
        self.pid = self.process.pid
        self.map_path = f"/tmp/perf-{self.pid}.map"
        self.dump_path = f"/tmp/jit-{self.pid}.dump"
        self.map_text = read(self.map_path)
        self.kept = os.path.join("/tmp", f"libsym-kept-{self.pid}.map")
        os.link(self.map_path, self.kept)
        self.code = self.base + TEXT_DISTANCE + 0x200

    def addresses(self):
        return [self.code + 16, self.code + 0x100, self.code + 0x2000, self.page + 4, self.page + 0x104, self.page + 0x304,
                self.page + 0x800, self.function, self.function + 8, 16]

    def wait_until_it_waits(self):
        """An earlier command may have stopped it, or may still be waiting for its answer."""
        while (state := read(f"/proc/{self.pid}/stat").rpartition(b") ")[2][:1]) != b"S":
            if state in b"ZX":
                raise ProcessLookupError(f"the target has ended: {self.pid}")
            os.sched_yield()

    def map_is_lost(self):
        """Whether the file that it writes has no name any more."""
        places = (self.map_path, self.map_path + ".runtime")
        return not any(os.path.exists(place) and os.path.samefile(place, self.kept) for place in places)

    def put_map_back(self, text=None):
        """The file that it writes, under its name and with what it has written, or with this."""
        for name in os.listdir("/tmp"):
            if name.startswith(f"perf-{self.pid}.map"):
                os.unlink("/tmp/" + name)
        os.link(self.kept, self.map_path)
        write(self.map_path, text or self.map_text)

    def end(self):
        self.process.kill()
        self.process.communicate()
        directory, prefix = "/tmp", f"dotnet-diagnostic-{self.pid}-"
        for name in os.listdir(directory):
            if name.startswith((prefix, f"perf-{self.pid}.map", f"jit-{self.pid}.dump", f"libsym-kept-{self.pid}.map")):
                os.unlink(os.path.join(directory, name))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


class Inputs:
    def __init__(self, scratch):
        self.scratch = scratch
        self.recorded = shutil.copytree(RECORDED, self.path("recorded"))
        self.pid = os.listdir(os.path.join(RECORDED, "proc"))[0]
        self.assembly = shutil.copy(os.path.join(RECORDED, "opt/sample/sample.dll"), self.path("sample.dll"))
        self.runtime = write(self.path(FRAMEWORK + "/libcoreclr.so"), bytes(4096))
        self.stream = shutil.copy(os.path.join(ROOT, "fixtures/corpus/nettrace/compressed"), self.path("stream"))
        self.target = self.path("target")
        run("gcc", "-O1", "-g", "-w", "-D_GNU_SOURCE", "-o", self.target, os.path.join(HERE, "steady_process.c"))
        self.library = self.path("libsmall.so")
        run("gcc", "-O1", "-g", "-shared", "-fPIC", "-nostdlib", "-Wl,--build-id", "-o", self.library, "-x", "c", "-", input=LIBRARY)

    def path(self, name):
        return os.path.join(self.scratch, name)

    def library_questions(self):
        """FILE+0xN all over the two functions."""
        questions = []
        for name in ("exported", "hidden"):
            offset, size = extent(self.library, name)
            questions += [f"{self.library}+{offset + step:#x}" for step in range(0, size, 4)]
        return questions

    def debug_tree(self):
        """The library without symbols, and a directory with its debug file by build-id; (file, directory)."""
        stripped, debug = self.path("stripped/libsmall.so"), self.path("debug")
        os.makedirs(os.path.dirname(stripped), exist_ok=True)
        ident = next(line.split()[-1] for line in run("readelf", "-nW", self.library).splitlines() if "Build ID" in line)
        place = os.path.join(debug, ".build-id", ident[:2], ident[2:] + ".debug")
        os.makedirs(os.path.dirname(place), exist_ok=True)
        run("objcopy", "--only-keep-debug", self.library, place)
        run("objcopy", "--strip-all", self.library, stripped)
        return stripped, debug

    def recorded_addresses(self, count=12):
        """Addresses of methods in its perf map, and of code in its assembly."""
        with open(os.path.join(self.recorded, "tmp", f"perf-{self.pid}.map"), encoding="utf-8") as lines:
            jitted = [int(line.split()[0], 16) + 1 for line in lines if "::" in line]
        with open(os.path.join(self.recorded, "proc", self.pid, "maps"), encoding="utf-8") as lines:
            code = [int(line.split("-")[0], 16) for line in lines if line.rstrip().endswith("sample.dll") and " r-xp " in line]
        return jitted[:: max(1, len(jitted) // count)] + [code[0] + 0x200 + 64 * number for number in range(count)]

    def recorded_mappings(self):
        """As perf.data has them: (start, size, offset, path) of what may be executed."""
        found = []
        with open(os.path.join(self.recorded, "proc", self.pid, "maps"), encoding="utf-8") as lines:
            for line in lines:
                fields = line.rstrip("\n").split(None, 5)
                start, end = (int(part, 16) for part in fields[0].split("-"))
                if "x" in fields[1]:
                    found.append((start, end - start, int(fields[2], 16), fields[5] if len(fields) > 5 else "//anon"))
        return found

    def recorded_perf_data(self):
        addresses = self.recorded_addresses()
        mappings = [row for row in self.recorded_mappings() if any(row[0] <= address < row[0] + row[1] for address in addresses)]
        return write(self.path("perf.data"), perf_data(int(self.pid), mappings, addresses))

    def stack_text(self, addresses, comm="target", pid=None):
        """Three forms: perf script, bpftrace, and folded lines."""
        pid = pid or self.pid
        script = f"{comm} {pid} 1.000000: 1 cpu-clock:\n" + "".join(f"\t{address:16x} [unknown] (/memfd:doublemapper (deleted))\n" for address in addresses)
        trace = "@[\n" + "".join(f"    {address:#x}\n" for address in addresses) + f"    {comm}, {pid}\n]: 3\n"
        folded = f"{comm};" + ";".join(f"[unknown] {address:#x}" for address in addresses) + " 7\n"
        return write(self.path("stacks.txt"), (script + "\n" + trace + "\n" + folded).encode())

    def folded_stacks(self):
        lines = ["main;work;call 12", "main;work 7", "other;[unknown];a b::c(int) [k] 3", "main;\xe9t\xe9;x 18446744073709551615"]
        return write(self.path("folded.txt"), "".join(line + "\n" for line in lines).encode())

    @contextlib.contextmanager
    def busy(self):
        """Yields the id of a process that uses the CPU."""
        program = self.path("busy")
        run("gcc", "-O1", "-g", "-o", program, "-x", "c", "-", input=BUSY)
        process = subprocess.Popen([program], stdout=subprocess.PIPE)
        try:
            process.stdout.readline()
            yield str(process.pid)
        finally:
            process.kill()
            process.wait()

    def core(self):
        """(core file, addresses of code in it); of a program without a C library."""
        program, path = self.path("tiny"), self.path("core")
        run("gcc", "-O1", "-g", "-static", "-nostdlib", "-nostartfiles", "-Wl,--build-id", "-o", program, "-x", "c", "-", input=TINY)
        process = subprocess.Popen([program])
        try:
            run("gdb", "-batch", "-nx", "-p", str(process.pid), "-ex", f"generate-core-file {path}")
        finally:
            process.kill()
            process.wait()
        start = next(int(line.split()[0], 16) for line in run("nm", program).splitlines() if line.endswith(" _start"))
        return path, [start, start + 4, start + 0x100000, 16]

    def archive(self):
        """An archive that stores the library on a page, and one small packed member; (path, offset of the library)."""
        path, content = self.path("small.apk"), read(self.library)
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("a.txt", b"text " * 20, zipfile.ZIP_DEFLATED)
            info = zipfile.ZipInfo("lib/libsmall.so")
            at = file.fp.tell() + 30 + len(info.filename) + 4
            info.extra = struct.pack("<HH", 0xD935, -at % 4096) + bytes(-at % 4096)
            file.writestr(info, content)
        return path, at + -at % 4096
