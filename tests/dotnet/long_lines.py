# SPDX-License-Identifier: MIT
"""Source lines on further versions of .NET, and inlined methods against the JIT's events; live_lines.py has the rest."""
import json
import os
import re
import shutil
import subprocess

from harness import build_environment, expect, read_map
import live_lines


def test_lines_are_those_of_stacktrace_on_net9(context):
    live_lines.check(context, live_lines.on_framework("9.0"), ("QuickJitted",))


def test_lines_of_composite_images_are_those_of_stacktrace(context):
    """Framework and program in one image. Trimmed, because compiling all of a framework takes many minutes."""
    composite = live_lines.program("-t:Publish", "-r", "linux-x64", "--self-contained", "true", "-p:UseAppHost=true", "-p:PublishTrimmed=true",
                                   "-p:TrimMode=partial", "-p:PublishReadyToRun=true", "-p:PublishReadyToRunComposite=true",
                                   name="lines-composite", published=True)
    directory = os.path.dirname(composite)
    expect(os.path.exists(os.path.join(directory, "lines.r2r.dll")), "the build has no composite image")
    result = live_lines.check(context, [os.path.join(directory, "lines")], ("PreJIT",))
    expect(result.kinds["PreJIT"] > 100, f"only {result.kinds['PreJIT']} frames are precompiled")


def test_maps_in_memory_are_those_of_the_runtimes_events_on_net11(context):
    live_lines.check_every_body(context, live_lines.on_framework("11.0"))


def test_lines_are_those_of_stacktrace_on_net11(context):
    live_lines.check(context, live_lines.on_framework("11.0"), ("QuickJitted", "PreJIT"))


def owner_and_name(full_name):
    """("Ns.Type`1", "M") of "void [App] Ns.Type`1[Ns.A]::M(int32)"."""
    owner, _, name = re.sub(r"^.*?\[[^\]]+\] ", "", full_name).partition("::")
    return owner.partition("[")[0], name.partition("(")[0]


def inlined_by_events(context, path):
    """(root, inlinee) of each MethodJitInliningSucceeded; the runtime does not name the callers between."""
    text = context.mapgen.must("report", "events", "-i", path, "--event=MethodJitInliningSucceeded", "--format=json").stdout
    pairs = set()
    for event in json.loads(text)["events"]:
        fields = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', event["fields"]))
        pairs.add(tuple((fields[who + "Namespace"].partition("[")[0], fields[who + "Name"]) for who in ("MethodBeingCompiled", "Inlinee")))
    return pairs


def compare_inlined(context, variables):
    """Every second byte of all optimized bodies; the number of pairs of methods that were compared."""
    trace, path = os.path.join(context.scratch, "jit.nettrace"), os.path.join(context.scratch, "jit.map")
    environment = {**build_environment(), **variables, "DOTNET_RichDebugInfo": "1", "DOTNET_EnableEventPipe": "1",
                   "DOTNET_EventPipeOutputPath": trace, "DOTNET_EventPipeConfig": "Microsoft-Windows-DotNETRuntime:0x1000:5"}
    with subprocess.Popen([shutil.which("dotnet"), live_lines.program()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as process:
        while process.stdout.readline().strip() != "ready":
            pass
        context.mapgen.must("merge", str(process.pid), "-o", path)
        addresses = [f"{start + offset:#x}" for start, size, name in read_map(path) if re.search(r"\[(OptimizedTier1|OptimizedTier1OSR|Optimized)\]$", name)
                     for offset in range(0, size, 2)]
        answers = json.loads(context.mapgen.must("resolve", str(process.pid), "--inlines", "--json", stdin="\n".join(addresses) + "\n").stdout)
        process.stdin.close()  # the program ends, and the runtime writes the rest of its events
    reported = inlined_by_events(context, trace)
    ours = {(owner_and_name(answer["name"]), owner_and_name(item["name"])) for answer in answers for item in answer.get("inlined") or []}
    context.figure(f"{len(addresses)} addresses, {sum(bool(answer.get('inlined')) for answer in answers)} in inlined code, {len(ours)} pairs, "
                   f"{len(ours - reported)} not in {len(reported)} of the events")
    expect(not ours - reported, f"{sorted(ours - reported)[:3]}")
    return len(ours)


def test_inlined_methods_are_those_of_the_jits_events(context):
    """On a busy machine the program is warm before much is compiled again. Without tiers all its code is optimized at once."""
    count = compare_inlined(context, {"DOTNET_TieredCompilation": "0"})
    expect(count > 100, f"only {count} pairs were compared")
    compare_inlined(context, {"DOTNET_TC_CallCountingDelayMs": "0"})
