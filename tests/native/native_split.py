# SPDX-License-Identifier: MIT
"""Split DWARF: files of its own (.dwo) and packages (.dwp). What the loose files say is compared with eu-addr2line, what a package
says with llvm-symbolizer and with what its loose files said; neither eu-addr2line nor libdw of 0.188 reads packages."""
import itertools
import os
import shutil
import subprocess

from native_lines import are_alike, compare_chains, every_address, our_chain
from native_tools import Fail, Skip

# Units with several functions each, of which some are cut in two, and a method declared elsewhere. Those of another build have one
# variable more; what is the same has the same id.
OTHER = "#ifdef OTHER\nint added;\n#endif\n"
SOURCES = {
    "one.c": """
#include <stdlib.h>
#include <unistd.h>
int two(volatile int *x);
int three(volatile int *x);
static inline __attribute__((always_inline)) int innermost(volatile int *x) { return *x * 3; }
static inline __attribute__((always_inline)) int middle(volatile int *x)
{
	{
		int block = innermost(x);
		if (block == 77)
			abort();
		{ int deeper = innermost(x) + block; *x = deeper; }
	}
	return *x;
}
__attribute__((noinline)) int outer(volatile int *x) { return middle(x) + innermost(x); }
__attribute__((cold, noinline)) int rare(volatile int *x) { return middle(x) * 5; }
int main(int count, char **words) { volatile int x = 1; (void)words; if (count > 1) pause(); return outer(&x) + two(&x) + three(&x) + (x == 3 ? rare(&x) : 0); }
""",
    "two.c": """
#include <stdlib.h>
static inline __attribute__((always_inline)) int other(volatile int *x) { if (*x == 12345) abort(); return *x - 4; }
__attribute__((noinline, section(".text.elsewhere"))) int elsewhere(volatile int *x) { return other(x) * 9; }
__attribute__((noinline)) int two(volatile int *x) { return other(x) + elsewhere(x); }
""",
    "three.cc": """
namespace shop {
struct Order {
	template <typename T> __attribute__((always_inline)) int total(T volatile *x) { return *x + 1; }
	int sum(volatile int *x);
};
int Order::sum(volatile int *x) { auto twice = [](volatile int *y) __attribute__((always_inline)) { return *y * 2; }; return total(x) + twice(x); }
}
extern "C" int three(volatile int *x) { shop::Order o; return o.sum(x); }
""",
}
FLAGS = {
    "gcc": (["-O1"], ["-O2", "-ffunction-sections"], ["-O1", "-gz"], ["-O0"]),
    "clang": (["-O1"], ["-O2", "-ffunction-sections"], ["-O1", "-gz"], ["-O1", "-fsplit-dwarf-inlining"]),
}


def variants():
    """(compiler, version of DWARF, further flags)"""
    for compiler, version in itertools.product(FLAGS, ("4", "5")):
        if shutil.which(compiler):
            for number, flags in enumerate(FLAGS[compiler]):
                if version == "4" and "-fsplit-dwarf-inlining" in flags:
                    continue  # libdw takes such a skeleton for the other half, and finds no lines
                yield f"{compiler}-{version}-{number}", compiler, version, flags


def compile_split(tools, name, compiler, version, flags):
    """A program in a directory of its own, with a .dwo beside it for each source."""
    directory = tools.path(f"split/{name}")
    os.makedirs(directory)
    objects = []
    for source, text in SOURCES.items():
        with open(os.path.join(directory, source), "w", encoding="utf-8") as file:
            file.write(OTHER.replace("added", "added_in_" + source.split(".", maxsplit=1)[0]) + text)
        objects.append(source.split(".")[0] + ".o")
        command = compiler.replace("gcc", "g++").replace("clang", "clang++") if source.endswith(".cc") else compiler
        subprocess.run([command, *flags, f"-gdwarf-{version}", "-gsplit-dwarf", "-c", source], cwd=directory, check=True, timeout=60)
    subprocess.run([compiler, "-o", "program", *objects], cwd=directory, check=True, timeout=60)
    return os.path.join(directory, "program")


def loose_files(path):
    directory = os.path.dirname(path)
    return [os.path.join(directory, name) for name in sorted(os.listdir(directory)) if name.endswith(".dwo")]


def package(path, version):
    """Makes a package of its loose files and removes them. dwp of binutils 2.40 does not know DWARF 5, llvm-dwp 14 never ends over gcc's and refuses packed ones."""
    program = shutil.which("dwp") if version == "4" else shutil.which("llvm-dwp") or shutil.which("llvm-dwp-14")
    if not program:
        raise Skip("no program that makes packages of DWARF " + version)
    subprocess.run([program, *(["-e", path] if version == "4" else loose_files(path)), "-o", path + ".dwp"],
                   cwd=os.path.dirname(path), check=True, timeout=60)
    for file in loose_files(path):
        os.remove(file)


def without_inlines(answer):
    return answer["name"], answer["file"], answer["line"]


def test_split_dwarf_in_files_of_its_own(tools):
    """With the .dwo files what eu-addr2line and llvm-symbolizer say, without them the lines that the file itself has, and nothing made up."""
    tools.need("gcc", "g++", "eu-addr2line", "readelf")
    for name, *kind in variants():
        path = compile_split(tools, name, *kind)
        wrong = compare_chains(tools, path, every_address(tools, path))
        if wrong:
            raise Fail(f"{name}: {len(wrong)} differ, {wrong[:2]}")
        whole = tools.resolve(path, every_address(tools, path), "--no-demangle", "--inlines")
        compare_with_llvm(tools, name, path, list(zip(every_address(tools, path), whole)))
        if len({answer["name"] for answer in whole if answer["inlined"]}) < 4 and "-O0" not in kind[-1]:
            raise Fail(f"{name}: hardly anything is inlined")
        for file in loose_files(path):
            os.remove(file)
        has_some = "-fsplit-dwarf-inlining" in kind[-1]
        for before, answer in zip(whole, tools.resolve(path, every_address(tools, path), "--no-demangle", "--inlines")):
            if without_inlines(answer) != without_inlines(before) or (answer["inlined"] and not has_some):
                raise Fail(f"{name} without .dwo: {answer}")


def test_split_dwarf_in_a_package(tools):
    """A package gives the same answers as the loose files, for each byte; llvm-symbolizer is the second opinion."""
    tools.need("gcc", "g++", "nm", "readelf", "objcopy")
    seconded = 0
    for name, *kind in variants():
        if kind[1] == "5" and (kind[0] == "gcc" or "-gz" in kind[2]):
            continue  # there is nothing that packs them
        path = compile_split(tools, "package-" + name, *kind)
        vaddrs = every_address(tools, path)
        loose = tools.resolve(path, vaddrs, "--no-demangle", "--inlines")
        package(path, kind[1])
        packed = tools.resolve(path, vaddrs, "--no-demangle", "--inlines")
        differ = [(before, after) for before, after in zip(loose, packed) if before != after]
        if differ:
            raise Fail(f"{name}: {len(differ)} of {len(vaddrs)} differ, {differ[0]}")
        seconded += compare_with_llvm(tools, name, path, list(zip(vaddrs, packed))[::3])
        for way in ("zlib", "zlib-gnu", "zstd"):
            tools.run("objcopy", "--decompress-debug-sections", path + ".dwp")
            tools.run("objcopy", f"--compress-debug-sections={way}", path + ".dwp")
            if tools.resolve(path, vaddrs, "--no-demangle", "--inlines") != packed:
                raise Fail(f"{name}: something else when {way} has packed the package")
    tools.figure(f"llvm-symbolizer says the same of {seconded} addresses")


def compare_with_llvm(tools, name, path, answers):
    """How many it says the same of; it must of all that are in a function with lines."""
    if not shutil.which("llvm-symbolizer"):
        return 0
    text = tools.run("llvm-symbolizer", f"--obj={path}", "-i", "--no-demangle", input="".join(f"0x{vaddr:x}\n" for vaddr, _ in answers))
    same = 0
    for (vaddr, answer), block in zip(answers, text.split("\n\n")):
        lines = [line for line in block.split("\n") if line]
        places = [line.rsplit(":", 2)[:2] for line in lines[1::2]]
        theirs = lines[0::2], [(file, int(line)) for file, line in places if file != "??" and line != "0"]
        ours = our_chain(answer)
        if not ours[0] and not theirs[1]:
            continue
        if not are_alike(ours, theirs) and len(theirs[1]) == len(theirs[0]):
            raise Fail(f"{name}: 0x{vaddr:x}: {ours}, llvm-symbolizer has {theirs}")
        same += 1
    return same


def test_split_dwarf_package_beside_a_debug_file(tools):
    """program.dwp beside program.debug, as well as program.debug.dwp, serves a program whose DWARF is in the debug file."""
    tools.need("clang", "objcopy", "strip", "readelf")
    for beside in ("program.dwp", "program.debug.dwp"):
        path = compile_split(tools, beside, "clang", "5", ["-O1"])
        vaddrs = every_address(tools, path)
        loose = tools.resolve(path, vaddrs, "--inlines")
        package(path, "5")
        tools.run("objcopy", "--only-keep-debug", path, path + ".debug")
        tools.run("strip", path)
        tools.run("objcopy", f"--add-gnu-debuglink={path}.debug", path)
        os.rename(path + ".dwp", os.path.join(os.path.dirname(path), beside))
        after = tools.resolve(path, vaddrs, "--inlines")
        if [answer["inlined"] for answer in after] != [answer["inlined"] for answer in loose] or not any(answer["inlined"] for answer in after):
            raise Fail(f"{beside}: not what the loose files said")


def test_split_dwarf_of_another_build(tools):
    """The .dwo, or the package, of another build under the same name is not believed."""
    tools.need("gcc", "clang", "nm", "readelf")
    ours = compile_split(tools, "own-build", "clang", "5", ["-O1"])
    other = compile_split(tools, "other-build", "clang", "5", ["-O1", "-DOTHER"])
    for file in loose_files(other):
        shutil.copy(file, os.path.dirname(ours))
    if any(answer["inlined"] for answer in tools.resolve(ours, every_address(tools, ours), "--inlines")):
        raise Fail("a .dwo of another build was used")
    package(other, "5")
    for file in loose_files(ours):
        os.remove(file)
    shutil.copy(other + ".dwp", ours + ".dwp")
    if any(answer["inlined"] for answer in tools.resolve(ours, every_address(tools, ours), "--inlines")):
        raise Fail("a package of another build was used")


def ask(asked, address):
    asked.stdin.write(f"{address:x}\n")
    asked.stdin.flush()
    return asked.stdout.readline().split(" ")[1].split("+")[0]


def base_of(process):
    """Address of the program's first mapping. Popen() returns before the kernel has made it."""
    while process.poll() is None:
        with open(f"/proc/{process.pid}/maps", encoding="utf-8") as maps:
            starts = [int(line.split("-")[0], 16) for line in maps if line.rstrip().endswith("/program")]
        if starts:
            return min(starts)
        os.sched_yield()
    raise Fail(f"the program has ended with {process.returncode}")


def names_while(tools, process, vaddrs, damage):
    """The answers of one run of resolve to the vaddrs; after some of them the damage is done."""
    base = base_of(process)
    with subprocess.Popen([tools.program, "resolve", "--lines", str(process.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as asked:
        names = []
        for number, vaddr in enumerate(vaddrs):
            if number == len(vaddrs) // 3:
                damage()
            names.append(ask(asked, base + vaddr))
        asked.stdin.close()
        if asked.wait(timeout=30) not in (0, 3):
            raise Fail(f"ended with {asked.returncode}")
    return names


def test_split_dwarf_cut_in_place(tools):
    """A reader of a .dwo or a package that is cut, or filled with zeroes, goes on and still gives names."""
    tools.need("gcc", "clang", "nm", "readelf")
    for is_packed, has_zeroes in itertools.product((False, True), (False, True)):
        path = compile_split(tools, f"cut-{is_packed}-{has_zeroes}", "clang", "5", ["-O1"])
        if is_packed:
            package(path, "5")
        files = [path + ".dwp"] if is_packed else loose_files(path)

        def damage(files=files, has_zeroes=has_zeroes):
            for file in files:
                size = os.path.getsize(file)
                os.truncate(file, 100)
                if has_zeroes:
                    os.truncate(file, size)

        with subprocess.Popen([path, "pause"]) as process:
            try:
                vaddrs = every_address(tools, path)
                expected = names_while(tools, process, vaddrs, lambda: None)
                if names_while(tools, process, vaddrs, damage) != expected:
                    raise Fail(f"packed {is_packed}, zeroes {has_zeroes}: other names than before")
            finally:
                process.kill()
