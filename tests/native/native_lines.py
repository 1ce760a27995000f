# SPDX-License-Identifier: MIT
"""10,000 addresses of real binaries: symbols against eu-addr2line and gdb, lines and inlined functions against eu-addr2line.

Every difference is put into a class that is explained below, and counted; one that fits none is a failure.
"""
import glob
import os
import random
import re
import shutil
import subprocess

from native_tools import Elf, Fail, Skip, sections

SEED = 5
LIBRARIES = "/usr/lib/x86_64-linux-gnu/"


def debug_file(tools, path):
    """The separate debug file by build-id, or None."""
    match = re.search(r"Build ID: ([0-9a-f]+)", tools.run("readelf", "-nW", path))
    found = match and f"/usr/lib/debug/.build-id/{match[1][:2]}/{match[1][2:]}.debug"
    return found if found and os.path.exists(found) else None


def sample(tools, path, count):
    """Random addresses of code."""
    ranges = [(vaddr, size) for name, (vaddr, _, size) in sections(tools, path).items()
              if name in (".text", ".plt", ".plt.sec", ".init")]
    elf, chosen = Elf(path), random.Random(SEED)
    weights = [size for _, size in ranges]
    out = []
    while len(out) < count:
        vaddr, size = chosen.choices(ranges, weights)[0]
        vaddr += chosen.randrange(size)
        if elf.offset(vaddr) is not None:
            out.append(vaddr)
    return out


def real_binaries(tools):
    """(path, how many addresses) of files with full and with dynamic symbol tables."""
    wanted = [("libc.so.6", 4500), ("libm.so.6", 1000), ("ld-linux-x86-64.so.2", 500), ("libstdc++.so.6", 1500),
              ("libpython3*.so.1.0", 500)]
    found = []
    for name, count in wanted:
        paths = glob.glob(LIBRARIES + name) or glob.glob("/lib64/" + name)
        if paths:
            found.append((os.path.realpath(paths[0]), count))
    found.append((tools.program, 10000 - sum(count for _, count in found)))
    if not any("libc.so" in path and debug_file(tools, path) for path, _ in found):
        raise Skip("libc6-dbg is not installed")
    return found


def eu_addr2line(path, vaddrs, *options):
    """Its exit code is 1 when it has nothing for one of the addresses."""
    done = subprocess.run(["eu-addr2line", *options, "-e", path], input="\n".join(f"0x{vaddr:x}" for vaddr in vaddrs),
                          capture_output=True, text=True, timeout=600)
    return done.stdout


class Symbols:
    """The symbols of nm: (start, size, name), to explain differences with."""

    def __init__(self, tools, path):
        self.starts, self.sizes = {}, {}
        for file, option in ((debug_file(tools, path) or path, []), (path, ["-D"])):
            text = tools.run("nm", *option, "--print-size", "--without-symbol-versions", file)
            for line in text.splitlines():
                words = line.split()
                if len(words) < 3 or words[-2] not in "tTwWiuV":
                    continue
                start = int(words[0], 16)
                size = int(words[1], 16) if len(words) > 3 else 0
                self.starts.setdefault(start, set()).add(words[-1])
                self.sizes[(start, words[-1])] = max(size, self.sizes.get((start, words[-1]), 0))

    def are_aliases(self, start, left, right):
        return {left, right} <= self.starts.get(start, set())

    def covers(self, start, name, vaddr):
        return start <= vaddr < start + self.sizes.get((start, name), 0)


def classify(symbols, vaddr, ours, theirs):
    """A class of difference, or None for none that is known. Both are (name, start) or None."""
    if ours == theirs:
        return "equal"
    if ours and theirs and ours[1] == theirs[1] and symbols.are_aliases(ours[1], ours[0], theirs[0]):
        return "another name for the same start"
    chooser = re.fullmatch(r"\*ABS\*\+0x([0-9a-f]+)@plt", theirs[0]) if theirs else None
    if chooser and ours and ours[1] == theirs[1] and ours[0].removesuffix("@plt") in symbols.starts.get(int(chooser[1], 16), ()):
        return "a stub that theirs tells by the vaddr of what chooses, ours by what is chosen"
    if theirs and not symbols.covers(theirs[1], theirs[0], vaddr) and (not ours or symbols.covers(ours[1], ours[0], vaddr)):
        # A symbol without a size, or one that ended before: we end it where another function begins.
        return "theirs does not reach the address by its size"
    if ours and theirs and symbols.covers(ours[1], ours[0], vaddr) and symbols.covers(theirs[1], theirs[0], vaddr):
        return "two symbols overlap: ours is the one that begins later" if ours[1] > theirs[1] else None
    if ours and not theirs:
        return "only ours: a linkage stub" if ours[0].endswith("@plt") else \
            "only ours: a symbol without a size" if symbols.sizes.get((ours[1], ours[0])) == 0 else None
    if ours and theirs and ours[0] in symbols.starts.get(ours[1], ()) and ours[1] > theirs[1] and \
            not symbols.sizes[(ours[1], ours[0])]:
        return "a label inside a function: ours is the label" 
    return None


def our_symbol(answer, vaddr):
    return (answer["name"], vaddr - answer["offset"]) if answer["resolved"] else None


def tally(tools, title, path, rows):
    symbols, counts, unknown = Symbols(tools, path), {}, []
    for vaddr, ours, theirs in rows:
        kind = classify(symbols, vaddr, ours, theirs)
        counts[kind] = counts.get(kind, 0) + 1
        if not kind:
            unknown.append(f"0x{vaddr:x}: {ours}, {title} has {theirs}")
    tools.figure(f"{title} {os.path.basename(path)}: " + ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items(), key=str)))
    if unknown:
        raise Fail(f"{path}: {len(unknown)} not explained, {unknown[:3]}")


def test_symbols_of_10000_addresses_are_those_of_eu_addr2line(tools):
    tools.need("eu-addr2line", "nm", "readelf")
    for path, count in real_binaries(tools):
        vaddrs = sample(tools, path, count)
        lines = eu_addr2line(path, vaddrs, "-S").splitlines()[0::2]
        rows = []
        for vaddr, line, answer in zip(vaddrs, lines, tools.resolve(path, vaddrs, "--no-demangle")):
            match = re.match(r"(.+?)(?:\+0x([0-9a-f]+))?$", line)
            name = re.sub(r"@.*", "", match[1])
            theirs = None if name in ("()", "??") else (name, vaddr - int(match[2] or "0", 16))
            rows.append((vaddr, our_symbol(answer, vaddr), theirs))
        tally(tools, "eu-addr2line", path, rows)


def test_symbols_of_10000_addresses_are_those_of_gdb(tools):
    tools.need("gdb", "nm", "readelf")
    for path, count in real_binaries(tools):
        vaddrs = sample(tools, path, count)
        script = tools.write("info.gdb", "".join(f"info symbol 0x{vaddr:x}\n" for vaddr in vaddrs))
        text = tools.run("gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-ex", "set print asm-demangle off",
                         "-ex", "set print demangle off", "-x", script, path)
        lines = [line for line in text.splitlines() if " in section " in line or line.startswith("No symbol")]
        if len(lines) != len(vaddrs):
            raise Fail(f"gdb answered {len(lines)} of {len(vaddrs)}")
        rows = []
        for vaddr, line, answer in zip(vaddrs, lines, tools.resolve(path, vaddrs, "--no-demangle")):
            match = re.match(r"(\S+)(?: \+ (\d+))? in section ", line)
            theirs = (re.sub(r"@(?!plt).*", "", match[1]), vaddr - int(match[2] or "0")) if match else None
            rows.append((vaddr, our_symbol(answer, vaddr), theirs))
        tally(tools, "gdb", path, rows)


# ---- lines and inlined functions -----------------------------------------------------

def ends_alike(ours, theirs):
    """File names: eu-addr2line puts the directory of compilation before some that have it; those that are relative to it are whole."""
    ours, theirs = os.path.normpath(ours), os.path.normpath(theirs)
    twice = theirs[:-len(ours)] if theirs.endswith("/" + ours) and not theirs.startswith("/") else None
    return ours == theirs or ours.endswith("/" + theirs) or (twice is not None and ours.startswith(twice))


def chains(path, vaddrs):
    """Names and positions of each address, innermost first, as in eu-addr2line."""
    text = eu_addr2line(path, vaddrs, "-a", "-f", "-i")
    out = []
    for line in text.splitlines():
        if re.match(r"0x[0-9a-f]{8,16}$", line):
            out.append(([], []))
        elif len(out[-1][0]) == len(out[-1][1]):
            out[-1][0].append(re.sub(r" inlined at .*", "", line))
        else:
            out[-1][1].append(line)
    return out


def our_chain(answer):
    places = [(answer["file"], answer["line"])] if answer["file"] else []
    places += [(frame["call_file"], frame["call_line"]) for frame in answer["inlined"]]
    return [frame["name"] for frame in answer["inlined"]], places


def llvm_chains(tools, path, vaddrs):
    """A third opinion where two differ: names and places, innermost first, of each; of all at once, because it takes long to begin."""
    if not vaddrs or not shutil.which("llvm-symbolizer"):
        return [([], [])] * len(vaddrs)
    text = tools.run("llvm-symbolizer", f"--obj={path}", "-i", "--no-demangle", input="".join(f"0x{vaddr:x}\n" for vaddr in vaddrs))
    blocks = [[line for line in block.split("\n") if line] for block in text.strip("\n").split("\n\n")]
    if len(blocks) != len(vaddrs):
        raise Fail(f"llvm-symbolizer answers {len(blocks)} of {len(vaddrs)} questions")
    places = [[re.match(r"(.*?):(\d+)", line).groups() for line in block[1::2]] for block in blocks]
    return [(block[0::2], [(file, int(line)) for file, line in found if file != "??"]) for block, found in zip(blocks, places)]


def are_alike(ours, theirs):
    """Chains of (names of what is inlined, places); theirs has the function behind."""
    return ours[0] == theirs[0][:len(ours[0])] and len(ours[1]) == len(theirs[1]) and all(
        ends_alike(a[0] or "??", b[0]) and a[1] == b[1] for a, b in zip(ours[1], theirs[1]))


def compare_chains(tools, path, vaddrs):
    differ, counts = [], {"with a line": 0, "in inlined code": 0, "only ours": 0, "between functions": 0,
                         "llvm-symbolizer sides with us": 0}
    for vaddr, (names, places), answer in zip(vaddrs, chains(path, vaddrs),
                                              tools.resolve(path, vaddrs, "--no-demangle", "--inlines")):
        ours = our_chain(answer)
        places = [re.match(r"(.*?):(\d+)", place).groups() for place in places if not place.startswith("??")]
        theirs = names, [(file, int(line)) for file, line in places]
        counts["with a line"] += bool(places)
        counts["in inlined code"] += bool(ours[0])
        if are_alike(ours, theirs):
            continue
        if ours[1] and not places:
            counts["only ours"] += 1
        elif not answer["resolved"] and names[0] == "??":
            counts["between functions"] += 1  # eu-addr2line shows what was inlined elsewhere
        else:
            differ.append((vaddr, ours, theirs))
    third = llvm_chains(tools, path, [vaddr for vaddr, _, _ in differ])
    wrong = [f"0x{vaddr:x}: {ours}, eu-addr2line has {theirs}" for (vaddr, ours, theirs), chain in zip(differ, third)
             if not are_alike(ours, chain)]
    counts["llvm-symbolizer sides with us"] = len(differ) - len(wrong)
    tools.figure(f"{os.path.basename(path)}: {len(vaddrs)} addresses, " +
                 ", ".join(f"{count} {kind}" for kind, count in counts.items()) + f", {len(wrong)} differ")
    return wrong


def test_lines_and_inlined_functions_are_those_of_eu_addr2line(tools):
    tools.need("eu-addr2line", "readelf")
    for path, count in real_binaries(tools):
        if "libc.so" not in path and path != tools.program:
            continue
        wrong = compare_chains(tools, path, sample(tools, path, min(count, 2500)))
        if wrong:
            raise Fail(f"{path}: {len(wrong)} differ, {wrong[:3]}")


INLINES = {
    "c": """
static inline __attribute__((always_inline)) int innermost(volatile int *x) { return *x * 3; }
static inline __attribute__((always_inline)) int middle(volatile int *x)
{
	{
		int block = innermost(x);
		{ int deeper = innermost(x) + block; *x = deeper; }
	}
	return *x;
}
int outer(volatile int *x) { return middle(x) + innermost(x); }
int main(void) { volatile int x = 1; return outer(&x); }
""",
    "cc": """
namespace shop {
struct Order {
	template <typename T> __attribute__((always_inline)) int total(T volatile *x) { return *x + 1; }
	int sum(volatile int *x);
};
int Order::sum(volatile int *x) { auto twice = [](volatile int *y) __attribute__((always_inline)) { return *y * 2; }; return total(x) + twice(x); }
}
int main() { volatile int x = 1; shop::Order o; return o.sum(&x); }
""",
}


def every_address(tools, path):
    vaddr, _, size = sections(tools, path)[".text"]
    return list(range(vaddr, vaddr + size))


def test_inlined_functions_in_blocks_templates_and_lambdas(tools):
    """The shapes of elfutils' own cases, compiled here by two compilers with DWARF 4 and 5."""
    tools.need("eu-addr2line", "gcc", "g++")
    for kind, source in INLINES.items():
        file = tools.write(f"inlines.{kind}", source)
        for compiler in ("gcc" if kind == "c" else "g++", "clang" if kind == "c" else "clang++"):
            if not shutil.which(compiler):
                continue
            for version in ("4", "5"):
                path = tools.path(f"inlines-{kind}-{compiler}-{version}")
                tools.run(compiler, "-O1", f"-gdwarf-{version}", "-o", path, file)
                wrong = compare_chains(tools, path, every_address(tools, path))
                if wrong:
                    raise Fail(f"{path}: {len(wrong)} differ, {wrong[:3]}")


APART = """
extern void abort(void);
__attribute__((section(".text.one"), noinline)) int one(int x) { return x * 3 + 1; }
__attribute__((section(".text.two"), noinline)) int two(int x) { if (__builtin_expect(x < 0, 0)) abort(); return one(x) * 5; }
int main(int argc, char **argv) { return argc + two(argc) + !argv; }
"""


def test_units_of_dwarf_2_with_code_in_several_places(tools):
    """They cannot say where: .debug_aranges does."""
    tools.need("gcc", "eu-addr2line", "nm")
    path = tools.path("apart")
    tools.run("gcc", "-O2", "-gdwarf-2", "-gstrict-dwarf", "-o", path, tools.write("apart.c", APART))
    places = {words[2]: int(words[0], 16) for words in map(str.split, tools.run("nm", path).splitlines()) if len(words) == 3}
    for name in ("one", "two", "main"):
        want = re.search(r"apart\.c:(\d+)", tools.run("eu-addr2line", "-e", path, f"0x{places[name] + 1:x}"))
        if not want:
            raise Skip(f"eu-addr2line knows no line of {name}")
        answer = tools.resolve(path, [places[name] + 1], "--lines")[0]
        if not (answer["file"] or "").endswith("apart.c") or answer["line"] != int(want[1]):
            raise Fail(f"{name}: {answer}, eu-addr2line has {want[0]}")


def test_functions_of_dwarf_where_there_is_no_symbol_table(tools):
    tools.need("gcc", "objcopy", "eu-addr2line")
    whole, path = tools.path("dwarf-whole"), tools.path("dwarf-only")
    tools.run("gcc", "-O1", "-g", "-o", whole, tools.write("inlines.c", INLINES["c"]))
    # strip and objcopy keep .symtab while there is DWARF: the section header is what can be taken away.
    shutil.copy(whole, path)
    with open(path, "r+b") as file:
        content = bytearray(file.read())
        headers = int.from_bytes(content[40:48], "little")
        for i in range(int.from_bytes(content[60:62], "little")):
            if content[headers + 64 * i + 4] == 2:
                content[headers + 64 * i + 4] = 1
        file.seek(0)
        file.write(content)
    for line in tools.run("nm", whole).splitlines():
        words = line.split()
        if words[-1] in ("outer", "main"):
            answer = tools.resolve(path, [int(words[0], 16) + 1])[0]
            if answer["name"] != words[-1] or answer["source"] != "dwarf" or answer["offset"] != 1:
                raise Fail(str(answer))


def test_functions_that_only_dwarf_knows(tools):
    """A linker left some out of the table (NativeAOT's runtime): who asks for lines has read what knows them."""
    tools.need("gcc", "nm", "objcopy")
    whole, path = tools.path("table-whole"), tools.path("table-cut")
    tools.run("gcc", "-O1", "-g", "-o", whole, tools.write("inlines.c", INLINES["c"]))
    tools.run("objcopy", "--strip-symbol=outer", whole, path)
    outer = [int(line.split()[0], 16) for line in tools.run("nm", whole).splitlines() if line.endswith(" outer")][0]
    answer, = tools.resolve(path, [outer + 1], "--lines")
    if (answer["name"], answer["offset"], answer["source"]) != ("outer", 1, "dwarf") or not answer["line"]:
        raise Fail(str(answer))
    answer, = tools.resolve(path, [outer + 1])
    if not answer["name"].endswith(f"!0x{outer:x}"):
        raise Fail(str(answer))


def test_code_of_no_line_is_not_on_line_0(tools):
    """Code that a compiler adds has line 0, which no file has."""
    tools.need("clang", "nm")
    path = tools.path("line-0")
    tools.run("clang", "-nostdlib", "-no-pie", "-o", path, tools.write("line-0.s", """
	.text
	.globl _start
	.type _start, @function
	.file 1 "made.c"
_start:	.loc 1 7 0
	nop
	.loc 1 0 0
	nop
	.size _start, . - _start
	.section .debug_info, "", @progbits
	.long 2f - 1f
1:	.value 4
	.long .Labbrev
	.byte 8, 1
	.long .Lline
	.quad _start, 2
2:	.section .debug_abbrev, "", @progbits
.Labbrev:
	.uleb128 1; .uleb128 0x11; .byte 0
	.uleb128 0x10; .uleb128 0x17
	.uleb128 0x11; .uleb128 1
	.uleb128 0x12; .uleb128 7
	.byte 0, 0, 0
	.section .debug_line, "", @progbits
.Lline:
"""))
    start = [int(line.split()[0], 16) for line in tools.run("nm", path).splitlines() if line.endswith(" _start")][0]
    for at, want in ((start, "made.c:7"), (start + 1, "made.c:?")):
        said = tools.run(tools.program, "resolve", "--lines", f"{path}+0x{Elf(path).offset(at):x}").strip()
        if want not in said:
            raise Fail(f"{said}: not {want}")


def test_symbols_without_a_size(tools):
    """elfutils' case rewritten: assembler labels, with and without a size, nested, at one address, and in a section of their own."""
    tools.need("eu-addr2line", "gcc", "nm")
    source = tools.write("sizeless.s", """
	.text
	.globl _start, inner, outer_end, lone
_start:	nop
	nop
	.type outer, @function
outer:	nop
inner:	nop
	nop
outer_end: nop
	.size outer, . - outer
	.type lone, @function
lone:	nop
	nop
	.section .other, "ax"
other:	nop
	nop
""")
    path = tools.path("sizeless")
    tools.run("gcc", "-nostdlib", "-no-pie", "-o", path, source)
    vaddrs = every_address(tools, path)
    lines = eu_addr2line(path, vaddrs, "-S").splitlines()[0::2]
    rows = []
    for vaddr, line, answer in zip(vaddrs, lines, tools.resolve(path, vaddrs)):
        match = re.match(r"(.+?)(?:\+0x([0-9a-f]+))?$", line)
        theirs = None if match[1] in ("()", "??") else (match[1], vaddr - int(match[2] or "0", 16))
        rows.append((vaddr, our_symbol(answer, vaddr), theirs))
    tally(tools, "eu-addr2line", path, rows)
    if sum(ours == theirs for _, ours, theirs in rows) < len(rows) * 2 // 3:
        raise Fail(str(rows))


DISCARDED = "".join(["static inline int square(int x) { return x * x + 1; }\nvolatile int sink;\n"] + [
    f"__attribute__((noinline)) int {name}(int x) {{\n" + "".join(f"sink += square(x + {i});\n" for i in range(lines)) + "return x; }\n"
    for name, lines in (("discarded_one", 1200), ("discarded_two", 900), ("used_one", 150), ("used_two", 150))] +
    ["int main(int count, char **words) { return used_one(count) + used_two(count); }\n"])


# In the remaining code; the inlined function is line 1.
USED_LINE = 3 + 1200 + 2 + 900 + 2


def places_of(tools, path):
    """Functions with a size: {name: (vaddr, size)}."""
    rows = (line.split() for line in tools.run("nm", "-S", path).splitlines())
    return {row[3]: (int(row[0], 16), int(row[1], 16)) for row in rows if len(row) == 4}


def gdb_lines(path, vaddrs):
    """Line of each address, as gdb has it; None where it has none."""
    script = [word for vaddr in vaddrs for word in ("-ex", f"info line *{vaddr:#x}")]
    done = subprocess.run(["gdb", "-q", "-batch", "-nx", *script, path], capture_output=True, text=True, timeout=120)
    found = [re.match(r"Line (\d+) of", line) for line in done.stdout.splitlines() if line.startswith(("Line ", "No line"))]
    if len(found) != len(vaddrs):
        raise Fail(f"gdb answers {len(found)} of {len(vaddrs)} questions: {done.stderr[:200]}")
    return [int(match[1]) if match else None for match in found]


def test_code_that_the_linker_threw_away_has_no_lines(tools):
    """Its recorded start is 0, so it would cover the first pages of a program at low addresses."""
    tools.need("gcc", "gdb")
    source, linkers = tools.write("discarded.c", DISCARDED), 0
    for version in ("-gdwarf-4", "-gdwarf-5"):
        compiled = tools.path(f"discarded{version}.o")
        tools.run("gcc", "-O2", "-g", version, "-fPIE", "-ffunction-sections", "-c", "-o", compiled, source)
        for linker in ("bfd", "gold", "lld", "mold"):
            path = tools.path(f"discarded-{linker}{version}")
            done = subprocess.run(["gcc", "-pie", "-Wl,--gc-sections", f"-fuse-ld={linker}", "-o", path, compiled], capture_output=True,
                                  text=True)
            if done.returncode:
                continue
            linkers += 1
            starts = {name: place for name, place in places_of(tools, path).items() if name.startswith("used_")}
            vaddrs = [start + size * i // 40 for start, size in starts.values() for i in range(40)]
            answers, theirs = tools.resolve(path, vaddrs, "--inlines"), gdb_lines(path, vaddrs)
            # gdb passes over rows that begin no statement; of the functions that were thrown away both lie elsewhere.
            wrong = [(hex(vaddr), answer["line"], line) for vaddr, answer, line in zip(vaddrs, answers, theirs)
                     if line is not None and answer["line"] != line and answer["line"] < USED_LINE]
            same = sum(answer["line"] == line for answer, line in zip(answers, theirs))
            if wrong or len(starts) != 2 or 2 * same < len(vaddrs):
                raise Fail(f"{linker} {version}: {len(wrong)} of {len(vaddrs)} lines are others, first {wrong[:2]} (ours, gdb's); "
                           f"{same} the same")
    if linkers < 2:
        raise Fail("no linker serves")


def test_a_function_of_several_units_has_the_lines_of_the_first(tools):
    """GNU ld keeps the first copy of an inline function; the other units contain its address, too."""
    tools.need("g++", "nm")
    header = "__attribute__((noinline)) inline int shared(int x)\n{\n\tvolatile int v = x;\n\tv += 2;\n\treturn v;\n}\n"
    for directory, before in (("one", ""), ("two", "\n\n\n")):
        tools.write(f"{directory}/shared.h", before + header)
    objects = []
    for name, directory in (("main", "one"), ("other", "two")):
        body = "int other(int); int main(int count, char **) { return shared(count) + other(count); }" if name == "main" else \
            "int other(int x) { return shared(x + 1); }"
        objects.append(tools.path(f"{name}.o"))
        tools.run("g++", "-O1", "-g", "-I", tools.path(directory), "-c", "-o", objects[-1],
                  tools.write(f"{name}.cc", f'#include "shared.h"\n{body}\n'))
    for order in (objects, objects[::-1]):
        path = tools.path("several units")
        tools.run("g++", "-fuse-ld=bfd", "-o", path, *order)
        start, size = places_of(tools, path)["_Z6sharedi"]
        vaddrs = list(range(start, start + size))
        answers = tools.resolve(path, vaddrs, "--lines")
        directory, first = (tools.path("one"), 1) if order is objects else (tools.path("two"), 4)
        wrong = [(answer["file"], answer["line"]) for answer in answers
                 if answer["file"] != directory + "/shared.h" or not first <= answer["line"] < first + header.count("\n")]
        if wrong:
            raise Fail(f"{len(wrong)} of {len(vaddrs)} lines are others, first {wrong[0]}, wanted {directory}")
