# SPDX-License-Identifier: MIT
"""Load bases against what runtimes up to .NET 8 write of the images that they load (perfinfo-PID.map)."""
import json
import os

import shapes
from harness import Runtime, Sample, Skip, expect


def facts(context, command):
    """The answer of `info` to the runtime's file, and the rows of that file."""
    with Sample(command, {"COMPlus_PerfMapEnabled": "1", "DOTNET_PerfMapEnabled": "1"}, resting=True) as sample:
        path = f"/tmp/perfinfo-{sample.pid}.map"
        if not os.path.exists(path):
            raise Skip("this runtime writes no perfinfo file")
        with open(path, encoding="utf-8") as file:
            rows = [line.rstrip("\n").split(";") for line in file]
        return json.loads(context.mapgen.must("info", sample.pid, "--json").stdout)["perfinfo"], rows


def expect_agreement(context, found, rows, with_bases):
    bases = [row for row in rows if len(row) > 4 and int(row[3].replace("(nil)", "0"), 16)]
    context.figure(f"{found['lines']} images, {found['mapped']} mapped, {found['with_base']} with load base, "
                   f"{found['contradictions']} contradicted")
    expect(found["lines"] == len(rows) and found["bad_lines"] == 0, f"{len(rows)} rows, read {found['lines']}")
    expect(found["contradictions"] == 0, found["contradiction"])
    if with_bases:
        expect(found["with_base"] == len(bases) and len(bases) >= 5, f"{len(bases)} rows with a base, {found['with_base']} compared")
    else:
        expect(not bases and found["mapped"] >= 5, f"{len(bases)} rows with a base, {found['mapped']} mapped")


def test_load_bases_are_those_that_3_1_tells(context):
    found, rows = facts(context, context.npm())
    expect_agreement(context, found, rows, True)


def test_images_are_those_that_2_1_tells(context):
    shape = next(shape for shape in shapes.SHAPES if shape.version == "2.1")
    published, why = shapes.publish(shape)
    if published is None:
        raise Skip(f"2.1 cannot be had: {why}")
    found, rows = facts(context, Runtime(published.command[0], published.command[1], "", ""))
    expect_agreement(context, found, rows, False)


def test_load_bases_are_those_that_8_0_tells(context):
    """The last version that writes the file; images without code of their own have (nil) for a base."""
    published, why = shapes.publish(next(shape for shape in shapes.SHAPES if shape.title == "8.0 self-contained"))
    if published is None:
        raise Skip(f"8.0 cannot be had: {why}")
    found, rows = facts(context, published)
    expect_agreement(context, found, rows, True)
