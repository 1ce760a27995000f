# SPDX-License-Identifier: MIT
"""libsym-bcc as Python tools and linked programs reach it: through ctypes, through dlsym() in every form, beside other preloaded
libraries; debug files by link, and modules that vanish. Where libbcc is installed it is asked the same."""
import ctypes
import json
import os
import shutil
import struct
import subprocess

from native_files import Process, build, place, split
from native_tools import Elf, Fail, Skip
from waiting import is_in_time

SYSTEM_PYTHON = "/usr/bin/python3"


def library(tools, name):
    path = os.path.join(os.path.dirname(tools.program), name)
    if not os.path.exists(path):
        raise Skip(f"{name} is not built")
    return path


def libbcc():
    try:
        return ctypes.CDLL("libbcc.so.0")
    except OSError:
        return None


class Symbol(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("demangle_name", ctypes.c_char_p), ("module", ctypes.c_char_p),
                ("offset", ctypes.c_uint64)]


class Option(ctypes.Structure):
    _fields_ = [("use_debug_file", ctypes.c_int), ("check_debug_file_crc", ctypes.c_int), ("lazy_symbolize", ctypes.c_int),
                ("use_symbol_type", ctypes.c_uint32)]


def typed(handle):
    """The functions used here with their types, as libbcc's header has them."""
    handle.bcc_symcache_new.restype = ctypes.c_void_p
    handle.bcc_symcache_new.argtypes = [ctypes.c_int, ctypes.c_void_p]
    handle.bcc_symcache_resolve.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.POINTER(Symbol)]
    handle.bcc_free_symcache.argtypes = [ctypes.c_void_p, ctypes.c_int]
    handle.bcc_resolve_symname.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_int,
                                           ctypes.POINTER(Option), ctypes.POINTER(Symbol)]
    handle.bcc_buildsymcache_new.restype = ctypes.c_void_p
    handle.bcc_buildsymcache_add_module.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    handle.bcc_buildsymcache_resolve.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(Symbol)]
    handle.bcc_free_buildsymcache.argtypes = [ctypes.c_void_p]
    return handle


def both(tools):
    """(name, library): ours, and libbcc where it is installed."""
    found = [("ours", typed(ctypes.CDLL(library(tools, "libsym-bcc.so.0"))))]
    theirs = libbcc()
    return found + ([("libbcc", typed(theirs))] if theirs else [])


# ---- dlsym ---------------------------------------------------------------------------

ASKER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void tell(const char *what, void *function)
{
	Dl_info info;
	const char *file = function && dladdr(function, &info) ? strrchr(info.dli_fname, '/') : NULL;

	printf("%s %s\n", what, !function ? "none" : file ? file + 1 : "unknown");
}

int main(void)
{
	void *bcc = dlopen("libbcc.so.0", RTLD_NOW | RTLD_GLOBAL), *self = dlopen(NULL, RTLD_NOW);

	tell("handle", dlsym(bcc, "bcc_symcache_new"));
	tell("handle-other", dlsym(bcc, "bpf_module_create_c_from_string"));
	tell("handle-list", dlsym(bcc, "bcc_foreach_function_symbol"));
	tell("default", dlsym(RTLD_DEFAULT, "bcc_symcache_new"));
	tell("self", dlsym(self, "bcc_symcache_new"));
	tell("next", dlsym(RTLD_NEXT, "bcc_symcache_new"));
	tell("next-libc", dlsym(RTLD_NEXT, "getppid"));
	tell("not-in-it", dlsym(dlopen("libm.so.6", RTLD_NOW), "bcc_symcache_new"));
	dlerror();
	tell("missing", dlsym(bcc, "bcc_no_such_function"));
	puts(dlerror() ? "error yes" : "error no");
	printf("wrapped %d\n", (int)(getppid() > 0));
	return 0;
}
"""

# A library that is put in front of getppid() as tracers and allocators do: whom it calls next depends on who asks dlsym().
WRAPPER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

pid_t getppid(void)
{
	pid_t (*next)(void) = (pid_t (*)(void))dlsym(RTLD_NEXT, "getppid");

	if (!next || next == getppid)
		return -1;
	fputs("wrapper called\n", stdout);
	return next();
}
"""


def ask_dlsym(tools, preload):
    program, wrapper = tools.path("asker"), tools.path("libwrapper.so")
    tools.run("gcc", "-O1", "-o", program, tools.write("asker.c", ASKER), "-ldl")
    tools.run("gcc", "-O2", "-shared", "-fPIC", "-o", wrapper, tools.write("wrapper.c", WRAPPER), "-ldl")
    text = tools.run(program, env={**os.environ, "LD_PRELOAD": ":".join((*preload, wrapper))})
    return dict(line.split(" ", 1) for line in text.splitlines())


def test_dlsym_in_every_form_finds_what_it_should_under_the_preload(tools):
    tools.need("gcc")
    if not libbcc():
        raise Skip("libbcc.so.0 is not installed")
    ours = library(tools, "libsym-bcc-preload.so")
    plain, hooked = ask_dlsym(tools, ()), ask_dlsym(tools, (ours,))
    name = os.path.basename(ours)
    bcc = plain["handle"]
    if not bcc.startswith("libbcc.so"):
        raise Fail(f"without the preload the handle gives {bcc}")
    wanted = {"handle": name, "handle-other": bcc, "handle-list": bcc, "default": name, "next": name, "next-libc": plain["next-libc"],
              "not-in-it": "none", "missing": "none", "error": "yes", "wrapped": "1", "wrapper": "called"}
    for word, file in wanted.items():
        if hooked.get(word) != file:
            raise Fail(f"{word}: {hooked.get(word)}, not {file}")
    if plain["next-libc"] != "libwrapper.so":
        raise Fail(f"the wrapper is not in front: {plain}")


CTYPES = """
import ctypes, json, os, sys
lib = ctypes.CDLL("libbcc.so.0", use_errno=True)
class Symbol(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("demangle_name", ctypes.c_char_p), ("module", ctypes.c_char_p), ("offset", ctypes.c_uint64)]
lib.bcc_symcache_new.restype = ctypes.c_void_p
lib.bcc_symcache_new.argtypes = [ctypes.c_int, ctypes.c_void_p]
lib.bcc_symcache_resolve.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p]
function = ctypes.cast(lib.bcc_symcache_new, ctypes.c_void_p).value
owner = next(line.split()[5] for line in open("/proc/self/maps")
             if int(line.split("-")[0], 16) <= function < int(line.split()[0].split("-")[1], 16))
target = ctypes.cast(ctypes.CDLL(None).getppid, ctypes.c_void_p).value
symbol = Symbol()
cache = lib.bcc_symcache_new(os.getpid(), None)
found = lib.bcc_symcache_resolve(cache, target, ctypes.byref(symbol))
print(json.dumps({"owner": os.path.basename(owner), "found": found, "name": (symbol.name or b"").decode(), "offset": symbol.offset}))
"""


def test_python_reaches_it_through_ctypes_on_libbccs_own_handle(tools):
    if not libbcc():
        raise Skip("libbcc.so.0 is not installed")
    ours = library(tools, "libsym-bcc-preload.so")
    python = SYSTEM_PYTHON if os.path.exists(SYSTEM_PYTHON) else shutil.which("python3")
    script = tools.write("route.py", CTYPES)
    for preload, owner in (("", "libbcc.so"), (ours, os.path.basename(ours))):
        said = json.loads(tools.run(python, script, env={**os.environ, "LD_PRELOAD": preload}))
        if not said["owner"].startswith(owner):
            raise Fail(f"with LD_PRELOAD={preload!r} {said['owner']} answered")
        if said["found"] or "getppid" not in said["name"] or said["offset"]:
            raise Fail(str(said))


LINKED = r"""
#include <stdlib.h>
void *bcc_symcache_new(int pid, void *option);
int main(void) { return !bcc_symcache_new(1, NULL) || system("echo $LD_PRELOAD") || system("exec sh -c 'echo $LD_PRELOAD'"); }
"""
CHILDREN = """
import ctypes, os, subprocess
subprocess.run("echo $LD_PRELOAD", shell=True)
lib = ctypes.CDLL("libbcc.so.0")
lib.bcc_symcache_new
subprocess.run("echo $LD_PRELOAD", shell=True)
"""


def test_what_a_tool_starts_is_without_the_preload(tools):
    """A program for another C library cannot load it. What starts the tool, a script or env, has to hand it on."""
    tools.need("gcc")
    if not libbcc():
        raise Skip("libbcc.so.0 is not installed")
    ours, wrapper, linked = library(tools, "libsym-bcc-preload.so"), tools.path("libwrapper.so"), tools.path("linked")
    tools.run("gcc", "-O2", "-shared", "-fPIC", "-o", wrapper, tools.write("wrapper.c", WRAPPER), "-ldl")
    tools.run("gcc", "-o", linked, tools.write("linked.c", LINKED), "-l:libbcc.so.0")
    script = tools.write("children.py", CHILDREN)
    for command, kept in (([linked], [False, False]), (["env", "sh", "-c", f"{linked}; true"], [False, False]),
                          ([SYSTEM_PYTHON, script], [True, False])):
        for others in ([], [wrapper]):
            for entries in ([ours, *others], [*others, ours]):
                said = tools.run(*command, env={**os.environ, "LD_PRELOAD": ":".join(entries)}).splitlines()
                lists = [[entry for entry in line.split(":") if entry] for line in said if "wrapper called" not in line]
                if lists != [entries if keep else others for keep in kept]:
                    raise Fail(f"{command} with {entries}: {lists}")


# ---- debug files by link ------------------------------------------------------------------

def offset_of(handle, path, name, check=1, use=1):
    """The file offset of a name, or None."""
    option, symbol = Option(use, check, 0, 65535), Symbol()
    found = handle.bcc_resolve_symname(path.encode(), name.encode(), 0, 0, ctypes.byref(option), ctypes.byref(symbol))
    return symbol.offset if found == 0 else None


def expect_offset(tools, path, wanted, **how):
    for who, handle in both(tools):
        found = offset_of(handle, path, "hidden", **how)
        if found != wanted:
            raise Fail(f"{who}, {path}, {how}: {found}, not {wanted}")


def test_debug_files_by_link_are_read_as_libbcc_reads_them(tools):
    tools.need("gcc", "objcopy", "strip")
    for directory, debug_place in (("bcc-beside", "{name}.debug"), ("bcc-below", ".debug/{name}.debug")):
        path, debug, vaddr = split(tools, directory, debug_place)
        offset = Elf(path).offset(vaddr)
        expect_offset(tools, path, offset)
        expect_offset(tools, path, None, use=0)
        with open(debug, "ab") as file:
            file.write(b"\0")
        expect_offset(tools, path, None, check=1)
        expect_offset(tools, path, offset, check=0)
        os.remove(debug)
        expect_offset(tools, path, None, check=0)


def name_of(handle, pid, address):
    symbol = Symbol()
    cache = handle.bcc_symcache_new(pid, None)
    failed = handle.bcc_symcache_resolve(cache, address, ctypes.byref(symbol))
    name = None if failed else symbol.name
    handle.bcc_free_symcache(cache, pid)
    return name


def test_files_below_bcc_symfs_name_a_process(tools):
    tools.need("gcc", "strip")
    path = build(tools, "symfs/libbare.so", "-Wl,--build-id=0x" + "d1" * 20)
    exported, hidden = place(tools, path, "exported"), place(tools, path, "hidden")
    below = tools.path("below-symfs") + path
    os.makedirs(os.path.dirname(below))
    shutil.copy(path, below)
    tools.run("strip", path)
    os.environ["BCC_SYMFS"] = tools.path("below-symfs")
    try:
        with Process(tools, path) as process:
            address = process.places[0][0] - exported + hidden
            for who, handle in both(tools):
                name = name_of(handle, process.process.pid, address)
                if name != b"hidden":
                    raise Fail(f"{who}: {name}")
    finally:
        del os.environ["BCC_SYMFS"]


def test_caches_can_be_made_however_many_were_freed_at_once(tools):
    """Their handles count to 2^20, so that places which are never used again would run out."""
    handle = typed(ctypes.CDLL(library(tools, "libsym-bcc.so.0")))
    for i in range(700):
        caches = [handle.bcc_symcache_new(-1, None) for _ in range(2000)]
        if not all(caches):
            raise Fail(f"none after {2000 * i}")
        for cache in caches:
            handle.bcc_free_symcache(cache, -1)


def test_debug_links_that_lie_have_no_names(tools):
    tools.need("gcc", "objcopy", "strip")
    path, debug, _ = split(tools, "bcc-lies")
    ours = both(tools)[0][1]
    for link in (b"libsplit.so", b"../bcc-lies/libsplit.so.debug", b"/etc/passwd", b".", b"", b"x" * 300, b"libsplit.so.debug" * 20):
        section = tools.path("section")
        with open(section, "wb") as file:
            file.write(link.ljust((len(link) + 4) & ~3, b"\0") + struct.pack("<I", 0))
        lying = path + ".lying"
        tools.run("objcopy", f"--update-section=.gnu_debuglink={section}", path, lying)
        for check in (0, 1):
            if offset_of(ours, lying, "hidden", check=check) is not None:
                raise Fail(f"{link[:40]} leads to a name")
    os.remove(debug)
    os.mkfifo(debug)
    for check in (0, 1):
        if offset_of(ours, path, "hidden", check=check) is not None:
            raise Fail("a FIFO has names")


# ---- modules that vanish ---------------------------------------------------------------------

def test_modules_that_vanish_keep_or_lose_their_names_and_nothing_breaks(tools):
    tools.need("gcc")
    ours = both(tools)[0][1]
    for number, spoil in enumerate((os.remove, lambda path: os.truncate(path, 100), lambda path: os.replace(tools.write("other", "x" * 9000), path))):
        path = build(tools, f"bcc-vanish{number}/libvanish.so", "-Wl,--build-id=0x" + "a%d" % number * 20)
        vaddr = place(tools, path, "exported")
        offset = Elf(path).offset(vaddr)
        host = tools.path("host")
        tools.run("gcc", "-o", host, tools.write("host.c", """
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
int main(int c, char **v) { return c < 2 || !dlopen(v[1], RTLD_NOW) || puts("ready") < 0 || fflush(stdout) || pause(); }
"""), "-ldl")
        with subprocess.Popen([host, path], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as process:
            process.stdout.readline()
            with open(f"/proc/{process.pid}/maps", encoding="utf-8") as maps:
                base = min(int(line.split("-")[0], 16) for line in maps if "libvanish" in line)
            early, symbol = ours.bcc_symcache_new(process.pid, None), Symbol()
            by_id = ours.bcc_buildsymcache_new()
            ours.bcc_buildsymcache_add_module(by_id, path.encode())
            spoil(path)
            late = ours.bcc_symcache_new(process.pid, None)
            for cache in (early, late):
                found = ours.bcc_symcache_resolve(cache, base + vaddr + 1, ctypes.byref(symbol))
                if found == 0 and symbol.name != b"exported":
                    raise Fail(f"{spoil}: {symbol.name}")
            process.kill()
            process.wait()
            for cache in (early, late):
                found = ours.bcc_symcache_resolve(cache, base + vaddr + 1, ctypes.byref(symbol))
                if found == 0 and symbol.name != b"exported":
                    raise Fail(f"{spoil}, after the end: {symbol.name}")
                ours.bcc_free_symcache(cache, process.pid)
        frame = struct.pack("<i20sQ", 1, bytes.fromhex("a%d" % number * 20), offset + 1)
        frame = frame.ljust(32, b"\0")
        found = ours.bcc_buildsymcache_resolve(by_id, frame, ctypes.byref(symbol))
        if found == 0 and symbol.name != b"exported":
            raise Fail(f"{spoil}, by build-id: {symbol.name}")
        ours.bcc_free_buildsymcache(by_id)
        if number == 0 and offset_of(ours, path, "exported") is not None:
            raise Fail("a file that is gone has a symbol")


# ---- caches that come and go -----------------------------------------------------------------

IN_TURNS = """
import ctypes, sys
handle = ctypes.CDLL(sys.argv[1])
handle.bcc_symcache_new.restype = ctypes.c_void_p
room = ctypes.create_string_buffer(64)
places = [word.split(":") for word in sys.argv[2:]]
for _ in range(50):
    for pid, address in places:
        for _ in range(4):
            cache = ctypes.c_void_p(handle.bcc_symcache_new(int(pid), None))
            handle.bcc_symcache_resolve(cache, ctypes.c_uint64(int(address, 16)), room)
            handle.bcc_free_symcache(cache, int(pid))
"""


def test_a_cache_for_every_address_of_many_processes_looks_at_each_once(tools):
    """As bpftrace does; each further read queries a runtime again for all its methods."""
    sleepers = [subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(12)]
    try:
        places = []
        for sleeper in sleepers:
            sleeper.stdin.write(b"\n")  # Popen() returns before the program is mapped; what answers is there
            sleeper.stdin.flush()
            sleeper.stdout.readline()
            with open(f"/proc/{sleeper.pid}/maps", encoding="utf-8") as maps:
                places.append(f"{sleeper.pid}:" + next(line.split("-")[0] for line in maps if "r-xp" in line))
        done = subprocess.run([SYSTEM_PYTHON, "-c", IN_TURNS, library(tools, "libsym-bcc.so.0"), *places], capture_output=True,
                              text=True, check=True, env=dict(os.environ, LIBSYM_BCC_REPORT="1"), timeout=120)
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.communicate()
    lines = done.stderr.splitlines()
    for sleeper in sleepers:
        mine = [line for line in lines if f"process {sleeper.pid}:" in line]
        if len(mine) != 1 or "of 200 look-ups" not in mine[0] or not mine[0].endswith("looked at 1 times"):
            raise Fail(f"process {sleeper.pid}: {mine[:3]}, {len(lines)} lines in all")


SWAPPER = """
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **words)
{
	void *library = NULL;
	for (int i = 1; i < count; i++) {
		if (library) dlclose(library);
		library = dlopen(words[i], RTLD_NOW);
		printf("%p\\n", library ? dlsym(library, words[i + 1]) : NULL);
		fflush(stdout);
		i++;
		getchar();
	}
	return 0;
}
"""


def test_a_library_in_the_place_of_one_that_was_unloaded_has_its_own_names(tools):
    tools.need("gcc")
    words = []
    for name in ("alpha", "gamma"):
        path = tools.path(f"lib{name}.so")
        tools.run("gcc", "-shared", "-fPIC", "-O1", "-o", path, tools.write(f"{name}.c", f"int {name}(int x) {{ return x * {len(words) + 3}; }}"))
        words += [path, name]
    host = tools.path("swapper")
    tools.run("gcc", "-o", host, tools.write("swapper.c", SWAPPER), "-ldl")
    ours, symbol = both(tools)[0][1], Symbol()
    with subprocess.Popen([host, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        address = int(process.stdout.readline(), 16)
        cache = ours.bcc_symcache_new(process.pid, None)
        found = []

        def ask():
            if ours.bcc_symcache_resolve(cache, address, ctypes.byref(symbol)) == 0:
                return symbol.name.decode()
            return None

        found.append(ask())
        process.stdin.write("\n")
        process.stdin.flush()
        again = int(process.stdout.readline(), 16)
        is_in_time(lambda: ask() == "gamma", 30)
        found.append(ask())
        ours.bcc_free_symcache(cache, process.pid)
        process.kill()
    if again != address:
        raise Fail(f"the other library lies at {again:x}, not at {address:x}: nothing was tested")
    if found != ["alpha", "gamma"]:
        raise Fail(f"{found}")
