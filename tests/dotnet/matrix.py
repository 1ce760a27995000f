# SPDX-License-Identifier: MIT
"""Every runtime version in every shape: which frames of a profile get a name.

For each: the sample runs, `list` names its shape, perf records it, every user
frame is resolved and compared with what the runtime itself says lies there,
and every method of the runtime's rundown is looked for in our map. Ends with
one line for each version and shape. Usage: matrix.py --build DIR [WORD...];
a WORD picks the shapes whose title contains it.
"""
import argparse
import bisect
import json
import os
import subprocess
import sys
import tempfile

import perf_samples
import shapes
from harness import Fail, Memory, Sample, Skip, expect, read_map, without_tier
from live_frames import GOAL, Methods, is_stub, looked_up, percent
from live_rundown import missing_methods
from live_tests import Context

EXPECTED_SHAPE = {"framework-dependent": "framework-dependent", "self-contained": "self-contained",
                  "readytorun": "self-contained", "composite": "self-contained", "trimmed": "self-contained",
                  "trimmed readytorun": "self-contained"}


def is_aot(shape):
    return shape.name.startswith("nativeaot")


def expected_shape(shape):
    return "nativeaot" if is_aot(shape) else EXPECTED_SHAPE.get(shape.name, "single-file")


class AotTruth:
    """The oracle for a program compiled ahead of time is nm; its managed code is a section."""

    rundown = None
    reason = "no runtime to ask; names against nm"

    def __init__(self, published, pid):
        program = published.command[0]
        self.base = next(row[0] for row in Memory(pid).rows if row[3] == program)
        lines = subprocess.run(["readelf", "-SW", program], capture_output=True, text=True, check=True).stdout.splitlines()
        section = next(line.split("]", 1)[1].split() for line in lines if " __managedcode " in line)
        self.start, self.size = int(section[2], 16), int(section[4], 16)
        names = {}
        for path in (program, program + ".dbg"):
            if os.path.exists(path):
                rows = subprocess.run(["nm", path], capture_output=True, text=True).stdout.splitlines()
                for value, kind, name in (line.split(None, 2) for line in rows if line[0] != " "):
                    if kind in "tTwW":
                        names.setdefault(int(value, 16), set()).add(name)
        self.starts = sorted(names)
        self.names = [tuple(names[start]) for start in self.starts]

    def at(self, address):
        """('aot', names of which one must be in ours) in managed code; (None, None) elsewhere."""
        vaddr = address - self.base
        if not self.start <= vaddr < self.start + self.size:
            return None, None
        at = bisect.bisect_right(self.starts, vaddr) - 1
        return "aot", self.names[at] if at >= 0 and self.starts[at] >= self.start else ()


class Truth:
    """The oracle for an address is the runtime: its rundown, or its perf map in versions without one."""

    def __init__(self, context, shape, pid):
        self.rundown = None
        self.reason = None
        if shape.major < 3:
            self.reason = "no diagnostics socket before 3.0"
        else:
            self.listed = context.rundown(pid)
            self.rundown = Methods(self.listed)
        rows = read_map(f"/tmp/perf-{pid}.map") if shape.major < 3 else []
        self.perf_map = Methods([("jit", start, size, without_tier(name), None) for start, size, name in rows])

    def at(self, address):
        """(kind, text that must be in the name) of the method there, or (None, None)."""
        row = (self.rundown or self.perf_map).at(address)
        if row is None:
            return None, None
        kind = "r2r" if row[0] == "r2r" else "jit"
        return kind, (f"{row[3]}::{row[4]}" if row[4] is not None else row[3],)


class Count:
    """Frames by kind: how many, how many with a method's name, which wrong."""

    def __init__(self):
        self.all = {}
        self.named = {}
        self.wrong = []
        self.unnamed = {}

    def add(self, kind, address, answer, texts):
        self.all[kind] = self.all.get(kind, 0) + 1
        # A native function may be named by its position, for folding; a method must have its own name.
        has_name = answer["name"] is not None if kind == "native" else answer["resolved"]
        named = has_name and (kind in ("native", "stub") or not is_stub(answer))
        self.named[kind] = self.named.get(kind, 0) + named
        if not named:
            self.unnamed.setdefault(kind, {})[address] = answer
        elif texts is not None and not any(text in answer["name"] for text in texts):
            self.wrong.append((hex(address), answer["name"], texts))

    def text(self, kind):
        return f"{self.named.get(kind, 0)}/{self.all[kind]}" if kind in self.all else "-"


def kind_of(address, memory, truth):
    """('r2r' | 'jit' | 'aot' | 'stub' | 'native' | 'ngen', texts of which the name must contain one, or None)."""
    kind, texts = truth.at(address)
    if kind is None:
        kind = memory.kind_of(address)
        if kind == "jit":
            kind = "stub"
    path = memory.path_of(address) or ""
    if kind == "r2r" and "dotnet-2.1" in path and path.endswith("/System.Private.CoreLib.dll"):
        kind = "ngen"  # a fragile image: its methods cannot be listed by anyone outside its runtime
    return kind, texts


def environment_of(shape, context):
    if shape.major >= 8:
        # No preparation at all; only what is unpacked must not stay behind.
        return {"DOTNET_PerfMapEnabled": "0", "DOTNET_BUNDLE_EXTRACT_BASE_DIR": context.directory("extracted")}
    return {"COMPlus_PerfMapEnabled": "1" if shape.major < 3 else "0"}


def check_list(context, shape, pid):
    listed = [row for row in json.loads(context.mapgen.must("list", "--json").stdout) if row["pid"] == pid]
    expect(listed, "list does not show the process")
    wanted = expected_shape(shape)
    expect(listed[0]["shape"] == wanted, f"list says {listed[0]['shape']}, it is {wanted}")
    if not is_aot(shape):
        expect(listed[0]["runtime_version"].startswith(shape.version + "."),
               f"list says version {listed[0]['runtime_version']}")


def check_aot(context, shape, published, pid, info):
    """Which file names the methods is said by info, by list, and by merge."""
    program = published.command[0]
    wanted = {"nativeaot": program, "nativeaot with .dbg": program + ".dbg", "nativeaot stripped": None}[shape.name]
    said = {program: "own symbol table", program + ".dbg": program + ".dbg", None: "without names"}[wanted]
    expect(info["nativeaot"]["program"] == program and info["nativeaot"]["symbol_file"] == wanted, f"info says {info['nativeaot']}")
    for texts in (context.mapgen.must("info", pid).stdout, context.mapgen.must("list", pid).stdout,
                  context.mapgen.must("generate", pid, "-o", context.directory("aot")).stderr,
                  context.mapgen.must("merge", pid, "-o", os.path.join(context.scratch, "aot.map"), codes=(0 if wanted else 3,)).stderr):
        expect(said in texts, f"'{said}' is not said: {texts}")
    path = os.path.join(context.scratch, "aot.map")
    merged = json.loads(context.mapgen.must("merge", pid, "-o", path, "--json", codes=(0 if wanted else 3,)).stdout)
    with open(path, encoding="utf-8", errors="replace") as file:
        names = [line.rstrip("\n").split(" ", 2)[2] for line in file]
    stubs = sum(name.endswith("@plt") for name in names)
    unnamed = sum("!0x" in name for name in names)
    said = (merged["linkage_stubs"], merged["unnamed_functions"], merged["nativeaot_functions"])
    expect(said == (stubs, unnamed, len(names) - stubs - unnamed if wanted else 0),
           f"merge counts {said} of {len(names)} lines, {stubs} of them stubs and {unnamed} unnamed")


def check_info(context, shape, published, pid):
    info = json.loads(context.mapgen.must("info", pid, "--json").stdout)
    wanted = None if is_aot(shape) else "on" if shape.major >= 8 else "off"
    expect(info["write_xor_execute"] == wanted, f"info says W^X {info['write_xor_execute']}, it is {wanted}")
    if is_aot(shape):
        check_aot(context, shape, published, pid, info)
        return
    # Extracted files are neither mapped from the bundle nor unpacked to memory.
    expect((info["bundle"] is not None) == ("single-file" in shape.name and "extracting" not in shape.name),
           f"info says of the bundle: {info['bundle']}")
    if "compressed" in shape.name:
        # In a composite it is the only image.
        least = 1 if "composite" in shape.name else 6
        expect(info["bundle"]["mapped"] == 0 and info["bundle"]["unpacked"] >= least, f"compressed, but {info['bundle']}")
    owners = {row["composite"] for row in info["components"]}
    # Compressed ones are no images of the process.
    if shape.name.startswith("composite") and "compressed" not in shape.name:
        expect(len(info["components"]) > 5 and owners == {"sample.r2r.dll"},
               f"{len(info['components'])} components belong to {owners}")


def check_perfinfo(context, shape, published):
    """Runtimes up to 8.0 list the images they have loaded and where, when they write a perf map."""
    if shape.major > 8 or is_aot(shape):
        return
    with Sample(published, {**environment_of(shape, context), "COMPlus_PerfMapEnabled": "1", "DOTNET_PerfMapEnabled": "1"}, resting=True) as sample:
        found = json.loads(context.mapgen.must("info", sample.pid, "--json").stdout)["perfinfo"]
        with open(f"/tmp/perfinfo-{sample.pid}.map", encoding="utf-8") as file:
            rows = [line.rstrip("\n").split(";") for line in file]
    bases = sum(len(row) > 4 and int(row[3].replace("(nil)", "0"), 16) != 0 for row in rows)
    expect(found and found["lines"] == len(rows) and not found["bad_lines"], f"{len(rows)} rows, info has read {found}")
    expect(not found["contradictions"], found["contradiction"])
    expect(found["with_base"] == bases, f"{bases} rows with a base, info has compared {found}")
    # An assembly without a path of its own (inside a single file) has no row; one without code of its own has no base.
    if "single-file" not in shape.name or "extracting" in shape.name:
        expect(found["mapped"] >= 5, f"none of its images is mapped: {found}")
        expect(bases >= 5 or shape.major < 3 or shape.name in ("composite", "trimmed"), f"hardly a load base in {found}")
    context.figure(f"perfinfo: {found['mapped']} of {found['lines']} images mapped, {found['with_base']} load bases, none contradicted")


def check_components(context, shape, pid, answers):
    """Precompiled code in a composite belongs to a component, and to the build that is loaded."""
    if not shape.name.startswith("composite"):
        return
    loaded = {row["assembly"]: row["mvid"] for row in json.loads(context.mapgen.must("list", pid, "--json").stdout)
              if row["kind"] == "component"}
    seen = 0
    for answer in answers.values():
        if answer.get("source") == "r2r" and answer["resolved"] and not is_stub(answer):
            component = answer.get("component") or {"assembly": None, "mvid": None}
            expect(f"[{component['assembly']}] " in answer["name"] and component["mvid"] and
                   loaded.get(component["assembly"], component["mvid"]) == component["mvid"],
                   f"{answer['name']} is said to be of {component}, of which {loaded.get(component['assembly'])} is loaded")
            seen += 1
    expect(seen > 10, f"only {seen} places in the composite")


def take_samples(context, sample, seconds):
    """Again where they are few: perf record misses a thread that begins while it attaches, and that may do all the work. Until they are
    read the process stands still."""
    data = os.path.join(context.scratch, "perf.data")
    for _ in range(3):
        why = perf_samples.record(sample.pid, seconds, data, 1997)
        if why:
            raise Skip(why)
        sample.stand_still()
        chains, _ = perf_samples.samples(data)
        sample.go_on()
        if len(chains) > 50:
            return chains
    raise Fail(f"only {len(chains)} samples")


def count_frames(context, shape, published, sample, seconds):
    chains = take_samples(context, sample, seconds)
    memory = Memory(sample.pid)
    truth = AotTruth(published, sample.pid) if is_aot(shape) else Truth(context, shape, sample.pid)
    addresses = sorted({address for chain in chains for address in looked_up(chain)})
    answers = context.mapgen.resolve(sample.pid, addresses)
    check_components(context, shape, sample.pid, answers)
    count = Count()
    for chain in chains:
        for address in looked_up(chain):
            kind, texts = kind_of(address, memory, truth)
            count.add(kind, address, answers[address], texts)
    return count, truth


def judge(shape, count, missing):
    kinds = ["aot"] if is_aot(shape) else ["r2r", "jit"]
    total = sum(count.all.get(kind, 0) for kind in kinds)
    named = sum(count.named.get(kind, 0) for kind in kinds)
    expect(not count.wrong, f"{len(count.wrong)} wrong names, first {count.wrong[:1]}")
    expect(total > 100, f"only {total} frames in methods")
    if shape.name == "nativeaot stripped":
        # No tool has its names; the answer has the bounds of the function, and the reason.
        expect(not named, f"{named} frames have a name that no symbol table has")
        without = [answer for answer in count.unnamed["aot"].values()
                   if not answer["reason"] and answer["status"] != "function without a name"]
        expect(not without, f"{len(without)} frames without a reason, first {without[:1]}")
        return
    expect(named >= GOAL * total, f"{named} of {total} frames in methods have a name ({percent(named, total)}), "
           f"first without: {[answer for kind in kinds for answer in count.unnamed.get(kind, {}).values()][:1]}")
    expect(not missing, f"{len(missing)} methods of the rundown differ, first: {missing[:1]}")


def run_shape(context, shape, seconds=0.25):
    """One line of the table; raises Fail where a figure is missed."""
    published, why = shapes.publish(shape)
    if published is None:
        raise Skip(f"cannot be built: {why}")
    context.oracle()
    check_perfinfo(context, shape, published)
    with Sample(published, environment_of(shape, context)) as sample:
        check_list(context, shape, sample.pid)
        check_info(context, shape, published, sample.pid)
        count, truth = count_frames(context, shape, published, sample, seconds)
        counts, missing = {}, []
        if truth.rundown:
            counts, missing = missing_methods(context, sample.pid, ("jit", "r2r", "dynamic"), truth.listed)
    found, listed = (sum(pair[i] for pair in counts.values()) for i in (0, 1))
    methods = f"AOT {count.text('aot'):>12}  {'':16}" if is_aot(shape) else f"R2R {count.text('r2r'):>12}  JIT {count.text('jit'):>12}"
    line = (f"{shape.version:5} {shape.name:24} {methods}  native {count.text('native'):>12}  stubs {count.text('stub'):>9}  "
            f"rundown {f'{found}/{listed}' if truth.rundown else truth.reason}")
    if "ngen" in count.all:
        line += f"  fragile CoreLib {count.text('ngen')}"
    context.figure(line)
    judge(shape, count, missing)
    return line


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("words", nargs="*")
    arguments = parser.parse_args()
    lines, failed = [], 0
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="libsym-matrix-") as scratch:
        context = Context(arguments.build, scratch)
        for shape in shapes.SHAPES:
            if arguments.words and not any(word in shape.title for word in arguments.words):
                continue
            try:
                lines.append("ok      " + run_shape(context, shape))
            except Skip as why:
                lines.append(f"skipped {shape.version:5} {shape.name:24} {why}")
            except Exception as why:  # a defect of the test costs that shape, not those behind it
                failed += 1
                said = why if isinstance(why, (Fail, subprocess.TimeoutExpired)) else f"{type(why).__name__}: {why}"
                lines.append(f"FAILED  {shape.version:5} {shape.name:24} {said}")
            print(lines[-1], flush=True)
    print("\nframes with a method's name / frames, and methods of the rundown found / listed")
    print("\n".join(lines))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
