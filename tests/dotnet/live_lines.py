# SPDX-License-Identifier: MIT
"""Source lines of managed frames.

The oracles: the program's own StackTrace with file information, frame by frame, and [CallerLineNumber].
"""
import collections
import json
import os
import shutil
import subprocess

from harness import Memory, Skip, build_environment, build_project, built, expect, npm_program, read_map
import shapes

KINDS = 33
"""Kinds of code in fixtures/src/lines; each is there twice: when the program begins, and when it is warm."""


class Lines:
    """The program of fixtures/src/lines, whose threads wait; each has printed its own frames."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=build_environment())
        self.pid = self.process.pid
        self.threads = []
        for line in self.process.stdout:
            words = line.rstrip("\n").split(" ", 6)
            if words[0] == "ready":
                break
            if words[0] == "thread":
                self.threads.append({"tid": int(words[1]), "name": words[2], "caller_line": int(words[4]), "caller": words[5], "frames": []})
            elif words[0] == "frame":
                file, _, method = words[6].partition("\t")
                self.threads[-1]["frames"].append({
                    "offset": int(words[1]), "il": int(words[2]), "token": int(words[3], 16), "method": method,
                    "place": (file, int(words[4]), int(words[5])) if int(words[4]) else None})
        expect(len(self.threads) == 2 * KINDS, f"{len(self.threads)} threads wait")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def program(*properties, name="lines", published=False):
    """lines.dll built with these properties, each set of them under a name of its own."""
    artifacts = built(name)
    why = build_project("fixtures/src/lines", artifacts, *properties)
    if why:
        raise Skip(f"the program does not build: {why}")
    kind = "publish" if published else "bin"
    directory = os.path.join(artifacts, kind, "lines")
    found = [os.path.join(directory, name, "lines.dll") for name in sorted(os.listdir(directory)) if name.startswith("release")]
    expect(found, "the build has no program")
    return found[0]


def chains(context, lines, *options):
    """For each thread its callers' frames, innermost first, each with what resolve says of its return address."""
    report = json.loads(context.mapgen.must("stack", str(lines.pid), "--json").stdout)
    returns = {thread["tid"]: [frame["address"] for frame in thread["frames"] if frame["return_address"]] for thread in report["threads"]}
    wanted = sorted({address for chain in returns.values() for address in chain})
    text = context.mapgen.must("resolve", str(lines.pid), "--lines", *(options or ("--return-addresses",)), "--json", stdin="\n".join(wanted) + "\n").stdout
    answers = {answer["input"]: answer for answer in json.loads(text)}
    return {tid: [answers[address] for address in chain] for tid, chain in returns.items()}


def is_frame(answer, frame):
    return answer["method_token"] is not None and int(answer["method_token"], 16) == frame["token"] and answer["offset"] == frame["offset"]


class Comparison:
    def __init__(self):
        self.il = self.lines = self.nearest = self.foreign = 0
        self.kinds = collections.Counter()
        self.wrong = []

    def add(self, thread, frame, answer):
        """The runtime names the first line of a method where nothing is mapped; ours is the nearest one before."""
        self.kinds[answer["tier"]] += 1
        if answer["quality"] == "nearest" or (answer["il_quality"] == "nearest" and answer["il_offset"] != frame["il"]):
            self.nearest += 1
            return
        self.il += 1
        if answer["il_offset"] != frame["il"]:
            self.wrong.append((thread["name"], frame, answer))
        if frame["place"]:
            self.lines += 1
            if (answer["file"], answer["line"], answer["column"]) != frame["place"]:
                self.wrong.append((thread["name"], frame, answer))


def compare(lines, found):
    """The frames of a StackTrace are a part of ours, in the same order; ours have stubs and native ones between."""
    result = Comparison()
    for thread in lines.threads:
        ours = iter(found[thread["tid"]])
        for frame in thread["frames"][1:]:  # the first one waits at another place by now
            before, ours = list(ours), None
            at = next((i for i, answer in enumerate(before) if is_frame(answer, frame)), None)
            ours = iter(before if at is None else before[at + 1:])
            if at is None:
                result.foreign += 1
                if frame["place"]:
                    result.wrong.append((thread["name"], frame, "is not in our stack"))
            else:
                result.add(thread, frame, before[at])
    return result


def caller_lines(lines, found):
    """Counts the frames that call Probe() and were not inlined: by quality, and by quality and whether the line is the compiler's."""
    counts = collections.Counter()
    for thread in lines.threads:
        chain = found[thread["tid"]]
        probe = next((i for i, answer in enumerate(chain) if answer["name"] and "Recorder::Probe" in answer["name"]), None)
        if probe is None or probe + 1 == len(chain) or not chain[probe + 1]["line"]:
            continue
        answer = chain[probe + 1]
        if thread["caller"] not in answer["name"]:
            continue  # it was inlined
        quality = "nearest" if answer["quality"] == "nearest" else "exact"
        counts[quality] += 1
        counts[quality, answer["line"] == thread["caller_line"]] += 1
    return counts


def check(context, command, kinds, at_return_address=False):
    """at_return_address: .NET Core 3.1 names the line of the return address itself, most often the next one."""
    with Lines(command) as lines:
        found = chains(context, lines)
        oracle = chains(context, lines, "--no-limits") if at_return_address else found
    result = compare(lines, oracle)
    callers = caller_lines(lines, found)
    context.figure(f"{result.il} IL offsets and {result.lines} lines are those of StackTrace; {result.nearest} approximate, "
                   f"{result.foreign} frames on other walks; callers of the probe by [CallerLineNumber]: "
                   f"{callers['exact', True]} of {callers['exact']} exact ones, {callers['nearest', True]} of {callers['nearest']} approximate ones")
    expect(not result.wrong, f"{len(result.wrong)} differ, first: {result.wrong[:1]}")
    expect(result.lines > 150, f"only {result.lines} lines were compared")
    expect(result.nearest * 10 < result.il, f"{result.nearest} of {result.il} lines are approximate")
    expect(result.foreign * 10 < result.il, f"{result.foreign} frames of StackTrace are not in our stacks")
    expect(callers["exact", True] >= 0.75 * callers["exact"], f"only {callers['exact', True]} of {callers['exact']} lines are the compiler's")
    for kind in kinds:
        expect(result.kinds[kind] > 10, f"only {result.kinds[kind]} frames of the tier {kind}")
    return result


def test_lines_are_those_of_stacktrace_on_net10(context):
    check(context, [shutil.which("dotnet"), program()], ("QuickJitted", "OptimizedTier1", "PreJIT"))


def test_lines_of_precompiled_code_are_those_of_stacktrace(context):
    ready = program("-t:Publish", "-r", "linux-x64", "--self-contained", "false", "-p:PublishReadyToRun=true", name="lines-ready", published=True)
    result = check(context, [shutil.which("dotnet"), ready], ("PreJIT",))
    expect(result.kinds["PreJIT"] > 100, f"only {result.kinds['PreJIT']} frames are precompiled")


def older_program():
    return program("-p:LinesFramework=netcoreapp3.1", name="lines-3.1")


def on_framework(version):
    """The program built for 3.1 on a framework of another version."""
    root, why = shapes._lay_out(version)
    if root is None:
        raise Skip(why)
    return ["env", f"DOTNET_ROOT={root}", "DOTNET_ROLL_FORWARD=LatestMajor", os.path.join(root, "dotnet"), older_program()]


def test_lines_are_those_of_stacktrace_on_netcore31(context):
    dotnet, why = npm_program("dotnet-3.1-linux-x64")
    if dotnet is None:
        raise Skip(why)
    check(context, [dotnet, older_program()], ("QuickJitted", "PreJIT"), at_return_address=True)


def test_lines_are_those_of_stacktrace_on_net8(context):
    check(context, on_framework("8.0"), ("QuickJitted",))


def il_at(context, pid, addresses, jit):
    text = context.mapgen.must("resolve", str(pid), "--lines", f"--jit={jit}", "--json", stdin="\n".join(addresses) + "\n").stdout
    return {answer["input"]: (answer["method_token"], answer["il_offset"], answer["il_quality"]) for answer in json.loads(text)}


def bodies_with_maps(context, lines):
    """(start, size) of each body that the debug information in memory, or an event of the runtime, has a map of."""
    path = os.path.join(context.scratch, "lines.map")
    context.mapgen.must("merge", str(lines.pid), "-o", path)
    memory = Memory(lines.pid)
    code = {f"{start:#x}": (start, size) for start, size, name in read_map(path)
            if "::" in name and not name.startswith("<") and memory.kind_of(start) == "jit"}
    has_map = {address for jit in ("memory", "rundown") for address, (_, offset, _) in il_at(context, lines.pid, code, jit).items() if offset is not None}
    return [code[address] for address in sorted(has_map)]


def check_every_body(context, command):
    with Lines(command) as lines:
        bodies = bodies_with_maps(context, lines)
        addresses = [f"{start + offset:#x}" for start, size in bodies for offset in range(0, size, max(size // 48, 1))]
        ours, events = il_at(context, lines.pid, addresses, "memory"), il_at(context, lines.pid, addresses, "rundown")
    wrong = [(address, ours[address], events[address]) for address in addresses if ours[address] != events[address]]
    context.figure(f"{len(bodies)} bodies have a map, at {len(addresses)} addresses, {len(wrong)} differ")
    expect(not wrong, f"{len(wrong)} differ, first: {wrong[:2]}")
    expect(len(bodies) > 500, f"only {len(bodies)} bodies were compared")


def test_maps_in_memory_are_those_of_the_runtimes_events(context):
    """Every jitted body, at places all over it: the debug information in memory, and what the runtime reports of it."""
    check_every_body(context, [shutil.which("dotnet"), program()])


def test_stack_prints_lines(context):
    with Lines([shutil.which("dotnet"), program()]) as lines:
        text = context.mapgen.must("stack", str(lines.pid), "--lines").stdout
    expect("Lines.cs:" in text, "no line is shown")
    expect("Elsewhere.g.cs:77" in text, "the line of a #line directive is not shown")


def test_check_says_which_assemblies_have_lines(context):
    with Lines([shutil.which("dotnet"), program()]) as lines:
        text = context.mapgen.must("check", str(lines.pid)).stdout
        report = json.loads(context.mapgen.must("check", str(lines.pid), "--json").stdout)["process"]
    expect("\n  lines            lines.dll; no PDB: " in text, text)
    expect(" of the framework" in text and f"fetch-symbols {lines.pid}" in text, text)
    expect(report["assemblies_with_pdb"] == 1 and report["assemblies_without_pdb"] > 2, f"{report}")


def test_another_build_gives_no_line(context):
    """A PDB beside the program that is not its own: no line, and the reason."""
    directory = os.path.join(context.scratch, "other")
    shutil.copytree(os.path.dirname(program()), directory)
    path = os.path.join(directory, "lines.pdb")
    with open(os.path.join(directory, "lines.dll"), "r+b") as file:
        at = file.read().index(b"RSDS") + 24
        file.seek(at)
        file.write(b"x")  # the path where the compiler wrote the right one
    with open(path, "r+b") as file:
        bytes_ = bytearray(file.read())
        at = bytes_.index(b"#Pdb")
        begin = int.from_bytes(bytes_[at - 8:at - 4], "little")
        file.seek(begin)
        file.write(bytes(20))
    with Lines([shutil.which("dotnet"), os.path.join(directory, "lines.dll")]) as lines:
        found = chains(context, lines)
    own = [answer for chain in found.values() for answer in chain if answer["name"] and "[lines]" in answer["name"] and answer["method_token"]]
    expect(len(own) > 100, f"only {len(own)} frames of the program")
    expect(not any(answer["file"] for answer in own), "a line came from the PDB of another build")
    expect(all("another build" in (answer["line_reason"] or "") for answer in own if answer["il_offset"] is not None), "the reason is missing")


def test_il_offsets_become_lines_later(context):
    """The output of resolve without a PDB is enough to find the line on a machine with the PDB."""
    with Lines([shutil.which("dotnet"), program()]) as lines:
        found = chains(context, lines)
    lined = {(answer["method_token"], answer["il_offset"], answer["quality"] == "nearest"): answer for chain in found.values() for answer in chain
             if answer["file"] and answer["name"] and "[lines]" in answer["name"]}
    mvid = next(iter(lined.values()))["module_mvid"]
    asked = [f"{program()}!{mvid}!{token}+IL{'~' if nearest else ''}{offset:#x}" for token, offset, nearest in lined]
    text = context.mapgen.must("resolve", "--json", *asked).stdout
    for question, answer, wanted in zip(asked, json.loads(text), lined.values()):
        expect((answer["file"], answer["line"], answer["column"]) == (wanted["file"], wanted["line"], wanted["column"]),
               f"{question}: {answer}, not {wanted}")
        expect((answer["quality"] == "nearest") == (wanted["quality"] == "nearest"), f"{question}: {answer}, not {wanted}")
    expect(len(asked) > 40, f"only {len(asked)} places were asked for")
    other = asked[0].replace(mvid, "0" * 8 + mvid[8:])
    done = context.mapgen.run("resolve", "--json", other)
    expect(done.returncode and "another build" in done.stdout, f"a question about another build: {done.stdout}")


def test_il_offsets_without_mapping_are_marked(context):
    """Without a PDB too: what the runtime calls offset 0 is the nearest one before, and says so."""
    with Lines([shutil.which("dotnet"), program()]) as lines:
        found = chains(context, lines)
        result = Comparison()
        for thread in lines.threads:
            for frame in thread["frames"][1:]:
                answer = next((answer for answer in found[thread["tid"]] if is_frame(answer, frame)), None)
                if answer and answer["il_offset"] is not None and answer["il_quality"] != "nearest":
                    result.il += 1
                    if answer["il_offset"] != frame["il"]:
                        result.wrong.append((frame, answer))
    expect(not result.wrong, f"{len(result.wrong)} differ without a mark, first: {result.wrong[:1]}")
    expect(result.il > 200, f"only {result.il} offsets were compared")
