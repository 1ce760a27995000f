# SPDX-License-Identifier: MIT
"""The cost of files of another user: memory by the kernel's own account of the finished process, names by the text of the test."""
import lzma
import os
import struct
import subprocess
import sys
import zlib

from native_tools import Fail, Skip

NOBODY = 65534
MANY = 1 << 20
TEXT = (".text", 1, 6, b"\x90" * 16, 0, 0, 0, 0x1000)


def make_elf(path, sections):
    """Sections are (name, type, flags, bytes or the size of a hole, link, info, entry size, vaddr)."""
    names, offsets, places, position = b"\0", [], [], 0x2000
    for section in sections:
        offsets.append(len(names))
        names += section[0].encode() + b"\0"
    offsets.append(len(names))
    names += b".shstrtab\0"
    with open(path, "wb") as file:
        file.seek(0x1000)
        file.write(b"\x90" * 0x1000)
        for section in (*sections, ("", 3, 0, names)):
            content = section[3]
            size = content if isinstance(content, int) else len(content)
            if size and not isinstance(content, int):
                file.seek(position)
                file.write(content)
            places.append((position, size))
            position = (position + size + 15) & ~15
        file.seek(position)
        file.write(bytes(64))
        for section, name, (offset, size) in zip((*sections, (".shstrtab", 3, 0, b"", 0, 0, 0)), offsets, places):
            vaddr = section[7] if len(section) > 7 else 0
            file.write(struct.pack("<IIQQQQIIQQ", name, section[1], section[2], vaddr, offset, size, section[4], section[5], 1, section[6]))
        file.seek(0)
        file.write(b"\x7fELF\2\1\1" + bytes(9))
        file.write(struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, position, 0, 64, 56, 1, 64, len(sections) + 2, len(sections) + 1))
        file.write(struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 0x2000, 0x2000, 0x1000))


def packed(size):
    packer = zlib.compressobj(9)
    return struct.pack("<IIQQ", 1, 0, size, 1) + b"".join(packer.compress(bytes(MANY)) for _ in range(size // MANY)) + packer.flush()


def symbols(count):
    return bytes(24) + struct.pack("<IBBHQQ", 1, 0x12, 0, 1, 0x1001, 1) * count


def give_away(tools, name, sections):
    if os.geteuid():
        raise Skip("needs root, to give a file to another user")
    path = tools.path(name)
    make_elf(path, sections)
    os.chown(path, NOBODY, NOBODY)
    return path


def run(tools, *arguments):
    """Exit status, output, errors, and the largest resident size in MB."""
    out, errors = tools.path("out"), tools.path("errors")
    with open(out, "wb") as to, open(errors, "wb") as errors_to:
        child = os.posix_spawn(tools.program, [tools.program, *arguments], os.environ,
                               file_actions=[(os.POSIX_SPAWN_DUP2, to.fileno(), 1), (os.POSIX_SPAWN_DUP2, errors_to.fileno(), 2)])
        _, status, usage = os.wait4(child, 0)
    with open(out, encoding="utf-8") as text, open(errors, encoding="utf-8") as error_text:
        return os.waitstatus_to_exitcode(status), text.read(), error_text.read(), usage.ru_maxrss // 1024


def expect_refusal(tools, path):
    status, _, errors, megabytes = run(tools, "resolve", path + "+0x1005")
    if status != 3 or "--no-limits" not in errors or path not in errors or errors.count("\n") != 1:
        raise Fail(f"status {status}: {errors}")
    if megabytes > 563:
        raise Fail(f"{megabytes} MB")


def test_packed_debug_sections_of_another_user_cost_no_more_than_the_budget(tools):
    section = packed(640 * MANY)
    path = give_away(tools, "packed.so", [TEXT] + [(name, 1, 0x800, section, 0, 0, 0) for name in (".debug_info", ".debug_abbrev")])
    expect_refusal(tools, path)


def test_a_sparse_symbol_table_of_another_user_costs_no_more_than_the_budget(tools):
    path = give_away(tools, "sparse.so", [TEXT, (".strtab", 3, 0, b"\0abc\0", 0, 0, 0), (".symtab", 2, 0, 1023 * MANY, 2, 1, 24)])
    expect_refusal(tools, path)


def test_holes_cost_nothing(tools):
    path = give_away(tools, "hole.so", [TEXT, (".eh_frame", 1, 2, 1023 * MANY, 0, 0, 0, 0x3000)])
    status, _, errors, megabytes = run(tools, "resolve", path + "+0x1005")
    if status or errors or megabytes > 100:
        raise Fail(f"status {status}, {megabytes} MB: {errors}")


def test_no_limits_lifts_the_budget(tools):
    name = b"many_of_one_name"
    path = give_away(tools, "many.so", [TEXT, (".strtab", 3, 0, b"\0" + name + b"\0", 0, 0, 0), (".symtab", 2, 0, symbols(6000000), 2, 1, 24)])
    expect_refusal(tools, path)
    status, out, errors, _ = run(tools, "resolve", "--no-limits", path + "+0x1001")
    if status or errors or name.decode() not in out:
        raise Fail(f"status {status}: {out} {errors}")


def test_small_files_of_another_user_are_read(tools):
    path = give_away(tools, "small.so", [TEXT, (".strtab", 3, 0, b"\0small\0", 0, 0, 0), (".symtab", 2, 0, symbols(1), 2, 1, 24),
                                         (".gnu_debugdata", 1, 0, lzma.compress(bytes(MANY)), 0, 0, 0)])
    status, out, errors, _ = run(tools, "resolve", path + "+0x1001")
    if status or errors or "small" not in out:
        raise Fail(f"status {status}: {out} {errors}")


# bcc_symcache_resolve() of one address of a process: prints its name, and what that took in MB.
BCC = """
import ctypes, resource, sys
class Symbol(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("demangle_name", ctypes.c_char_p), ("module", ctypes.c_char_p), ("offset", ctypes.c_uint64)]
library = ctypes.CDLL(sys.argv[1])
library.bcc_symcache_new.restype = ctypes.c_void_p
library.bcc_symcache_resolve.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.POINTER(Symbol)]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
cache, symbol = library.bcc_symcache_new(int(sys.argv[2]), None), Symbol()
found = library.bcc_symcache_resolve(cache, int(sys.argv[3], 16), ctypes.byref(symbol)) == 0
print((symbol.name or b"").decode() if found else "", (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""

MAPPING = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
print(hex(libc.mmap(None, 8192, 5, 2, os.open(sys.argv[1], os.O_RDONLY), 0)), flush=True)
sys.stdin.read()
"""


def test_libsym_bcc_has_a_budget_that_can_be_lifted(tools):
    tools.need("setpriv")
    name = b"many_of_one_name"
    path = give_away(tools, "bcc-many.so", [TEXT, (".strtab", 3, 0, b"\0" + name + b"\0", 0, 0, 0), (".symtab", 2, 0, symbols(6000000), 2, 1, 24)])
    os.chmod(tools.scratch, 0o755)
    library = os.path.join(os.path.dirname(tools.program), "libsym-bcc.so.0")
    command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", sys.executable, "-c", MAPPING, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/") as process:
        base = int(process.stdout.readline(), 16)
        seen = []
        for environment in ({}, {"LIBSYM_BCC_NO_LIMITS": "1"}):
            words = tools.run(sys.executable, "-c", BCC, library, process.pid, f"{base + 0x1001:x}", env=dict(os.environ, **environment)).split()
            seen.append((words[0] if len(words) > 1 else "", int(words[-1])))
        process.stdin.close()
    if seen[0][0] == name.decode() or seen[0][1] > 563 or seen[1][0] != name.decode():
        raise Fail(str(seen))


WRITING = """
import ctypes, os, sys
runtime, names = sys.argv[1:]
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.mmap(None, 4096, 5, 2, os.open(runtime, os.O_RDONLY), 0)
libc.mmap(0x7000000000, 1 << 20, 7, 0x32, -1, 0)
path = f"/tmp/perf-{os.getpid()}.map"
with open(path, "w") as file:
    for i in range(int(names)):
        file.write(f"{0x7000000000 + 16 * i:x} 10 {'n' * 60000}{i}\\n")
    file.flush()
    print("ready", flush=True)
    sys.stdin.read()
os.remove(path)
"""


def test_a_perf_map_of_long_names_of_another_user_costs_no_more_than_the_budget(tools):
    """A list of names is copied by who writes it: 180 MB of names were 570 to 770 MB in watch and perf-fix."""
    tools.need("setpriv", "perf")
    if os.geteuid():
        raise Skip("root runs the product here")
    runtime = tools.path("long/shared/Microsoft.NETCore.App/10.0.12/libcoreclr.so")
    os.makedirs(os.path.dirname(runtime))
    with open(runtime, "wb") as file:
        file.write(bytes(4096))
    os.chmod(tools.scratch, 0o755)
    command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", sys.executable, "-c", WRITING, runtime, "3000"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/") as process:
        if process.stdout.readline() != "ready\n":
            raise Fail("the process did not start")
        data, output = tools.path("long.data"), tools.path("long.map")
        tools.run("perf", "record", "-q", "-e", "cpu-clock", "-p", process.pid, "-o", data, "sleep", "0.1")
        for words in (("merge", "-o", output, str(process.pid)), ("watch", "--for=1", "-o", output, str(process.pid)),
                      ("perf-fix", "-o", output, data), ("list",)):
            status, _, errors, megabytes = run(tools, *words)
            if megabytes > 563 or (words[0] != "list" and (status == 0 or "--no-limits" not in errors)):
                raise Fail(f"{words[0]}: status {status}, {megabytes} MB: {errors[:500]}")
        process.stdin.close()


# The worst of the table in tests/long/budgets.py: a run of `list` as root looked at a bundle for ever.
WORST = {"bundle of the same": "list PID,resolve", "file mapped often": "list PID,resolve", "map of many lines": "merge"}


def test_a_process_of_another_user_costs_no_more_than_the_budget(tools):
    tools.need("setpriv", "gcc")
    if os.geteuid():
        raise Skip("root runs the product here")
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "long", "budgets.py")
    for attack, commands in WORST.items():
        tools.run(sys.executable, script, "--build", os.path.dirname(tools.program), "--attacks", attack, "--commands", commands)
