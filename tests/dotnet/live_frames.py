# SPDX-License-Identifier: MIT
"""How many frames of a real profile get a name, and whether each name is right."""
import bisect
import itertools
import os

import perf_samples
import shapes
from harness import Fail, Memory, Sample, Skip, expect, read_map
from waiting import is_in_time

GOAL = 0.995
RUNNING_HZ = 3999


class Methods:
    """The runtime's own list, to say which method an address lies in."""

    def __init__(self, rundown):
        self.rows = sorted(rundown, key=lambda row: row[1])
        self.starts = [row[1] for row in self.rows]

    def at(self, address):
        index = bisect.bisect_right(self.starts, address) - 1
        if index >= 0 and address < self.rows[index][1] + self.rows[index][2]:
            return self.rows[index]
        return None


def looked_up(chain):
    """Addresses to look up: a caller's frame holds the address behind its call, which may be another method's start."""
    return [frame.address - (1 if depth else 0) for depth, frame in enumerate(chain)]


def is_stub(answer):
    return answer.get("kind") == "stub" or (answer["name"] or "").startswith("stub")


def percent(part, whole):
    return f"{100 * part / whole:.2f} %" if whole else "none seen"


class Count:
    """Frames by where they lie and who names them."""

    def __init__(self):
        self.all = self.perf = self.ours = 0
        self.by_kind = {}
        self.stubs = {"specific": 0, "range": 0, "none": 0}
        self.wrong = []
        self.unnamed = {}

    def add(self, frame, address, kind, answer, method):
        self.all += 1
        self.perf += frame.perf_name is not None
        self.ours += answer["name"] is not None
        if kind == "jit" and method is None:
            name = answer["name"]
            self.stubs["none" if name is None else "range" if "StubBlock" in name else "specific"] += 1
            return
        row = self.by_kind.setdefault(kind, [0, 0, 0])
        named = answer["name"] is not None and (kind == "native" or not is_stub(answer))
        row[0] += 1
        row[1] += frame.perf_name is not None
        row[2] += named
        if not named:
            self.unnamed[address] = answer
        elif method is not None and f"{method[3]}::{method[4]}" not in answer["name"]:
            self.wrong.append((address, answer["name"], method))

    def print(self, figure):
        figure(f"user frames: {self.all}; named by perf script alone {percent(self.perf, self.all)}, "
               f"by dotnet-mapgen {percent(self.ours, self.all)}")
        for kind, (total, perf, ours) in sorted(self.by_kind.items()):
            figure(f"{kind}: {total} frames; perf script alone {percent(perf, total)}, dotnet-mapgen {percent(ours, total)}")
        stubs = sum(self.stubs.values())
        figure(f"stubs between methods: {stubs} frames; own name {self.stubs['specific']}, "
               f"name of a range {self.stubs['range']}, none {self.stubs['none']}")
        for address, answer in list(self.unnamed.items())[:200]:
            if answer.get("source") != "elf" and "coreclr" not in str(answer.get("image")):
                if os.environ.get("VERBOSE"):
                    figure(f"no method name: {address:#x} {answer}")


def profile(context, environment, seconds=1):
    """Samples of a fresh sample process, our answers and the runtime's methods."""
    data = os.path.join(context.scratch, "perf.data")
    context.oracle()
    with Sample(context.sdk(), environment) as sample:
        why = perf_samples.record(sample.pid, seconds, data)
        if why:
            raise Skip(why)
        expect(sample.alive(), "the sample ended early")
        memory = Memory(sample.pid)
        methods = Methods(context.rundown(sample.pid))
        sample.stand_still()
        chains, unpaired = perf_samples.samples(data)
        addresses = sorted({address for chain in chains for address in looked_up(chain)})
        answers = context.mapgen.resolve(sample.pid, addresses)
    expect(len(chains) > 100, f"only {len(chains)} samples")
    expect(unpaired * 100 <= len(chains), f"{unpaired} samples of {len(chains)} could not be paired with perf script")
    return chains, memory, methods, answers


def count_frames(context, environment):
    chains, memory, methods, answers = profile(context, environment)
    count = Count()
    for chain in chains:
        for frame, address in zip(chain, looked_up(chain)):
            count.add(frame, address, memory.kind_of(address), answers[address], methods.at(address))
    count.print(context.figure)
    return count


def check(count, kinds):
    total = sum(count.by_kind[kind][0] for kind in kinds)
    named = sum(count.by_kind[kind][2] for kind in kinds)
    expect(not count.wrong, f"{len(count.wrong)} wrong names, first {count.wrong[:1]}")
    for kind in kinds:
        expect(count.by_kind[kind][0] > 100, f"only {count.by_kind[kind][0]} frames of kind {kind}")
    expect(named >= GOAL * total, f"{named} of {total} frames in methods have a name ({percent(named, total)})")
    return total, named


def test_frames_of_a_net10_profile_have_method_names(context):
    count = count_frames(context, {"DOTNET_PerfMapEnabled": "1"})
    total, named = check(count, ("jit", "r2r"))
    context.figure(f"frames in methods named: {percent(named, total)} of {total} (goal 99.5 %)")


def test_frames_have_method_names_without_a_perf_map(context):
    count = count_frames(context, {"DOTNET_PerfMapEnabled": "0"})
    total, named = check(count, ("jit", "r2r"))
    context.figure(f"frames in methods named: {percent(named, total)} of {total} (goal 99.5 %)")


def test_frames_have_method_names_when_tiering_is_off(context):
    count = count_frames(context, {"DOTNET_PerfMapEnabled": "1", "DOTNET_TieredCompilation": "0"})
    total, named = check(count, ("jit", "r2r"))
    context.figure(f"frames in methods named: {percent(named, total)} of {total} (goal 99.5 %)")


def running(context, sample, count):
    """The running functions, in at least that many samples: the innermost frames only. A busy machine gives few a second."""
    data = os.path.join(context.scratch, "running.data")
    leaves = []
    for _ in range(40):
        why = perf_samples.record(sample.pid, 1.2 * count / RUNNING_HZ, data, RUNNING_HZ)
        if why:
            raise Skip(why)
        leaves += [looked_up(chain)[0] for chain in perf_samples.nameless_samples(data)]
        if len(leaves) >= count:
            return leaves
    raise Fail(f"{len(leaves)} samples in two minutes")


def test_the_write_barrier_has_its_name(context):
    """With W^X and without, by contract and by rundown. It is in two to fifty of 2,500 samples, so there may be five times as many."""
    for environment in ({}, {"DOTNET_EnableWriteXorExecute": "0"}):
        with Sample(context.sdk(), environment) as sample:
            leaves, named, memory = [], {}, Memory(sample.pid)
            while len(leaves) < 5 * 2500 and min(named.values(), default=0) <= 2:
                leaves += running(context, sample, 2500)
                for way in ("memory", "rundown"):
                    answers = context.mapgen.resolve(sample.pid, sorted(set(leaves)), "--jit=" + way)
                    named[way] = sum(answers[leaf]["name"] == "JIT_WriteBarrier" for leaf in leaves)
                    other = sum(memory.kind_of(leaf) not in ("native", "r2r") and answers[leaf]["source"] is None for leaf in leaves)
                    context.figure(f"{environment or 'W^X'}, {way}: {named[way]} of {len(leaves)} samples are in it, {other} nowhere known")
            expect(min(named.values()) > 2, f"JIT_WriteBarrier is in {named} of {len(leaves)} samples")


def test_code_between_methods_of_runtimes_that_do_not_tell_of_it_is_known(context):
    """Stubs and the write barrier of .NET 8 and 9 had no name: 2.4 % of all samples. A map that the runtime writes
    names some of them."""
    for title, variable in itertools.product(("8.0 self-contained", "9.0 self-contained"), ("0", "1")):
        published, why = shapes.publish(next(shape for shape in shapes.SHAPES if shape.title == title))
        if published is None:
            raise Skip(why)
        with Sample(published, {"DOTNET_PerfMapEnabled": variable}) as sample:
            leaves = running(context, sample, 2500)
            memory = Memory(sample.pid)
            methods = Methods(context.rundown(sample.pid))
            answers = context.mapgen.resolve(sample.pid, sorted(set(leaves)))
        between = [answers[leaf] for leaf in leaves if memory.kind_of(leaf) not in ("native", "r2r") and methods.at(leaf) is None]
        wrong = [answer for leaf in leaves for answer in (answers[leaf],)
                 if methods.at(leaf) and answer["name"] in ("[runtime stub]", "JIT_WriteBarrier")]
        named = sum(answer["name"] is not None for answer in between)
        context.figure(f"{title}, {'with' if variable == '1' else 'without'} a map: {named} of {len(between)} samples between "
                       f"methods are known, of {len(leaves)} samples")
        expect(not wrong, f"methods are taken for stubs: {wrong[:2]}")
        expect(len(between) > 5 and named >= 0.8 * len(between), f"{named} of {len(between)} are known")


def stubs_with_a_map(context, runtime, environment):
    """The answer for each stub that a runtime names in its map."""
    with Sample(runtime, dict(environment, DOTNET_PerfMapEnabled="1")) as sample:
        def stubs_now():
            return [start for start, _, name in read_map(sample.map_path) if name.startswith(("stub<", "stub "))]
        is_in_time(lambda: len(stubs_now()) >= 100, 20, 0.2)
        stubs = stubs_now()
        answers = context.mapgen.resolve(sample.pid, stubs)
    expect(stubs, "there are none")
    return list(answers.values())


def test_code_between_methods_has_the_names_of_the_map_that_the_runtime_writes(context):
    published, why = shapes.publish(next(shape for shape in shapes.SHAPES if shape.title == "9.0 self-contained"))
    if published is None:
        raise Skip(why)
    answers = stubs_with_a_map(context, published, {})
    other = [answer for answer in answers if answer["source"] != "perfmap"]
    expect(not other, f"{len(other)} of {len(answers)} stubs have another name, first {other[:1]}")
    # By contract some have a name of their own.
    answers = stubs_with_a_map(context, context.sdk(), {"DOTNET_EnableWriteXorExecute": "0"})
    lost = [answer for answer in answers if answer["name"] == "[runtime stub]"]
    context.figure(f".NET 10 without W^X: {len(answers) - len(lost)} of {len(answers)} stubs that the map names have a name of their own")
    expect(not lost, f"{len(lost)} of {len(answers)} stubs have lost their name, first {lost[:1]}")
