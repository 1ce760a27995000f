# SPDX-License-Identifier: MIT
"""The programs of libsym/examples do what they say, on a live process and on files; what is expected comes from nm and the process."""
import os
import subprocess

from native_files import build, place
from native_tools import Elf, Fail, Skip

HOST = """
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) int waits_here(void) { return pause(); }
int main(void) { printf("%p\\n", (void *)waits_here); fflush(stdout); return waits_here(); }
"""


def example(tools, name):
    path = os.path.join(os.path.dirname(tools.program), "examples", name)
    if not os.path.exists(path):
        raise Skip(f"{name} is not built")
    return path


def started(tools):
    """A process that waits, and the address of the function it waits in."""
    program = tools.path("example-host")
    tools.run("gcc", "-O1", "-Wl,--build-id", "-o", program, tools.write("example-host.c", HOST))
    process = subprocess.Popen([program], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    return process, int(process.stdout.readline(), 16)


def test_the_example_names_addresses_of_a_live_process(tools):
    tools.need("gcc")
    program = example(tools, "resolve_process")
    with started(tools)[0] as process:
        try:
            with open(f"/proc/{process.pid}/maps", encoding="utf-8") as maps:
                base = min(int(line.split("-")[0], 16) for line in maps if "example-host" in line)
            address = base + place(tools, tools.path("example-host"), "waits_here")
            text = tools.run(program, str(process.pid), input=f"{address:x}\n{address + 3:x}\n10\n" + f"{address + 1:x}\n" * 2500)
        finally:
            process.kill()
    lines = text.splitlines()
    if len(lines) != 2503 or not lines[0].startswith(f"{address:x} waits_here+0x0 (") or " waits_here+0x3 (" not in lines[1] \
            or "[" not in lines[2] or " waits_here+0x1 (" not in lines[-1]:
        raise Fail(str(lines[:4]))


def test_the_example_names_addresses_without_the_process(tools):
    tools.need("gcc", "objcopy")
    program = example(tools, "symbolize_elsewhere")
    process, address = started(tools)
    with process:
        positions = tools.run(program, "normalize", str(process.pid), input=f"{address + 2:x}\n10\n")
        process.kill()
    if len(positions.splitlines()) != 2 or not positions.splitlines()[1].startswith("- 10 "):
        raise Fail(positions)
    names = tools.run(program, "resolve", "/nowhere", tools.scratch, input=positions.splitlines()[0] + "\n")
    if not names.endswith(" waits_here+0x2\n"):
        raise Fail(names)
    debug = tools.path("example-debug")
    os.makedirs(debug)
    tools.run("objcopy", "--only-keep-debug", tools.path("example-host"), os.path.join(debug, "example-host"))
    names = tools.run(program, "resolve", debug, input=positions.splitlines()[0] + "\n")
    if not names.endswith(" waits_here+0x2\n"):
        raise Fail(f"by the debug file: {names}")
    missing = tools.run(program, "resolve", "/nowhere", input=positions.splitlines()[0] + "\n")
    if "no file of this identity" not in missing:
        raise Fail(missing)


def test_the_example_lists_the_functions_of_a_file(tools):
    tools.need("gcc", "nm")
    path = build(tools, "listed.so")
    ours = {(int(start, 16), name) for start, _, name in
            (line.split(" ", 2) for line in tools.run(example(tools, "list_symbols"), path).splitlines())}
    wanted = {(place(tools, path, name), name) for name in ("hidden", "exported")}
    if not wanted <= ours or Elf(path).offset(min(ours)[0]) is None:
        raise Fail(f"{wanted} are not in {sorted(ours)[:5]}")


def test_the_examples_say_what_is_wrong(tools):
    for name, arguments, code in (("resolve_process", (), 2), ("resolve_process", ("999999999",), 1), ("resolve_process", ("x",), 1),
                                  ("symbolize_elsewhere", (), 2), ("symbolize_elsewhere", ("normalize", "0"), 1),
                                  ("list_symbols", (), 2), ("list_symbols", ("/nowhere",), 1), ("list_symbols", ("/",), 1),
                                  ("list_jitted", (), 2), ("list_jitted", ("999999999",), 1)):
        done = subprocess.run([example(tools, name), *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        if done.returncode != code or len(done.stderr.splitlines()) not in (1, 2) or done.stdout:
            raise Fail(f"{name} {arguments}: {done.returncode}, {done.stderr}")
