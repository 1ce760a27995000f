# SPDX-License-Identifier: MIT
"""perf annotate after perf-fix: the instructions of managed and of stripped native code.

The oracle is what objdump makes of the bytes themselves, out of the process's memory and the mapped file.
"""
import os
import re
import subprocess

from harness import Memory, Sample, expect, first_line, remove_leftovers
from live_perf_fix import fix, record, run_perf

INSTRUCTION = re.compile(r"^\s+[0-9.]+ :\s+([0-9a-f]+):\s+([a-z]\w*)", re.MULTILINE)


def hottest(fixed, dso, text=""):
    """The symbol of a DSO that has the most samples of its own, and has a text in its name."""
    rows = run_perf(fixed, "report", "-i", fixed, "--stdio", "--no-children", "-g", "none", "--sort", "dso,sym")
    names = [line.split("[.] ", 1)[1].strip() for line in rows.splitlines() if dso in line and "[.] " in line and text in line]
    expect(names, f"no symbol of {dso} has samples")
    return names[0]


def annotated(fixed, symbol):
    """(address, mnemonic) of each instruction that perf shows. A method that was compiled again for a loop that runs already
    (OSR) has its name at several places: of the one with the most samples, which is shown first."""
    text = run_perf(fixed, "annotate", "-i", fixed, "--stdio", "-s", symbol)
    blocks = [INSTRUCTION.findall(block) for block in text.split(" Percent |")[1:]]
    expect(blocks and all(blocks), f"perf shows no instruction of {symbol}: {first_line(text)}")
    return [(int(address, 16), mnemonic) for address, mnemonic in blocks[0]]


def disassembled(context, path, offset, size, address):
    """The instructions by objdump, from the bytes of a file, as if they were at the address."""
    with open(path, "rb", buffering=0) as file:
        file.seek(offset)
        data = file.read(size)
    copy = os.path.join(context.scratch, "bytes")
    with open(copy, "wb") as file:
        file.write(data)
    done = subprocess.run(["objdump", "-D", "-b", "binary", "-m", "i386:x86-64", "--no-show-raw-insn", f"--adjust-vma={address:#x}", copy],
                          capture_output=True, text=True)
    return [(int(at, 16), mnemonic) for at, mnemonic in re.findall(r"^ *([0-9a-f]+):\s+([a-z]\w*)", done.stdout, re.MULTILINE)]


def compare(context, shown, path, offset, size=None):
    """`offset`: where in the file of the bytes the first instruction is. `size`: of the whole symbol, whose last bytes are no
    whole instruction if it is a precode."""
    start, end = shown[0][0], shown[-1][0]
    wanted = [row for row in disassembled(context, path, offset, size or end - start + 16, start) if size or row[0] <= end]
    expect(shown == wanted, f"{sum(one != other for one, other in zip(shown, wanted))} of {len(wanted)} instructions differ, {len(shown)} shown")
    return len(shown)


def fixed_recording(context):
    """A process that stands still until the tests end, and its recording, fixed; (sample, path)."""
    def make():
        path = os.path.join(context.directory("annotate"), "perf.data")
        sample = Sample(context.sdk())
        record(sample.pid, path, 1.2, frequency=1999)
        sample.stand_still()
        remove_leftovers(sample.pid)
        return (sample, fix(context, path)[0]), None
    return context.once("annotated", make)


def test_perf_annotate_shows_the_instructions_of_managed_code(context):
    sample, fixed = fixed_recording(context)
    memory = Memory(sample.pid)
    jitted = hottest(fixed, "doublemapper", "Sample.")
    shown = annotated(fixed, jitted)
    expect(memory.kind_of(shown[0][0]) == "jit", f"{jitted} is shown at {shown[0][0]:#x}")
    size = context.mapgen.resolve(sample.pid, [shown[0][0]])[shown[0][0]]["size"]
    count = compare(context, shown, f"/proc/{sample.pid}/mem", shown[0][0], size)
    context.figure(f"perf annotate of a jitted method: {count} instructions, as in the process's memory")
    image = next(row[3] for row in memory.rows if row[3].endswith("/System.Private.CoreLib.dll"))
    shown = annotated(fixed, hottest(fixed, "System.Private.CoreLib.dll"))
    count = compare(context, shown, image, shown[0][0])
    context.figure(f"perf annotate of a precompiled method: {count} instructions, as in the file")


def test_perf_annotate_shows_precompiled_code_of_a_process_that_is_gone(context):
    path = os.path.join(context.directory("annotate-gone"), "perf.data")
    with Sample(context.sdk()) as sample:
        record(sample.pid, path, 1.2, frequency=1999)
        sample.stand_still()
        image = next(row[3] for row in Memory(sample.pid).rows if row[3].endswith("/System.Private.CoreLib.dll"))
    fixed, _ = fix(context, path, codes=(3,))
    shown = annotated(fixed, hottest(fixed, "System.Private.CoreLib.dll"))
    compare(context, shown, image, shown[0][0])


def test_stripped_native_code_is_annotated(context):
    sample, fixed = fixed_recording(context)
    image = next(row[3] for row in Memory(sample.pid).rows if row[3].endswith("/libcoreclr.so"))
    symbol = hottest(fixed, "libcoreclr.so", "libcoreclr.so!0x")
    vaddr = int(symbol.rsplit("!0x", 1)[1], 16)
    shown = annotated(fixed, symbol)
    expect(shown[0][0] == vaddr, f"{symbol} is shown at {shown[0][0]:#x}")
    table = subprocess.run(["readelf", "-SW", image], capture_output=True, text=True).stdout
    address, offset = (int(number, 16) for number in re.search(r" \.text +PROGBITS +([0-9a-f]+) ([0-9a-f]+)", table).groups())
    count = compare(context, shown, image, vaddr - address + offset)
    context.figure(f"perf annotate of {symbol}: {count} instructions, as in the file")
