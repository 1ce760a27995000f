# SPDX-License-Identifier: MIT
"""Programs on .NET 11, for which no SDK here builds: what is built for 10 runs on it.

What is compared is what live_contract, live_rundown and matrix compare on the SDK's own runtime.
Methods that await are new: the framework of 11 is made of them.
"""
import os
import shutil

import crossgen2_maps
import live_symbolize
import matrix
import shapes
from harness import Sample, built, expect, read_map
from live_contract import awaiting, compare_compiler, compare_rundown, compare_settled, csc_command, torture_program
from live_merge import MAP_ON, content, precompiled, whole_lines
from live_rundown import missing_methods


def runtime(context, program):
    return context.once(f"newest {program}", lambda: shapes.newest_runtime(program))


def test_names_programs_on_net_11_as_their_own_maps_do(context):
    compare_settled(context, "11, linq app", runtime(context, context.sdk().sample), Sample.LONGEST_SECONDS, {})
    torture = runtime(context, torture_program(context))
    for title, environment in (("default", {}), ("W^X off", {"DOTNET_EnableWriteXorExecute": "0"}),
                               ("R2R off", {"DOTNET_ReadyToRun": "0"}),
                               ("loops optimized at once", {"DOTNET_TC_QuickJitForLoops": "0"})):
        _, _, report = compare_settled(context, f"11, torture, {title}", torture, "settle", environment)
        expect(not report["other_tiers"], f"{title}: {report['other_tiers']} tiers differ")


def test_names_methods_that_await_as_their_own_map_does(context):
    for title, environment in (("default", {}), ("tiering off", {"DOTNET_TieredCompilation": "0"}), ("R2R off", {"DOTNET_ReadyToRun": "0"})):
        _, ours, _ = compare_settled(context, f"awaiting, {title}", runtime(context, awaiting(context)), "", environment, least=30)
        names = {name for _, name in ours.values()}
        for wanted in (b"int64 [awaiting] Awaiting.Program::Inner(int32)", b"void [awaiting] Awaiting.Program::Nothing()",
                       b"int64 [awaiting] Awaiting.Program::Value(int32)", b"instance int64 [awaiting] Awaiting.Derived::Virtual(int32)",
                       b"instance int64 [awaiting] Awaiting.Box`1[System.__Canon]::Work(!0,int32)"):
            expect(wanted in names, f"{title}: {wanted.decode()} is not in the map")


def test_names_the_compiler_on_net_11_as_its_own_map_does(context):
    scratch = context.directory("csc-11")
    dotnet, *rest = csc_command(context, scratch)
    newest = runtime(context, context.sdk().sample)
    compare_compiler(context, "11, csc", [newest.dotnet, *rest], {"DOTNET_ROLL_FORWARD": "LatestMajor"})


def test_a_rundown_of_net_11_names_what_the_runtime_wrote(context):
    with Sample(runtime(context, context.sdk().sample), {"DOTNET_PerfMapEnabled": "3"}) as sample:
        compare_rundown(context, "11", sample, "rundown")
    with Sample(runtime(context, awaiting(context)), {"DOTNET_PerfMapEnabled": "3", "DOTNET_ReadyToRun": "0"},
                argument="") as sample:
        compare_rundown(context, "11, awaiting", sample, "rundown")


def precompiled_program(context):
    """The same program, compiled by crossgen2 11."""
    def make():
        out = os.path.join(built("awaiting"), "precompiled")
        program = awaiting(context)
        os.makedirs(out, exist_ok=True)
        shutil.copy(program.removesuffix(".dll") + ".runtimeconfig.json", out)
        compiler = crossgen2_maps.Compiler("11")
        compiler.run(crossgen2_maps.Build("plain"), [program], os.path.join(out, "awaiting.dll"), [])
        return os.path.join(out, "awaiting.dll"), None
    return context.once("awaiting precompiled", make)


def test_finds_precompiled_methods_of_net_11_as_the_rundown_has_them(context):
    """Sizes too: a stub that resumes a method is not the method."""
    context.oracle()
    for title, program in (("linq app", context.sdk().sample), ("awaiting", precompiled_program(context))):
        with Sample(runtime(context, program), {"DOTNET_TieredCompilation": "0"}, resting=True) as sample:
            counts, missing = missing_methods(context, sample.pid, ("jit", "r2r", "dynamic"))
        for kind, (good, total) in sorted(counts.items()):
            context.figure(f"11, {title}, {kind}: {good} of {total} methods of the rundown are in the map")
        expect(not missing, f"{title}: {len(missing)} methods differ, first: {missing[:1]}")
        expect(counts["r2r"][1] > 400, f"{title}: hardly any method is precompiled: {counts}")


def test_every_frame_of_net_11_has_a_name(context):
    """perf, nothing set, the shared framework of 11."""
    shape = next(shape for shape in shapes.SHAPES if shape.title == "11.0 framework-dependent")
    matrix.run_shape(context, shape)


def test_every_frame_of_methods_that_await_has_a_name(context):
    """As frames of an application that is precompiled, with the stubs that resume them."""
    shape = next(shape for shape in shapes.SHAPES if shape.title == "11.0 framework-dependent")
    program = precompiled_program(context)
    with Sample(runtime(context, program), {"DOTNET_PerfMapEnabled": "0", "DOTNET_TieredCompilation": "0"}) as sample:
        count, _ = matrix.count_frames(context, shape, None, sample, 0.25)
    context.figure(f"R2R {count.text('r2r')}, JIT {count.text('jit')}, native {count.text('native')}, stubs {count.text('stub')}")
    matrix.judge(shape, count, [])


def test_the_write_barrier_of_net_11_has_its_name(context):
    """The runtime copies it out of its library, and names it for debuggers; without W^X that memory could be anybody's."""
    for environment in (MAP_ON, dict(MAP_ON, DOTNET_EnableWriteXorExecute="0")):
        with Sample(runtime(context, context.sdk().sample), environment, resting=True) as sample:
            block = [row for row in read_map(sample.map_path) if "<JIT_CopiedWriteBarriers>" in row[2]]
            expect(len(block) == 1, f"the runtime tells of {len(block)} copies")
            start, size, _ = block[0]
            answers = context.mapgen.resolve(sample.pid, range(start, start + size), "--jit=memory")
        names = [answers[address]["name"] for address in range(start, start + size)]
        first = names.index("JIT_WriteBarrier") if "JIT_WriteBarrier" in names else size
        last = size - names[::-1].index("JIT_WriteBarrier") if first < size else 0
        context.figure(f"{last - first} of {size} bytes are JIT_WriteBarrier's")
        expect(last - first > size / 2 and set(names[first:last]) == {"JIT_WriteBarrier"} and size - last < 16,
               f"names: {sorted(set(map(str, names)))}")


def test_the_write_barrier_is_found_where_net_11_says_that_it_is(context):
    """Runtimes before it do not say: there it is known by its neighbour."""
    with Sample(runtime(context, context.sdk().sample), MAP_ON, resting=True) as sample:
        start = next(row[0] for row in read_map(sample.map_path) if "<JIT_CopiedWriteBarriers>" in row[2])
        places = range(start, start + 256, 16)
        told, found = ([start for start, answer in context.mapgen.resolve(sample.pid, places, "--jit=" + way).items()
                        if answer["name"] == "JIT_WriteBarrier"] for way in ("memory", "rundown"))
    expect(told and told == found, f"{[hex(place) for place in told]} and {[hex(place) for place in found]}")


def test_callers_that_no_call_made_have_names_on_net_11(context):
    """Code that takes the place of a running method (OSR) seems to be called by its own beginning."""
    with Sample(runtime(context, context.sdk().sample)) as sample:
        text = live_symbolize.bpftrace(context, sample.pid, "ustack")
        live_symbolize.count_bare(context, live_symbolize.symbolize(context, text, "-p", sample.pid), sample.pid, "bpftrace ustack", 100)


def test_a_map_that_net_11_writes_is_replaced(context):
    """It comes in blocks that end within a line: what is appended would cut that."""
    with Sample(runtime(context, context.sdk().sample), MAP_ON, resting=True) as sample:
        inode = os.stat(sample.map_path).st_ino
        refused = context.mapgen.run("merge", sample.pid, "--mode=append")
        expect(refused.returncode == 1 and "blocks that end within a line" in refused.stderr, f"append is not refused: {refused.stderr}")
        expect(os.stat(sample.map_path).st_ino == inode, "the refused merge has put another file there")
        own = [line.split(b" ", 2) for line in content(sample.map_path).split(b"\n")[:-1]]
        done = context.mapgen.must("merge", sample.pid)
        expect("written to" in done.stdout and "blocks that end within a line" in done.stderr, f"merge says: {done.stdout} {done.stderr}")
        whole_lines(content(sample.map_path), "after merge")
        expect(os.stat(sample.map_path + ".runtime").st_ino == inode, "the runtime's file is not kept as .runtime")
        rows = read_map(sample.map_path)
        expect(len(precompiled(rows)) > 1000, f"only {len(precompiled(rows))} precompiled methods")
        starts = {start for start, *_ in rows}
        missing = [name for start, _, name in own if not name.startswith(b"stub ") and b" dynamicClass::" not in name
                   and int(start, 16) not in starts]
        context.figure(f"{len(rows)} lines, {len(own)} of the runtime's, {len(missing)} of these methods missing")
        expect(len(own) > 300 and not missing, f"missing: {missing[:2]}")
        context.mapgen.must("merge", "--undo", sample.pid)
        expect(os.stat(sample.map_path).st_ino == inode, "undo did not put the runtime's file back")
