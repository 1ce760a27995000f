# SPDX-License-Identifier: MIT
"""Tests of `report` and `check`; the oracles are perf, protoc, and recordings that are made here, field by field, whose sums are known."""
import collections
import gzip
import io
import json
import os
import re
import struct
import subprocess
import warnings
import zipfile

from native_tools import Fail, Skip

PID = 4711
CPU_CLOCK, SWITCHES = 11, 12  # ids of the two events
MS = 1000000
USER = (1 << 64) - 512

# Functions of the made recording: name by address.
FUNCTIONS = {0x401000: "main", 0x402000: "work", 0x403000: "wait_for_it", 0x404000: "old_code"}

PROGRAM = r"""
#include <stdio.h>
#define KEEP __attribute__((noinline, noclone))
volatile unsigned long count;
KEEP static void inner(void) { for (int i = 0; i < 1000000; i++) count += i; }
KEEP static void middle(void) { inner(); count++; }
KEEP static void outer(void) { middle(); count++; }
int main(void) { for (int i = 0; i < 400; i++) outer(); return 0; }
"""


def expect_equal(found, expected, what):
    if found != expected:
        raise Fail(f"{what}: {found!r}, not {expected!r}")


def record_of(kind, misc, body):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def sample(event, tid, time, chain, period=10 * MS):
    """IDENTIFIER, IP, TID, TIME, CPU, PERIOD, CALLCHAIN."""
    return record_of(9, 2, struct.pack("<QQIIQQQ", event, chain[0], PID, tid, time, 0, period)
                     + struct.pack(f"<Q{len(chain) + 1}Q", len(chain) + 1, USER, *chain))


def trailer(tid, time, event=CPU_CLOCK):
    return struct.pack("<IIQQQ", PID, tid, time, 0, event)


def switch(tid, time, out, preempted=False):
    return record_of(14, (1 << 13 if out else 0) | (1 << 14 if preempted else 0), trailer(tid, time))


def comm(tid, name):
    return record_of(3, 0, struct.pack("<II", PID, tid) + name.encode().ljust(16, b"\0") + trailer(tid, 0))


def end_of_round():
    return struct.pack("<IHH", 68, 0, 8)


def perf_data(records):
    """A perf.data with the events cpu-clock and context-switches."""
    kinds = 1 << 16 | 1 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 8 | 1 << 5  # IDENTIFIER, IP, TID, TIME, CPU, PERIOD, CALLCHAIN
    flags = 1 << 18 | 1 << 25  # sample_id_all, use_clockid

    def attribute(config, period, more):
        return struct.pack("<IIQQQQQ", 1, 128, config, period, kinds, 0, flags | more) + b"\0" * 80

    data = b"".join(records)
    ids = struct.pack("<QQ", CPU_CLOCK, SWITCHES)
    behind = 104 + len(data)
    attributes = (attribute(0, 100, 1 << 10 | 1 << 26) + struct.pack("<QQ", behind, 8)
                  + attribute(3, 1, 0) + struct.pack("<QQ", behind + 8, 8))
    header = b"PERFILE2" + struct.pack("<QQQQQQQQ4Q", 104, 144, behind + 16, len(attributes), 104, len(data), 0, 0, 0, 0, 0, 0)
    return header + data + ids + attributes


def names(changes=()):
    """names/symbols: the functions above, and what takes their place from a time on."""
    lines = [f"P\t0\t{PID}\t{PID}\t1\t0\tdotnet"]
    for address, name in FUNCTIONS.items():
        lines.append(f"S\t0\t{address:x}\t100\t0\t0\truntime\tOptimizedTier1\t-\t0\t{name}")
    for address, time, name in changes:
        lines.append(f"S\t0\t{address:x}\t100\t{time}\t0\truntime\tOptimizedTier1\t-\t0\t{name}")
    return "\n".join(lines) + "\n"


def archive(records, symbols=None, stacks="", about=None, double=None, more=()):
    about = {"format": 1, "title": "Store.Web", "runtime": ".NET 10.0.12", "pids": [PID], "unwind": "whole", "losses": {}} | (about or {})
    members = [("recording.json", json.dumps(about)), ("names/symbols", names() if symbols is None else symbols), ("names/stacks", stacks),
               ("perf.data", perf_data(records)), *((name, "x") for name in more)]
    if double:
        members.append((double, "twice"))
    out = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w") as file:
        warnings.simplefilter("ignore")  # of a name that is there twice
        for name, content in members:
            file.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def save(tools, name, content):
    path = os.path.join(tools.scratch, name)
    with open(path, "wb") as file:
        file.write(content)
    return path


def report(tools, *words, stdin=None):
    return subprocess.run([tools.program, "report", *words], capture_output=True, input=stdin, timeout=120)


def folded(tools, path, view="cpu", *words):
    """Stacks of a view, as lists of frames, and how much each has."""
    done = report(tools, view, "--format=folded", "-i", path, *words)
    if done.returncode or done.stderr:
        raise Fail(f"exit code {done.returncode}: {done.stderr.decode()}")
    lines = [line.rsplit(" ", 1) for line in done.stdout.decode().splitlines()]
    return {tuple(text.split(";")): int(count) for text, count in lines}


def test_off_cpu_times_are_those_of_the_switches(tools):
    tid = PID + 1
    waits = [sample(SWITCHES, tid, 100 * MS, [0x403010, 0x402010, 0x401010], 1), switch(tid, 100 * MS + 10, True),
             switch(tid, 350 * MS + 10, False), sample(CPU_CLOCK, tid, 360 * MS, [0x402020, 0x401010]),
             # Preempted: it could have run.
             sample(SWITCHES, tid, 400 * MS, [0x402020, 0x401010], 1), switch(tid, 400 * MS, True, True), switch(tid, 430 * MS, False),
             # Still away when the recording ends.
             sample(SWITCHES, tid, 500 * MS, [0x403010, 0x401010], 1), switch(tid, 500 * MS, True),
             sample(CPU_CLOCK, PID, 900 * MS, [0x401020])]
    path = save(tools, "off-cpu.zip", archive([comm(PID, "dotnet"), comm(tid, "worker"), *waits, end_of_round()]))
    expect_equal(folded(tools, path, "off-cpu"),
                 {("Store.Web", "worker", "main", "work", "wait_for_it"): 250000, ("Store.Web", "worker", "main", "wait_for_it"): 400000},
                 "microseconds of waits")
    text = report(tools, "off-cpu", "-i", path).stdout.decode()
    if "30 ms more: threads could run and had no processor, 1 times" not in text:
        raise Fail(f"preemption is not told apart: {text}")
    expect_equal(folded(tools, path, "off-cpu", "--from=0.2", "--to=0.3"),
                 {("Store.Web", "worker", "main", "work", "wait_for_it"): 50000}, "microseconds of waits in a part of the time")


def test_records_of_two_processors_are_put_in_order(tools):
    """IN stands before OUT in the file, and a round between them; the time says how it was."""
    tid = PID + 1
    records = [comm(tid, "worker"), sample(CPU_CLOCK, PID, 10 * MS, [0x401010]),
               switch(tid, 300 * MS, False), sample(CPU_CLOCK, PID, 20 * MS, [0x401010]), end_of_round(),
               sample(SWITCHES, tid, 100 * MS, [0x403010, 0x401010], 1), switch(tid, 100 * MS, True), end_of_round()]
    path = save(tools, "order.zip", archive(records))
    expect_equal(folded(tools, path, "off-cpu"), {("Store.Web", "worker", "main", "wait_for_it"): 200000}, "waits")


def test_a_wait_whose_end_was_lost_is_left_out(tools):
    """A sample of the thread shows that it was back, and a second switch away that it had been."""
    tid = PID + 1
    records = [comm(tid, "worker"), sample(SWITCHES, tid, 100 * MS, [0x403010, 0x401010], 1), switch(tid, 100 * MS, True),
               sample(CPU_CLOCK, tid, 150 * MS, [0x402010, 0x401010]), switch(tid, 350 * MS, False),
               sample(SWITCHES, tid, 400 * MS, [0x402010, 0x401010], 1), switch(tid, 400 * MS, True),
               sample(SWITCHES, tid, 500 * MS, [0x403010, 0x401010], 1), switch(tid, 500 * MS, True), switch(tid, 530 * MS, False), end_of_round()]
    path = save(tools, "lost-ends.zip", archive(records))
    expect_equal(folded(tools, path, "off-cpu"), {("Store.Web", "worker", "main", "wait_for_it"): 30000}, "waits")
    text = report(tools, "off-cpu", "-i", path).stdout.decode()
    if "2 waits are left out: the record of the end was lost" not in text:
        raise Fail(f"what is left out is not said: {text}")


def lines_of_source():
    """names/symbols with lines: of `work` two, one of them approximate; of `old_code` only the IL offset; of `main` none."""
    rows = ["F\t0\t/src/Store.cs", "F\t1\tC:\\\\src\\\\Other.cs"]
    for address, time, quality, line, file in ((0x402020, 0, 1, 88, "0"), (0x40202f, 0, 2, 90, "0"), (0x402020, 250 * MS, 1, 7, "1"), (0x404000, 0, 0, 0, "-")):
        rows.append(f"L\t0\t{address:x}\t{time}\t{quality}\t{line}\t5\t31\t6000002\t-\t{file}")
    return names() + "\n".join(rows) + "\n"


def test_lines_hold_by_address_and_time(tools):
    tid = PID + 1
    records = [sample(CPU_CLOCK, tid, 100 * MS, [0x402020, 0x401010]), sample(CPU_CLOCK, tid, 110 * MS, [0x402020, 0x401010]),
               sample(CPU_CLOCK, tid, 120 * MS, [0x403010, 0x402030, 0x401010]), sample(CPU_CLOCK, tid, 300 * MS, [0x402020, 0x401010]),
               sample(CPU_CLOCK, tid, 310 * MS, [0x404000]), end_of_round()]
    path = save(tools, "lines.zip", archive(records, lines_of_source()))
    rows = json.loads(report(tools, "cpu", "--by=line", "--format=json", "-i", path).stdout)["views"][0]["rows"]
    found = sorted((row["full_name"], row["file"], row["line"], row["quality"], row["il_offset"], row["self_samples"], row["total_samples"]) for row in rows
                   if row["full_name"] != "main")
    expect_equal(found, [("old_code", None, None, "none", 31, 1, 1), ("wait_for_it", None, None, "none", None, 1, 1),
                         ("work", "/src/Store.cs", 88, "exact", 31, 2, 2), ("work", "/src/Store.cs", 90, "nearest", 31, 0, 1),
                         ("work", "C:\\src\\Other.cs", 7, "exact", 31, 1, 1)], "rows by line")
    rows = json.loads(report(tools, "cpu", "--format=json", "-i", path).stdout)["views"][0]["rows"]
    expect_equal([(row["line"], row["self_samples"], row["total_samples"]) for row in rows if row["full_name"] == "work"], [(88, 3, 4)],
                 "the function has the line with most of it")
    text = report(tools, "cpu", "--by=line", "-i", path).stdout.decode()
    for expected in ("work                      tier 1        Store.cs:88", "Store.cs:~90", "Other.cs:7"):
        if expected not in text:
            raise Fail(f"{expected!r} is not in {text}")
    expect_equal(folded(tools, path, "cpu", "--by=line"), {
        ("Store.Web", "main", "work (Store.cs:88)"): 2, ("Store.Web", "main", "work (Store.cs:~90)", "wait_for_it"): 1,
        ("Store.Web", "main", "work (Other.cs:7)"): 1, ("Store.Web", "old_code"): 1}, "stacks by line")
    whole = folded(tools, path, "cpu")
    expect_equal({stack[1:]: count for stack, count in whole.items()}, {("main", "work"): 3, ("main", "work", "wait_for_it"): 1, ("old_code",): 1}, "stacks by function")


def test_lines_reach_other_viewers(tools):
    records = [sample(CPU_CLOCK, PID + 1, time * MS, chain) for time, chain in
               ((100, [0x402020, 0x401010]), (120, [0x403010, 0x402030, 0x401010]), (130, [0x402020, 0x401010]))] + [end_of_round()]
    path = save(tools, "lines.zip", archive(records, lines_of_source()))
    frames = json.loads(report(tools, "cpu", "--by=line", "--format=speedscope", "-i", path).stdout)["shared"]["frames"]
    expect_equal([(frame["file"], frame["line"], frame["col"]) for frame in frames if frame["name"].startswith("work (")],
                 [("/src/Store.cs", 88, 5), ("/src/Store.cs", 90, 5)], "frames of speedscope")
    page = report(tools, "cpu", "--format=html", "-i", path).stdout.decode()
    if '"Store.cs:88"]' not in page:
        raise Fail("no line in the flame graph")
    tools.need("protoc")
    raw = gzip.decompress(report(tools, "cpu", "--format=pprof", "-i", path).stdout)
    text = subprocess.run(["protoc", "--decode_raw"], input=raw, capture_output=True, check=True).stdout.decode()
    found = sorted(re.findall(r"4 \{\n\s+1: \d+\n\s+4 \{\n\s+1: (\d+)\n\s+2: (\d+)", text))
    expect_equal(sorted(line for _, line in found), ["88", "90"], "lines of pprof")
    expect_equal(len({function for function, _ in found}), 1, "functions of these lines")


def test_bad_lines_of_source_are_counted(tools):
    bad = ["F\t5\tx.cs", "F\t0", "L\t0\t402020\t0\t1\t88\t5\t31\t6000002\t-\t0", "L\t9\t402020\t0\t1\t88\t5\t31\t6000002\t-\t-",
           "L\t0\t402020\t0\t77\t88\t5\t31\t6000002\t-\t-", "L\t0\tzz\t0\t1\t88\t5\t31\t6000002\t-\t-", "L\t0",
           "M\t0\t402020\t0\t1\t88\t5\t31\t6000002\t-\t-"]
    path = save(tools, "bad-lines.zip", archive([sample(CPU_CLOCK, PID + 1, 100 * MS, [0x402020]), end_of_round()], names() + "\n".join(bad) + "\n"))
    text = report(tools, "cpu", "-i", path).stdout.decode()
    if f"{len(bad)} lines of names" not in text:
        raise Fail(f"not {len(bad)} bad lines: {text}")


def test_names_hold_by_time(tools):
    records = [comm(PID, "dotnet")] + [sample(CPU_CLOCK, PID, time * MS, [0x404010, 0x401010]) for time in (100, 200, 300)]
    path = save(tools, "times.zip", archive(records, names([(0x404000, 250 * MS, "new_code")])))
    expect_equal(folded(tools, path), {("Store.Web", "dotnet", "main", "old_code"): 2, ("Store.Web", "dotnet", "main", "new_code"): 1},
                 "samples by name")


def test_return_addresses_are_looked_up_before_the_call(tools):
    """0x402000 is the first byte of `work`: as a return address it is behind the last call of what lies before, `main`."""
    symbols = names() + f"S\t0\t401f00\t100\t0\t0\truntime\t-\t-\t0\tends_with_call\n"
    records = [comm(PID, "dotnet"), sample(CPU_CLOCK, PID, MS, [0x402000, 0x402000])]
    path = save(tools, "return.zip", archive(records, symbols))
    expect_equal(folded(tools, path), {("Store.Web", "dotnet", "ends_with_call", "work"): 1}, "samples")


def test_cut_stacks_are_counted_with_their_reason(tools):
    records = [comm(PID, "dotnet")] + [sample(CPU_CLOCK, PID, time * MS, [0x402010, 0x401010]) for time in range(1, 11)]
    path = save(tools, "cut.zip", archive(records, stacks=f"{3 * MS}\t{PID}\t1\t401010\n{4 * MS}\t{PID}\t0\t401010\t1\nnonsense\n"))
    done = subprocess.run([tools.program, "check", "--json", "-i", path], capture_output=True, text=True, timeout=60)
    quality = json.loads(done.stdout)["quality"]
    expect_equal((quality["stacks"], quality["whole_stacks"], quality["guessed_stacks"], [cause["count"] for cause in quality["cut"]]),
                 (10, 9, 1, [1]), "quality")
    expect_equal(json.loads(done.stdout)["losses"]["bad_name_lines"], 1, "lines that make no sense")
    for least, code in ((89, 0), (91, 1)):
        done = subprocess.run([tools.program, "check", f"--min={least}", "-i", path], capture_output=True, timeout=60)
        expect_equal(done.returncode, code, f"exit code with --min={least}")


def test_bad_recordings_are_refused_with_one_line(tools):
    good = archive([comm(PID, "dotnet"), sample(CPU_CLOCK, PID, MS, [0x401010])])
    with zipfile.ZipFile(io.BytesIO(good)) as file:
        symbols = file.getinfo("names/symbols")
    damaged = bytearray(good)
    damaged[symbols.header_offset + 30 + len("names/symbols") + 5] ^= 0x55
    # The directory says that a member is longer than it is.
    lying = bytearray(good)
    row = lying.rindex(b"PK\1\2", 0, lying.rindex(b"names/symbols"))
    lying[row + 24:row + 28] = struct.pack("<I", 1 << 20)
    newer = archive([], about={"format": 1000})
    cases = {"damaged": (bytes(damaged), "damaged"), "lying": (bytes(lying), "damaged|cut"), "newer": (newer, "format 1000"),
             "without a format": (archive([], about={"format": None}), "format number"), "cut": (good[:len(good) // 2], "zip"),
             "double": (archive([], double="names/symbols"), "two members"), "no names": (good.replace(b"names/symbols", b"names/nothing"), "archive"),
             "empty": (b"", "folded|recording"), "text": (b"no folded text\n", "neither")}
    for name, (content, why) in cases.items():
        path = save(tools, "bad.zip", content)
        for command in ("report", "check"):
            done = subprocess.run([tools.program, command, "-i", path], capture_output=True, text=True, timeout=60)
            if done.returncode != 1 or done.stdout or len(done.stderr.splitlines()) != 1 or not re.search(why, done.stderr):
                raise Fail(f"{command} of one that is {name}: exit code {done.returncode}, {done.stdout[:200]!r}, {done.stderr!r}")
        out = os.path.join(tools.scratch, "not-written")
        report(tools, "-i", path, "-o", out)
        if os.path.exists(out):
            raise Fail(f"{name}: a file was written")


def test_names_of_members_are_no_paths(tools):
    content = archive([comm(PID, "dotnet"), sample(CPU_CLOCK, PID, MS, [0x401010])], more=("../escaped", "/escaped", "names/../../escaped"))
    path = save(tools, "slip.zip", content)
    expect_equal(sum(folded(tools, path).values()), 1, "samples")
    if os.path.exists(os.path.join(tools.scratch, "..", "escaped")) or os.path.exists("/escaped"):
        raise Fail("a member was unpacked")


def perf_record(tools, *words, program=None):
    tools.need("gcc", "perf")
    path = os.path.join(tools.scratch, "program")
    tools.run("gcc", "-O2", *(program or ["-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer"]), "-o", path, tools.write("program.c", PROGRAM))
    data = os.path.join(tools.scratch, "perf.data")
    done = subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-F", "999", *words, "-o", data, path], capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise Skip(f"perf record: {done.stderr.strip()[:200]}")
    return data


def script_stacks(tools, data):
    """The stacks of perf script: for each sample its functions, innermost first; those of the kernel are left out."""
    text = tools.run("perf", "script", "--no-inline", "-i", data, "-F", "comm,ip,sym")
    stacks = []
    for block in text.split("\n\n"):
        lines = block.strip("\n").split("\n")
        if lines[0]:
            frames = [line.split(None, 1) for line in lines[1:]]
            stacks.append([name[1] if len(name) > 1 else "" for name in frames if not name[0].startswith("ffff")])
    return stacks


def test_samples_are_those_of_perf_script(tools):
    data = perf_record(tools, "-g")
    ours, theirs = folded(tools, data), script_stacks(tools, data)
    expect_equal(sum(ours.values()), len(theirs), "samples")
    own = ("inner", "middle", "outer")

    def chains(frames):
        return tuple(name for name in frames if name in own)

    expected = collections.Counter(chains(stack) for stack in theirs)
    found = collections.Counter()
    for frames, count in ours.items():
        found[chains(reversed(frames))] += count
    expect_equal(dict(found), dict(expected), "samples by chain of functions")
    with_callers = sum(count for chain, count in expected.items() if "inner" in chain and "outer" in chain)
    if with_callers < 50:
        raise Skip(f"perf took {with_callers} samples")


def test_sums_are_those_of_perf_report(tools):
    data = perf_record(tools, "-g")
    done = json.loads(report(tools, "cpu", "--format=json", "-i", data).stdout)
    view = done["views"][0]
    text = tools.run("perf", "report", "-i", data, "--stdio", "--no-children", "-g", "none", "-s", "sym", "-F", "period,sym")
    theirs = {match[2]: int(match[1]) for match in re.finditer(r"^\s*(\d+)\s+\[\.\] (inner|middle|outer)\s*$", text, re.M)}
    ours = {row["name"]: row["self_weight"] for row in view["rows"] if row["self_weight"] and row["name"] in ("inner", "middle", "outer")}
    expect_equal(ours, theirs, "nanoseconds of functions themselves")
    expect_equal(view["weight"], sum(int(match) for match in re.findall(r"^\s*(\d+)\s+\[[.k]\]", text, re.M)), "nanoseconds of all")


def test_copies_of_stacks_are_unwound(tools):
    data = perf_record(tools, "--call-graph", "dwarf,8192", program=["-fomit-frame-pointer"])
    stacks = folded(tools, data)
    inner = [frames for frames in stacks if frames[-1] == "inner"]
    bad = [frames for frames in inner if frames[-4:] != ("main", "outer", "middle", "inner")]
    if not inner or bad:
        raise Fail(f"{len(bad)} of {len(inner)} stacks: {bad[:2]}")


def test_pipes_compression_and_several_events(tools):
    tools.need("perf")
    path = os.path.join(tools.scratch, "several.data")
    program = os.path.join(tools.scratch, "program")
    perf_record(tools, "-g")
    subprocess.run(["perf", "record", "-q", "-z", "-g", "-F", "999", "-e", "cpu-clock", "-e", "page-faults", "-o", path, program], check=True, timeout=60)
    counts = collections.Counter(line.split(":")[0] for line in tools.run("perf", "script", "-i", path, "-F", "event", "-G").split())
    expect_equal(sum(folded(tools, path).values()), counts["cpu-clock"], "samples of the event for the processor")
    with open(path, "rb") as file:
        piped = report(tools, "cpu", "--format=folded", "-i", "-", stdin=file.read())
    expect_equal(sum(int(line.rsplit(b" ", 1)[1]) for line in piped.stdout.splitlines()), counts["cpu-clock"], "samples from standard input")
    command = ["perf", "record", "-q", "-g", "-e", "cpu-clock", "-F", "999", "-o", "-", program]
    stream = subprocess.run(command, capture_output=True, check=True, timeout=60).stdout
    theirs = subprocess.run(["perf", "script", "-i", "-", "-F", "comm", "-G"], input=stream, capture_output=True, check=True, timeout=60).stdout
    piped = report(tools, "cpu", "--format=folded", "-i", "-", stdin=stream)
    expect_equal(sum(int(line.rsplit(b" ", 1)[1]) for line in piped.stdout.splitlines()), len(theirs.split()), "samples of perf's pipe")


def mapped(start, size, name):
    """MMAP of code of our process."""
    text = name.encode() + b"\0"
    text = text.ljust((len(text) + 7) & ~7, b"\0")
    return record_of(1, 2, struct.pack("<IIQQQ", PID, PID, start, size, start) + text + trailer(PID, 0))


def test_names_come_from_where_the_options_say(tools):
    """The process and its files are gone from where they were; its file has no names of its own."""
    flags = ["-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer", "-Wl,--build-id=0x" + "5a" * 20]
    perf_record(tools, "-g", program=flags)
    program = os.path.join(tools.scratch, "program")
    tree, moved = os.path.join(tools.scratch, "debug"), os.path.join(tools.scratch, "moved-root")
    debug = os.path.join(tree, ".build-id", "5a", "5a" * 19 + ".debug")
    for path in (debug, moved + program):
        os.makedirs(os.path.dirname(path))
    tools.run("objcopy", "--only-keep-debug", program, debug)
    data = perf_record(tools, "-g", program=[*flags, "-s"])
    os.rename(program, moved + program)

    def has_names(*words):
        return any({"outer", "inner"} <= set(frames) for frames in folded(tools, data, "cpu", *words))

    expect_equal([has_names("--root=" + moved), has_names("--debug-dir=" + tree), has_names("--root=" + moved, "--debug-dir=" + tree)],
                 [False, False, True], "names")
    maps = os.path.join(tools.scratch, "maps")
    os.mkdir(maps)
    with open(os.path.join(maps, f"perf-{PID}.map"), "w") as file:
        file.write("401000 100 jitted method\n")
    path = save(tools, "jitted.data", perf_data([comm(PID, "dotnet"), mapped(0x401000, 0x1000, "//anon"), sample(CPU_CLOCK, PID, MS, [0x401010])]))
    expect_equal([list(folded(tools, path, "cpu", *words))[0][-1] for words in ((), ("--perf-maps=" + maps,))],
                 ["[unknown]", "jitted method"], "the leaf")


WANDERER = r"""
#define _GNU_SOURCE
#include <sched.h>
#include <unistd.h>
int main(void)
{
	for (int i = 0; i < 60; i++) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(i % 2, &set);
		sched_setaffinity(0, sizeof(set), &set);
		usleep(3000);
	}
	return 0;
}
"""


def test_directories_of_perf_have_the_times_of_perf_script(tools):
    tools.need("gcc", "perf")
    program, path = os.path.join(tools.scratch, "wanderer"), os.path.join(tools.scratch, "directory.data")
    tools.run("gcc", "-O1", "-o", program, tools.write("wanderer.c", WANDERER))
    done = subprocess.run(["perf", "record", "-q", "--threads", "-z", "-g", "-e", "cs", "-c", "1", "--switch-events", "-o", path, program],
                          capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise Skip(f"perf record: {done.stderr.strip()[:200]}")
    text = tools.run("perf", "script", "-i", path, "--show-switch-events", "-F", "tid,time", "--ns")
    switches = re.findall(r"(\d+)\.(\d{9}): PERF_RECORD_SWITCH (IN|OUT preempt|OUT)", text)
    times = [(int(seconds) * 10**9 + int(rest), way) for seconds, rest, way in switches]
    away = [after[0] - before[0] for before, after in zip(times, times[1:]) if (before[1], after[1]) == ("OUT", "IN")]
    if len(away) < 60:
        raise Fail(f"perf script shows {len(away)} times away")
    view = json.loads(report(tools, "off-cpu", "--format=json", "-i", path).stdout)["views"][0]
    expect_equal(view["weight"], sum(away), "nanoseconds away")
    names = sorted(os.listdir(path))
    with open(os.path.join(path, names[-1]), "r+b") as file:
        file.truncate(os.path.getsize(file.name) - 4)
    done = report(tools, "off-cpu", "-i", path)
    if done.returncode != 1 or done.stdout or b"ends in the middle of a record" not in done.stderr:
        raise Fail(f"a cut part: {done.returncode}: {done.stderr.decode()}")
    os.unlink(os.path.join(path, "data"))
    done = report(tools, "off-cpu", "-i", path)
    if done.returncode != 1 or b"data: No such file" not in done.stderr:
        raise Fail(f"without its main file: {done.returncode}: {done.stderr.decode()}")


def test_folded_text_is_read_as_it_is_written(tools):
    records = [comm(PID, "dotnet"), *(sample(CPU_CLOCK, PID, time * MS, [0x402010, 0x401010]) for time in range(1, 4)),
               sample(CPU_CLOCK, PID, 9 * MS, [0x403010, 0x401010])]
    first = report(tools, "cpu", "--format=folded", "-i", save(tools, "round.zip", archive(records))).stdout
    again = report(tools, "cpu", "--format=folded", "-i", "-", stdin=first).stdout
    expect_equal(again, first, "folded text")
    part = report(tools, "cpu", "--format=folded", "-i", "-", "--callers-of=^work$", stdin=first).stdout
    expect_equal(part, b"Store.Web;dotnet;main;work 3\n", "stacks with `work`")


# Field numbers of github.com/google/pprof/proto/profile.proto.
PROTO = """syntax = "proto3";
message ValueType { int64 type = 1; int64 unit = 2; }
message Label { int64 key = 1; int64 str = 2; int64 num = 3; }
message Sample { repeated uint64 location_id = 1; repeated int64 value = 2; repeated Label label = 3; }
message Line { uint64 function_id = 1; int64 line = 2; }
message Location { uint64 id = 1; uint64 mapping_id = 2; uint64 address = 3; repeated Line line = 4; }
message Function { uint64 id = 1; int64 name = 2; int64 system_name = 3; int64 filename = 4; }
message Profile { repeated ValueType sample_type = 1; repeated Sample sample = 2; repeated Location location = 4; repeated Function function = 5;
  repeated string string_table = 6; int64 time_nanos = 9; int64 duration_nanos = 10; ValueType period_type = 11; int64 period = 12; }
"""


def test_pprof_is_read_by_protoc(tools):
    tools.need("protoc")
    records = [comm(PID, "dotnet"), *(sample(CPU_CLOCK, PID, time * MS, [0x402010, 0x401010]) for time in range(1, 4))]
    done = report(tools, "cpu", "--format=pprof", "-i", save(tools, "pprof.zip", archive(records)))
    proto = tools.write("profile.proto", PROTO)
    text = subprocess.run(["protoc", f"--proto_path={os.path.dirname(proto)}", "--decode=Profile", os.path.basename(proto)],
                          input=gzip.decompress(done.stdout), capture_output=True, check=True, timeout=60).stdout.decode()
    strings = [json.loads(f'"{match}"') for match in re.findall(r'^string_table: "(.*)"$', text, re.M)]
    expect_equal(strings[0], "", "the first string")
    functions = {int(number): strings[int(name)] for number, name in re.findall(r"^function \{\n  id: (\d+)\n  name: (\d+)", text, re.M)}
    locations = {int(number): functions[int(function)] for number, function in re.findall(r"^location \{\n  id: (\d+)\n  line \{\n    function_id: (\d+)", text, re.M)}
    samples = re.findall(r"^sample \{\n((?:  .*\n)*?)\}", text, re.M)
    expect_equal(len(samples), 1, "samples")
    expect_equal([locations[int(number)] for number in re.findall(r"^  location_id: (\d+)", samples[0], re.M)], ["work", "main"], "innermost first")
    expect_equal([int(value) for value in re.findall(r"^  value: (\d+)", samples[0], re.M)], [3, 30 * MS], "samples and nanoseconds")


def test_speedscope_follows_its_schema(tools):
    records = [comm(PID, "dotnet"), *(sample(CPU_CLOCK, PID, time * MS, [0x402010, 0x401010]) for time in range(1, 4))]
    value = json.loads(report(tools, "cpu", "--format=speedscope", "-i", save(tools, "speed.zip", archive(records))).stdout)
    profile, = value["profiles"]
    frames = [frame["name"] for frame in value["shared"]["frames"]]
    expect_equal(value["$schema"], "https://www.speedscope.app/file-format-schema.json", "schema")
    expect_equal((profile["type"], profile["unit"], profile["startValue"], profile["endValue"]), ("sampled", "nanoseconds", 0, 30 * MS), "profile")
    expect_equal([[frames[number] for number in stack] for stack in profile["samples"]], [["Store.Web", f"dotnet ({PID})", "main", "work"]], "stacks")
    expect_equal(profile["weights"], [30 * MS], "weights")


def test_text_of_perf_script_is_folded_to_the_same(tools):
    records = [comm(PID, "dotnet"), *(sample(CPU_CLOCK, PID, time * MS, [0x402010, 0x401010]) for time in range(1, 4))]
    text = report(tools, "cpu", "--format=perf-script", "-i", save(tools, "script.zip", archive(records))).stdout.decode()
    blocks = [block.split("\n") for block in text.strip("\n").split("\n\n")]
    expect_equal([block[0].split(":")[0].split()[-1] for block in blocks], ["0.001000", "0.002000", "0.003000"], "times")
    expect_equal({tuple(line.split()[1] for line in block[1:]) for block in blocks}, {("work", "main")}, "frames, innermost first")


def test_csv_has_the_rows_of_the_table(tools):
    import csv
    records = [comm(PID, "dotnet"), *(sample(CPU_CLOCK, PID, time * MS, [0x402010, 0x401010]) for time in range(1, 4))]
    path = save(tools, "csv.zip", archive(records))
    rows = list(csv.DictReader(io.StringIO(report(tools, "cpu", "--format=csv", "-i", path).stdout.decode())))
    expect_equal([(row["name"], row["self_samples"], row["total_samples"]) for row in rows], [("work", "3", "3"), ("main", "0", "3")], "rows")


def test_views_that_are_not_there_leave_exit_status_3(tools):
    path = save(tools, "cpu.data", perf_data([sample(CPU_CLOCK, PID, MS, [0x401010])]))
    done = report(tools, "off-cpu", "-i", path)
    expect_equal((done.returncode, b"record --off-cpu" in done.stdout), (3, True), "exit code, and the command that helps")
    for words in ((), ("nonsense", "-i", path), ("-i", path, "--callers-of=a", "--callees-of=b"), ("-i", path, "--from=2", "--to=1")):
        expect_equal(report(tools, *words).returncode, 2, f"exit code of {words}")
