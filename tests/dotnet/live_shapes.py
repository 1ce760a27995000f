# SPDX-License-Identifier: MIT
"""The quick part of the matrix: single-file applications, whose images lie inside the executable or are unpacked."""
import os
import random
import shutil
import struct

import matrix
import shapes
from harness import Sample, Skip, expect, read_map
from live_contract import TIER


def _run(context, title):
    shape = next(shape for shape in shapes.SHAPES if shape.title == title)
    matrix.run_shape(context, shape)


def test_single_file_frames_have_method_names(context):
    _run(context, "10.0 single-file")


def test_compressed_single_file_frames_have_method_names(context):
    _run(context, "10.0 single-file compressed")


def test_compressed_composite_single_file_frames_have_method_names(context):
    """Its assemblies have no code of their own, and are no images of the process."""
    _run(context, "10.0 composite single-file compressed")


def test_self_contained_8_0_frames_and_methods_are_named_by_rundown(context):
    _run(context, "8.0 self-contained")


def test_self_contained_9_0_frames_and_methods_are_named_by_rundown(context):
    _run(context, "9.0 self-contained")


def test_core_3_1_frames_and_methods_are_named_by_rundown(context):
    _run(context, "3.1 framework-dependent")


def own_names(path, of):
    """{start: name without tier} of jitted methods of an assembly, in a map; dynamic methods have no row in metadata."""
    return {start: TIER.sub(b"", name.encode()).decode() for start, _, name in read_map(path)
            if TIER.search(name.encode()) and f"[{of}] " in name and "dynamicClass::" not in name}


def test_a_rundown_names_a_single_file_application_s_own_assembly_in_full(context):
    """It has no code of its own and is no image of the process: its metadata comes out of the bundle. The oracle is the
    runtime's own map."""
    for title in ("8.0 single-file", "8.0 single-file compressed", "10.0 single-file"):
        published, why = shapes.publish(next(shape for shape in shapes.SHAPES if shape.title == title))
        if published is None:
            raise Skip(why)
        output = os.path.join(context.scratch, "own.map")
        with Sample(published, {"DOTNET_PerfMapEnabled": "1"}, resting=True) as sample:
            context.mapgen.must("merge", sample.pid, "--jit=rundown", "-o", output)
            told, written = own_names(output, "sample"), own_names(sample.map_path, "sample")
        same = sum(written.get(start) == name for start, name in told.items())
        context.figure(f"{title}: {same} of {len(told)} methods of the application as in the runtime's own map")
        expect(len(told) > 30 and same == len(told), f"{title}: {len(told) - same} of {len(told)} names differ")


def record(pid, root, executable):
    """A recorded tree of a process; the path of its executable in it, to be written."""
    os.makedirs(f"{root}/proc/{pid}")
    for name in ("maps", "stat", "status"):
        shutil.copyfile(f"/proc/{pid}/{name}", f"{root}/proc/{pid}/{name}")
    shutil.copyfile("/proc/stat", f"{root}/proc/stat")
    os.symlink(executable, f"{root}/proc/{pid}/exe")
    os.makedirs(root + os.path.dirname(executable))
    return root + executable


def lies(data):
    """(what, bytes) of hosts whose manifest does not tell the truth, and whether that must be said."""
    mark = bytes.fromhex("8b1202b96a612038727b930214d7a03213f5b9e6efae3318ee3b2dce24b36aae")
    pointer = data.index(mark) - 8
    manifest = struct.unpack_from("<q", data, pointer)[0]
    for what, layout, at, value in (("begins at the end", "<q", pointer, len(data) - 3), ("lies beyond the end", "<q", pointer, 1 << 60),
                                    ("has 2^31 files", "<i", manifest + 8, 2**31 - 1), ("has -1 files", "<i", manifest + 8, -1),
                                    ("is of the future", "<I", manifest, 99)):
        lie = bytearray(data)
        struct.pack_into(layout, lie, at, value)
        yield what, lie, True
    yield "is cut", data[:manifest + 200], True
    chance = random.Random(3)
    for number in range(12):
        lie = bytearray(data)
        for _ in range(chance.randint(1, 6)):
            lie[manifest + chance.randrange(len(data) - manifest)] = chance.randrange(256)
        yield f"has flipped bytes ({number})", lie, False


def test_bundles_with_a_lying_manifest_give_no_wrong_name(context):
    published, why = shapes.publish(next(shape for shape in shapes.SHAPES if shape.title == "10.0 single-file"))
    if published is None:
        raise Skip(why)
    root = context.directory("lying")
    with Sample(published, {"DOTNET_PerfMapEnabled": "0"}, resting=True) as sample:
        host = record(sample.pid, root, published.command[0])
    with open(published.command[0], "rb") as file:
        data = file.read()

    def named(content):
        with open(host, "wb") as file:
            file.write(content)
        done = context.mapgen.must("merge", "--root", root, "--jit=none", "--output=-", sample.pid, codes=(0, 3))
        return {line for line in done.stdout.splitlines() if line.endswith("[PreJIT]")}, done

    truth, _ = named(data)
    expect(len(truth) > 10000, f"only {len(truth)} methods without a lie")
    count = 0
    for what, lie, is_said in lies(data):
        names, done = named(lie)
        expect(names <= truth, f"the manifest {what}: {sorted(names - truth)[:1]}")
        expect(not is_said or (done.returncode == 3 and "bundle" in done.stderr), f"the manifest {what}, and nobody hears of it")
        count += 1
    context.figure(f"{count} lies, no wrong name")
