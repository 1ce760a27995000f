#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The cost of any command on a hostile process of another user: memory and CPU time by the kernel's account of the
finished process, beside the budget of SECURITY.md and a tenth more.

Usage: budgets.py --build DIR [--attacks A,B] [--commands A,B]
Prints a row for each attack and command. The process belongs to uid 65534, its files too; root runs the commands.
"""
import argparse
import array
import lzma
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "native"))
from long_inputs import FRAMEWORK, HERE, RECORDED, read, run  # noqa: E402
from native_budget import MANY, NOBODY, make_elf, packed, symbols  # noqa: E402

MOST_MB = 512 * 1.1
MOST_CPU_S = 10 * 1.1
LONGEST_S = 180  # what has no end
FILE_BYTES = 190 * MANY
FIRST, JITTED = 0x6000000000, 0x7000000000
# pause; jmp: a thread that samples and stacks find in the file
SPIN = b"\xf3\x90\xeb\xfc" * 4
CODE = (".text", 1, 6, SPIN, 0, 0, 0, 0x1000)
BUNDLE_MARK = bytes.fromhex("8b1202b96a612038727b930214d7a03213f5b9e6efae3318ee3b2dce24b36aae")
ASSEMBLY = os.path.join(RECORDED, "opt/sample/sample.dll")


class Attack:
    """`files`: (path, offset, bytes, address, how often) that it maps; `asked`: addresses; `spin`: where its thread is."""

    def __init__(self, name, files=(), asked=(), spin=JITTED, peer="none", perf_map="-", lock=False, program=None):
        self.name, self.files, self.asked, self.spin = name, list(files), [JITTED + 4, JITTED + 0x1004, *asked], spin
        self.peer, self.perf_map, self.lock, self.program = peer, perf_map, lock, program


def apart(make, *arguments):
    """In a child: what a process that starts another has used counts as that one's peak."""
    child = os.fork()
    if not child:
        make(*arguments)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        raise RuntimeError(make.__name__)


def make_code(path, sections):
    make_elf(path, [CODE, *sections()])
    with open(path, "r+b") as file:
        file.seek(0x1000)
        file.write(SPIN)


def elf_attack(directory, name, sections):
    path = os.path.join(directory, name.replace(" ", "-") + ".so")
    apart(make_code, path, sections)
    return Attack(name, [(path, 0, 0x2000, FIRST, 1)], [FIRST + 0x1000, FIRST + 0x1005], FIRST + 0x1000)


def many_symbols(names):
    """A symbol table of 24-byte rows; each has the next offset into the names."""
    return bytes(24) + b"".join(struct.pack("<IBBHQQ", 1 + i % names, 0x12, 0, 1, 0x1001, 1) for i in range(1 << 16)) * (FILE_BYTES // 24 >> 16)


def packed_sections():
    content = packed(2047 * MANY)
    return [(name, 1, 0x800, content, 0, 0, 0) for name in (".debug_info", ".debug_abbrev", ".debug_line", ".debug_str")]


def frames():
    """.eh_frame: blocks of one CIE and FDEs that all cover the code."""
    cie = struct.pack("<IIB", 20, 0, 1) + b"zR\0" + bytes([1, 0x78, 16, 1, 0x00, 0x0C, 7, 8, 0x90, 1]) + bytes(2)
    block = bytearray(cie)
    for i in range(1 << 14):
        block += struct.pack("<IIQQB", 28, len(block) + 4, 0x1000, 0x800 - i % 0x700, 0) + bytes(7)
    return bytes(block) * (FILE_BYTES // len(block)) + bytes(4)


def directory_of_many(path, library):
    """A zip archive: the library, stored on a page, and members that fill the directory."""
    name = b"lib/libmany.so"
    content = read(library)
    with open(path, "wb") as file:
        gap = 4096 - 30 - len(name)
        file.write(struct.pack("<IHHHHHIIIHH", 0x04034B50, 20, 0, 0, 0, 0, 0, len(content), len(content), len(name), gap) + name + bytes(gap) + content)
        directory = file.tell()
        row = struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, 20, 20, 0, 0, 0, 0, 0, len(content), len(content), len(name), 0, 0, 0, 0, 0, 0) + name
        count = 60 * MANY // len(row)
        file.write(row * count)
        size = file.tell() - directory
        file.write(struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, count, count, size, directory))
        file.write(struct.pack("<IIQI", 0x07064B50, 0, directory + size, 1))
        file.write(struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0))


def text_of_bundle(name):
    return bytes([len(name)]) + name.encode()


def bundle(path, program, parts):
    """The program with a manifest of `parts`: rows as bytes; all refer to what lies behind the program."""
    content = bytearray(read(program))
    content += bytes(-len(content) % 4096)
    at = len(content)
    payload, rows = parts(at)
    content += payload
    header = len(content)
    content += struct.pack("<III", 6, 0, len(rows)) + text_of_bundle("abcdefghijkl") + struct.pack("<QQQQQ", 0, 0, 0, 0, 0) + b"".join(rows)
    place = content.index(BUNDLE_MARK) - 8
    content[place:place + 8] = struct.pack("<Q", header)
    with open(path, "wb") as file:
        file.write(content)
    os.chmod(path, 0o755)


def same_parts(assembly):
    """All rows have the same bytes."""
    def parts(at):
        row = struct.pack("<QQQB", at, len(assembly), 0, 1) + text_of_bundle("a.dll")
        return assembly, [row] * (15 * MANY // len(row))
    return parts


def tiny_parts(assembly):
    """Each row has a byte of its own."""
    del assembly

    def parts(at):
        count = 15 * MANY // 31
        return bytes(count), [struct.pack("<QQQB", at + i, 1, 0, 1) + text_of_bundle("a.dll") for i in range(count)]
    return parts


def packed_parts(assembly):
    """Each unpacks to 250 MB."""
    del assembly

    def parts(at):
        content = packed(250 * MANY)[24 + 2:]  # without the ELF header and zlib's own
        names = ("System.Private.CoreLib.dll", "System.Runtime.dll", "app.dll", "Sample.dll", "sample.dll")
        return content, [struct.pack("<QQQB", at, 250 * MANY, len(content), 1) + text_of_bundle(name) for name in names]
    return parts


def large_assembly(path, assembly):
    """sample.dll with a RUNTIME_FUNCTIONS table of 180 MB at its end."""
    content = bytearray(assembly)
    pe = struct.unpack_from("<I", content, 0x3C)[0]
    sections, optional = struct.unpack_from("<H", content, pe + 6)[0], struct.unpack_from("<H", content, pe + 20)[0]
    rows = [pe + 24 + optional + 40 * i for i in range(sections)]
    places = [struct.unpack_from("<IIII", content, row + 8) for row in rows]

    def offset_of(rva):
        return next(rva - start + raw for size, start, raw_size, raw in places if start <= rva < start + max(size, raw_size))

    clr = offset_of(struct.unpack_from("<I", content, pe + 24 + 112 + 14 * 8)[0])
    header = offset_of(struct.unpack_from("<I", content, clr + 64)[0])
    last = max(range(sections), key=lambda i: places[i][1])
    size, start, raw_size, raw = places[last]
    content += bytes(-len(content) % 4096)
    grown_at = start + len(content) - raw
    count = FILE_BYTES // 12 - (1 << 16)
    functions = array.array("I", range(0x10200, 0x10200 + 3 * count))  # begins, ends and unwind places that ascend
    content += functions.tobytes()
    for row in (rows[last],):
        struct.pack_into("<I", content, row + 8, len(content) - raw)
        struct.pack_into("<I", content, row + 16, len(content) - raw)
    for i in range(struct.unpack_from("<I", content, header + 12)[0]):
        at = header + 16 + 12 * i
        if struct.unpack_from("<I", content, at)[0] == 102:
            struct.pack_into("<II", content, at + 4, grown_at, 12 * count)
    with open(path, "wb") as file:
        file.write(content)


def map_of_long_names(path):
    with open(path, "w", encoding="ascii") as file:
        for i in range(FILE_BYTES // 60020):
            file.write(f"{JITTED + 16 * i:x} 10 {'n' * 60000}{i}\n")


def map_of_many_lines(path):
    with open(path, "w", encoding="ascii") as file:
        block = "".join(f"{JITTED + (i * 7919 & 0xFFFFF):x} 8 m{i:x}@\n" for i in range(0x40000))
        for number in range(FILE_BYTES // 24 // 0x40000 + 1):
            file.write(block.replace("@", f"_{number:x}"))


def small_sections():
    return [(".strtab", 3, 0, b"\0spinning\0", 0, 0, 0), (".symtab", 2, 0, symbols(1), 2, 1, 24)]


def map_attack(directory, name, make):
    path = os.path.join(directory, name.replace(" ", "-") + ".map")
    apart(make, path)
    return Attack(name, perf_map=path)


def archive_attack(directory, name):
    small, path = os.path.join(directory, "small.so"), os.path.join(directory, "many.apk")
    make_code(small, small_sections)
    apart(directory_of_many, path, small)
    return Attack(name, [(path, 4096, 0x2000, FIRST, 3000)], [FIRST + 0x1000], FIRST + 0x1000)


def often_attack(directory, name):
    path = os.path.join(directory, "often.so")
    make_code(path, small_sections)
    return Attack(name, [(path, 0, 0x2000, FIRST, 30000)], [FIRST + 0x1000], FIRST + 0x1000)


def bundle_attack(directory, name, parts, often):
    path, program = os.path.join(directory, name.replace(" ", "-")), os.path.join(directory, "attacker")
    at = os.path.getsize(program) + 4095 & ~4095
    apart(bundle, path, program, parts(read(ASSEMBLY)))
    return Attack(name, [(path, at, 0x9000, FIRST + 0x10000, often)], [FIRST + 0x10200], program=path)


def assembly_attack(directory, name):
    path = os.path.join(directory, "large.dll")
    apart(large_assembly, path, read(ASSEMBLY))
    return Attack(name, [(path, 0, 0x1000, FIRST, 1), (path, 0, 0x9000, FIRST + 0x10000, 1)], [FIRST + 0x10400, FIRST + 0x12000])


def elf(sections):
    return lambda directory, name: elf_attack(directory, name, sections)


ATTACKS = {
    "silent peer": lambda _, name: Attack(name, peer="silent"),
    "slow peer": lambda _, name: Attack(name, peer="slow"),
    "endless peer": lambda _, name: Attack(name, peer="endless"),
    "locked map": lambda _, name: Attack(name, lock=True),
    "map of long names": lambda directory, name: map_attack(directory, name, map_of_long_names),
    "map of many lines": lambda directory, name: map_attack(directory, name, map_of_many_lines),
    "packed DWARF": elf(packed_sections),
    "packed symbols": elf(lambda: [(".gnu_debugdata", 1, 0, lzma.compress(bytes(250 * MANY), preset=0), 0, 0, 0)]),
    "sparse symbols": elf(lambda: [(".strtab", 3, 0, b"\0abc\0", 0, 0, 0), (".symtab", 2, 0, 1023 * MANY, 2, 1, 24)]),
    "one long name": elf(lambda: [(".strtab", 3, 0, b"\0" + b"a" * 60000 + b"\0", 0, 0, 0), (".symtab", 2, 0, many_symbols(1), 2, 1, 24)]),
    "names within names": elf(lambda: [(".strtab", 3, 0, b"\0_Z" + b"1a" * 30000 + b"\0", 0, 0, 0),
                                       (".symtab", 2, 0, many_symbols(59000), 2, 1, 24)]),
    "many frames": elf(lambda: [(".eh_frame", 1, 2, frames(), 0, 0, 0, 0x3000)]),
    "sparse frames": elf(lambda: [(".eh_frame", 1, 2, 1023 * MANY, 0, 0, 0, 0x3000)]),
    "archive of many": archive_attack,
    "file mapped often": often_attack,
    "bundle of the same": lambda directory, name: bundle_attack(directory, name, same_parts, 3000),
    "bundle of many": lambda directory, name: bundle_attack(directory, name, tiny_parts, 3000),
    "packed bundle": lambda directory, name: bundle_attack(directory, name, packed_parts, 1),
    "large DLL": assembly_attack,
}


def commands(directory, pid, attack):
    """(name, words, standard input); the later ones read what earlier ones wrote."""
    addresses = [hex(address) for address in attack.asked]
    out = os.path.join(directory, "out")
    text = f"attacker {pid} {time.monotonic():.6f}: 1 cpu-clock:\n" + "".join(f"\t{address:16x} [unknown] ([unknown])\n"
                                                                              for address in attack.asked) + "\n"
    yield "list", ("list",), None
    yield "list PID", ("list", pid), None
    yield "info", ("info", pid), None
    yield "generate", ("generate", pid, "-o", out + ".maps"), None
    yield "merge", ("merge", "-o", out + ".map", pid), None
    yield "merge in place", ("merge", pid), None
    yield "watch", ("watch", "--for=1", "-o", out + ".map", pid), None
    yield "resolve", ("resolve", pid, *addresses), None
    yield "resolve with lines", ("resolve", "--lines", "--inlines", pid, *addresses), None
    yield "symbolize", ("symbolize",), text
    yield "fetch-symbols", ("fetch-symbols", "--offline", pid), None
    yield "standin", ("standin", "install", "--debug-tree", out + ".debug", pid), None
    yield "stack", ("stack", pid), None
    yield "record", ("record", "--for=0.3", "--off-cpu", "-o", out + ".trace.zip", pid), None
    yield "report", ("report", "cpu", "-i", out + ".trace.zip"), None
    yield "record perf.data", ("record", "--for=0.3", "-o", out + ".data", pid), None
    yield "report perf.data", ("report", "cpu", "-i", out + ".data"), None
    yield "perf-fix", ("perf-fix", "-o", out + ".fixed", "--buildid-dir", out + ".ids", out + ".data"), None
    yield "check", ("check", pid), None
    yield "flame", ("flame", "--for=0.3", "-o", out + ".html", pid), None
    yield "top", ("top", "--batch", "-n", "1", pid), None


def start(attack, program, runtime):
    words = [attack.program or program, runtime, attack.peer, attack.perf_map, "1" if attack.lock else "0", hex(attack.spin)]
    for file in attack.files:
        words += [str(word) for word in file]
    process = subprocess.Popen(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *words], stdout=subprocess.PIPE, text=True, cwd="/")
    if process.stdout.readline() != "ready\n":
        raise RuntimeError(f"{attack.name}: the process did not start")
    return process


def stop(process):
    process.kill()
    process.wait()
    for name in os.listdir("/tmp"):
        if name.startswith((f"perf-{process.pid}.map", f"dotnet-diagnostic-{process.pid}-")):
            os.unlink("/tmp/" + name)


def measure(program, words, text, scratch):
    """(exit code or what happened, errors, MB, seconds of CPU, seconds)"""
    before = time.monotonic()
    with open(os.path.join(scratch, "errors"), "w+b") as errors:
        child = subprocess.Popen([program, *words], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors,
                                 env=dict(os.environ, XDG_CACHE_HOME=os.path.join(scratch, "cache")))
        try:
            child.stdin.write((text or "").encode())
            child.stdin.close()
        except BrokenPipeError:
            pass
        signal.signal(signal.SIGALRM, lambda *_: child.kill())
        signal.alarm(LONGEST_S)
        _, status, usage = os.wait4(child.pid, 0)
        signal.alarm(0)
        child.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        said = errors.read().decode(errors="replace")
    return child.returncode, said, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime, time.monotonic() - before


def check(attack, options, scratch, programs, chosen):
    passed = True
    process = start(attack, *programs)
    try:
        for name, words, text in commands(scratch, str(process.pid), attack):
            if chosen and name not in chosen:
                continue
            code, said, megabytes, cpu, seconds = measure(options.program, words, text, scratch)
            if process.poll() is not None:
                raise RuntimeError(f"{attack.name}: the process has ended")
            fits = code in (0, 1, 3) and megabytes <= MOST_MB and cpu <= MOST_CPU_S
            passed = passed and fits
            print(f"    {attack.name:20} {name:20} {megabytes:4.0f} MB {cpu:5.1f} s of CPU {seconds:5.1f} s, exit code {code}"
                  + ("" if fits else f"  TOO MUCH: {said[-300:]!r}"), flush=True)
    finally:
        stop(process)
    for path in {file[0] for file in attack.files}:
        os.unlink(path)
    print(f"{'ok' if passed else 'FAILED'} what a process may cost: {attack.name}", flush=True)
    return passed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--attacks", default="")
    parser.add_argument("--commands", default="")
    options = parser.parse_args()
    options.program = os.path.abspath(os.path.join(options.build, "dotnet-mapgen"))
    chosen = [set(filter(None, words.split(","))) for words in (options.attacks, options.commands)]
    if os.geteuid():
        print("skipped what a process may cost: root runs the product here")
        return 0
    passed = True
    with tempfile.TemporaryDirectory(prefix="libsym-budgets-") as scratch, tempfile.TemporaryDirectory(prefix="libsym-attacker-") as directory:
        os.chmod(directory, 0o755)
        runtime = os.path.join(directory, FRAMEWORK, "libcoreclr.so")
        os.makedirs(os.path.dirname(runtime))
        with open(runtime, "wb") as file:
            file.write(bytes(4096))
        program = os.path.join(directory, "attacker")
        run("gcc", "-O1", "-w", "-D_GNU_SOURCE", "-o", program, os.path.join(HERE, "attacker.c"), "-lpthread")
        for name, make in ATTACKS.items():
            if not chosen[0] or name in chosen[0]:
                attack = make(directory, name)
                run("chown", "-R", f"{NOBODY}:{NOBODY}", directory)
                passed = check(attack, options, scratch, (program, runtime), chosen[1]) and passed
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
