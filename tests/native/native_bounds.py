# SPDX-License-Identifier: MIT
"""Bounds of functions that have no name; the oracle is `readelf --debug-dump=frames`."""
import os
import random
import re
import subprocess

from native_tools import Elf, Fail, Skip, coreclr, sections


def frames(tools, path):
    """(start, end) of every FDE with code, sorted."""
    text = tools.run("readelf", "--debug-dump=frames", "-W", path)
    rows = {(int(a, 16), int(b, 16)) for a, b in re.findall(r" FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)", text)}
    return sorted(row for row in rows if row[1] > row[0])


def compare(tools, path, least):
    rows = frames(tools, path)
    if len(rows) < least:
        raise Fail(f"{path} has {len(rows)} records only")
    chosen = rows if len(rows) <= 4000 else random.Random(1).sample(rows, 4000)
    questions, wanted = [], []
    for start, end in chosen:
        for vaddr in {start, start + (end - start) // 2, end - 1}:
            questions.append(vaddr)
            wanted.append(start)
    unnamed = named = 0
    for vaddr, start, answer in zip(questions, wanted, tools.resolve(path, questions)):
        if answer["status"] == "function without a name":
            unnamed += 1
            text = f"{os.path.basename(path)}!0x{start:x}"
            if answer["name"] != text or answer["offset"] != vaddr - start or answer["resolved"]:
                raise Fail(f"{path} 0x{vaddr:x}: {answer['name']}+{answer['offset']}, not {text}")
        elif answer["resolved"]:
            named += 1
        else:
            raise Fail(f"{path} 0x{vaddr:x}: {answer['status']}, readelf has 0x{start:x}")
    tools.figure(f"{os.path.basename(path)}: {len(rows)} functions, {len(questions)} questions, "
                 f"{unnamed} by bounds, {named} by name, 0 differ from readelf")
    return unnamed


SOURCE = """
static int inner(int x) { return x * 31 + 7; }
__attribute__((noinline)) static int first(int x) { return inner(x) + 1; }
__attribute__((noinline)) static int second(int x) { return first(x) * first(x + 1); }
__attribute__((noinline)) int exported(int x) { return second(x) + x; }
__asm__(".globl sizeless\\n.type sizeless, @function\\nsizeless: nop\\nnop\\nret\\n");
__attribute__((noinline, used)) static int behind(int x) { return x ^ 0x55; }
"""


def library(tools, name, *flags):
    source = tools.write("bounds.c", SOURCE)
    path = tools.path(name)
    tools.run("gcc", "-O1", "-shared", "-fPIC", "-o", path, source, *flags)
    return path


def test_bounds_of_a_stripped_runtime_are_those_of_readelf(tools):
    path = coreclr()
    if not path:
        raise Skip("no libcoreclr.so")
    if not compare(tools, path, 10000):
        raise Fail("nothing was told by bounds: it is not stripped")


def test_bounds_of_a_stripped_program_without_section_headers(tools):
    tools.need("gcc", "strip")
    path = library(tools, "bounds.so")
    tools.run("strip", path)
    with open(path, "r+b") as file:  # e_shoff, e_shnum, e_shstrndx: as sstrip leaves them
        file.seek(40)
        file.write(bytes(8))
        file.seek(60)
        file.write(bytes(4))
    whole = library(tools, "whole.so")
    rows = frames(tools, whole)
    # The dynamic linker needs no headers for exports; the extent of one without a size is unknown.
    exports = {int(words[0], 16): words[3] for words in map(str.split, tools.run("nm", "-DS", whole).splitlines())
               if len(words) == 4 and words[2] == "T"}
    if not exports:
        raise Fail("nothing is exported")
    for (start, end), answer in zip(rows, tools.resolve(path, [row[0] for row in rows])):
        if answer["name"] != exports.get(start, f"bounds.so!0x{start:x}") or answer["size"] != end - start:
            raise Fail(f"0x{start:x}: {answer['name']} {answer['status']}")


def test_bounds_stop_a_symbol_without_a_size(tools):
    """In a stripped library a symbol without a size would claim every function up to the next symbol."""
    tools.need("gcc", "strip", "nm")
    whole, path = library(tools, "whole.so"), library(tools, "sizeless.so")
    tools.run("strip", path)
    places = {line.split()[2]: int(line.split()[0], 16) for line in tools.run("nm", whole).splitlines()
              if len(line.split()) == 3}
    answers = tools.resolve(path, [places["sizeless"], places["sizeless"] + 2, places["first"] + 1])
    names = [answer["name"] for answer in answers]
    if not places["sizeless"] < places["first"] < places["exported"]:
        raise Fail("the compiler has put the functions in another order")
    if names != ["sizeless", "sizeless", f"sizeless.so!0x{places['first']:x}"]:
        raise Fail(str(names))


def test_no_bounds_give_a_symbol_without_a_size_nothing_behind_it(tools):
    """Without .eh_frame it is not known where it ends: what is behind it in a stripped library has no name, in answers and in lists."""
    tools.need("gcc", "strip", "nm")
    source = tools.write("unbound.c", SOURCE + "".join(
        f"__attribute__((noinline, used)) static int hidden{i}(int x) {{ return x * {i + 3} + behind(x); }}\n" for i in range(200)))
    whole, path = tools.path("unbound-whole.so"), tools.path("unbound.so")
    tools.run("gcc", "-O1", "-shared", "-fPIC", "-nostdlib", "-fno-toplevel-reorder", "-fno-asynchronous-unwind-tables", "-o", whole, source)
    tools.run("strip", "-o", path, whole)
    places = {line.split()[2]: int(line.split()[0], 16) for line in tools.run("nm", whole).splitlines()
              if line.split()[1] in "tT"}
    hidden = [place for name, place in places.items() if place > places["sizeless"] and name != "exported"]
    if len(hidden) < 200 or len(frames(tools, whole)) > 1:  # the linker writes one for .plt
        raise Fail("the compiler has made another library")
    if [answer["name"] for answer in tools.resolve(path, [places["sizeless"]])] != ["sizeless"]:
        raise Fail("the symbol itself has no name")
    wrong = [answer["name"] for answer in tools.resolve(path, hidden) if answer["resolved"]]
    if wrong:
        raise Fail(f"{len(wrong)} of {len(hidden)} hidden functions are {set(wrong)}")
    sizes = [line.split()[1] for line in tools.run(os.path.dirname(tools.program) + "/examples/list_symbols", path).splitlines()
             if line.endswith(" sizeless")]
    if sizes != ["1"]:
        raise Fail(f"the list has it with {sizes} bytes")


def test_small_functions_without_a_size_reach_the_next_symbol(tools):
    """musl is stripped and has no .eh_frame; its memcpy and memmove are written by hand and have no size."""
    tools.need("gcc", "strip", "nm")
    body = "nop\\n" * 40 + "ret\\n"
    source = tools.write("by-hand.c", "__asm__(" + " ".join(
        f'".globl {name}\\n.type {name}, @function\\n{name}: {body}"' for name in ("copy", "move", "last")) + ' ".skip 4096, 0x90\\n");\n')
    whole, path = tools.path("by-hand-whole.so"), tools.path("by-hand.so")
    tools.run("gcc", "-shared", "-fPIC", "-nostdlib", "-o", whole, source)
    tools.run("strip", "-o", path, whole)
    places = {line.split()[2]: int(line.split()[0], 16) for line in tools.run("nm", whole).splitlines() if line.split()[1] == "T"}
    copy, move, last = places["copy"], places["move"], places["last"]
    answers = tools.resolve(path, [copy, copy + 40, move, move + 40, last, last + 1])
    names = [answer["name"] if answer["resolved"] else None for answer in answers]
    if names != ["copy", "copy", "move", "move", "last", None]:
        raise Fail(str(names))


def test_bounds_of_32_bit_code(tools):
    tools.need("gcc", "strip")
    source = tools.write("bounds.c", SOURCE)
    path = tools.path("bounds32.so")
    try:
        tools.run("gcc", "-m32", "-O1", "-shared", "-fPIC", "-nostdlib", "-o", path, source)
    except Fail as why:
        raise Skip(f"gcc -m32: {why}") from why
    rows = frames(tools, path)
    tools.run("strip", path)
    executable = Elf(path).executable()
    rows = [row for row in rows if any(low <= row[0] < high for low, high in executable)]
    answers = tools.resolve(path, [row[0] + 1 for row in rows])
    for (start, _), answer in zip(rows, answers):
        if not answer["resolved"] and answer["name"] != f"bounds32.so!0x{start:x}":
            raise Fail(f"0x{start:x}: {answer['name']} {answer['status']}")
    if not any(answer["status"] == "function without a name" for answer in answers):
        raise Fail("nothing was told by bounds")


def test_bounds_are_told_of_a_live_process_and_counted_apart(tools):
    """Stripped copy of a library in a process of ours: resolve and merge's list by another's eyes."""
    tools.need("gcc", "strip")
    path = library(tools, "live.so")
    tools.run("strip", path)
    rows = [row for row in frames(tools, path)]
    source = tools.write("host.c", """
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
int main(int c, char **v) { return !dlopen(v[1], RTLD_NOW) || puts("ready") < 0 || fflush(stdout) || pause() || c; }
""")
    host = tools.path("host")
    tools.run("gcc", "-o", host, source)
    with subprocess.Popen([host, path], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as process:
        try:
            process.stdout.readline()
            with open(f"/proc/{process.pid}/maps", encoding="utf-8") as maps:
                base = min(int(line.split("-")[0], 16) for line in maps if "live.so" in line)
            answers = tools.run(tools.program, "resolve", str(process.pid),
                                *[f"{base + row[0]:x}" for row in rows]).splitlines()
        finally:
            process.kill()
    unnamed = 0
    for (start, _), line in zip(rows, answers):
        unnamed += f" live.so!0x{start:x}+0x0 " in line
    if unnamed < 3:
        raise Fail("\n".join(answers))


def test_bounds_without_names_anywhere_are_not_called_stripped(tools):
    """The first stub of .plt has no symbol: no debug file would bring one, unlike for a stripped copy."""
    tools.need("gcc", "strip", "readelf")
    source = tools.write("lazy.c", "#include <stdio.h>\nint main(int c, char **v) { return puts(v[0]) + c; }\n")
    path, stripped = tools.path("lazy"), tools.path("lazy-stripped")
    tools.run("gcc", "-Wl,-z,lazy", "-o", path, source)
    tools.run("strip", "-o", stripped, path)
    offset = sections(tools, path)[".plt"][1] + 6
    for file, is_said in ((path, False), (stripped, True)):
        done = subprocess.run([tools.program, "resolve", f"{file}+0x{offset:x}"], capture_output=True, text=True, timeout=60)
        if "!0x" not in done.stdout or ("stripped native images" in done.stderr) != is_said:
            raise Fail(done.stdout + done.stderr)
