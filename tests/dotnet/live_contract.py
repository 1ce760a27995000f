# SPDX-License-Identifier: MIT
"""Jitted code named from outside, by the runtime's data contract.

The oracle is the perf map that the same process writes about itself: start,
size and whole name of every method still alive, and the tier, which the contract has
no field for and may be a hint here and there. Lines with names
that are not ASCII are damaged by the runtime (10.0) and are counted, not
compared. csc is stopped while it is read, so that the map stands still too.
"""
import collections
import glob
import json
import os
import re
import signal
import struct
import subprocess

from harness import ROOT, Fail, Runtime, Sample, Skip, build_project, built, expect, remove_leftovers, sdk_runtime
from waiting import wait_until

TIER = re.compile(rb"\[(Unknown|MinOptJitted|Optimized|QuickJitted|OptimizedTier1|OptimizedTier1OSR|"
                  rb"InstrumentedTier|InstrumentedTierOptimized)\]$")
LINE = re.compile(rb"(?:0x)?([0-9a-fA-F]+) ([0-9a-f]+) (.+)$")


class Method(tuple):
    """(size, name), and the tier, which makes no difference between two."""
    tier = ""

    @staticmethod
    def of(match):
        method = Method((int(match[2], 16), TIER.sub(b"", match[3])))
        tier = TIER.search(match[3])
        method.tier = tier[1].decode() if tier else ""
        return method


def torture_program(context):
    return torture_runtime(context).sample


def torture_runtime(context, name="torture", *properties):
    """The SDK's runtime with the torture program."""
    def make():
        runtime, why = sdk_runtime()
        if not runtime:
            return None, why
        if runtime.framework != "net10.0":
            return None, f"the SDK makes {runtime.framework}, the data contract is .NET 10's"
        artifacts = built(name)
        why = build_project("fixtures/src/torture", artifacts, f"-p:TortureFramework={runtime.framework}", *properties)
        if why:
            return None, f"the torture program does not build: {why}"
        program = os.path.join(artifacts, "bin", "torture", "release", "torture.dll")
        return Runtime(runtime.dotnet, program, runtime.framework, "torture"), None
    return context.once(name, make)


def awaiting(context):
    """The program whose methods await."""
    def make():
        artifacts = built("awaiting")
        why = build_project("fixtures/src/awaiting", artifacts)
        return (None, why) if why else (os.path.join(artifacts, "bin", "awaiting", "release", "awaiting.dll"), None)
    return context.once("awaiting", make)


def read_methods(path):
    """{start: Method} of methods, and how many lines the runtime damaged."""
    methods, damaged = {}, 0
    with open(path, "rb") as file:
        for line in file.read().split(b"\n"):
            match = LINE.match(line)
            if not line:
                continue
            if not match or not line.isascii() or (not match[3].startswith(b"stub ") and not TIER.search(match[3])):
                damaged += 1
            elif not match[3].startswith(b"stub "):
                methods[int(match[1], 16)] = Method.of(match)
    return methods, damaged


def read_ours(context, pid, *options, known=()):
    """Our map of the process by the contract alone, and what the program says of it. `known`: starts of methods, which are
    known by their tiers otherwise: that of one whose versions are being changed cannot be read."""
    output = os.path.join(context.scratch, f"contract-{pid}.map")
    done = context.mapgen.must("merge", pid, "--jit=memory", "--json", "-o", output, *options)
    report = json.loads(done.stdout)
    expect(report["jit"]["way"] == "contract", f"not read by contract: {report['notes'] or done.stderr}")
    methods = {}
    with open(output, "rb") as file:
        for line in file:
            match = LINE.match(line.rstrip(b"\n"))
            if match and (TIER.search(match[3]) or int(match[1], 16) in known):
                methods[int(match[1], 16)] = Method.of(match)
    return methods, report["jit"]


def absent_dynamic(before, ours):
    """Starts of what a map has for ever and the runtime until it is collected."""
    return [start for start, (_, name) in before.items() if start not in ours and b" dynamicClass::" in name]


def freed_methods(context, pid, before, ours):
    """Those that the runtime no longer lists either."""
    absent = absent_dynamic(before, ours)
    answers = context.mapgen.resolve(pid, absent, "--jit=rundown") if absent else {}
    return [start for start, answer in answers.items() if not answer["resolved"]]


def compare(context, title, before, ours, after, freed, least=100):
    """Every method that was in the runtime's map before is in ours, nothing is in ours that is not in it after."""
    same = [start for start, method in before.items() if ours.get(start) == method]
    wrong = [start for start in before if ours.get(start) != before[start] and start not in freed]
    unknown = [start for start, method in ours.items() if start in after and after[start] != method]
    total = len(before) - len(freed)
    context.figure(f"{title}: start, size and name equal for {len(same)} of {total} methods "
                   f"({100 * len(same) / max(total, 1):.2f} %, goal 100 %); {len(freed)} freed dynamic methods aside")
    for start in wrong[:5]:
        context.figure(f"differs: {start:x} {before[start]}, ours {ours.get(start)}")
    tiers = collections.Counter((before[start].tier, ours[start].tier) for start in same if before[start].tier != ours[start].tier)
    context.figure(f"{title}: the tier of {len(same) - tiers.total()} of {len(same)} is the runtime's; {dict(tiers) or 'no other'}")
    expect(tiers.total() <= 0.01 * total, f"{tiers.total()} tiers differ")
    expect(total > least, f"only {total} methods to compare")
    expect(not wrong and not unknown, f"{len(wrong)} methods differ, {len(unknown)} are unknown to the runtime")
    return tiers.total()


def compare_settled(context, title, runtime, argument, environment, least=100):
    with Sample(runtime, dict(environment, DOTNET_PerfMapEnabled="3"), argument=argument) as sample:
        before, damaged = read_methods(sample.map_path)
        ours, report = read_ours(context, sample.pid, known=before)
        after, _ = read_methods(sample.map_path)
        freed = freed_methods(context, sample.pid, before, ours)
    report["other_tiers"] = compare(context, title, before, ours, after, freed, least)
    expect(report["unnamed"] == 0, f"{report['unnamed']} pieces of code have no name")
    return damaged, ours, report


def test_names_a_linq_app_as_its_own_map_does(context):
    compare_settled(context, "linq app", context.sdk(), Sample.LONGEST_SECONDS, {})


def test_names_methods_that_await_on_net_10_as_its_own_map_does(context):
    """With the option, .NET 10 awaits without state machines: each such method has two bodies with one token."""
    environment = {"DOTNET_RuntimeAsync": "1", "DOTNET_ReadyToRun": "0", "DOTNET_PerfMapEnabled": "3"}
    sdk = torture_runtime(context)
    runtime = Runtime(sdk.dotnet, awaiting(context), sdk.framework, "awaiting")
    _, ours, _ = compare_settled(context, "awaiting", runtime, "", environment)
    names = {name for _, name in ours.values()}
    task = b"[System.Runtime]System.Threading.Tasks.Task"
    for wanted in (b"class " + task + b"`1<int32> [awaiting] Awaiting.Program::Main()",
                   b"int64 modreq(" + task + b"`1) [awaiting] Awaiting.Program::Outer(int32)",
                   b"void modreq(" + task + b") [awaiting] Awaiting.Program::Nothing()"):
        expect(wanted in names, f"{wanted.decode()} is not in the map")
    with Sample(runtime, environment, argument="") as sample:
        compare_rundown(context, "awaiting", sample, "rundown")


def test_names_the_torture_program_as_its_own_map_does(context):
    runtime = torture_runtime(context)
    variants = {"default": {}, "W^X off": {"DOTNET_EnableWriteXorExecute": "0"},
                "tiering off": {"DOTNET_TieredCompilation": "0"}, "PGO off": {"DOTNET_TieredPGO": "0"}}
    for title, environment in variants.items():
        damaged, ours, report = compare_settled(context, "torture, " + title, runtime, "settle", environment)
        words = [name for _, name in ours.values() if "Größe".encode() in name]
        context.figure(f"{damaged} lines are damaged by the runtime; {len(words)} names that are not ASCII; "
                       f"{report['read_calls']} calls, {report['read_bytes']} bytes")
        expect(len(words) > 5, "no names that are not ASCII")
        expect(report["read_calls"] < 500, f"{report['read_calls']} system calls")


def test_tells_code_that_was_built_for_debugging(context):
    """As `dotnet run` builds it: the JIT compiles it as it stands, and never again."""
    runtime = torture_runtime(context, "torture-debug", "-p:Optimize=false", "-p:DebugType=portable")
    _, ours, _ = compare_settled(context, "torture, built for debugging", runtime, "settle", {})
    tiers = collections.Counter(method.tier for method in ours.values() if b"[torture]" in method[1])
    expect(tiers["MinOptJitted"] > 100 and tiers["Optimized"] <= 0.05 * tiers.total(), f"tiers of its methods: {dict(tiers)}")


def test_tells_code_that_is_optimized_because_of_its_tail_calls(context):
    """F# marks calls so, and its compiler is itself a program of F#: of such methods the JIT makes optimized code at once."""
    runtime = context.sdk()
    programs = glob.glob(os.path.join(os.path.dirname(os.path.realpath(runtime.dotnet)), "sdk", "*", "FSharp", "fsi.dll"))
    if not programs:
        raise Skip("no F# beside the SDK")
    script = os.path.join(context.scratch, "settle.fsx")
    with open(script, "w", encoding="ascii") as file:
        file.write('let rec even n = n = 0 || odd (n - 1)\nand odd n = n <> 0 && even (n - 1)\n'
                   'if even 1000 then printfn "ready"\nSystem.Threading.Thread.Sleep(System.Threading.Timeout.Infinite)\n')
    runtime = Runtime(runtime.dotnet, programs[0], runtime.framework, "fsi")
    with Sample(runtime, {"DOTNET_PerfMapEnabled": "3"}, argument=script) as sample:
        sample.stand_still()
        theirs, _ = read_methods(sample.map_path)
        ours, _ = read_ours(context, sample.pid)
    optimized = [start for start, method in theirs.items() if method.tier == "Optimized" and b" [FSharp." in method[1] and start in ours]
    told = sum(ours[start].tier == "Optimized" for start in optimized)
    context.figure(f"{told} of {len(optimized)} methods of F# that were optimized at once are told to be")
    compare(context, "fsi", theirs, ours, theirs, absent_dynamic(theirs, ours))
    expect(len(optimized) > 100 and told >= 0.95 * len(optimized), "their tier is another")


def reload_runtime(context):
    runtime, artifacts = context.sdk(), built("reload")
    why = build_project("fixtures/src/reload", artifacts)
    if why:
        raise Skip(f"the program that reloads does not build: {why}")
    return Runtime(runtime.dotnet, os.path.join(artifacts, "bin", "reload", "release", "reload.dll"), runtime.framework, "reload")


def test_names_methods_that_hot_reload_has_added(context):
    """They are in no metadata that can be read: unasked, the runtime is. The oracle is its map, which is emptied before we look."""
    runtime = reload_runtime(context)
    environment = {"DOTNET_MODIFIABLE_ASSEMBLIES": "debug", "DOTNET_PerfMapEnabled": "3"}
    with Sample(runtime, environment, argument=context.scratch) as sample:
        sample.stand_still()
        # Calls go to the last version of a changed method; the former one may continue to run.
        compiled = [(name.split(b"::")[-1].split(b"(")[0].split(b"[")[0].decode(), start)
                    for start, (_, name) in read_methods(sample.map_path)[0].items() if b"Hot." in name]
        methods = dict(compiled)
        os.truncate(sample.map_path, 0)
        os.kill(sample.pid, signal.SIGCONT)
        answers = {way: context.mapgen.resolve(sample.pid, [start for _, start in compiled], f"--jit={way}") for way in ("auto", "memory")}
    named = {way: {name for name, start in methods.items() if f"::{name}" in (answers[way][start]["name"] or "")} for way in answers}
    context.figure(f"of {sorted(methods)}: {sorted(named['auto'])} are named, by contract alone {sorted(named['memory'])}")
    expect({"Same", "Changed", "Added", "Other", "Generic"} <= set(methods), "the runtime did not compile them")
    expect(named["auto"] == set(methods), "methods that were added have no name")
    expect({"Same", "Changed"} <= named["memory"], "methods that were there before have no name")
    lost = [name for name, start in compiled if f"::{name}" not in (answers["auto"][start]["name"] or "")]
    expect(len(compiled) > len(methods) and not lost, f"former versions have no name: {lost} of {compiled}")


def test_names_the_torture_program_without_precompiled_code(context):
    # Everything is jitted, also during the comparison; methods added then are in neither count.
    compare_settled(context, "torture, R2R off", torture_runtime(context), "settle", {"DOTNET_ReadyToRun": "0"})


def test_reads_a_process_that_was_started_with_nothing_set(context):
    with Sample(torture_runtime(context), {"DOTNET_EnableDiagnostics": "0"}, argument="settle") as sample:
        # Another process of this number may have left one.
        expect(not os.path.exists(sample.map_path) or os.stat(sample.map_path).st_mtime < os.stat(f"/proc/{sample.pid}").st_mtime,
               "the process writes a perf map")
        ours, report = read_ours(context, sample.pid)
        context.figure(f"{len(ours)} methods, {report['unnamed']} without a name")
        expect(len(ours) > 1000 and report["unnamed"] == 0, "methods are missing")


def csc_command(context, scratch):
    programs = glob.glob(os.path.join(os.path.dirname(os.path.realpath(context.sdk().dotnet)), "sdk", "*", "Roslyn",
                                      "bincore", "csc.dll"))
    references = glob.glob(os.path.join(os.path.dirname(os.path.realpath(context.sdk().dotnet)), "packs",
                                        "Microsoft.NETCore.App.Ref", "*", "ref", "net10.0", "*.dll"))
    if not programs or not references:
        raise Skip("no C# compiler beside the SDK")
    source = os.path.join(scratch, "many.cs")
    with open(source, "w", encoding="ascii") as file:
        file.write("using System;using System.Linq;using System.Collections.Generic;using System.Threading.Tasks;\n")
        for i in range(4000):
            file.write(f"public class C{i}<T> where T:IComparable<T>{{public int F(int a)=>new List<int>{{a,{i}}}.Where("
                       f"x=>x>a).Select(x=>x*{i}).Sum()+(a switch{{1=>2,3=>4,_=>5}});public async Task<T> G(T t){{await "
                       f"Task.Delay(1);return t;}}public IEnumerable<int> H(){{for(int i=0;i<9;i++)yield return i;}}}}\n")
        file.write("public class P{public static void Main(){}}\n")
    return [context.sdk().dotnet, "exec", programs[0], "-nologo", "-out:" + os.path.join(scratch, "many.dll"), source,
            *("-r:" + reference for reference in references)]


def test_names_the_compiler_as_its_own_map_does(context):
    compare_compiler(context, "csc", csc_command(context, context.directory("csc")), {})


def compare_compiler(context, title, command, environment):
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env=dict(os.environ, DOTNET_PerfMapEnabled="3", **environment))
    map_path = f"/tmp/perf-{process.pid}.map"
    try:
        wait_until(lambda: process.poll() is not None or
                   (os.path.exists(map_path) and len(read_methods(map_path)[0]) >= 3000), "few methods are compiled", pause=0.2)
        expect(process.poll() is None, "the compiler ended too early")
        process.send_signal(signal.SIGSTOP)
        before, _ = read_methods(map_path)
        ours, report = read_ours(context, process.pid)
        compare(context, title, before, ours, before, absent_dynamic(before, ours))
        context.figure(f"{report['read_calls']} calls, {report['read_bytes']} bytes")
        expect(report["read_calls"] < 500, f"{report['read_calls']} system calls")
    finally:
        process.kill()
        process.wait()
        remove_leftovers(process.pid)


def check_numbers(pid, methods):
    """Methods named number123: how many return 123 by their code, and those that do not; read as soon as can be."""
    right, wrong = 0, {}
    with open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for start, (size, name) in methods.items():
            match = re.search(rb"::[nN]umber(\d+)\(\)", name)
            if not match:
                continue
            try:
                memory.seek(start)
                code = memory.read(size)
            except OSError:
                continue
            number = int(match[1])
            loads = b"\xb8" + struct.pack("<I", number) if number else b"\x33\xc0"
            if loads in code:
                right += 1
            else:
                wrong[start] = (size, name)
    return right, wrong


def read_at_once(context, pid):
    """The list of the example program: it ends right after the reading, before much can change."""
    program = os.path.join(ROOT, context.build, "examples", "list_jitted")
    done = subprocess.run([program, str(pid)], stdin=subprocess.DEVNULL, capture_output=True)
    expect(done.returncode == 0, f"list_jitted: {done.stderr}")
    unnamed = int(re.search(rb"(\d+) not named", done.stderr)[1])
    methods = {}
    for line in done.stdout.split(b"\n"):
        match = LINE.match(line)
        if match and TIER.search(match[3]):
            methods[int(match[1], 16)] = (int(match[2], 16), TIER.sub(b"", match[3]))
    return methods, unnamed


def test_never_names_wrongly_what_lives_for_moments(context):
    right = wrong = unnamed = freed = 0
    with Sample(torture_runtime(context), argument="churn:1000") as sample:
        while right + wrong < 10000:
            methods, without_name = read_at_once(context, sample.pid)
            good, suspects = check_numbers(sample.pid, methods)
            if suspects:
                # On a busy machine a collection may come between the reading and the check: then the next reading
                # has another name there.
                methods, _ = read_at_once(context, sample.pid)
                _, suspects_still = check_numbers(sample.pid, methods)
                bad = sum(suspects_still.get(start) == method for start, method in suspects.items())
                freed += len(suspects) - bad
                wrong += bad
            right, unnamed = right + good, unnamed + without_name
            if not sample.alive():
                raise Fail("the program ended")
    dynamic = right + wrong + unnamed
    context.figure(f"1,000 dynamic methods a second: {wrong} wrong names in {right + wrong} checked against the "
                   f"machine code, {100 * (right + wrong) / dynamic:.1f} % named (goal 0 wrong, 75 % named); {freed} freed before the check")
    expect(wrong == 0, f"{wrong} names are of other code")
    expect(4 * (right + wrong) >= 3 * dynamic, f"{unnamed} of {dynamic} have no name")


def test_no_method_is_taken_for_a_stub_when_it_has_been_unloaded(context):
    """A code heap whose methods were unloaded may stay mapped; the runtime no longer lists it."""
    with Sample(torture_runtime(context), {"DOTNET_PerfMapEnabled": "3"}, argument="churn:2000") as sample:
        wait_until(lambda: len(read_methods(sample.map_path)[0]) >= 8000, "few methods are compiled", pause=0.5)
        sample.stand_still()
        methods, _ = read_methods(sample.map_path)
        answers = context.mapgen.resolve(sample.pid, sorted(methods), "--jit=memory")
    kinds = collections.Counter(answer["name"] if answer["name"] and answer["name"].startswith("[") else answer["status"] for answer in answers.values())
    context.figure(f"{len(methods)} methods that were compiled: {dict(kinds.most_common(6))}")
    wrong = [start for start, answer in answers.items() if answer["name"] == "[runtime stub]"]
    expect(not wrong, f"{len(wrong)} of {len(methods)} methods are stubs: {[(hex(start), methods[start]) for start in wrong[:3]]}")


def test_a_rundown_names_what_the_runtime_wrote_of_core_3_1(context):
    with Sample(context.npm(), {"COMPlus_PerfMapEnabled": "1"}) as sample:
        compare_rundown(context, "Core 3.1", sample, "auto")


def test_a_rundown_names_what_the_runtime_wrote(context):
    with Sample(context.sdk(), {"DOTNET_PerfMapEnabled": "3"}) as sample:
        compare_rundown(context, context.sdk().framework, sample, "rundown")


def compare_rundown(context, title, sample, way):
    """Start, size and whole name of every method; of dynamic ones a rundown does not tell the signature, which the
    default takes from the map."""
    before, _ = read_methods(sample.map_path)
    done = context.mapgen.must("resolve", sample.pid, "--jit=" + way, "--json",
                               *(f"{start:#x}" for start in list(before)[:3000]))
    answers = {int(answer["input"], 16): answer for answer in json.loads(done.stdout)}
    same, joined, freed, wrong = 0, 0, 0, []
    for start, answer in answers.items():
        size, name = before[start]
        sources = ["runtime"]
        if b" dynamicClass::" in name and way == "auto":
            sources.append("perfmap")
        elif b" dynamicClass::" in name:
            name = name[name.index(b"dynamicClass"):name.index(b"(", name.index(b"dynamicClass"))]
            if answer["source"] != "runtime":
                freed += 1
                continue
        if answer["source"] in sources and answer["name"] == name.decode() and answer["size"] == size:
            same += 1
            joined += answer["source"] == "perfmap"
        else:
            wrong.append(f"{start:x} {before[start]}, ours {answer['name']} {answer['source']}")
    context.figure(f"{title}: start, size and name equal for {same} of {len(answers) - freed} methods, by "
                   f"rundown, {joined} of them by the map; {freed} freed dynamic methods aside")
    for line in wrong[:5]:
        context.figure("differs: " + line)
    expect(same > 100 and not wrong, f"{len(wrong)} methods differ, {same} are equal")
    expect(joined > 0 or way != "auto", "no name was taken from the map")
