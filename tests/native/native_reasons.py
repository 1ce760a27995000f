# SPDX-License-Identifier: MIT
"""Where there is no name, the reason is the true one."""
import json
import os
import re
import subprocess

from native_tools import Fail

LOOP = """
#include <unistd.h>
__attribute__((noinline)) static long spin(long n) { volatile long v = n; while (v < 2000000000L) v++; return v; }
int main(void) { write(1, "x", 1); for (;;) spin(0); }
"""


def code_start(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        words = next(line for line in maps if "r-xp" in line).split()
    return int(words[0].split("-")[0], 16), int(words[2], 16)


def test_a_core_file_without_a_list_of_files_is_the_reason(tools):
    """Cores of old kernels and some tools; and createdump --normal, which leaves memory out."""
    tools.need("gcc", "gcore")
    directory = tools.path("core-reasons")
    os.makedirs(directory)
    program = os.path.join(directory, "loop")
    tools.run("gcc", "-O1", "-o", program, tools.write("loop.c", LOOP))
    process = subprocess.Popen([program], stdout=subprocess.PIPE)
    try:
        process.stdout.read(1)
        with open(f"/proc/{process.pid}/coredump_filter", "w", encoding="ascii") as written:
            written.write("0x7f")  # code of files too
        tools.run("gcore", "-o", os.path.join(directory, "core"), process.pid)
        address = f"{code_start(process.pid)[0]:x}"
    finally:
        process.kill()
        process.communicate()
    core = os.path.join(directory, f"core.{process.pid}")
    with open(core, "rb") as file:
        content = file.read()
    # The type of the note, before its name.
    if "createdump" not in tools.run(tools.program, "resolve", f"--core={core}", "10"):
        raise Fail("it is not said that memory may have been left out")
    changed = content.replace(b"\x45\x4c\x49\x46CORE\0", b"\x46\x4c\x49\x46CORE\0", 1)
    if changed == content:
        raise Fail("gcore wrote no list of files")
    with open(core, "wb") as file:
        file.write(changed)
    done = subprocess.run([tools.program, "resolve", f"--core={core}", address, "10"], capture_output=True, text=True, timeout=60).stdout
    lines = done.splitlines()
    if "the file of this code is unknown" not in lines[0]:
        raise Fail(f"of code: {lines[0]}")
    if "no memory there and no list" not in lines[1]:
        raise Fail(f"of nothing: {lines[1]}")


def test_a_newline_in_a_path_is_read_as_perf_prints_it(tools):
    """perf has the path from /proc/PID/maps, where a newline is \\012."""
    tools.need("gcc", "perf")
    directory = tools.path("new\nline")
    os.makedirs(directory)
    program, data = os.path.join(directory, "loop"), tools.path("newline.data")
    tools.run("gcc", "-O1", "-o", program, tools.write("loop.c", LOOP))
    process = subprocess.Popen([program], stdout=subprocess.PIPE)
    try:
        process.stdout.read(1)
        start, offset = code_start(process.pid)
        text = f"loop {process.pid}  12.345678:  1 cpu-clock: \n\t{offset + 8:>16x} [unknown] ({directory}/loop)\n".replace("new\n", "new\\012")
        named = subprocess.run([tools.program, "symbolize", "--verbose"], input=text, capture_output=True, text=True, timeout=60)
        direct = tools.run(tools.program, "resolve", process.pid, f"{start + 8:x}").split()[1]
        subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-o", data, "-p", str(process.pid), "--", "sleep", "0.3"], capture_output=True, timeout=60)
        fixed = subprocess.run([tools.program, "perf-fix", "--native=all", "-o", data + ".out", data], capture_output=True, text=True, timeout=60,
                               env=dict(os.environ, HOME=tools.path("newline home")))
    finally:
        process.kill()
        process.communicate()
    if direct not in named.stdout:
        raise Fail(f"not {direct}: {named.stdout}{named.stderr}")
    if re.search(r"id is another's|, gone", fixed.stdout + fixed.stderr):
        raise Fail(fixed.stdout + fixed.stderr)


def test_a_damaged_debug_file_is_not_missing(tools):
    tools.need("gcc", "readelf")
    program, tree = tools.path("damaged/loop"), tools.path("damaged/tree")
    os.makedirs(os.path.dirname(program))
    tools.run("gcc", "-O1", "-s", "-Wl,--build-id", "-o", program, tools.write("loop.c", LOOP))
    build_id = re.search(r"Build ID: ([0-9a-f]+)", tools.run("readelf", "-n", program))[1]
    debug = os.path.join(tree, ".build-id", build_id[:2], build_id[2:] + ".debug")
    os.makedirs(os.path.dirname(debug))
    with open(debug, "wb") as file:
        file.write(b"\x7fELF damaged")
    process = subprocess.Popen([program], stdout=subprocess.PIPE)
    try:
        process.stdout.read(1)
        done = subprocess.run([tools.program, "fetch-symbols", f"--debug-tree={tree}", "--offline", str(process.pid)], capture_output=True, text=True, timeout=60,
                              env={key: value for key, value in os.environ.items() if key != "DEBUGINFOD_URLS"})
    finally:
        process.kill()
        process.communicate()
    line = next((line for line in done.stdout.splitlines() if program in line), None)
    if not line or debug not in line or "damaged" not in line:
        raise Fail(f"{line}: {done.stdout}{done.stderr}")


def has_reason(tools, question, tree, words):
    """In the answer, and where the answer is the bounds of a function on standard error too."""
    answer = json.loads(tools.run(tools.program, "resolve", "--json", f"--debug-dir={tree}", question))[0]
    done = subprocess.run([tools.program, "resolve", f"--debug-dir={tree}", question], capture_output=True, text=True, timeout=60, check=True)
    for text in (answer["reason"] or "", done.stdout + done.stderr):
        for word in words:
            if word not in text:
                raise Fail(f"no {word!r} in {text!r}")


def test_a_debug_file_that_is_there_and_not_used_is_the_reason(tools):
    """By the path of the build-id; with functions of .eh_frame in the program, and without any."""
    tools.need("gcc", "readelf", "objcopy", "strip", "nm")
    os.makedirs(tools.path("unused"))
    for unwind in ("-fasynchronous-unwind-tables", "-fno-asynchronous-unwind-tables"):
        program, tree = tools.path("unused/loop"), tools.path(f"unused/tree{unwind}")
        tools.run("gcc", "-O1", "-g", unwind, "-Wl,--build-id", "-o", program, tools.write("loop.c", LOOP))
        spin = next(line for line in tools.run("nm", program).splitlines() if line.endswith(" spin")).split()[0]
        build_id = re.search(r"Build ID: ([0-9a-f]+)", tools.run("readelf", "-n", program))[1]
        debug = os.path.join(tree, ".build-id", build_id[:2], build_id[2:] + ".debug")
        os.makedirs(os.path.dirname(debug))
        tools.run("objcopy", "--only-keep-debug", program, debug)
        tools.run("strip", program)
        question = f"{program}+{int(spin, 16) + 2:#x}"
        if " spin+0x2 " not in tools.run(tools.program, "resolve", f"--debug-dir={tree}", question):
            raise Fail("the debug file is not used")
        with open(debug, "rb") as file:
            good = file.read()
        for content in (b"", b"garbage\n", b"\x7fELF damaged", good[:len(good) // 2]):
            with open(debug, "wb") as file:
                file.write(content)
            has_reason(tools, question, tree, ("its debug file exists but is not used", debug))
        with open(tools.program, "rb") as other, open(debug, "wb") as file:
            file.write(other.read())
        has_reason(tools, question, tree, ("its debug file exists but is not used", debug, "build-id"))
        os.unlink(debug)
        if "is there" in tools.run(tools.program, "resolve", "--json", f"--debug-dir={tree}", question):
            raise Fail("a debug file that is not there is said to be")
