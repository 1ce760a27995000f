# SPDX-License-Identifier: MIT
"""Every command on a process that sees another machine than we do: another root, C library, user, PID, /tmp.

The process is a program for musl in a small tree of its own, which nothing outside has at the same paths. It looks
like .NET as far as that merge takes it. The names are those of its source, the addresses those of its own dlsym().
"""
import contextlib
import ctypes
import json
import os
import select
import shutil
import subprocess
import sys
import unittest.mock

from native_namespace_tools import expect, expect_bpf_names, expect_bpf_of_gone
from native_tools import Fail, Skip
from native_trust import ATTACKER, AS_ATTACKER, child_of, run

ASSEMBLY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../fixtures/recorded/opt/sample/sample.dll")
METHOD = "Sample.Program::Main("
RUNTIME = "shared/Microsoft.NETCore.App/10.0.12/libcoreclr.so"

# Stripped, so that perf has only what is exported, and only where it finds the file.
LIBRARY = """
int exported_function(int n) { volatile int left = n; while (left > 0) left--; return left; }
"""

# It maps a precompiled assembly as the runtime does, and has code of no file, which a perf map names. For each byte of
# standard input it works in the library for a while, then in that code.
PROGRAM = r"""
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#define NUMBER(type, at) (*(type *)(head + (at)))
static char head[4096];
static void relocate(char *base)
{
	uint32_t pe = NUMBER(uint32_t, 0x3c), size = NUMBER(uint32_t, pe + 180);
	char *block = base + NUMBER(uint32_t, pe + 176), *end = block + size;
	for (; block < end; block += *(uint32_t *)(block + 4))
		for (uint16_t *entry = (uint16_t *)(block + 8); (char *)entry < block + *(uint32_t *)(block + 4); entry++)
			if (*entry >> 12 == 10)
				*(uint64_t *)(base + *(uint32_t *)block + (*entry & 4095)) += (uint64_t)base - NUMBER(uint64_t, pe + 48);
}
static char *map_assembly(int fd)
{
	if (fd < 0 || read(fd, head, sizeof(head)) != sizeof(head))
		return NULL;
	uint32_t pe = NUMBER(uint32_t, 0x3c), section = pe + 24 + NUMBER(uint16_t, pe + 20);
	char *base = mmap(NULL, NUMBER(uint32_t, pe + 80), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mmap(base, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0);
	for (int i = 0; i < NUMBER(uint16_t, pe + 6); i++, section += 40) {
		uint32_t rva = NUMBER(uint32_t, section + 12), offset = NUMBER(uint32_t, section + 20);
		mmap(base + (rva & ~4095), (rva & 4095) + NUMBER(uint32_t, section + 16),
		     NUMBER(uint32_t, section + 36) & 0x20000000 ? PROT_READ | PROT_EXEC : PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
		     fd, offset & ~4095);
	}
	relocate(base);
	return base;
}
int main(void)
{
	static const char loop[] = "\xff\xcf\x75\xfc\xc3"; /* dec %edi; jnz -2; ret */
	int fd = open("/@RUNTIME@", O_RDONLY);
	void *library = dlopen("/app/libplain.so", RTLD_NOW);
	char *base = map_assembly(open("/app/sample.dll", O_RDONLY)), path[64];
	char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fd < 0 || !library || !base || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		return 1;
	memcpy(code, loop, sizeof(loop));
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	FILE *map = fopen(path, "w");
	if (map && (fprintf(map, "%lx 5 jitted_loop\n", (long)code) < 0 || fclose(map)))
		return 1;
	int (*function)(int) = (int (*)(int))dlsym(library, "exported_function");
	printf("%p %p %p\n", (void *)function, base, code);
	fflush(stdout);
	while (getchar() != EOF) {
		function(30000000);
		((int (*)(int))code)(100000000);
		puts("done");
		fflush(stdout);
	}
	for (;;)
		pause();
}
""".replace("@RUNTIME@", RUNTIME)


def make_tree(tools, name):
    """A root directory with nothing but the program, its library and its C library."""
    tools.need("gcc", "musl-gcc", "unshare", "setpriv", "chroot")
    if os.geteuid():
        raise Skip("other roots need root")
    root = tools.path(name)
    for directory in ("app", "lib", "tmp", "proc", os.path.dirname(RUNTIME)):
        os.makedirs(os.path.join(root, directory))
    for directory, mode in ((tools.scratch, 0o755), (root, 0o755), (os.path.join(root, "tmp"), 0o1777)):
        os.chmod(directory, mode)
    with open(os.path.join(root, RUNTIME), "wb") as file:
        file.write(bytes(4096))
    loader = "/lib/ld-musl-x86_64.so.1"
    if not os.path.exists(loader):
        raise Skip(f"there is no {loader}")
    shutil.copy(os.path.realpath(loader), root + loader)
    shutil.copy(ASSEMBLY, os.path.join(root, "app/sample.dll"))
    tools.run("musl-gcc", "-O1", "-s", "-shared", "-fPIC", "-o", os.path.join(root, "app/libplain.so"),
              tools.write(f"{name}.lib.c", LIBRARY))
    tools.run("musl-gcc", "-O1", "-o", os.path.join(root, "app/program"), tools.write(f"{name}.c", PROGRAM))
    return root


# One that every user may start.
PYTHON = shutil.which("python3", path="/usr/bin:/bin") or sys.executable

LAUNCH = """
import ctypes, os, sys
MS_RDONLY, MS_REMOUNT, MS_BIND, MNT_DETACH = 1, 32, 4096, 2
libc = ctypes.CDLL(None, use_errno=True)
def call(result):
    if result:
        sys.exit(os.strerror(ctypes.get_errno()))
root, action = sys.argv[1].encode(), sys.argv[2]
if action == "overlay":
    # A tmpfs has what overlayfs needs of an upper layer, whatever the file system of the lower one.
    top = root + b"/tmp"
    call(libc.mount(b"none", top, b"tmpfs", 0, None))
    for name in (b"/upper", b"/work", b"/merged"):
        os.mkdir(top + name)
    call(libc.mount(b"none", top + b"/merged", b"overlay", 0, b"lowerdir=%b,upperdir=%b/upper,workdir=%b/work" % (root, top, top)))
    root = top + b"/merged"
else:
    call(libc.mount(root, root, None, MS_BIND, None))
if action == "tmp":
    call(libc.mount(b"none", root + b"/tmp", b"tmpfs", 0, b"mode=1777"))
if action == "read-only":
    call(libc.mount(None, root, None, MS_REMOUNT | MS_BIND | MS_RDONLY, None))
os.chdir(root)
call(libc.pivot_root(b".", b"."))
call(libc.umount2(b".", MNT_DETACH))
os.chdir("/")
os.execv("/app/program", ["program"])
"""


def container(action, *user):
    """As container runtimes start one: namespaces, mounts, pivot_root()."""
    unshare = ["unshare", "-Urmpf"] if user else ["unshare", "-mpf"]
    return lambda root: [*user, *unshare, "--kill-child", "--propagation", "private", PYTHON, "-c", LAUNCH, root, action]


class Place:
    """A way to start the program, and what is to be expected there."""

    def __init__(self, name, command, *, namespaced=True, uid=0, writable=True):
        self.name, self.command, self.namespaced, self.uid, self.writable = name, command, namespaced, uid, writable
        # As perf shows the code of no file: where the program cannot write its perf map, nothing has a name for it.
        self.jitted = "jitted_loop" if writable else "[unnamed code]"


CHROOT = Place("a root of its own", lambda root: ["chroot", root, "/app/program"], namespaced=False)
OWN_TMP = Place("a container with a /tmp of its own", container("tmp"))
READ_ONLY = Place("a read-only container", container("read-only"), writable=False)
OTHER_USER = Place("a container of a plain user", container("tmp", *AS_ATTACKER), uid=ATTACKER)
LAYERS = Place("a container whose layers are gone", container("overlay"))


class Target:
    """The program: what was started, its PID here, and addresses of the function, the assembly and the code of no file."""

    def __init__(self, process, pid, address, assembly, code):
        self.process, self.pid, self.address, self.assembly, self.code = process, pid, address, int(assembly, 16), code


@contextlib.contextmanager
def started(place, root):
    """Yields the program as it is seen from here."""
    with subprocess.Popen(place.command(root), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          cwd="/") as process:
        pid = None
        try:
            words = process.stdout.readline().split()
            if len(words) != 3:
                raise Skip(f"{place.name} cannot be made here: {process.stderr.read().strip()}")
            pid = child_of(process.pid) if place.namespaced else process.pid
            yield Target(process, pid, *words)
        finally:
            process.kill()
            process.wait()
            for name in (f"/tmp/perf-{pid}.map", f"/tmp/perf-{pid}.map.runtime"):
                with contextlib.suppress(FileNotFoundError):
                    os.remove(name)


def stack(pid, address, library):
    """The second instruction: at the first one a frame may be a return address behind another function."""
    return f"program {pid}/{pid}  1055.039651:     200000 cpu-clock: \n\t{int(address, 16) + 1:>16x} [unknown] ({library})\n\n"


def expect_names(tools, place, pid, address, text):
    done = run(tools, "resolve", pid, address)
    expect(done.returncode == 0 and " exported_function+0x0 " in done.stdout, place, done)
    done = run(tools, "symbolize", text=text)
    expect(done.returncode == 0 and "exported_function" in done.stdout, place, done)


def expect_reports(tools, place, pid):
    done = run(tools, "list", "--json", pid)
    expect(done.returncode == 0 and any(image["path"].endswith("/app/libplain.so") for image in json.loads(done.stdout)), place, done)
    done = run(tools, "info", pid)
    expect(done.returncode == 0 and f"\nruntime      10.0.12" in done.stdout, place, done)
    # The shipped names of musl and the library are there or missing; a missing one is 3.
    done = run(tools, "fetch-symbols", "--offline", pid)
    expect(done.returncode in (0, 3), place, done)


def expect_map(place, done, path):
    expect(done.returncode == 0 and os.path.exists(path), place, done)
    status = os.lstat(path)
    if status.st_uid != place.uid or status.st_mode & 0o777 != 0o644 or not status.st_size:
        raise Fail(f"{place.name}: {path} is uid {status.st_uid}'s, mode {status.st_mode:o}, {status.st_size} bytes")


def expect_maps(tools, place, pid):
    jit = "--jit=perfmap" if place.writable else "--jit=none"
    expect_map(place, run(tools, "merge", jit, pid), f"/tmp/perf-{pid}.map")
    expect_map(place, run(tools, "watch", jit, "--for=0.2", "--interval=0.1", pid), f"/tmp/perf-{pid}.map")
    inside = f"/proc/{pid}/root/tmp/perf-{1 if place.namespaced else pid}.map"
    done = run(tools, "merge", "--in-target", jit, pid)
    if place.writable:
        expect_map(place, done, inside)
    else:
        expect(done.returncode == 1 and "Read-only file system" in done.stderr and not os.path.exists(inside), place, done)


def installed(tools, program, what):
    """Tests that need no such program go on without it."""
    if not shutil.which(program):
        tools.figure(f"{what}: {program} is not installed")
    return shutil.which(program)


def record(tools, target, data):
    """Samples of one turn of work; false where perf may not. perf says when it has begun, and gets a word when to stop."""
    if not installed(tools, "perf", "perf-fix"):
        return False
    (control_in, control_out), (ack_in, ack_out) = os.pipe(), os.pipe()
    command = ["perf", "record", "-q", "-N", "-e", "task-clock", "-c", "500000", "-D", "-1", f"--control=fd:{control_in},{ack_out}",
               "-o", data, "-p", str(target.pid)]
    worked = False
    with open(control_out, "wb", buffering=0) as control, open(ack_in, "rb", buffering=0) as ack, \
            subprocess.Popen(command, pass_fds=(control_in, ack_out), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, cwd="/") as perf:
        os.close(control_in)
        os.close(ack_out)
        try:
            with contextlib.suppress(BrokenPipeError):
                control.write(b"enable\n")
                if ack.read(5):
                    target.process.stdin.write("\n")
                    target.process.stdin.flush()
                    worked = target.process.stdout.readline() == "done\n"
                control.write(b"stop\n")
            said = perf.communicate(timeout=120)[0]
        finally:
            perf.kill()
    if worked and not perf.returncode:
        return True
    tools.figure(f"perf-fix: perf cannot record here: {said.strip()}")
    return False


def expect_gone(tools, place, pid, address, text):
    """No command takes a process that has ended for one that lives, or for another."""
    for command in (["resolve", pid, address], ["list", pid], ["info", pid], ["merge", pid], ["merge", "--in-target", pid],
                    ["generate", "-o", tools.path("maps-of-gone"), pid], ["standin", "install", f"--debug-tree={tools.path('none')}", pid],
                    ["watch", "--for=1", pid], ["fetch-symbols", "--offline", pid]):
        done = run(tools, *command)
        expect(done.returncode == 1 and f"process {pid}" in done.stderr, place, done)
    # The merged map belongs to the process's user. A map of root counts, one of another user does not.
    done = run(tools, "symbolize", text=text)
    expect("exported_function" not in done.stdout and f"uid {place.uid}" in done.stderr, place, done)
    expect(("is not used" in done.stderr) == (place.uid != 0), place, done)


# ---- the other commands ----------------------------------------------------------------

def expect_relative_map(tools, place, pid, name):
    """The relative map of the assembly in the process equals that of the file. Returns the rows."""
    texts = []
    for place_of_maps, subject in ((f"{name}.maps", pid), (f"{name}.maps-of-file", ASSEMBLY)):
        directory = tools.path(place_of_maps)
        done = run(tools, "generate", "-o", directory, subject)
        expect(done.returncode == 0 and "1 succeeded" in done.stdout, place, done)
        (file,) = os.listdir(directory)
        with open(os.path.join(directory, file), encoding="utf-8") as text:
            texts.append(text.read())
    expect(texts[0] == texts[1] and METHOD in texts[0], place, done)
    return texts[0]


def method_address(rows, target):
    (row,) = [line for line in rows.splitlines() if METHOD in line]
    return target.assembly + int(row.split()[0], 16)


def expect_core(tools, place, target, method, root):
    """Returns the core file, or None."""
    if not installed(tools, "gcore", "resolve --core"):
        return None
    done = subprocess.run(["gcore", "-o", tools.path("core"), str(target.pid)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=300)
    core = tools.path(f"core.{target.pid}")
    if not os.path.exists(core):
        tools.figure(f"resolve --core: gcore cannot write one here: {done.stderr[-200:]}")
        return None
    expect_core_names(tools, place, target, method, core, root)
    return core


def expect_core_names(tools, place, target, method, core, root):
    """The mapped files are those of the tree. gcore writes an ELF file into the core file where its path is gone."""
    tree = [f"--root={root}"] if place.namespaced else []
    done = run(tools, "resolve", f"--core={core}", *tree, target.address, hex(method))
    expect("exported_function+0x0 " in done.stdout, place, done)
    has_assembly = place is not LAYERS
    expect((METHOD in done.stdout) == has_assembly and ("sample.dll: cannot open" in done.stdout) != has_assembly, place, done)


def expect_standin(tools, place, pid, name, assembly):
    """perf looks for the files of a container there, where nothing is put."""
    directory = tools.path(f"{name}.debug")
    here = f"--debug-tree={directory}"
    done = run(tools, "standin", "install", here, pid)
    if place.namespaced:
        expect(done.returncode == 1 and f"process {pid} is in a container" in done.stderr, place, done)
    else:
        expect(done.returncode == 0 and os.path.exists(directory + assembly), place, done)
    done = run(tools, "standin", "list", here)
    expect(done.returncode == 0 and (assembly in done.stdout) != place.namespaced, place, done)
    done = run(tools, "standin", "remove", here)
    expect(done.returncode == 0 and f"{int(not place.namespaced)} removed" in done.stdout and not os.path.exists(directory), place, done)


ASK_LIBBCC = """
import ctypes, sys
class Symbol(ctypes.Structure):
    _fields_ = [(name, ctypes.c_char_p) for name in ("name", "demangle_name", "module")] + [("offset", ctypes.c_uint64)]
library = ctypes.CDLL("libbcc.so.0")
library.bcc_symcache_new.restype = ctypes.c_void_p
cache = ctypes.c_void_p(library.bcc_symcache_new(int(sys.argv[1]), None))
for word in sys.argv[2:]:
    symbol = Symbol()
    failed = library.bcc_symcache_resolve(cache, ctypes.c_uint64(int(word, 16) + 1), ctypes.byref(symbol))
    print("none" if failed else (symbol.demangle_name or b"").decode())
"""


def expect_libbcc(tools, place, target, method, alive=True):
    """A tool that asks libbcc, as those of BCC do."""
    try:
        ctypes.CDLL("libbcc.so.0")
    except OSError:
        tools.figure("bcc: libbcc.so.0 is not installed")
        return
    done = run(tools, "bcc", "--jit=perfmap", "--", PYTHON, "-c", ASK_LIBBCC, target.pid, target.address, hex(method), target.code)
    names = done.stdout.splitlines()
    wanted = ["exported_function", METHOD, "jitted_loop" if place.writable else "none"] if alive else ["none"] * 3
    expect(done.returncode == 0 and len(names) == 3 and all(word in name for word, name in zip(wanted, names)), place, done)


def fix(tools, data, output, *options):
    place = ["-o", output] if output != data else ["--in-place"]
    done = run(tools, "perf-fix", "--json", "--native=all", "--jit=perfmap", f"--buildid-dir={output}.cache", *place, *options, data)
    return done, json.loads(done.stdout)["processes"][0] if done.stdout else None


def names_in(tools, data):
    """The names that stock perf shows for the samples in the library and in code of no file."""
    text = tools.run("perf", "--buildid-dir", f"{data}.cache", "script", "-F", "ip,sym,dso", "-i", data, cwd="/")
    lines = [line.split(None, 1)[1] for line in text.splitlines() if "libplain.so" in line or "jit]" in line or "/perf-" in line]
    return {line.rsplit(" (", 1)[0] for line in lines}


def expect_shown(tools, place, done, data, names):
    shown = names_in(tools, data)
    if shown != names:
        raise Fail(f"{place.name}: perf shows {shown}, not {names}: {done.stdout}{done.stderr}")


def expect_perf(tools, place, data):
    """Files, /tmp and PID are those of the process."""
    done, process = fix(tools, data, f"{data}.live")
    expect(done.returncode == (0 if place.writable else 3) and process["live"] and process["precompiled_names"] > 100, place, done)
    expect_shown(tools, place, done, f"{data}.live", {"exported_function", place.jitted})


def expect_perf_of_gone(tools, place, data):
    """A file that was fixed in time stays so. Later only files of this system remain: those of a chroot, and the map that merge has written."""
    done, process = fix(tools, data, f"{data}.gone")
    expect_shown(tools, place, done, f"{data}.live", {"exported_function", place.jitted})
    # The map has names of precompiled code too; without a perf map of the process it has no others.
    saved = not place.uid
    expect(done.returncode == (0 if not place.namespaced or (saved and place.writable) else 3) and not process["live"], place, done)
    failures = json.dumps(process["failures"])
    expect((process["precompiled_names"] > 100) != place.namespaced and ("sample.dll" in failures) == (place.namespaced and not saved), place, done)
    expect(process["code_origin"] == ("saved-map" if saved else "none"), place, done)
    expect((f"belongs to uid {place.uid}" in failures) == (place.uid != 0), place, done)
    # perf 6.1 believes every user's map in /tmp: without a stand-in it shows what it shows of the data as they were.
    jitted = {place.jitted} if saved else names_in(tools, data) - {"exported_function"}
    expect_shown(tools, place, done, f"{data}.gone", {"[unknown]" if place.namespaced else "exported_function"} | jitted)


def fixed_in_place(tools, place, data, *options):
    """Yields how it ended; --undo gives the same bytes back."""
    with open(data, "rb") as file:
        before = file.read()
    copy = shutil.copy(data, f"{data}.copy")
    done, process = fix(tools, copy, copy, *options)
    yield done, process, copy
    undone = run(tools, "perf-fix", "--undo", f"--buildid-dir={copy}.cache", copy)
    with open(copy, "rb") as file:
        expect(file.read() == before, place, undone)


def expect_perf_in_place(tools, place, data):
    for done, process, copy in fixed_in_place(tools, place, data):
        expect(done.returncode == (0 if place.writable else 3) and process["live"], place, done)
        expect_shown(tools, place, done, copy, {"exported_function", place.jitted})


def expect_perf_by_maps(tools, place, data):
    """Perf maps name the code of no file. Where the library is gone, they say that they do not name it."""
    named = place is not LAYERS
    for done, process, copy in fixed_in_place(tools, place, data, "--via=perfmap"):
        expect(done.returncode == (0 if place.writable and named else 3) and process["live"], place, done)
        expect(("--via=build-id names" in json.dumps(process["failures"])) != named, place, done)
        expect_shown(tools, place, done, copy, {"exported_function" if named else "[unknown]", "jitted_loop" if place.writable else "[unknown]"})


def expect_perf_by_maps_of_gone(tools, place, data):
    """The names that perf shows without our help."""
    for done, process, copy in fixed_in_place(tools, place, data, "--via=perfmap"):
        expect(done.returncode == (3 if place.uid else 0) and not process["live"], place, done)
        shutil.copytree(f"{copy}.cache", f"{data}.cache", dirs_exist_ok=True)
        expect_shown(tools, place, done, copy, names_in(tools, data))


def end(process, pid):
    """unshare is killed, and the kernel kills its child after that: the child has ended when its pidfd says so."""
    child = os.pidfd_open(pid)
    process.kill()
    process.wait()
    select.select([child], [], [], 60)
    os.close(child)


def all_commands(tools, place, name, change=None):
    root = make_tree(tools, name)
    # The kernel shows the paths of a process that has only changed its root as we see them.
    seen = "" if place.namespaced else root
    homes = {"XDG_CACHE_HOME": tools.path("cache"), "HOME": tools.path("home")}
    with unittest.mock.patch.dict(os.environ, homes), started(place, root) as target:
        pid, text = target.pid, stack(target.pid, target.address, f"{seen}/app/libplain.so")
        data = tools.path(f"{name}.data")
        recorded = record(tools, target, data)
        if change:
            change(root, pid)
        maps = expect_relative_map(tools, place, pid, name)
        method = method_address(maps, target)
        core = expect_core(tools, place, target, method, root)
        expect_names(tools, place, pid, target.address, text)
        expect_reports(tools, place, pid)
        expect_maps(tools, place, pid)
        expect_standin(tools, place, pid, name, f"{seen}/app/sample.dll")
        expect_libbcc(tools, place, target, method)
        if recorded:
            expect_perf(tools, place, data)
            expect_perf_in_place(tools, place, data)
            expect_perf_by_maps(tools, place, data)
        expect_bpf_names(tools, place, target, f"/proc/{pid}/root/app/libplain.so")
        expect_bpf_of_gone(tools, place, target, lambda: end(target.process, pid))
        expect_gone(tools, place, pid, target.address, text)
        expect_libbcc(tools, place, target, method, alive=False)
        if recorded:
            expect_perf_of_gone(tools, place, data)
            expect_perf_by_maps_of_gone(tools, place, data)
        if core:
            expect_core_names(tools, place, target, method, core, root)


def test_all_commands_on_a_process_in_a_root_of_its_own(tools):
    all_commands(tools, CHROOT, "tree-of-chroot")


def test_all_commands_on_a_process_with_a_tmp_of_its_own(tools):
    all_commands(tools, OWN_TMP, "tree-of-tmp")


def test_all_commands_on_a_process_in_a_read_only_root(tools):
    all_commands(tools, READ_ONLY, "tree-of-reading")


def test_all_commands_on_a_process_in_a_user_namespace(tools):
    all_commands(tools, OTHER_USER, "tree-of-user")


def remove_layers(root, pid):
    """Above and below: what the process has mapped has no path any more."""
    os.remove(f"/proc/{pid}/root/app/libplain.so")
    shutil.rmtree(os.path.join(root, "app"))


def test_all_commands_on_a_process_whose_layers_are_gone(tools):
    all_commands(tools, LAYERS, "tree-of-layers", remove_layers)
