# SPDX-License-Identifier: MIT
"""Every runtime version in every shape: which frames of a profile get a name.

For each: the sample runs, `list` names its shape, perf records it, every user
frame is resolved and compared with what the runtime itself says lies there,
and every method of the runtime's rundown is looked for in our map. Ends with
one line for each version and shape. Usage: matrix.py --build DIR [WORD...];
a WORD picks the shapes whose title contains it.
"""
import argparse
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
                  "nativeaot": "nativeaot"}


class Truth:
    """What the runtime says lies at an address: its rundown, or before there was one its perf map."""

    def __init__(self, context, shape, pid):
        self.rundown = None
        self.reason = None
        if shape.name == "nativeaot":
            self.reason = "no runtime to ask"
        elif shape.major < 3:
            self.reason = "no diagnostics socket before 3.0"
        else:
            self.rundown = Methods(context.rundown(pid))
        rows = read_map(f"/tmp/perf-{pid}.map") if shape.major < 3 else []
        self.perf_map = Methods([("jit", start, size, without_tier(name), None) for start, size, name in rows])

    def at(self, address):
        """(kind, text that must be in the name) of the method there, or (None, None)."""
        row = (self.rundown or self.perf_map).at(address)
        if row is None:
            return None, None
        kind = "r2r" if row[0] == "r2r" else "jit"
        return kind, f"{row[3]}::{row[4]}" if row[4] is not None else row[3]


class Count:
    """Frames by kind: how many, how many with a method's name, which wrong."""

    def __init__(self):
        self.all = {}
        self.named = {}
        self.wrong = []
        self.unnamed = {}

    def add(self, kind, address, answer, text):
        self.all[kind] = self.all.get(kind, 0) + 1
        named = answer["name"] is not None and (kind in ("native", "stub") or not is_stub(answer))
        self.named[kind] = self.named.get(kind, 0) + named
        if not named:
            self.unnamed.setdefault(kind, {})[address] = answer
        elif text is not None and text not in answer["name"]:
            self.wrong.append((hex(address), answer["name"], text))

    def text(self, kind):
        return f"{self.named.get(kind, 0)}/{self.all[kind]}" if kind in self.all else "-"


def kind_of(address, memory, truth):
    """('r2r' | 'jit' | 'stub' | 'native' | 'ngen', text that the name must contain)."""
    kind, text = truth.at(address)
    if kind is None:
        kind = memory.kind_of(address)
        if kind == "jit":
            kind = "stub"
    path = memory.path_of(address) or ""
    if kind == "r2r" and "dotnet-2.1" in path and path.endswith("/System.Private.CoreLib.dll"):
        kind = "ngen"  # a fragile image: its methods cannot be listed by anyone outside its runtime
    return kind, text


def environment_of(shape, context):
    if shape.major >= 8:
        # No preparation at all; only what is unpacked must not stay behind.
        return {"DOTNET_PerfMapEnabled": "0", "DOTNET_BUNDLE_EXTRACT_BASE_DIR": context.directory("extracted")}
    return {"COMPlus_PerfMapEnabled": "1" if shape.major < 3 else "0"}


def check_list(context, shape, pid):
    listed = [row for row in json.loads(context.mapgen.must("list", "--json").stdout) if row["pid"] == pid]
    expect(listed, "list does not show the process")
    wanted = EXPECTED_SHAPE.get(shape.name, "single-file")
    expect(listed[0]["shape"] == wanted, f"list says {listed[0]['shape']}, it is {wanted}")
    if shape.name != "nativeaot":
        expect(listed[0]["runtime_version"].startswith(shape.version + "."),
               f"list says version {listed[0]['runtime_version']}")


def check_info(context, shape, pid):
    info = json.loads(context.mapgen.must("info", pid, "--json").stdout)
    wanted = None if shape.name == "nativeaot" else "on" if shape.major >= 8 else "off"
    expect(info["write_xor_execute"] == wanted, f"info says W^X {info['write_xor_execute']}, it is {wanted}")
    # What is extracted is files again: neither mapped from the bundle nor unpacked to memory.
    expect((info["bundle"] is not None) == ("single-file" in shape.name and "extracting" not in shape.name),
           f"info says of the bundle: {info['bundle']}")
    if "compressed" in shape.name:
        expect(info["bundle"]["mapped"] == 0 and info["bundle"]["unpacked"] > 5, f"compressed, but {info['bundle']}")
    owners = {row["composite"] for row in info["components"]}
    if shape.name == "composite":
        expect(len(info["components"]) > 5 and owners == {"sample.r2r.dll"},
               f"{len(info['components'])} components belong to {owners}")


def check_perfinfo(context, shape, published):
    """Runtimes up to 8.0 tell where they have loaded what, when they write a perf map."""
    if shape.major > 8 or shape.name == "nativeaot":
        return
    with Sample(published, {**environment_of(shape, context), "COMPlus_PerfMapEnabled": "1", "DOTNET_PerfMapEnabled": "1"}) as sample:
        found = json.loads(context.mapgen.must("info", sample.pid, "--json").stdout)["perfinfo"]
    expect(found and found["mapped"] >= 5, f"no perfinfo, or none of its images is mapped: {found}")
    expect(not found["contradictions"], found["contradiction"])
    expect(found["with_base"] >= (5 if shape.major > 2 else 0) or "composite" in shape.name, f"hardly a load base in {found}")
    context.figure(f"perfinfo: {found['mapped']} of {found['lines']} images mapped, {found['with_base']} load bases, none contradicted")


def count_frames(context, shape, sample, seconds):
    data = os.path.join(context.scratch, "perf.data")
    why = perf_samples.record(sample.pid, seconds, data)
    if why:
        raise Skip(why)
    chains, _ = perf_samples.samples(data)
    expect(len(chains) > 50, f"only {len(chains)} samples")
    memory = Memory(sample.pid)
    truth = Truth(context, shape, sample.pid)
    addresses = sorted({address for chain in chains for address in looked_up(chain)})
    answers = context.mapgen.resolve(sample.pid, addresses)
    count = Count()
    for chain in chains:
        for address in looked_up(chain):
            kind, text = kind_of(address, memory, truth)
            count.add(kind, address, answers[address], text)
    return count, truth


def judge(shape, count, missing):
    kinds = ["native"] if shape.name == "nativeaot" else ["r2r", "jit"]
    total = sum(count.all.get(kind, 0) for kind in kinds)
    named = sum(count.named.get(kind, 0) for kind in kinds)
    expect(not count.wrong, f"{len(count.wrong)} wrong names, first {count.wrong[:1]}")
    expect(total > 100, f"only {total} frames in methods")
    expect(named >= GOAL * total, f"{named} of {total} frames in methods have a name ({percent(named, total)}), "
           f"first without: {[answer for kind in kinds for answer in count.unnamed.get(kind, {}).values()][:1]}")
    expect(not missing, f"{len(missing)} methods of the rundown differ, first: {missing[:1]}")


def run_shape(context, shape, seconds=5):
    """One line of the table; raises Fail where a figure is missed."""
    published, why = shapes.publish(shape)
    if published is None:
        raise Skip(f"cannot be built: {why}")
    context.oracle()
    check_perfinfo(context, shape, published)
    with Sample(published, environment_of(shape, context)) as sample:
        check_list(context, shape, sample.pid)
        check_info(context, shape, sample.pid)
        count, truth = count_frames(context, shape, sample, seconds)
        counts, missing = {}, []
        if truth.rundown:
            counts, missing = missing_methods(context, sample.pid, ("jit", "r2r", "dynamic"))
    found, listed = (sum(pair[i] for pair in counts.values()) for i in (0, 1))
    line = (f"{shape.version:5} {shape.name:24} R2R {count.text('r2r'):>12}  JIT {count.text('jit'):>12}  "
            f"native {count.text('native'):>12}  stubs {count.text('stub'):>9}  "
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
            except (Fail, subprocess.TimeoutExpired) as why:
                failed += 1
                lines.append(f"FAILED  {shape.version:5} {shape.name:24} {why}")
            print(lines[-1], flush=True)
    print("\nframes with a method's name / frames, and methods of the rundown found / listed")
    print("\n".join(lines))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
