# SPDX-License-Identifier: MIT
"""Where symbols of native files are found; the oracles are objdump, nm, c++filt and the bytes of the test."""
import glob
import lzma
import os
import re
import resource
import shutil
import struct
import subprocess
import sys
import zlib

from native_tools import Elf, Fail, Skip, sections

SOURCE = """
extern int puts(const char *);
static __attribute__((noinline)) int hidden(int x) { return x * 31 + 7; }
__attribute__((noinline)) int exported(int x) { return hidden(x) + hidden(x + 1) + puts("x"); }
"""


def build(tools, name, *flags):
    source = tools.write("files.c", SOURCE)
    path = tools.path(name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    tools.run("gcc", "-O1", "-g", "-shared", "-fPIC", "-o", path, source, *flags)
    return path


def place(tools, path, name):
    for line in tools.run("nm", path).splitlines():
        words = line.split()
        if len(words) == 3 and words[2] == name:
            return int(words[0], 16)
    raise Fail(f"nm has no {name} in {path}")


def one(tools, path, vaddr, *options):
    return tools.resolve(path, [vaddr + 1], *options)[0]


def expect(answer, name):
    if answer["name"] != name:
        raise Fail(f"{answer['name']} ({answer['status']}, {answer['reason']}), not {name}")


def plt_entries(tools, path):
    """(vaddr, name) of each label NAME@plt of objdump."""
    text = subprocess.run(["objdump", "-d", "-j", ".plt", "-j", ".plt.sec", "-j", ".plt.got", path],
                          capture_output=True, text=True, timeout=600).stdout
    return [(int(a, 16), name) for a, name in re.findall(r"^([0-9a-f]+) <(.*@plt)>:$", text, re.M)
            if not name.startswith("*ABS*")]


def compare_plt(tools, path):
    entries = plt_entries(tools, path)[:3000]
    answers = tools.resolve(path, [vaddr + 5 for vaddr, _ in entries], "--no-demangle")
    wrong = []
    for (vaddr, name), answer in zip(entries, answers):
        # objdump writes a version behind the name where there are several.
        if answer["name"] != re.sub(r"@@?[^@]+@plt$", "@plt", name) or answer["offset"] != 5:
            wrong.append(f"0x{vaddr:x}: {answer['name']}, objdump has {name}")
    return len(entries), wrong


def test_linkage_stubs_have_the_names_of_objdump(tools):
    tools.need("objdump", "gcc")
    paths = [os.path.realpath(path) for pattern in ("libLLVM*.so*", "libpython3*.so*", "libcrypto.so.3", "libcurl.so.4")
             for path in glob.glob("/usr/lib/x86_64-linux-gnu/" + pattern)[:1]]
    paths += [os.path.realpath(shutil.which("perf")), os.path.realpath(shutil.which("gdb") or "/bin/bash")]
    paths += [build(tools, f"plt{i}.so", *flags) for i, flags in enumerate((
        ("-fcf-protection", "-Wl,-z,ibtplt"), ("-Wl,-z,now",), ("-Wl,-z,lazy",), ("-fno-plt",)))]
    total = 0
    for path in sorted(set(paths)):
        count, wrong = compare_plt(tools, path)
        total += count
        if wrong:
            raise Fail(f"{path}: {len(wrong)} of {count}: {wrong[0]}")
    if total < 100:
        raise Fail(f"{total} entries only")
    tools.figure(f"{total} linkage stubs of {len(set(paths))} files, 0 differ from objdump")


def test_linkage_stubs_of_32_bit_files(tools):
    tools.need("objdump", "gcc")
    for i, flags in enumerate((("-fPIC", "-shared"), ("-fno-pic", "-no-pie", "-Wl,-e,exported"))):
        path = tools.path(f"plt32-{i}")
        library = tools.path("libputs32.so")
        try:
            tools.run("gcc", "-m32", "-nostdlib", "-shared", "-fPIC", "-o", library,
                      tools.write("puts.c", "int puts(const char *s) { return !s; }"))
            tools.run("gcc", "-m32", "-nostdlib", "-O1", *flags, "-o", path, tools.write("files.c", SOURCE), library)
        except Fail as why:
            raise Skip(f"gcc -m32: {why}") from why
        count, wrong = compare_plt(tools, path)
        if wrong or not count:
            raise Fail(f"{flags}: {wrong[:1] or 'no entries'}")


CHOSEN = """
static int chosen(const void *a, const void *b) { return a == b; }
static void *pick_local(void) { return chosen; }
static void *pick(void) { return chosen; }
static int local(const void *, const void *) __attribute__((ifunc("pick_local")));
int global(const void *, const void *) __attribute__((ifunc("pick")));
int (*volatile taken)(const void *, const void *) = global;
int exported(const void *a) { return global(a, &taken) + local(a, &taken) + taken(a, a); }
int _start(int n) { return exported(&n); }
"""


def chosen_stubs(tools, path):
    """(vaddr of a stub, the names of what its slot is filled with): relocations and symbols as readelf has them, code as objdump."""
    # lld does not say that the file has symbols of GNU's kind: readelf then shows the number.
    table = tools.run("readelf", "-sW", path).replace("<OS specific>: 10", "IFUNC")
    names = {}
    for vaddr, name in re.findall(r"^ *\d+: ([0-9a-f]+) +\d+ IFUNC +\S+ +\S+ +\d+ (\S+)$", table, re.M):
        names.setdefault(int(vaddr, 16), set()).add(name.split("@")[0])
    slots = {int(slot, 16): names.get(int(chooser, 16), set())
             for slot, chooser in re.findall(r"^([0-9a-f]+) .* R_X86_64_IRELATIVE? +([0-9a-f]+)$", tools.run("readelf", "-rW", path), re.M)}
    code = tools.run("objdump", "-d", path)
    return [(int(vaddr, 16), slots[int(slot, 16)])
            for vaddr, slot in re.findall(r"^ *([0-9a-f]+):\t[0-9a-f ]+\t(?:bnd )?jmp +\*0x[0-9a-f]+\(%rip\) +# ([0-9a-f]+)", code, re.M)
            if int(slot, 16) in slots]


def test_linkage_stubs_of_functions_that_the_file_chooses_itself(tools):
    """Most stubs of the C library and all of a static program: relocations without a name, as other tools show them."""
    tools.need("gcc", "objdump", "readelf")
    source = tools.write("chosen.c", CHOSEN)
    paths, total = [os.path.realpath(f"/lib/x86_64-linux-gnu/{name}") for name in ("libc.so.6", "libm.so.6")], 0
    for compiler, kinds in (("gcc", ("-static", "-static-pie", "-pie", "-static -fcf-protection", "-static -fuse-ld=gold")),
                            ("clang", ("-static -fuse-ld=lld", "-static -fno-pie -no-pie -fuse-ld=lld", "-pie -fuse-ld=lld"))):
        for kind in kinds:
            path = tools.path(f"chosen-{len(paths)}")
            try:
                tools.run(compiler, "-O1", "-fPIE", "-nostdlib", *kind.split(), "-o", path, source)
                paths.append(path)
            except (Fail, OSError) as why:
                tools.figure(f"{compiler} {kind} cannot be done here: {why}")
    for path in paths:
        stubs = [(vaddr, names) for vaddr, names in chosen_stubs(tools, path) if names]
        if not stubs:
            raise Fail(f"{path} has no such stubs")
        total += len(stubs)
        for (vaddr, names), answer in zip(stubs, tools.resolve(path, [vaddr + 1 for vaddr, _ in stubs])):
            # The place of one whose address is taken may be that function's symbol.
            if re.sub("@plt$", "", answer["name"] or "") not in names:
                raise Fail(f"{path}: 0x{vaddr:x} is {answer['name']}, not one of {names}")
    tools.figure(f"{total} such stubs of {len(paths)} files, 0 differ from readelf")


def test_mangled_names_are_shown_as_by_cxxfilt(tools):
    tools.need("c++filt", "nm")
    path = os.path.realpath(glob.glob("/usr/lib/x86_64-linux-gnu/libstdc++.so.6")[0])
    rows = {}
    for line in tools.run("nm", "-D", "--defined-only", "--without-symbol-versions", path).splitlines():
        words = line.split()
        if len(words) == 3 and words[1] in "TtWw" and words[2].startswith("_Z"):
            rows.setdefault(int(words[0], 16), set()).add(words[2])
    vaddrs = [vaddr for vaddr in sorted(rows) if Elf(path).offset(vaddr)]
    raw = tools.resolve(path, vaddrs, "--no-demangle")
    shown = tools.resolve(path, vaddrs)
    filtered = tools.run("c++filt", "--no-verbose", input="\n".join(answer["name"] for answer in raw)).splitlines()
    for vaddr, one_raw, one_shown, wanted in zip(vaddrs, raw, shown, filtered):
        if one_raw["name"] not in rows[vaddr]:
            raise Fail(f"0x{vaddr:x}: {one_raw['name']}, nm has {rows[vaddr]}")
        if one_shown["name"] != wanted:
            raise Fail(f"0x{vaddr:x}: {one_shown['name']}, c++filt has {wanted}")
    tools.figure(f"{len(vaddrs)} names of libstdc++ as nm and c++filt have them")


# ---- separate debug files --------------------------------------------------------

def split(tools, directory, debug_place="{name}.debug"):
    """A stripped library with a link, and its debug file; the vaddr of a function that only that one names."""
    path = build(tools, f"{directory}/libsplit.so", "-Wl,--build-id=none")
    vaddr = place(tools, path, "hidden")
    debug = os.path.join(os.path.dirname(path), debug_place.format(name="libsplit.so"))
    os.makedirs(os.path.dirname(debug), exist_ok=True)
    tools.run("objcopy", "--only-keep-debug", path, debug)
    tools.run("strip", path)
    tools.run("objcopy", f"--add-gnu-debuglink={debug}", path)
    return path, debug, vaddr


def test_debuglink_leads_to_a_file_beside_the_image_or_in_its_debug_directory(tools):
    tools.need("objcopy", "strip")
    for directory, debug_place in (("beside", "{name}.debug"), ("below", ".debug/{name}.debug")):
        path, _, vaddr = split(tools, directory, debug_place)
        expect(one(tools, path, vaddr), "hidden")


def test_debuglink_is_followed_below_usr_lib_debug(tools):
    tools.need("objcopy", "strip")
    if os.geteuid():
        raise Skip("writing below /usr/lib/debug needs root")
    path, debug, vaddr = split(tools, "global")
    directory = "/usr/lib/debug" + os.path.dirname(os.path.realpath(path))
    os.makedirs(directory)
    try:
        shutil.move(debug, directory)
        expect(one(tools, path, vaddr), "hidden")
    finally:
        shutil.rmtree(directory)
        try:
            os.removedirs(os.path.dirname(directory))
        except OSError:
            pass


def test_debuglink_of_a_process_in_another_root(tools):
    """A debug file beside the image as the process sees it, not as we do."""
    tools.need("objcopy", "strip", "gcc", "unshare")
    if os.geteuid():
        raise Skip("chroot needs root")
    root = tools.path("root")
    path, debug, vaddr = split(tools, "root/opt")
    host = tools.write("chrooted.c", """
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
int main(int c, char **v)
{
	dlopen("libm.so.6", RTLD_NOW);
	return c < 2 || chroot(v[1]) || chdir("/") || !dlopen("/opt/libsplit.so", RTLD_NOW) || puts("ready") < 0 ||
	       fflush(stdout) || pause();
}
""")
    program = tools.path("chrooted")
    tools.run("gcc", "-o", program, host)
    with subprocess.Popen([program, root], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as process:
        try:
            if process.stdout.readline() != "ready\n":
                raise Fail("the process did not start")
            with open(f"/proc/{process.pid}/maps", encoding="utf-8") as maps:
                base = min(int(line.split("-")[0], 16) for line in maps if "libsplit.so" in line)
            answer = tools.run(tools.program, "resolve", str(process.pid), f"{base + vaddr + 1:x}")
        finally:
            process.kill()
    if " hidden+0x1 " not in answer:
        raise Fail(answer)


def move(path, distance, only=None):
    """Adds to every vaddr of a file, or to those of one section and its symbols, as prelink and BOLT do."""
    with open(path, "rb") as file:
        data = bytearray(file.read())

    def add(at):
        struct.pack_into("<Q", data, at, struct.unpack_from("<Q", data, at)[0] + distance)

    segments, headers = struct.unpack_from("<QQ", data, 32)
    segment_count, = struct.unpack_from("<H", data, 56)
    count, names = struct.unpack_from("<HH", data, 60)
    names, = struct.unpack_from("<Q", data, headers + 64 * names + 24)
    for at in range(segments, segments + 56 * segment_count, 56):
        if not only and struct.unpack_from("<I", data, at)[0] != 0x6474e551:  # PT_GNU_STACK
            add(at + 16)
            add(at + 24)
    moved = set()
    for i in range(count):
        name, _, flags = struct.unpack_from("<IIQ", data, headers + 64 * i)
        name = data[names + name:data.index(0, names + name)].decode()
        if flags & 2 and only in (None, name):  # SHF_ALLOC
            add(headers + 64 * i + 16)
            moved.add(i)
    for i in range(count):
        _, kind, _, _, at, size = struct.unpack_from("<IIQQQQ", data, headers + 64 * i)
        for symbol in range(at, at + size, 24) if kind in (2, 11) else ():
            if struct.unpack_from("<H", data, symbol + 6)[0] in moved:
                add(symbol + 8)
    with open(path, "wb") as file:
        file.write(data)


def expect_listed(tools, path, name, vaddr):
    program = os.path.join(os.path.dirname(tools.program), "examples", "list_symbols")
    places = [line.split()[0] for line in tools.run(program, path).splitlines() if line.split()[2] == name]
    if places != [f"{vaddr:x}"]:
        raise Fail(f"{path}: {name} is listed at {places}, not at {vaddr:x}")


def test_debuglink_of_a_file_that_prelink_has_moved_since(tools):
    """elfutils' run-prelink-addr-test: the debug file has the addresses of before, by constant distance."""
    tools.need("objcopy", "strip", "gcc", "nm")
    for distance in (0x3aab400000, 0x1000):
        path, _, vaddr = split(tools, f"prelink{distance}")
        public = place_dynamic(tools, path, "exported")
        move(path, distance)
        expect(one(tools, path, vaddr + distance), "hidden")
        expect(one(tools, path, public + distance), "exported")
        expect_listed(tools, path, "hidden", vaddr + distance)
        answer = one(tools, path, vaddr + distance, "--lines")
        if os.path.basename(answer["file"] or "") != "files.c" or not answer["line"]:
            raise Fail(f"{answer}")
    path, vaddr = mini(tools, "prelink-mini", lambda content: lzma.compress(content, check=lzma.CHECK_CRC32))
    move(path, 0x3aab400000)
    expect(one(tools, path, vaddr + 0x3aab400000), "hidden")
    expect_listed(tools, path, "hidden", vaddr + 0x3aab400000)


def test_debuglink_of_a_file_whose_code_was_moved_about(tools):
    """BOLT keeps the build-id: a debug file of before has its functions elsewhere, some of them where others are now."""
    tools.need("objcopy", "strip", "gcc", "nm")
    path = build(tools, "moved/libmoved.so", "-Wl,--build-id")
    vaddr, debug = place(tools, path, "hidden"), path + ".debug"
    public = place_dynamic(tools, path, "exported")
    tools.run("objcopy", "--only-keep-debug", path, debug)
    move(debug, 0x10, ".text")
    tools.run("strip", path)
    tools.run("objcopy", f"--add-gnu-debuglink={debug}", path)
    expect(one(tools, path, vaddr), f"libmoved.so!0x{vaddr:x}")
    expect(one(tools, path, public), "exported")
    if one(tools, path, public, "--lines")["file"]:
        raise Fail("lines of other code")


def test_debug_file_of_an_image_without_section_headers(tools):
    """elfutils' testfile52-64.noshdrs: the build-id is in a segment too; where prelink has moved it since, at the distance."""
    tools.need("objcopy", "strip", "eu-strip", "readelf")
    if os.geteuid():
        raise Skip("writing below /usr/lib/debug needs root")
    path = build(tools, "headless/libheadless.so", "-Wl,--build-id")
    vaddr = place(tools, path, "hidden")
    number = re.search(r"Build ID: ([0-9a-f]+)", tools.run("readelf", "-nW", path))[1]
    debug = f"/usr/lib/debug/.build-id/{number[:2]}/{number[2:]}.debug"
    os.makedirs(os.path.dirname(debug), exist_ok=True)
    try:
        tools.run("objcopy", "--only-keep-debug", path, debug)
        moved = path + ".moved"
        shutil.copy(path, moved)
        move(moved, 0x3aab400000)
        for file, distance in ((path, 0), (moved, 0x3aab400000)):
            tools.run("eu-strip", "--strip-sections", file)
            answer = one(tools, file, vaddr + distance, "--lines")
            expect(answer, "hidden")
            if os.path.basename(answer["file"] or "") != "files.c":
                raise Fail(f"{answer}")
    finally:
        os.remove(debug)
        try:
            os.rmdir(os.path.dirname(debug))
        except OSError:
            pass


def test_debuglink_with_another_sum_is_not_believed(tools):
    tools.need("objcopy", "strip")
    path, debug, vaddr = split(tools, "sum")
    with open(debug, "ab") as file:
        file.write(b"\0")
    answer = one(tools, path, vaddr)
    expect(answer, f"libsplit.so!0x{vaddr:x}")


def test_debuglinks_that_lie_or_lead_in_a_circle_cost_only_themselves(tools):
    tools.need("objcopy", "strip")
    path, debug, vaddr = split(tools, "circle")
    text = f"libsplit.so!0x{vaddr:x}"
    for link in (b"libsplit.so", b"../circle/libsplit.so.debug", b"/etc/passwd", b".", b"", b"x" * 300):
        lying = path + ".lying"
        section = tools.path("section")
        with open(section, "wb") as file:
            file.write(link.ljust((len(link) + 4) & ~3, b"\0") + bytes(4))
        tools.run("objcopy", f"--update-section=.gnu_debuglink={section}", path, lying)
        shutil.move(lying, path)
        expect(one(tools, path, vaddr), text)
    # A debug file that has a link itself, to the image: none is followed from there.
    path, debug, vaddr = split(tools, "circle2")
    tools.run("objcopy", "--remove-section=.gnu_debuglink", path)
    tools.run("objcopy", f"--add-gnu-debuglink={path}", debug)
    tools.run("objcopy", f"--add-gnu-debuglink={debug}", path)
    expect(one(tools, path, vaddr), "hidden")
    os.remove(debug)
    os.mkfifo(debug)  # is not waited for
    expect(one(tools, path, vaddr), f"libsplit.so!0x{vaddr:x}")


def mini(tools, name, packed):
    path = build(tools, f"{name}/libmini.so")
    vaddr = place(tools, path, "hidden")
    symbols = path + ".symbols"
    tools.run("objcopy", "--only-keep-debug", path, symbols)
    tools.run("strip", "--strip-debug", symbols)
    with open(symbols, "rb") as file:
        content = packed(file.read())
    section = path + ".xz"
    with open(section, "wb") as file:
        file.write(content)
    tools.run("strip", path)
    tools.run("objcopy", f"--add-section=.gnu_debugdata={section}", path)
    return path, vaddr


def test_symbols_packed_inside_the_file_join_those_of_dynsym(tools):
    tools.need("objcopy", "strip")
    path, vaddr = mini(tools, "mini", lambda content: lzma.compress(content, check=lzma.CHECK_CRC32))
    expect(one(tools, path, vaddr), "hidden")
    public = place_dynamic(tools, path, "exported")
    expect(one(tools, path, public), "exported")


def place_dynamic(tools, path, name):
    for line in tools.run("nm", "-D", path).splitlines():
        words = line.split()
        if len(words) == 3 and words[2] == name:
            return int(words[0], 16)
    raise Fail(f"no {name}")


def test_packed_symbols_that_are_damaged_or_a_bomb_cost_only_themselves(tools):
    tools.need("objcopy", "strip")
    bomb = lzma.compress(bytes(600 << 20), preset=0)
    for name, packed in (("cut", lambda content: lzma.compress(content)[:-20]), ("noise", lambda content: b"\xfd7zXZ\0" + content),
                         ("bomb", lambda content: bomb), ("empty", lambda content: b"\0"),
                         ("script", lambda content: lzma.compress(b"#!/bin/sh\n"))):
        path, vaddr = mini(tools, "mini-" + name, packed)
        expect(one(tools, path, vaddr), f"libmini.so!0x{vaddr:x}")


# ---- layouts -----------------------------------------------------------------------

HOST = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
#include <string.h>
int main(int c, char **v)
{
	for (int i = 1; i < c; i++) {
		void *library = strcmp(v[i], "twice") ? dlopen(v[i], RTLD_NOW) : dlmopen(LM_ID_NEWLM, v[++i], RTLD_NOW);
		if (!library)
			return fprintf(stderr, "%s\\n", dlerror());
		printf("%p %p\\n", dlsym(library, "exported"), dlsym(library, "second_segment"));
	}
	puts("ready");
	return fflush(stdout) || pause();
}
"""


class Process:
    """A process that has loaded libraries; `places` are the addresses of `exported` and `second_segment`."""

    def __init__(self, tools, *libraries):
        self.tools = tools
        program = tools.path("loader")
        if not os.path.exists(program):
            tools.run("gcc", "-o", program, tools.write("loader.c", HOST))
        self.process = subprocess.Popen([program, *libraries], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        self.places = []
        for line in self.process.stdout:
            if line == "ready\n":
                return
            self.places.append([None if word == "(nil)" else int(word, 16) for word in line.split()])
        raise Fail("the process did not start")

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def names(self, *addresses):
        lines = self.tools.run(self.tools.program, "resolve", str(self.process.pid),
                               *[f"{address:x}" for address in addresses]).splitlines()
        return [line.split(" ", 1)[1] for line in lines]


def expect_names(process, pairs):
    for (address, wanted), got in zip(pairs, process.names(*[address for address, _ in pairs])):
        if not got.startswith(wanted + "+0x") and not got.startswith(wanted):
            raise Fail(f"{address:x}: {got}, not {wanted}")


def test_files_with_several_executable_segments(tools):
    tools.need("gcc")
    source = tools.write("segments.c", SOURCE + """
__attribute__((section(".second"), noinline)) int second_segment(int x) { return x * 3 + 1; }
""")
    script = tools.write("segments.ld", """
PHDRS { headers PT_LOAD FILEHDR PHDRS FLAGS(4); first PT_LOAD FLAGS(5); data PT_LOAD FLAGS(6); second PT_LOAD FLAGS(5);
	dynamic PT_DYNAMIC FLAGS(6); }
SECTIONS {
	. = SIZEOF_HEADERS;
	.hash : { *(.hash) } :headers
	.gnu.hash : { *(.gnu.hash) } .dynsym : { *(.dynsym) } .dynstr : { *(.dynstr) }
	.gnu.version : { *(.gnu.version*) } .rela.dyn : { *(.rela.*) } .rodata : { *(.rodata*) } .note : { *(.note*) } .eh_frame : { *(.eh_frame) }
	. = ALIGN(0x1000) + 0x234; .plt : { *(.plt*) } :first
	.text : { *(.text*) } :first
	. = ALIGN(0x1000) + 0x345; .data : { *(.data*) } :data
	.dynamic : { *(.dynamic) } :data :dynamic
	.got : { *(.got*) } :data
	. = ALIGN(0x200000) + 0x567; .second : { *(.second*) } :second
}
""")
    path = tools.path("segments.so")
    tools.run("gcc", "-O1", "-shared", "-fPIC", "-nostartfiles", "-o", path, source, f"-Wl,-T,{script}",
              "-Wl,-z,max-page-size=0x1000")
    if len(Elf(path).executable()) < 2:
        raise Fail("the linker made one executable segment")
    expect(one(tools, path, place(tools, path, "second_segment")), "second_segment")
    expect(one(tools, path, place(tools, path, "exported")), "exported")
    with Process(tools, path) as process:
        first, second = process.places[0]
        expect_names(process, [(first, "exported"), (second, "second_segment"), (second + 3, "second_segment")])


def test_files_whose_vaddrs_do_not_begin_at_zero(tools):
    """As prelink leaves them, and as large files are linked."""
    tools.need("gcc")
    path = build(tools, "prelinked.so", "-Wl,-Ttext-segment=0x3aab400000")
    vaddr = place(tools, path, "hidden")
    if vaddr < 0x3aab400000:
        raise Fail(f"linked at 0x{vaddr:x}")
    expect(one(tools, path, vaddr), "hidden")
    with Process(tools, path) as process:
        expect_names(process, [(process.places[0][0], "exported")])
    tools.run("strip", path)
    expect(one(tools, path, vaddr), f"prelinked.so!0x{vaddr:x}")


def test_files_that_are_mapped_twice(tools):
    tools.need("gcc")
    path = build(tools, "twice.so")
    with Process(tools, path, "twice", path) as process:
        (first, _), (second, _) = process.places
        if first == second:
            raise Skip("dlmopen gave the same library")
        expect_names(process, [(first, "exported"), (second, "exported"), (second + 2, "exported")])


def test_more_files_than_descriptors(tools):
    """A descriptor is held for each file: the limit that a shell sets is not the one that binds."""
    tools.need("gcc")
    path = build(tools, "many.so")
    copies = [shutil.copy(path, tools.path(f"many{i}.so")) for i in range(40)]
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 256:
        raise Skip("the hard limit of descriptors is low")
    with Process(tools, *copies) as process:
        questions = [f"{place[0]:x}" for place in process.places]
        answers = tools.run("sh", "-c", 'ulimit -S -n 24 && exec "$@"', "sh", tools.program, "resolve",
                            process.process.pid, *questions).splitlines()
    unnamed = [answer for answer in answers if " exported+0x0 " not in answer]
    if unnamed or len(answers) != 40:
        raise Fail(f"{len(unnamed)} of {len(answers)} have no name: {unnamed[:1]}")


def test_files_that_were_deleted_or_replaced_after_they_were_mapped(tools):
    tools.need("gcc")
    if os.geteuid():
        raise Skip("map_files needs root")
    deleted, replaced = build(tools, "deleted.so"), build(tools, "replaced.so")
    with Process(tools, deleted, replaced) as process:
        os.remove(deleted)
        other = build(tools, "other.so", "-DPADDING", "-Wl,-Ttext-segment=0x10000")
        os.replace(other, replaced)
        expect_names(process, [(process.places[0][0], "exported"), (process.places[1][0], "exported")])


def test_a_library_out_of_a_memfd(tools):
    """As runc and programs that unpack themselves are started."""
    tools.need("gcc")
    if os.geteuid():
        raise Skip("map_files needs root")
    path = build(tools, "packed.so")
    script = """import ctypes, os, sys
fd = os.memfd_create("packed")
os.write(fd, open(sys.argv[1], "rb").read())
library = ctypes.CDLL(f"/proc/self/fd/{fd}")
print(ctypes.cast(library.exported, ctypes.c_void_p).value, flush=True)
sys.stdin.read()"""
    with subprocess.Popen([sys.executable, "-c", script, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as process:
        address = int(process.stdout.readline())
        delta = place(tools, path, "exported") - place(tools, path, "hidden")
        answers = tools.run(tools.program, "resolve", process.pid, f"{address:x}", f"{address - delta:x}").splitlines()
        process.stdin.close()
    if [answer.split(" ", 1)[1] for answer in answers] != ["exported+0x0 (/memfd:packed)", "hidden+0x0 (/memfd:packed)"]:
        raise Fail(str(answers))


def test_processes_of_32_bit(tools):
    tools.need("gcc")
    source = tools.write("program32.c", """
static int call(int n, int a, int b, int c)
{ int r; __asm__ volatile("int $0x80" : "=a"(r) : "a"(n), "b"(a), "c"(b), "d"(c) : "memory"); return r; }
__attribute__((noinline)) void waits_in_32_bits(void) { call(4, 1, (int)"ready\\n", 6); for (;;) call(29, 0, 0, 0); }
void _start(void) { waits_in_32_bits(); }
""")
    path = tools.path("program32")
    try:
        tools.run("gcc", "-m32", "-O1", "-nostdlib", "-static", "-fno-pic", "-no-pie", "-o", path, source)
        process = subprocess.Popen([path], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    except OSError as why:
        raise Skip(f"this kernel runs no 32-bit programs: {why}") from why
    except Fail as why:
        raise Skip(f"32-bit programs: {why}") from why
    with process:
        try:
            if process.stdout.readline() != "ready\n":
                raise Skip("this kernel runs no 32-bit programs")
            vaddr = place(tools, path, "waits_in_32_bits")
            answer = tools.run(tools.program, "resolve", str(process.pid), f"{vaddr + 2:x}")
        finally:
            process.kill()
    if " waits_in_32_bits+0x2 " not in answer:
        raise Fail(answer)


def test_files_of_other_machines_have_the_names_of_nm(tools):
    """Big-endian ones, functions behind descriptors (.opd), Thumb: each instruction's name, by the table of the cross tools."""
    machines = [name for name in ("s390x-linux-gnu", "powerpc64-linux-gnu", "arm-linux-gnueabihf", "aarch64-linux-gnu")
                if shutil.which(f"{name}-gcc") and shutil.which(f"{name}-nm")]
    if not machines:
        raise Skip("no cross compiler is installed")
    for machine in machines:
        path = tools.path(f"{machine}.so")
        tools.run(f"{machine}-gcc", "-O1", "-g", "-shared", "-nostdlib", "-fPIC", "-o", path, tools.write("files.c", SOURCE))
        lines = tools.run(f"{machine}-nm", "--synthetic", "-S", path).splitlines()
        # Without a size nm tells the code of a descriptor, under the name of the ABI before.
        entries = {words[2].lstrip("."): int(words[0], 16) for words in map(str.split, lines) if len(words) == 3 and words[1] in "tT"}
        entries.update({words[3]: int(words[0], 16) & ~1 for words in map(str.split, lines) if len(words) == 4 and words[2] in "tT"})
        for name in ("hidden", "exported"):
            for distance in (0, 3):
                answer = tools.resolve(path, [entries[name] + distance])[0]
                expect(answer, name)
                if answer["offset"] != distance:
                    raise Fail(f"{machine}: {answer}")
    tools.figure("machines: " + ", ".join(machines))


def test_files_of_no_byte_order_are_refused_by_name(tools):
    tools.need("gcc")
    path = build(tools, "swapped.so")
    for order, reason in ((3, "byte order"), (2, "")):
        with open(path, "r+b") as file:
            file.seek(5)
            file.write(bytes([order]))
        done = subprocess.run([tools.program, "resolve", f"{path}+0x1000"], capture_output=True, text=True, timeout=60)
        if reason not in done.stdout or "hidden" in done.stdout or "exported" in done.stdout:
            raise Fail(done.stdout + done.stderr)


def stretch(path, distance):
    """Moves all that is not loaded, and the section headers, so many bytes towards the end; what is between takes no room."""
    with open(path, "r+b") as file:
        content = bytearray(file.read())
        table, = struct.unpack_from("<Q", content, 40)
        size, count = struct.unpack_from("<HH", content, 58)
        moved = []
        for at in range(table, table + size * count, size):
            kind, flags, _, offset, length = struct.unpack_from("<IQQQQ", content, at + 4)
            if kind and not flags & 2:
                moved.append((offset, length))
                struct.pack_into("<Q", content, at + 24, offset + distance)
        for offset, length in moved + [(table, size * count)]:
            file.seek(offset + distance)
            file.write(content[offset:offset + length])
        file.seek(40)
        file.write(struct.pack("<Q", table + distance))


def checksum(path):
    """The CRC of a file with holes. objcopy would read these, a byte after the other."""
    zeros, value, at = bytes(1 << 20), 0, 0
    with open(path, "rb") as file:
        end = os.fstat(file.fileno()).st_size
        while at < end:
            try:
                begin = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:
                begin = end  # no more data
            for left in range(begin - at, 0, -len(zeros)):
                value = zlib.crc32(zeros[:left], value)
            at = begin if begin == end else os.lseek(file.fileno(), begin, os.SEEK_HOLE)
            value = zlib.crc32(os.pread(file.fileno(), at - begin, begin), value)
    return value


def test_files_larger_than_four_gib_have_names_and_lines(tools):
    """As debug files of browsers are; a symbol table and DWARF behind the first 4 GiB, in the image and in its debug file."""
    tools.need("gcc", "nm", "objcopy", "strip")
    large, far, gib = build(tools, "large.so"), 5 << 30, 1 << 30
    vaddr = place(tools, large, "hidden")
    stretch(large, far)
    links = {}
    for name, distance in (("by-id", far), ("by-sum", gib + (1 << 20))):
        stripped = links[name] = build(tools, name + "/large.so", "-Wl,--build-id=" + ("0x" + "e7" * 20 if name == "by-id" else "none"))
        debug = tools.path(name + "/large.debug")
        tools.run("objcopy", "--only-keep-debug", stripped, debug)
        tools.run("strip", stripped)
        if name == "by-sum":
            tools.run("objcopy", "--add-gnu-debuglink=" + debug, stripped)
        # It has no bytes of what is loaded, but places.
        stretch(debug, distance)
        if name == "by-id":
            os.makedirs(tools.path("by-id/.build-id/e7"))
            os.rename(debug, tools.path("by-id/.build-id/e7/" + "e7" * 19 + ".debug"))
        else:
            _, offset, size = sections(tools, stripped)[".gnu_debuglink"]
            with open(stripped, "r+b") as file:
                file.seek(offset + size - 4)
                file.write(struct.pack("<I", checksum(debug)))
    for what, path in [("the image", large), *links.items()]:
        answer = one(tools, path, vaddr, "--lines", "--debug-dir=" + tools.path("by-id"))
        expect(answer, "hidden")
        if not str(answer["file"]).endswith("files.c") or answer["line"] != 3:
            raise Fail(f"{what}: {answer['file']}:{answer['line']}")


def test_lying_sections_of_a_file_with_holes_cost_no_memory(tools):
    """It is as large as they say; what is in them is nothing. A name of nm's or none, and not more than is read of any file."""
    tools.need("gcc", "nm")
    path = build(tools, "holes/libholes.so")
    vaddr, gib = place(tools, path, "hidden"), 1 << 30
    with open(path, "rb") as file:
        whole = file.read()
    table, = struct.unpack_from("<Q", whole, 40)
    names = sections(tools, path)
    numbers = re.findall(r"^\s*\[ *(\d+)\] (\S+)", tools.run("readelf", "-SW", path), re.M)
    offset, worst = Elf(path).offset(vaddr + 1), 0
    for number, name in numbers:
        if name not in names or not (name.startswith(".debug_") or name in (".symtab", ".strtab", ".dynsym", ".eh_frame")):
            continue
        content = bytearray(whole)
        struct.pack_into("<Q", content, table + 64 * int(number) + 32, 30 * gib)
        with open(path, "wb") as file:
            file.write(content)
            file.truncate(40 * gib)
        process = subprocess.Popen([tools.program, "resolve", "--lines", f"{path}+0x{offset:x}"], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True)
        out = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        worst = max(worst, usage.ru_maxrss)
        if process.returncode not in (0, 1, 3) or (" hidden+" not in out and " [" not in out and "!0x" not in out):
            raise Fail(f"{name}: exit code {process.returncode}: {out}")
    tools.figure(f"{worst >> 10} MiB at most")
    if worst > 1200 << 10:
        raise Fail(f"{worst >> 10} MiB of memory")


def test_truncated_and_lying_files_never_get_a_wrong_name(tools):
    """Every cut and many flipped words of the headers: an answer, or a reason, and names that nm knows."""
    tools.need("gcc", "nm")
    path = build(tools, "whole/liblying.so")
    with open(path, "rb") as file:
        whole = bytearray(file.read())
    names = {line.split()[-1] for line in tools.run("nm", path).splitlines()}
    vaddr = place(tools, path, "hidden")
    offset = Elf(path).offset(vaddr + 1)
    lying = tools.path("liblying.so")
    headers = struct.unpack_from("<Q", whole, 40)[0]
    spots = list(range(16, 64, 2)) + list(range(headers, len(whole), 24))
    cuts = list(range(0, len(whole), max(1, len(whole) // 60)))
    table = sections(tools, path)
    if ".symtab" not in table:
        raise Fail("readelf shows no .symtab")
    answers = 0
    for change in [("cut", cut) for cut in cuts] + [("flip", spot) for spot in spots]:
        content = whole[:change[1]] if change[0] == "cut" else bytearray(whole)
        if change[0] == "flip":
            content[change[1]:change[1] + 2] = b"\xff\x7f"
        with open(lying, "wb") as file:
            file.write(content)
        done = subprocess.run([tools.program, "resolve", f"{lying}+0x{offset:x}"], capture_output=True, text=True, timeout=60)
        if done.returncode not in (0, 1, 3):
            raise Fail(f"{change}: exit code {done.returncode}: {done.stderr}")
        match = re.match(r"\S+ ([A-Za-z_]\w*)\+0x", done.stdout)
        if match and match[1] not in names:
            raise Fail(f"{change}: {done.stdout}")
        answers += 1
    tools.figure(f"{answers} damaged files: no crash, no name that nm does not have")
