# SPDX-License-Identifier: MIT
"""Inlined managed methods of processes that were started with DOTNET_RichDebugInfo=1.

The oracle is the C# compiler: each inlined method of fixtures/src/inlining has received the line of its call
([CallerLineNumber]) and the name of its caller ([CallerMemberName]).
"""
import gzip
import json
import os
import re
import shutil
import subprocess
import zipfile

from harness import Skip, build_environment, build_project, built, expect, need
import shapes

KINDS = 10


class Inlining:
    """The program of fixtures/src/inlining, whose threads wait or spin in inlined methods."""

    def __init__(self, command, **environment):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**build_environment(), **environment})
        self.pid = self.process.pid
        self.threads = []
        for line in self.process.stdout:
            words = line.split()
            if words[0] == "ready":
                break
            if words[0] == "thread":
                self.threads.append({"tid": int(words[1]), "name": words[2], "frames": []})
            elif words[0] == "frame":
                self.threads[-1]["frames"].append((words[1], int(words[2])))
        expect(len(self.threads) == KINDS, f"{len(self.threads)} threads wait")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def program(*properties, name="inlining"):
    artifacts = built(name)
    why = build_project("fixtures/src/inlining", artifacts, *properties)
    if why:
        raise Skip(f"the program does not build: {why}")
    return f"{artifacts}/bin/inlining/release/inlining.dll"


def dotnet10():
    return [shutil.which("dotnet"), program()]


def answers_of(context, process, *options):
    """The frames of each thread, innermost first, each with its answer."""
    report = json.loads(context.mapgen.must("stack", str(process.pid), "--json").stdout)
    result = {thread["tid"]: [] for thread in report["threads"]}
    # An innermost frame has no return address: it comes first.
    for returns, asked in ((False, ()), (True, ("--return-addresses",))):
        frames = [(thread["tid"], frame["address"]) for thread in report["threads"] for frame in thread["frames"]
                  if bool(frame["return_address"]) == returns]
        text = context.mapgen.must("resolve", str(process.pid), "--lines", *options, *asked, "--json",
                                   stdin="".join(address + "\n" for _, address in frames)).stdout
        answers = json.loads(text)
        expect(len(answers) == len(frames), f"{len(answers)} answers about {len(frames)} frames")
        for (tid, _), answer in zip(frames, answers):
            result[tid].append(answer)
    return result


def method_of(name):
    """"Third" of "int32 [inlining] Inlining.Kinds::Third(int32)"; a property by its own name."""
    return name.split("::")[-1].split("(")[0].removeprefix("get_")


def own_chain(answers):
    """(method, line) of all frames of the first one of the program that does not wait itself, innermost first."""
    for answer in answers:
        if not answer["name"] or "[inlining]" not in answer["name"] or "Recorder::" in answer["name"]:
            continue
        names = [method_of(item["name"]) for item in answer["inlined"]] + [method_of(answer["name"])]
        lines = [answer["line"]] + [item["call_line"] for item in answer["inlined"]]
        return list(zip(names, lines))
    return None


def check_stack(report, process):
    """stack --lines has the same chains as frames: inlined ones before the one that has the code."""
    frames = {thread["tid"]: [frame for frame in thread["frames"] if "[inlining]" in frame["name"] and "Recorder::" not in frame["name"]]
              for thread in report["threads"]}
    for thread in process.threads:
        count = len(thread["frames"])
        shown = frames[thread["tid"]][:count]
        expect([(method_of(frame["name"]), frame["line"]) for frame in shown] == thread["frames"], f"{thread['name']}: stack has {shown}")
        expect([frame["inlined"] for frame in shown] == [True] * (count - 1) + [False], f"{thread['name']}: {shown}")


def check(context, command, **environment):
    with Inlining(command, DOTNET_RichDebugInfo="1", **environment) as process:
        found = answers_of(context, process, "--inlines")
        check_stack(json.loads(context.mapgen.must("stack", str(process.pid), "--lines", "--json").stdout), process)
    frames = 0
    for thread in process.threads:
        chain = own_chain(found[thread["tid"]])
        expect(chain == thread["frames"], f"{thread['name']}: {chain}, not {thread['frames']}")
        frames += len(chain) - 1
    context.figure(f"{frames} inlined frames of {len(process.threads)} threads have the compiler's names and lines")
    return process, found


def test_inlined_methods_have_the_compilers_lines_on_net10(context):
    process, found = check(context, dotnet10())
    tiers = {answer["tier"] for answers in found.values() for answer in answers if answer["inlined"]}
    for tier in ("OptimizedTier1", "OptimizedTier1OSR", "Optimized"):
        expect(tier in tiers, f"no inlined frame in code of the tier {tier}")
    # A method of the framework between two of the program.
    tid = next(thread["tid"] for thread in process.threads if thread["name"] == "framework")
    outer = next(answer for answer in found[tid] if answer["name"] and "Kinds::Framework" in answer["name"])
    expect([method_of(item["name"]) for item in outer["inlined"]] == ["Equals"], f"{outer['inlined']}")
    expect("EqualityComparer" in outer["inlined"][0]["name"] and "Inlining.cs" in outer["inlined"][0]["call_file"], f"{outer}")
    expect(outer["method_token"] and outer["il_offset"] is not None, "the method of the framework has no IL offset")


def test_inlined_methods_have_the_compilers_lines_on_net11(context):
    root, why = shapes.newest_framework()
    if why:
        raise Skip(why)
    check(context, ["env", f"DOTNET_ROOT={root}", "DOTNET_ROLL_FORWARD=LatestMajor", f"{root}/dotnet", program()])


def test_a_process_without_rich_information_has_no_inlined_methods(context):
    with Inlining(dotnet10()) as process:
        plain, inlined = answers_of(context, process), answers_of(context, process, "--inlines")
    managed = [answer for answers in inlined.values() for answer in answers if answer["name"] and "[inlining]" in answer["name"]]
    expect(len(managed) > KINDS, f"only {len(managed)} frames of the program")
    expect(not any(answer["inlined"] for answer in managed), "an inlined method is named")
    lines = {answer["input"]: answer["line"] for answers in plain.values() for answer in answers if answer["name"] and "Kinds::Spin" not in answer["name"]}
    expect(all(lines.get(answer["input"], answer["line"]) == answer["line"] for answer in managed), "--inlines has changed a line")


def wire_fields(data):
    """(number, value) of a protobuf message; of length-delimited fields the bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        value = varint()
        if key & 7 == 2:
            at += value
            value = data[at - value:at]
        yield key >> 3, value


def stacks_of_pprof(path):
    """(method, line) of the frames of each sample, innermost first; field numbers of github.com/google/pprof/proto/profile.proto."""
    fields = list(wire_fields(gzip.open(path).read()))
    strings = [value.decode() for number, value in fields if number == 6]
    functions, locations = {}, {}
    for number, value in fields:
        own = dict(wire_fields(value)) if number in (4, 5) else {}
        if number == 5:
            functions[own[1]] = method_of(strings[own.get(3, 0)])
        elif number == 4:
            locations[own[1]] = dict(wire_fields(own[4]))
    for number, value in fields:
        if number == 2:
            packed = b"".join(part for kind, part in wire_fields(value) if kind == 1)
            lines = [locations[location] for location in varints(packed)]
            yield [(functions[line[1]], line.get(2, 0)) for line in lines]


def varints(data):
    value = shift = 0
    for byte in data:
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            yield value
            value = shift = 0


def has_chain(stack, chain):
    return any(stack[at:at + len(chain)] == chain for at in range(len(stack)))


def rows_of_names(path, kind):
    with zipfile.ZipFile(path) as archive:
        return [row for row in archive.read("names/symbols").decode().split("\n") if row.startswith(kind + "\t")]


def record(context, process, name):
    path = os.path.join(context.scratch, name)
    done = context.mapgen.run("record", str(process.pid), "-d", "2", "-o", path)
    if done.returncode == 1 and "perf_event_open" in done.stderr:
        raise Skip(done.stderr.strip())
    expect(not done.returncode, f"record: {done.stderr}")
    return path


def check_recording(context, command, name):
    """Only the spinning thread runs. The process is gone when the recording is read."""
    with Inlining(command, DOTNET_RichDebugInfo="1") as process:
        path = record(context, process, name)
    chain = next(thread["frames"] for thread in process.threads if thread["name"] == "spinning")
    expect(len(chain) == 3, f"the oracle has {chain}")
    lines = context.mapgen.must("report", "cpu", "--by=line", "--format=folded", "--names=full", "-i", path).stdout.splitlines()
    spinning = [line.rpartition(" ") for line in lines if "Kinds::Spinning" in line]
    wanted = [f"{method}:{line}" for method, line in reversed(chain)]
    found = [[f"{method_of(frame)}:{frame.rpartition(':')[2].rstrip(')')}" for frame in stack.split(";")] for stack, _, _ in spinning]
    expect(found and all(has_chain(stack, wanted) for stack in found), f"folded: {found[:3]}, not {wanted}")
    flame = os.path.join(context.scratch, name + ".folded")
    context.mapgen.must("flame", "-i", path, "-o", flame)
    with open(flame) as file:
        stacks = [[frame.split("(")[0].rpartition(".")[2] for frame in line.split(";")] for line in file]
    expect(any(has_chain(stack, [method for method, _ in reversed(chain)]) for stack in stacks), f"flame: {stacks}")
    rows = json.loads(context.mapgen.must("report", "cpu", "--by=line", "--format=json", "-i", path).stdout)["views"][0]["rows"]
    totals = {(method_of(row["full_name"]), row["line"]): row["total_samples"] for row in rows}
    samples = sum(int(count) for _, _, count in spinning)
    expect(all(totals.get(frame) == samples for frame in chain), f"rows by line, not {samples}: {totals}")
    marked = {method_of(row["full_name"]) for row in rows if row.get("inlined")}
    expect(marked == {method for method, _ in chain[:-1]}, f"marked as inlined: {marked}")
    text = context.mapgen.must("report", "cpu", "--by=line", "-i", path).stdout
    expect("inlined" in text, f"no frame is marked: {text}")
    pprof = os.path.join(context.scratch, name + ".pb.gz")
    context.mapgen.must("report", "cpu", "--format=pprof", "-o", pprof, "-i", path)
    expect(any(has_chain(stack, chain) for stack in stacks_of_pprof(pprof)), "pprof has no chain")
    context.figure(f"{sum(int(count) for _, _, count in spinning)} samples have the chain of the compiler; {len(rows_of_names(path, 'M'))} inlined frames kept")


def test_recordings_have_inlined_methods_on_net10(context):
    check_recording(context, dotnet10(), "inlined-10.trace.zip")


def test_recordings_have_inlined_methods_on_net11(context):
    root, why = shapes.newest_framework()
    if why:
        raise Skip(why)
    check_recording(context, ["env", f"DOTNET_ROOT={root}", "DOTNET_ROLL_FORWARD=LatestMajor", f"{root}/dotnet", program()], "inlined-11.trace.zip")


def symbolized(text):
    """(method, line) of the frames of each stack that symbolize --lines wrote in the form of perf script."""
    stacks = []
    for line in text.splitlines():
        place = re.fullmatch(r"  \S+:~?(\d+)", line)
        if line.startswith("\t"):
            stacks[-1].append((method_of(line.split(None, 1)[1]), 0))
        elif place and stacks and stacks[-1]:
            stacks[-1][-1] = (stacks[-1][-1][0], int(place[1]))
        else:
            stacks.append([])
    return stacks


def check_symbolize(context, process):
    """The stacks of all threads, as perf script and folded lines have them."""
    report = json.loads(context.mapgen.must("stack", str(process.pid), "--json").stdout)
    frames = {thread["tid"]: [frame["address"] for frame in thread["frames"]] for thread in report["threads"]}
    threads = [thread for thread in process.threads if thread["tid"] in frames]
    expect(len(threads) == KINDS, f"{len(threads)} threads have a stack")
    asked = "".join(f"w {process.pid}/{thread['tid']} 1.000001: x: \n"
                    + "".join(f"\t{address[2:]:>16} [unknown] ([unknown])\n" for address in frames[thread["tid"]]) + "\n" for thread in threads)
    done = context.mapgen.must("symbolize", str(process.pid), "--lines", "--names=full", stdin=asked)
    stacks = [stack for stack in symbolized(done.stdout) if stack]
    for thread, stack in zip(threads, stacks):
        expect(has_chain(stack, thread["frames"]), f"{thread['name']}: symbolize has {stack}, not {thread['frames']}")
    again = context.mapgen.must("symbolize", str(process.pid), "--lines", "--names=full", stdin=done.stdout)
    expect(again.stdout == done.stdout, "what symbolize has written is changed by it")
    asked = "".join("w;" + ";".join(reversed(frames[thread["tid"]])) + " 1\n" for thread in threads)
    folded = context.mapgen.must("symbolize", str(process.pid), "--lines", "--names=full", stdin=asked).stdout.splitlines()
    for thread, line in zip(threads, folded):
        found = [(method_of(frame), int((re.search(r":~?(\d+)$", frame) or "00")[1])) for frame in reversed(line.rpartition(" ")[0].split(";"))]
        expect(has_chain(found, thread["frames"]), f"{thread['name']}: folded {line}, not {thread['frames']}")


def test_symbolize_shows_inlined_methods_on_net10(context):
    with Inlining(dotnet10(), DOTNET_RichDebugInfo="1") as process:
        check_symbolize(context, process)


def test_symbolize_shows_inlined_methods_on_net11(context):
    root, why = shapes.newest_framework()
    if why:
        raise Skip(why)
    command = ["env", f"DOTNET_ROOT={root}", "DOTNET_ROLL_FORWARD=LatestMajor", f"{root}/dotnet", program()]
    with Inlining(command, DOTNET_RichDebugInfo="1") as process:
        check_symbolize(context, process)


def test_perf_data_of_a_live_process_has_inlined_methods(context):
    """report looks the lines of a plain perf.data up in the process, and symbolize those of perf script."""
    need("perf")
    path = os.path.join(context.scratch, "inlined.data")
    with Inlining(dotnet10(), DOTNET_RichDebugInfo="1") as process:
        done = subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-F", "99", "-g", "-p", str(process.pid), "-o", path, "--", "sleep", "1"],
                              capture_output=True, text=True)
        if done.returncode:
            raise Skip(f"perf record: {done.stderr.strip()}")
        lines = context.mapgen.must("report", "cpu", "--by=line", "--format=folded", "--names=full", "-i", path).stdout.splitlines()
        script = subprocess.run(["perf", "script", "-F", "+pid", "-i", path], capture_output=True, text=True, check=True).stdout
        script = context.mapgen.run("symbolize", "--lines", "--names=full", stdin=script).stdout
    chain = next(thread["frames"] for thread in process.threads if thread["name"] == "spinning")
    stacks = [stack for stack in symbolized(script) if any(method == "Spinning" for method, _ in stack)]
    expect(stacks and all(has_chain(stack, chain) for stack in stacks), f"symbolize: {stacks[:3]}, not {chain}")
    wanted = [f"{method}:{line}" for method, line in reversed(chain)]
    found = [[f"{method_of(frame)}:{frame.rpartition(':')[2].rstrip(')')}" for frame in line.rpartition(" ")[0].split(";")]
             for line in lines if "Kinds::Spinning" in line]
    expect(found and all(has_chain(stack, wanted) for stack in found), f"folded: {found[:3]}, not {wanted}")


def test_recordings_without_rich_information_have_no_inlined_methods(context):
    with Inlining(dotnet10()) as process:
        path = record(context, process, "plain.trace.zip")
    expect(rows_of_names(path, "L") and not rows_of_names(path, "M"), "the recording has inlined methods")
