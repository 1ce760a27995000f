# SPDX-License-Identifier: MIT
"""Jits and what they write: source lines of V8 and LLVM in their jitdumps, and what they hold back.

The oracle of lines is the source: each function stands on lines of its own, and its first byte is of one of them.
"""
import contextlib
import json
import os
import re
import shutil
import struct
import subprocess

from native_tools import Fail, Skip
from waiting import wait_until

SCRIPT = """const all = [];
for (let i = 0; i < 200; i++)
  all.push(new Function("n", `let s = ${i}; for (let i = 0; i < n; i++) s = (s * 31 + i) % 65537; return s;`));
for (const f of all)
  for (let i = 0; i < 300; i++)
    f(i);
console.log("ready");
setInterval(() => {}, 1000);
"""
# KIND FUNCTION FILE:LINE:COLUMN, the place where the function begins
SCRIPT_NAME = re.compile(r"JS:.\S* (.+):(\d+):\d+")

LLVM_CODE = """__attribute__((noinline)) double first(int n)
{
	double s = 0;
	for (int i = 0; i < n; i++)
		s = s * 3.5 + i;
	return s;
}
__attribute__((noinline)) int second(int n)
{
	return first(n) > 7
		? n * n
		: 3;
}
"""
LLVM_LINES = {"first": range(1, 8), "second": range(8, 14)}
LLVM_JIT = r"""
#include <llvm-c/BitReader.h>
#include <llvm-c/ExecutionEngine.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/OrcEE.h>
#include <llvm-c/Target.h>
#include <stdio.h>
#include <unistd.h>
static LLVMOrcObjectLayerRef layer(void *context, LLVMOrcExecutionSessionRef session, const char *triple)
{
	LLVMOrcObjectLayerRef made = LLVMOrcCreateRTDyldObjectLinkingLayerWithSectionMemoryManager(session);

	(void)context, (void)triple;
	LLVMOrcRTDyldObjectLinkingLayerRegisterJITEventListener(made, LLVMCreatePerfJITEventListener());
	return made;
}
int main(int count, char **words)
{
	LLVMOrcLLJITBuilderRef builder = LLVMOrcCreateLLJITBuilder();
	LLVMOrcThreadSafeContextRef context = LLVMOrcCreateNewThreadSafeContext();
	LLVMOrcJITTargetAddress address;
	LLVMMemoryBufferRef bytes;
	LLVMOrcLLJITRef jit;
	LLVMModuleRef module;
	char *text;

	LLVMInitializeNativeTarget();
	LLVMInitializeNativeAsmPrinter();
	LLVMOrcLLJITBuilderSetObjectLinkingLayerCreator(builder, layer, NULL);
	if (LLVMOrcCreateLLJIT(&jit, builder) || LLVMCreateMemoryBufferWithContentsOfFile(words[count - 1], &bytes, &text) ||
	    LLVMParseBitcodeInContext2(LLVMOrcThreadSafeContextGetContext(context), bytes, &module) ||
	    LLVMOrcLLJITAddLLVMIRModule(jit, LLVMOrcLLJITGetMainJITDylib(jit), LLVMOrcCreateNewThreadSafeModule(module, context)) ||
	    LLVMOrcLLJITLookup(jit, &address, "second"))
		return 1;
	puts("ready");
	fflush(stdout);
	pause();
}
"""
# Writes its perf map with stdio and never flushes it: so many lines at first, and more for each byte that it reads;
# of further code, or of other code in the same memory.
MAP_WRITER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int count, char **words)
{
	char *code = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), path[64];
	int lines = 0, more = atoi(words[1]), again = count > 2;
	FILE *map;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = fopen(path, "w");
	if (code == MAP_FAILED || !map)
		return 1;
	do {
		for (int end = lines + more; lines < end; lines++)
			fprintf(map, "%lx 10 function_that_is_number_%d_of_all\n", (long)code + 16L * (again ? lines % more : lines), lines);
		printf("%lx\n", (long)code);
		fflush(stdout);
	} while (getchar() != EOF);
	fclose(map);
	return 0;
}
"""


@contextlib.contextmanager
def running(command, directory):
    """The process, once it has said that it is ready, and its dump, which lies somewhere below the directory."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=directory, env={**os.environ, "JITDUMPDIR": directory})
    try:
        if process.stdout.readline() != "ready\n":
            raise Fail(f"{command[0]} did not start")
        dumps = []

        def has_dump():
            dumps[:] = [os.path.join(place, name) for place, _, names in os.walk(directory) for name in names
                        if name == f"jit-{process.pid}.dump"]
            return dumps and os.path.getsize(dumps[0])
        wait_until(has_dump, f"{command[0]} wrote no jitdump")
        yield process, dumps[0]
    finally:
        process.kill()
        process.wait()


def loads(path, behind=0):
    """The code that the file has whole, behind an offset: {address: (name, size)}; the last at each address."""
    with open(path, "rb") as file:
        data = file.read()
    found, at = {}, struct.unpack_from("<I", data, 8)[0]
    while at + 56 <= len(data):
        kind, size = struct.unpack_from("<II", data, at)
        if at + size > len(data):
            break
        if kind == 0 and at + size > behind:
            address, code_bytes = struct.unpack_from("<QQ", data, at + 32)
            found[address] = (data[at + 56:data.index(b"\0", at + 56)].decode("utf-8", "replace"), code_bytes)
        at += size
    return found


def resolve(tools, pid, addresses):
    """Answers in the order asked; that some have no name is no failure here."""
    done = subprocess.run([tools.program, "resolve", "--json", "--lines", str(pid)], input="".join(f"{address:#x}\n" for address in addresses),
                          capture_output=True, text=True, timeout=600)
    return json.loads(done.stdout)


def answers(tools, process, dump, step_bytes, name_form=re.compile(".*")):
    """(name, offset, answer) of bytes of the code of these names that still lies where the dump says."""
    places = {address + offset: (name, offset) for address, (name, size) in loads(dump).items() if name_form.fullmatch(name)
              for offset in range(0, size, step_bytes)}
    for answer in resolve(tools, process.pid, places):
        name, offset = places[int(answer["input"], 16)]
        if answer["source"] == "jitdump" and answer["name"] == name:
            yield name, offset, answer


def test_lines_of_code_that_v8_jitted(tools):
    """Node.js 20 writes bytes of freed memory for the file of most scripts; these have no line."""
    if not shutil.which("node"):
        raise Skip("there is no node")
    script = tools.write("v8/lines.js", SCRIPT)
    first, wrong, other = 0, [], 0
    with running(["node", "--perf-prof", script], os.path.dirname(script)) as (process, dump):
        for name, offset, answer in answers(tools, process, dump, 5, SCRIPT_NAME):
            said = SCRIPT_NAME.fullmatch(name)
            if not answer["line"]:
                continue
            path, line = said[1], int(said[2])
            # Inlined functions may stand anywhere.
            if offset == 0 or "*" not in name[:4]:
                first += offset == 0
                if answer["file"] != path or answer["line"] < line:
                    wrong.append((name, offset, answer["file"], answer["line"]))
                other += answer["line"] > line
    tools.figure(f"{first} functions have a line at their first byte, {other} addresses one that is not the function's first; {len(wrong)} wrong")
    if wrong:
        raise Fail(f"{len(wrong)} lines are not of their function: {wrong[:3]}")
    if first < 10 or other < 100:
        raise Fail("hardly any lines")


def code_places(pid):
    """Where V8 may have put code: all multiples of 64 in executable memory of no file."""
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            fields = line.split()
            if "x" in fields[1] and len(fields) == 5:
                yield from range(*(int(end, 16) for end in fields[0].split("-")), 64)


def test_code_of_which_v8_has_told_nobody(tools):
    """V8 holds the last part of its jitdump back. It writes that when it ends, and so says which names ours should have been."""
    if not shutil.which("node"):
        raise Skip("there is no node")
    found = 0
    for attempt in range(6):
        script = tools.write(f"held/{attempt}.js", f"process.on('SIGTERM', () => process.exit(0));  // {attempt}\n" + SCRIPT.replace("200", f"{200 + attempt}"))
        with running(["node", "--perf-prof", script], os.path.dirname(script)) as (process, dump):
            written_bytes = os.path.getsize(dump)
            names = {int(answer["input"], 16): answer["name"] for answer in resolve(tools, process.pid, code_places(process.pid))}
            process.terminate()
            process.wait(timeout=60)
            held = loads(dump, written_bytes)
        ours = {address: names[address] for address in held if names.get(address)}
        wrong = [(name, held[address][0]) for address, name in ours.items() if name != held[address][0]]
        # Code that is compiled while node ends did not exist yet when we looked.
        tools.figure(f"{written_bytes} bytes in the file, {len(held)} names came when node ended, {len(ours)} of them were known before, {len(wrong)} otherwise")
        if wrong or len(ours) < len(held) - 5:
            raise Fail(f"{len(held) - len(ours)} names are missing, {len(wrong)} are wrong: {wrong[:3]}")
        found += len(ours)
    if not found:
        raise Fail("nothing was held back")


def test_lines_of_code_that_llvm_jitted(tools):
    headers = "/usr/lib/llvm-14/include"
    if not shutil.which("clang") or not os.path.isdir(headers + "/llvm-c"):
        raise Skip("there is no clang, or not LLVM 14's headers")
    source, program = tools.write("llvm/lines.c", LLVM_CODE), tools.path("llvm-jit")
    tools.run("clang", "-O1", "-g", "-emit-llvm", "-c", source, "-o", source + ".bc")
    tools.run("gcc", "-o", program, tools.write("llvm-jit.c", LLVM_JIT), "-I" + headers, "-L/usr/lib/llvm-14/lib", "-lLLVM-14")
    said = {name: set() for name in LLVM_LINES}
    with running([program, source + ".bc"], os.path.dirname(source)) as (process, dump):
        for name, offset, answer in answers(tools, process, dump, 1):
            if not answer["line"] and offset:
                continue
            said[name].add(answer["line"])
            if answer["line"] not in LLVM_LINES[name] or answer["file"] != source:
                raise Fail(f"{name}+{offset} is of {answer['file']}:{answer['line']}")
    tools.figure(f"lines of LLVM: {said}")
    if not {4, 5} <= said["first"] or 10 not in said["second"]:
        raise Fail("lines of the source are missing")


class Writer:
    """A process that holds back the end of its perf map, or all of it."""

    def __init__(self, tools, lines, *again):
        program = tools.path("map-writer")
        tools.run("gcc", "-O1", "-o", program, tools.write("map-writer.c", MAP_WRITER))
        self.tools, self.lines = tools, 0
        self.process = subprocess.Popen([program, str(lines), *again], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.map, self.step = f"/tmp/perf-{self.process.pid}.map", lines
        self.grown()

    def grown(self):
        self.code = int(self.process.stdout.readline(), 16)
        self.lines += self.step

    def grow(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.grown()

    def written(self):
        with open(self.map, encoding="ascii") as file:
            return file.read()

    def names(self):
        return [f"function_that_is_number_{i}_of_all" for i in range(self.lines)]

    def expect_names(self, when):
        answers_found = resolve(self.tools, self.process.pid, [self.code + 16 * i + 5 for i in range(self.lines)])
        wrong = [(answer["name"], name) for answer, name in zip(answers_found, self.names()) if answer["name"] != name or answer["offset"] != 5]
        if wrong:
            raise Fail(f"{when}: {len(wrong)} of {self.lines} names are wrong: {wrong[:3]}")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.kill()
        self.process.wait()
        os.unlink(self.map)


def test_a_caller_is_the_function_before_its_address_only_where_a_call_ends_there(tools):
    """At the root of a stack, a frame has the first address of a function that was not called; data may lie before it."""
    with Writer(tools, 3) as writer:
        with open(f"/proc/{writer.process.pid}/mem", "wb", buffering=0) as memory:
            memory.seek(writer.code + 32 - 5)
            memory.write(b"\xe8\0\0\0\0" if os.uname().machine == "x86_64" else b"\0\0\0\0\x94")
        frames = [writer.code + 4, writer.code + 16, writer.code + 32]
        text = "".join(f"#{i}  {address:#018x}\n" for i, address in enumerate(frames))
        done = subprocess.run([tools.program, "symbolize", str(writer.process.pid)], input=text, capture_output=True, text=True, timeout=60)
    named = [line.split()[-1] for line in done.stdout.splitlines()]
    wanted = [f"function_that_is_number_{i}_of_all" for i in (0, 1, 1)]
    if named != wanted:
        raise Fail(f"{named} where a call ends in front of the last one only")


def test_a_pipe_gets_the_names_of_code_that_took_the_place_of_other_code(tools):
    for words in (["resolve"], ["symbolize", "-p"]):
        with Writer(tools, 3, "again") as writer:
            pipe = subprocess.Popen([tools.program, *words, str(writer.process.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
            for turn in range(4):
                wanted, answers = f"function_that_is_number_{3 * turn + 1}_of_all", [""]

                def is_named():
                    pipe.stdin.write(f"{writer.code + 16 + 4:#x}\n")
                    answers.append(pipe.stdout.readline())
                    return wanted in answers[-1]
                wait_until(is_named, lambda: f"{words[0]}: '{answers[-1].strip()}' where {wanted} lies", 20, 0.1)
                writer.grow()
            pipe.stdin.close()
            pipe.wait()


def test_code_whose_line_of_the_perf_map_is_held_back(tools):
    for lines in (3, 500):
        with Writer(tools, lines) as writer:
            if len(writer.written().splitlines()) >= lines:
                raise Fail(f"all of {lines} lines are in the file")
            writer.expect_names("at first")
            writer.grow()
            writer.expect_names("when there are more")
            writer.process.stdin.close()
            writer.process.wait()
            if len(writer.written().splitlines()) != writer.lines:
                raise Fail("the map is not whole at the end")
