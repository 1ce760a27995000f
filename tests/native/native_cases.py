# SPDX-License-Identifier: MIT
"""The behaviours that blazesym's symbolize tests and elfutils' addr2line tests are about, one test each, named after the case and
rewritten: the files are compiled here, the expectation comes from nm, eu-addr2line and the source below."""
import itertools
import os
import re
import shutil
import struct
import subprocess

from native_files import Process, place
from native_lines import INLINES, compare_chains, every_address
from native_tools import Elf, Fail, Skip, sections

SOURCE = """
long a_variable = 42;
static int hidden(int x) { return x * 3; }
__attribute__((noinline)) int factorial(int n) { return n <= 1 ? 1 : n * factorial(n - 1) + hidden(n); }
static int impl(void) { return 7; }
static void *pick(void) { return impl; }
int indirect(void) __attribute__((ifunc("pick")));
__asm__(".text\\n.globl untyped\\nuntyped: nop\\nnop\\nret\\n"
	".globl zero_size\\n.type zero_size, @function\\nzero_size: nop\\nret\\n");
__attribute__((weak)) int weak_alias(int n) __attribute__((alias("factorial")));
int __leading_alias(int n) __attribute__((alias("factorial")));
int main(void) { volatile int v = 5; return factorial(v) + indirect(); }
"""
FACTORIAL_LINE = 4


def compiled(tools, name, *flags, compiler="gcc"):
    path = tools.path(f"cases/{name}")
    source = tools.write("cases/cases.c", SOURCE)
    tools.run(compiler, "-O1", *flags, "-o", path, source)
    return path


def extent(tools, path, name):
    """(start, size) as nm has them."""
    for line in tools.run("nm", "-S", path).splitlines():
        words = line.split()
        if words[-1] == name:
            return int(words[0], 16), int(words[1], 16) if len(words) == 4 else 0
    raise Fail(f"nm has no {name} in {path}")


def expect_everywhere(tools, path, name, start, size, *options):
    """Every byte of a function is that function at its offset; the answers."""
    answers = tools.resolve(path, list(range(start, start + size)), *options)
    for i, answer in enumerate(answers):
        if answer["name"] != name or answer["offset"] != i:
            raise Fail(f"{path}: 0x{start + i:x} is {answer['name']}+{answer['offset']} ({answer['reason']}), not {name}+{i}")
    return answers


def resolve_text(tools, *questions, code=None):
    done = subprocess.run([tools.program, "resolve", *questions], capture_output=True, text=True, timeout=60)
    if done.returncode < 0 or (code is not None and done.returncode != code):
        raise Fail(f"exit code {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


# ---- files ------------------------------------------------------------------------------

def test_error_on_non_existent_source(tools):
    text = resolve_text(tools, tools.path("does-not-exist") + "+0x10", code=1)
    if "No such file" not in text:
        raise Fail(text)


def test_elf_no_permission(tools):
    tools.need("gcc", "setpriv")
    if os.geteuid():
        raise Skip("becoming another user needs root")
    path = compiled(tools, "forbidden")
    os.chmod(path, 0)
    # The program may lie where the other user may not go.
    program = os.path.join("/tmp", f"resolver-{os.getpid()}")
    shutil.copy(tools.program, program)
    try:
        done = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", program, "resolve", f"{path}+0x10"], cwd="/",
                              capture_output=True, text=True, timeout=60)
    finally:
        os.remove(program)
    if done.returncode != 1 or "ermission" not in done.stdout + done.stderr:
        raise Fail(f"{done.returncode}: {done.stdout}{done.stderr}")


def test_elf_dwarf(tools):
    """One function in files of every make: with and without DWARF, of both versions, packed, LTO, other compilers and linkers."""
    tools.need("gcc", "nm", "strip", "objcopy")
    made = {"no-dwarf": (False, compiled(tools, "no-dwarf"))}
    for name, flags in (("dwarf-4", ("-gdwarf-4",)), ("dwarf-5", ("-gdwarf-5",)), ("zlib", ("-g", "-gz=zlib")),
                        ("zlib-gnu", ("-g", "-gz=zlib-gnu")), ("no-pie", ("-g", "-no-pie")), ("lto", ("-g", "-flto")),
                        ("dwarf-64", ("-g", "-gdwarf64")), ("static", ("-g", "-static")), ("gold", ("-g", "-fuse-ld=gold"))):
        try:
            made[name] = (True, compiled(tools, name, *flags))
        except Fail as why:
            tools.figure(f"{name} cannot be built here: {why}")
    if shutil.which("clang"):
        made["clang"] = (True, compiled(tools, "clang", "-g", compiler="clang"))
    for version in ("4", "5"):
        path = packed_with_zstd(tools, f"zstd-{version}", "-g", f"-gdwarf-{version}")
        if path:
            made[f"zstd-{version}"] = (True, path)
    if len(made) < 8:
        raise Fail(f"only {sorted(made)} could be built")
    for name, (has_lines, path) in made.items():
        if name == "lto" and not re.search(r" factorial$", tools.run("nm", path), re.M):
            continue  # the linker has put it into main
        start, size = extent(tools, path, "factorial")
        answers = expect_everywhere(tools, path, "factorial", start, size, "--lines")
        lines = {answer["line"] for answer in answers}
        files = {os.path.basename(answer["file"] or "") for answer in answers}
        if has_lines and (files != {"cases.c"} or FACTORIAL_LINE not in lines):
            raise Fail(f"{name}: lines {lines} of {files}")
        if not has_lines and (files != {""} or lines != {0}):
            raise Fail(f"{name}: lines {lines} of {files} from nowhere")
    tools.figure(f"{len(made)} makes of file: {', '.join(sorted(made))}")


def packed_with_zstd(tools, name, *flags):
    """None where objcopy does not know how."""
    path = compiled(tools, name, *flags)
    try:
        tools.run("objcopy", "--compress-debug-sections=zstd", path)
    except Fail as why:
        tools.figure(f"{name} cannot be built here: {why}")
        return None
    return path


def test_elf_dwarf_packed_with_zstandard_and_damaged(tools):
    """Each section of DWARF cut, changed or promising another size: names as ever, lines as in the whole file or none."""
    tools.need("gcc", "nm", "objcopy", "readelf")
    path = packed_with_zstd(tools, "zstd-damaged", "-g", "-gdwarf-4")
    if not path:
        raise Skip("objcopy does not know zstd")
    start, size = extent(tools, path, "factorial")
    vaddrs = list(range(start, start + size))
    good = tools.resolve(path, vaddrs, "--inlines")
    sections = re.findall(r"\] (\.debug_\w+) +PROGBITS +[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+) \d+ +\w*C", tools.run("readelf", "-SW", path))
    if not any(name == ".debug_info" for name, _, _ in sections) or not all(answer["line"] for answer in good):
        raise Fail(f"{sections}, {good[:2]}")
    with open(path, "rb") as file:
        content = file.read()
    for name, offset, size_bytes in sections:
        at, end = int(offset, 16), int(offset, 16) + int(size_bytes, 16)
        # Elf64_Chdr: type, size; then the stream. A stream that was changed may still be one, as one that is not packed may be.
        middle = (at + 24 + end) // 2
        for place, value in ((at, 9), (at + 8, content[at + 8] ^ 1), (at + 9, content[at + 9] ^ 0x40), (at + 14, 1), (at + 24, 0),
                             (at + 28, 0xff), (middle, content[middle] ^ 0xff), (end - 1, content[end - 1] ^ 0xff)):
            damaged = bytearray(content)
            damaged[place] = value
            with open(path, "wb") as file:
                file.write(damaged)
            for before, answer in zip(good, tools.resolve(path, vaddrs, "--inlines")):
                if answer["name"] != before["name"] or (place < at + 28 and answer["line"] not in (0, before["line"])):
                    raise Fail(f"{name} with {value} at {place - at}: {answer}")
    tools.figure(f"{len(sections)} sections packed with zstd, each damaged in 8 ways")


def test_elf_dwarf_of_which_one_packed_section_lies(tools):
    """A section that declares more bytes than zlib can make costs only itself: lines and functions of the others stay."""
    tools.need("gcc", "nm", "readelf")
    # Small sections are not packed.
    path = compiled_from(tools, "lying-section", "struct large { int " + ", ".join(f"a_member_of_many_{i}" for i in range(200)) + "; } large;" +
                         SOURCE.replace("\nlong", " long", 1), "-gdwarf-5", "-gz=zlib")
    start, size = extent(tools, path, "factorial")
    vaddrs = list(range(start, start + size))
    good = tools.resolve(path, vaddrs, "--inlines")
    found = {name: int(offset, 16) for name, offset in
             re.findall(r"\] (\.debug_\w+) +PROGBITS +[0-9a-f]+ ([0-9a-f]+) [0-9a-f]+ \d+ +\w*C", tools.run("readelf", "-SW", path))}
    with open(path, "rb") as file:
        content = file.read()
    if not {".debug_info", ".debug_line", ".debug_str"} <= set(found) or not all(answer["line"] for answer in good):
        raise Fail(f"{sorted(found)}, {good[:2]}")
    for name, at in found.items():
        lying = bytearray(content)
        struct.pack_into("<Q", lying, at + 8, 1 << 40)
        with open(path, "wb") as file:
            file.write(lying)
        answers = tools.resolve(path, vaddrs, "--inlines")
        for before, answer in zip(good, answers):
            if answer["name"] != before["name"] or (answer["file"], answer["line"]) not in ((before["file"], before["line"]), (None, 0)):
                raise Fail(f"{name}: {answer}, not {before}")
        with_lines = sum(bool(answer["line"]) for answer in answers)
        if name in (".debug_str", ".debug_aranges") and with_lines != len(good):
            raise Fail(f"without {name} {with_lines} of {len(good)} addresses have a line")
        tools.figure(f"without {name} {with_lines} of {len(good)} addresses have a line")


def test_elf_32_bit(tools):
    tools.need("gcc", "nm", "eu-addr2line")
    path, source = tools.path("cases/cases32"), tools.write("cases/cases32.c", "int f(int n) { return n * 3; }\nint _start(int n) { return f(n) + 1; }\n")
    for version in ("4", "5"):
        try:
            tools.run("gcc", "-m32", "-O1", "-fno-inline", f"-gdwarf-{version}", "-nostdlib", "-static", "-o", path, source)
        except Fail as why:
            raise Skip(f"gcc -m32: {why}") from why
        start, size = extent(tools, path, "f")
        answer = expect_everywhere(tools, path, "f", start, size, "--lines")[0]
        if answer["line"] != 1 or not answer["file"].endswith("cases32.c"):
            raise Fail(str(answer))
        wrong = compare_chains(tools, path, every_address(tools, path))
        if wrong:
            raise Fail(str(wrong[:3]))


def test_elf_relocatable(tools):
    """An object file is loaded nowhere: a reason, never a name of another section that begins at 0 too."""
    tools.need("gcc")
    path = compiled(tools, "cases.o", "-g", "-c", "-ffunction-sections")
    text = resolve_text(tools, *(f"{path}+0x{offset:x}" for offset in range(0x40, 0x100, 8)))
    if re.search(r"\+0x[0-9a-f]+ \(", text.replace(path, "")) or "loaded nowhere" not in text:
        raise Fail(text)


def test_elf_no_type(tools):
    tools.need("gcc", "nm")
    path = compiled(tools, "untyped")
    start, _ = extent(tools, path, "untyped")
    expect_everywhere(tools, path, "untyped", start, 3)


def test_elf_zero_size(tools):
    """A symbol without a size reaches to the next one."""
    tools.need("gcc", "nm")
    path = compiled(tools, "zero-size")
    start, size = extent(tools, path, "zero_size")
    if size:
        raise Fail("the assembler gave it a size")
    expect_everywhere(tools, path, "zero_size", start, 2)


def test_elf_variable(tools):
    """libsym names code: an address of data has a reason, and no function's name."""
    tools.need("gcc", "nm")
    path = compiled(tools, "variable", "-no-pie")
    vaddr, _ = extent(tools, path, "a_variable")
    answer = tools.resolve(path, [vaddr])[0]
    if answer["resolved"] or answer["name"] or answer["status"] != "no symbol here":
        raise Fail(str(answer))


def test_elf_indirect_function(tools):
    """At the address of an IFUNC is the code that chooses; its symbol is global, as eu-addr2line has it."""
    tools.need("gcc", "nm", "eu-addr2line")
    path = compiled(tools, "indirect")
    start, _ = extent(tools, path, "indirect")
    theirs = tools.run("eu-addr2line", "-S", "-e", path, f"0x{start:x}").splitlines()[0]
    answer = tools.resolve(path, [start])[0]
    if answer["name"] != theirs.split("+")[0]:
        raise Fail(f"{answer['name']}, eu-addr2line has {theirs}")


def test_elf_aliases(tools):
    """Among several names for one address, the global one with the fewest underscores is chosen."""
    tools.need("gcc", "nm")
    path = compiled(tools, "aliases")
    start, size = extent(tools, path, "factorial")
    if {extent(tools, path, name)[0] for name in ("weak_alias", "__leading_alias")} != {start}:
        raise Fail("they lie elsewhere")
    expect_everywhere(tools, path, "factorial", start, size)


def test_elf_stripped(tools):
    """Bounds if there is .eh_frame, distinguished from names; nothing if there is none."""
    tools.need("gcc", "nm", "strip", "objcopy")
    whole, path, bare = compiled(tools, "whole"), tools.path("cases/stripped"), tools.path("cases/bare")
    start, size = extent(tools, whole, "factorial")
    tools.run("strip", "-o", path, whole)
    tools.run("objcopy", "--remove-section=.eh_frame", "--remove-section=.eh_frame_hdr", path, bare)
    for answer in expect_everywhere(tools, path, f"stripped!0x{start:x}", start, size):
        if answer["resolved"]:
            raise Fail("bounds pass for a name")
    answer = tools.resolve(bare, [start])[0]
    if answer["name"] or answer["resolved"]:
        raise Fail(str(answer))


def test_elf_symbol_table_of_which_strip_left_next_to_nothing(tools):
    """An exported function keeps its name, and the debug file is asked: a .symtab without functions, and one with a chosen one."""
    tools.need("gcc", "nm", "strip", "objcopy")
    source = """static __attribute__((noinline)) int hidden(int x) { volatile int v = x; return v * 3; }
        __attribute__((noinline)) int exported(int x) { volatile int v = hidden(x); return v + 1; }
        int other(int x) { return exported(x) * 5; }"""
    whole = compiled_from(tools, "partial-whole.so", source, "-shared", "-fPIC", "-Wl,--build-id=none")
    places = {name: extent(tools, whole, name) for name in ("hidden", "exported", "other")}
    for title, kept in (("chosen", ["-K", "hidden"]), ("empty", ["-K", "__dso_handle"])):
        path = tools.path(f"cases/partial-{title}.so")
        tools.run("strip", *kept, "-o", path, whole)
        if ".symtab" not in sections(tools, path):
            raise Fail(f"{path} has no .symtab")
        for name, (start, size) in places.items():
            known = name != "hidden" or title == "chosen"
            expect_everywhere(tools, path, name if known else f"partial-{title}.so!0x{start:x}", start, size)
        debug = tools.path("cases/.debug/partial.debug")
        os.makedirs(os.path.dirname(debug), exist_ok=True)
        tools.run("objcopy", "--only-keep-debug", whole, debug)
        tools.run("objcopy", f"--add-gnu-debuglink={debug}", path)
        expect_everywhere(tools, path, "hidden", *places["hidden"])


def test_elf_symbol_table_without_local_functions(tools):
    """strip -x, ld -x: a global symbol without a size is not what follows it, and the debug file is asked, DWARF with lines."""
    tools.need("gcc", "nm", "strip", "objcopy")
    source = """__asm__(".text\\n.globl begin\\n.type begin, @function\\nbegin: .cfi_startproc\\nnop\\nret\\n.cfi_endproc\\n.p2align 4\\n");
        static __attribute__((noinline)) int hidden(int x) { volatile int v = x; return v * 3; }
        int exported(int x) { return hidden(x) * 5; }"""
    flags = ["-shared", "-fPIC", "-fno-toplevel-reorder", "-Wl,--build-id=none"]
    whole = compiled_from(tools, "global-whole.so", source, *flags)
    stripped = tools.path("cases/global-strip.so")
    tools.run("strip", "-x", "-g", "-o", stripped, whole)
    linked = compiled_from(tools, "global-ld.so", source, *flags, "-Wl,-x")
    expect_everywhere(tools, linked, "hidden", *extent(tools, whole, "hidden"), "--lines")
    tools.run("objcopy", "--strip-debug", linked)
    for path in (stripped, linked):
        start, size = extent(tools, whole, "hidden")
        expect_everywhere(tools, path, f"{os.path.basename(path)}!0x{start:x}", start, size)
        expect_everywhere(tools, path, "exported", *extent(tools, whole, "exported"))
        expect_everywhere(tools, path, "begin", extent(tools, whole, "begin")[0], 2)
    debug = tools.path("cases/.debug/global.debug")
    os.makedirs(os.path.dirname(debug), exist_ok=True)
    tools.run("objcopy", "--only-keep-debug", whole, debug)
    tools.run("objcopy", f"--add-gnu-debuglink={debug}", stripped)
    expect_everywhere(tools, stripped, "hidden", start, size)


def test_elf_start_of_a_program_that_was_stripped(tools):
    """Old crt1.o give _start no size: it ends with its record in .eh_frame, and what follows it before the next one is not _start."""
    tools.need("gcc", "nm", "strip")
    whole = compiled_from(tools, "sizeless-start.so", """__asm__(".text\\n.globl begin\\n.type begin, @function\\nbegin: .cfi_startproc\\n"
        ".skip 40, 0x90\\nret\\n.cfi_endproc\\nuntold: .skip 40, 0x90\\nret\\n");
        __attribute__((noinline)) int next(int x) { return x * 3; }""", "-shared", "-fPIC", "-fno-toplevel-reorder")
    path = tools.path("cases/stripped-start.so")
    tools.run("strip", "-o", path, whole)
    begin, untold = extent(tools, whole, "begin")[0], extent(tools, whole, "untold")[0]
    if not begin < untold < extent(tools, whole, "next")[0]:
        raise Fail("they lie otherwise")
    expect_everywhere(tools, path, "begin", begin, untold - begin)
    for answer in tools.resolve(path, [untold, untold + 40]):
        if answer["resolved"]:
            raise Fail(f"untold is {answer['name']}+{answer['offset']}")


def test_elf_whose_symbols_tell_other_sections(tools):
    """As patchelf left .dynsym when it had moved section headers: the place of a function counts."""
    tools.need("gcc", "nm", "strip")
    path = build_library(tools, "moved.so")
    start, size = extent(tools, path, "exported")
    tools.run("strip", path)
    offset, length = sections(tools, path)[".dynsym"][1:]
    with open(path, "r+b") as file:
        for at in range(offset + 24, offset + length, 24):
            file.seek(at + 6)
            number = struct.unpack("<H", file.read(2))[0]
            if number:
                file.seek(at + 6)
                file.write(struct.pack("<H", number - 1))
    expect_everywhere(tools, path, "exported", start, size)


def test_elf_cached(tools):
    """A file that is removed between two questions goes on answering."""
    tools.need("gcc")
    library = build_library(tools, "removed.so")
    with Process(tools, library) as process, \
            subprocess.Popen([tools.program, "resolve", str(process.process.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as asked:
        for remove in (True, False):
            asked.stdin.write(f"{process.places[0][0]:x}\n")
            asked.stdin.flush()
            line = asked.stdout.readline()
            if " exported+0x0 " not in line:
                raise Fail(line)
            if remove:
                os.remove(library)
        asked.stdin.close()


def build_library(tools, name, *flags):
    return compiled_from(tools, name, "__attribute__((noinline)) int exported(int x) { return x * 31 + 7; }\n", "-shared", "-fPIC", *flags)


def compiled_from(tools, name, source, *flags):
    path = tools.path(f"cases/{name}")
    tools.run("gcc", "-O1", "-g", *flags, "-o", path, tools.write(f"cases/{name}.c", source))
    return path


# ---- DWARF --------------------------------------------------------------------------------

def test_dwarf_compilation_directory(tools):
    """A relative file name is completed by the directory of compilation, once: that of a line, and that of a call."""
    tools.need("gcc", "nm")
    directory = os.path.realpath(tools.path("cases/comp/dir"))
    os.makedirs(directory)
    tools.write("cases/comp/dir/relative.c", "static inline __attribute__((always_inline)) int inner(volatile int *x) { return *x * 3; }\n"
                "int main(void) { volatile int x = 1; return inner(&x); }\n")
    for compiler, version, back, flags, there in itertools.product(("gcc", "clang"), ("4", "5"), (".", "..", "../.."), ([], ["-gsplit-dwarf"]),
                                                                   (None, "./there", "there/and/here", ".")):
        if not shutil.which(compiler) or (there and flags):
            continue
        start = os.path.normpath(os.path.join(directory, back))
        source = os.path.relpath(os.path.join(directory, "relative.c"), start)
        # A directory that is relative itself, as in packages of distributions.
        mapped = [f"-fdebug-prefix-map={start}={there}"] if there else []
        subprocess.run([compiler, "-O1", f"-gdwarf-{version}", "-nostdlib", "-static", "-Wl,-e,main", *flags, *mapped, "-o", "relative", source], cwd=start, check=True, timeout=60)
        path = os.path.join(start, "relative")
        vaddr, size = extent(tools, path, "main")
        answers = tools.resolve(path, list(range(vaddr, vaddr + size)), "--lines", "--inlines")
        files = [answer["file"] for answer in answers] + [frame["call_file"] for answer in answers for frame in answer["inlined"]]
        expected = os.path.normpath(os.path.join(there, source)) if there else os.path.join(directory, "relative.c")
        if len(files) == size or any(os.path.normpath(file) != os.path.normpath(expected) for file in files):
            raise Fail(f"{compiler}, DWARF {version} {flags} {mapped}, {source}: {set(files)} instead of {expected}")


def test_dwarf_text_without_an_end(tools):
    """.debug_str that is cut in the middle of a name: that one is none, and nothing behind it is read (SAN=1 sees to that)."""
    tools.need("gcc", "strip", "nm", "readelf")
    for packing in ([], ["-gz"], ["-gz=zlib-gnu"]):
        whole = compiled(tools, "unended", "-g", "-no-pie", *packing)
        start, size = extent(tools, whole, "factorial")
        name, number = next((name, i) for i, name in enumerate(re.findall(r"^ +\[ *\d+\] (\S*)", tools.run("readelf", "-SW", whole), re.M))
                            if name in (".debug_str", ".zdebug_str"))
        with open(whole, "r+b") as file:
            content = bytearray(file.read())
            header = int.from_bytes(content[40:48], "little") + 64 * number
            offset, length = struct.unpack_from("<QQ", content, header + 24)
            cut = content.index(b"factorial\0", offset) + 5 - offset if not packing else length - 9
            struct.pack_into("<Q", content, header + 32, cut)
            for i in range(int.from_bytes(content[60:62], "little")):  # without .symtab DWARF tells names
                place_of_type = int.from_bytes(content[40:48], "little") + 64 * i + 4
                if content[place_of_type] == 2:
                    content[place_of_type] = 1
            file.seek(0)
            file.write(content)
        for answer in tools.resolve(whole, list(range(start, start + size)), "--inlines"):
            if answer["resolved"] and answer["name"] != "factorial":
                raise Fail(f"{packing}: {answer}")


def test_dwarf_origin_in_another_place(tools):
    """A function whose entry has the range and refers to another entry for the name, as inlined copies do."""
    tools.need("gcc", "nm", "eu-addr2line")
    path = compiled_from(tools, "origin", """
static inline int both_ways(int x) { return x * 7 + 1; }
int (*kept)(int) = both_ways;
int main(void) { volatile int v = 1; return both_ways(v) + kept(v); }
""")
    start, size = extent(tools, path, "both_ways")
    expect_everywhere(tools, path, "both_ways", start, size)
    wrong = compare_chains(tools, path, every_address(tools, path))
    if wrong:
        raise Fail(str(wrong[:3]))


def test_dwarf_discriminators_and_columns(tools):
    tools.need("gcc", "eu-addr2line")
    path = compiled_from(tools, "loops", """
int main(int c, char **v)
{
	int s = 0;
	for (int i = 0; i < c; i++) for (int j = 0; j < c; j++) { s += v[i][j] ? i : j; if (s & 1) s ^= j; else s += i; }
	return s;
}
""")
    wrong = compare_chains(tools, path, every_address(tools, path))
    if wrong:
        raise Fail(str(wrong[:3]))


def test_dwarf_self_referential_debug_link(tools):
    tools.need("gcc", "nm", "objcopy")
    path = compiled(tools, "link-to-self", "-g")
    tools.run("objcopy", f"--add-gnu-debuglink={path}", path)
    start, size = extent(tools, path, "factorial")
    expect_everywhere(tools, path, "factorial", start, size)


def test_dwarf_non_existent_debug_link(tools):
    tools.need("gcc", "nm", "objcopy", "strip")
    path = compiled(tools, "link-to-nothing", "-g")
    start, size = extent(tools, path, "factorial")
    debug = path + ".debug"
    tools.run("objcopy", "--only-keep-debug", path, debug)
    tools.run("strip", path)
    tools.run("objcopy", f"--add-gnu-debuglink={debug}", path)
    os.remove(debug)
    expect_everywhere(tools, path, f"link-to-nothing!0x{start:x}", start, size)


def sharing_parts(tools, prefix, *flags):
    """Two libraries for dwz to find something in that both have."""
    types = "".join(f"struct shared{i} {{ int field{i}; struct shared{i} *next{i}; }};\nstruct shared{i} *value{i};\n" for i in range(200))
    inlined, callers = INLINES["c"].split("int outer(", 1)
    tools.write("cases/shared.h", types + inlined)
    return [compiled_from(tools, f"{prefix}{i}", '#include "shared.h"\n' + ("int outer(" + callers).replace("outer", f"outer_of_{i}"), *flags)
            for i in range(2)]


def test_dwarf_alternate_file(tools):
    """dwz: strings that several debug files share lie in another one, which must have the id that is asked for."""
    tools.need("gcc", "nm", "dwz")
    parts = sharing_parts(tools, "shared")
    plain = [tools.resolve(path, every_address(tools, path), "--inlines") for path in parts]
    common = tools.path("cases/common.dwz")
    tools.run("dwz", "-m", common, "-M", common, *parts)
    if not os.path.exists(common):
        raise Skip("dwz found nothing to share")
    for path, before in zip(parts, plain):
        for old, new in zip(before, tools.resolve(path, every_address(tools, path), "--inlines")):
            if (old["name"], old["inlined"], old["line"]) != (new["name"], new["inlined"], new["line"]):
                raise Fail(f"{path}: {new}, without dwz {old}")
    if ".debug_info" not in sections(tools, common):
        raise Fail("dwz shared strings only, which libdw does not take")
    other = compiled_from(tools, "wrong-alternate", "int a_function_that_is_longer_than_most(int wrong_name_of_this) { return wrong_name_of_this; }\n",
                          "-shared", "-fPIC")
    shutil.copy(other, common)
    known = {frame["name"] for answers in plain for answer in answers for frame in answer["inlined"]}
    known |= {answer["name"] for answers in plain for answer in answers}
    for path in parts:
        for answer in tools.resolve(path, every_address(tools, path), "--inlines"):
            names = {answer["name"]} | {frame["name"] for frame in answer["inlined"]}
            if not names <= known | {"", None}:
                raise Fail(f"a name out of a wrong alternate file: {names - known}")


# ---- processes --------------------------------------------------------------------------------

def test_process_exited_cached_vmas(tools):
    """resolve reads questions as they come: the process ends in between, and known places keep their names."""
    tools.need("gcc", "nm")
    with Process(tools, build_library(tools, "exits.so")) as process:
        address = process.places[0][0]
        with subprocess.Popen([tools.program, "resolve", str(process.process.pid)], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as asked:
            for _ in range(2):
                asked.stdin.write(f"{address:x}\n")
                asked.stdin.flush()
                if " exported+0x0 " not in asked.stdout.readline():
                    raise Fail("no name")
                process.process.kill()
                process.process.wait()
            asked.stdin.close()


def test_process_vdso(tools):
    """Ours and another process's: the names that the vDSO's own table has, as gdb or readelf read it from memory."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        rows = [line for line in maps if "[vdso]" in line]
    if not rows:
        raise Skip("no vDSO")
    with open("/proc/self/mem", "rb") as memory:
        start, end = (int(word, 16) for word in rows[0].split()[0].split("-"))
        memory.seek(start)
        image = memory.read(end - start)
    path = tools.path("vdso")
    with open(path, "wb") as file:
        file.write(image)
    table = {}
    for line in tools.run("nm", "-D", path).splitlines():
        words = line.split()
        if len(words) == 3 and words[1] in "TtWwi":
            table.setdefault(int(words[0], 16), set()).add(re.sub("@.*", "", words[2]))
    for pid in (os.getpid(), None):
        with subprocess.Popen(["sh", "-c", "echo ready; read x"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            try:
                base = start
                if pid is None:
                    pid = other.pid
                    other.stdout.readline()
                    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
                        base = next(int(line.split("-")[0], 16) for line in maps if "[vdso]" in line)
                for vaddr, names in table.items():
                    line = tools.run(tools.program, "resolve", str(pid), f"{base + vaddr:x}")
                    if not any(f" {name}+0x0 ([vdso])" in line for name in names):
                        raise Fail(f"{line.strip()}, the vDSO has {names}")
                    # perf takes it for a file, beside which it prints offsets.
                    for value in (vaddr, base + vaddr):
                        text = f"a {pid}/{pid} 1.000001: x: \n\t{value:16x} [unknown] ([vdso])\n"
                        line = tools.run(tools.program, "symbolize", input=text)
                        if not any(f" {name}+0x0 ([vdso])" in line for name in names):
                            raise Fail(f"symbolize: {line.strip()}, the vDSO has {names}")
            finally:
                other.kill()
    tools.figure(f"{len(table)} places of the vDSO in two processes")


HOST_OF_MEMORY = """
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void)
{
	char *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	printf("%p\\n", (void *)p);
	return fflush(stdout) || pause();
}
"""


def test_process_with_empty_perf_map(tools):
    """An empty map, one with only an incomplete line, and one that must not be used: no name, no failure."""
    tools.need("gcc")
    host = tools.path("host-of-memory")
    tools.run("gcc", "-o", host, tools.write("host-of-memory.c", HOST_OF_MEMORY))
    with subprocess.Popen([host], stdout=subprocess.PIPE, text=True) as process:
        path = f"/tmp/perf-{process.pid}.map"
        try:
            address = int(process.stdout.readline(), 16)
            for content in ("", f"{address:x} 10 to", "\n\n", "garbage\n"):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(content)
                text = resolve_text(tools, str(process.pid), f"{address:x}", code=0)
                if "[" not in text:
                    raise Fail(f"{content!r}: {text}")
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"{address:x} 10 torn_before\n")
            if " torn_before+0x1 " not in resolve_text(tools, str(process.pid), f"{address + 1:x}"):
                raise Fail("a whole line is not read")
        finally:
            process.kill()
            if os.path.lexists(path):
                os.remove(path)


def test_process_symbolic_paths(tools):
    """Without privilege, by another user's right to its own process: paths serve where map_files does not."""
    tools.need("gcc", "setpriv")
    if os.geteuid():
        raise Skip("becoming another user needs root")
    library = build_library(tools, "unprivileged.so")
    program = os.path.join("/tmp", f"resolver-{os.getpid()}")
    shutil.copy(tools.program, program)
    os.chmod(tools.scratch, 0o755)
    os.chmod(tools.path("cases"), 0o755)
    host = compiled_from(tools, "unprivileged-host", """
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
int main(int c, char **v) { void *p = dlopen(v[1], RTLD_NOW); printf("%p\\n", p ? dlsym(p, "exported") : p); return c < 2 || fflush(stdout) || pause(); }
""")
    as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    try:
        with subprocess.Popen([*as_nobody, host, library], stdout=subprocess.PIPE, text=True, cwd="/") as process:
            try:
                address = process.stdout.readline().strip()
                done = subprocess.run([*as_nobody, program, "resolve", str(process.pid), address], capture_output=True, text=True,
                                      cwd="/", timeout=60)
            finally:
                process.kill()
    finally:
        os.remove(program)
    if " exported+0x0 " not in done.stdout:
        raise Fail(f"{address}: {done.stdout}{done.stderr}")


# ---- what libc and the loader make of it ---------------------------------------------------------

def test_segment_larger_in_memory_before_the_match(tools):
    """A segment whose memory is larger than what the file has, before the one that is asked for: offsets stay right."""
    tools.need("gcc", "nm", "readelf")
    script = tools.write("cases/large.ld", """
SECTIONS { . = 0x400000 + SIZEOF_HEADERS; .data : { *(.data*) } .bss : { *(.bss*) . += 0x20000; }
. = 0x800000; .text : { *(.text*) } .rest : { *(*) } }
""")
    path = tools.path("cases/large-segment")
    tools.run("gcc", "-O1", "-nostdlib", "-static", "-fno-pic", "-no-pie", "-Wl,--build-id=none", f"-Wl,-T,{script}", "-o", path,
              tools.write("cases/large.c", "char large[0x10000]; int some = 3; int after_it(int x) { return x + large[x] + some; }\nint _start(void) { return after_it(1); }\n"))
    start, size = extent(tools, path, "after_it")
    expect_everywhere(tools, path, "after_it", start, size)
    if ".bss" not in sections(tools, path):
        raise Fail("no .bss")
