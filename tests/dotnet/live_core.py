# SPDX-License-Identifier: MIT
"""Names out of core files: the same as those of the process that they were made of.

The oracle is the perf map of the stopped process, and for precompiled methods its rundown before
it was stopped. Core files are made by gdb's gcore and by the runtime's createdump.
"""
import glob
import json
import os
import shutil
import subprocess

import shapes
from harness import Runtime, Sample, Skip, expect
from live_contract import read_methods


def gcore(context, pid):
    if not shutil.which("gcore"):
        raise Skip("gcore is not installed (package gdb)")
    path = os.path.join(context.scratch, "core")
    done = subprocess.run(["gcore", "-o", path, str(pid)], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    expect(os.path.exists(f"{path}.{pid}"), f"gcore: {done.stderr[-200:]}")
    return f"{path}.{pid}"


def createdump(context, pid, kind):
    programs = glob.glob(os.path.join(os.path.dirname(os.path.realpath(context.sdk().dotnet)), "shared",
                                      "Microsoft.NETCore.App", "10.*", "createdump"))
    if not programs:
        raise Skip("no createdump beside the runtime")
    path = os.path.join(context.scratch, f"createdump-{kind}")
    subprocess.run([programs[0], f"--{kind}", "-f", path, str(pid)], stdin=subprocess.DEVNULL, capture_output=True)
    expect(os.path.exists(path), "createdump wrote nothing")
    return path


def resolve(context, core, addresses, *options):
    text = "".join(f"{address:#x}\n" for address in addresses)
    done = context.mapgen.must("resolve", f"--core={core}", "--json", *options, stdin=text)
    return {int(answer["position"], 16): answer for answer in json.loads(done.stdout)}


def compare(context, title, core, methods, precompiled):
    answers = resolve(context, core, [*methods, *precompiled])
    wrong = [start for start, (size, name) in methods.items()
             if answers[start]["name"] != name.decode(errors="surrogateescape") or answers[start]["size"] != size]
    lost = [start for start, text in precompiled.items() if text not in (answers[start]["name"] or "")]
    context.figure(f"{title}: {len(methods) - len(wrong)} of {len(methods)} jitted methods as the runtime has them, "
                   f"{len(precompiled) - len(lost)} of {len(precompiled)} precompiled ones")
    expect(len(methods) > 100 and not wrong, f"{len(wrong)} differ: {[(methods[start], answers[start]) for start in wrong[:1]]}")
    expect(len(precompiled) > 100 and not lost, f"{len(lost)} are lost: {[(precompiled[start], answers[start]) for start in lost[:1]]}")
    return answers


def stopped(context, sample):
    """The runtime's own knowledge: {start: (size, name)} of jitted, {start: text} of precompiled methods."""
    precompiled = {start: f"{owner}::{method}" for kind, start, _, owner, method in context.rundown(sample.pid)
                   if kind == "r2r"}
    sample.stand_still()
    methods, _ = read_methods(sample.map_path)
    return methods, precompiled


def test_a_core_file_of_gcore_has_the_names_of_its_process(context):
    context.oracle()
    with Sample(context.sdk(), {"DOTNET_PerfMapEnabled": "3"}, resting=True) as sample:
        methods, precompiled = stopped(context, sample)
        core = gcore(context, sample.pid)
    compare(context, "gcore", core, methods, precompiled)
    with open(core, "r+b") as file:
        file.truncate(os.path.getsize(core) // 3)
    done = context.mapgen.run("resolve", f"--core={core}", f"{list(methods)[0]:#x}")
    expect(done.returncode == 1 and "truncated" in done.stderr, f"gcore writes its notes last: {done.returncode} {done.stderr}")
    os.unlink(core)


def test_a_core_file_of_a_single_file_application_is_read(context):
    """Its own assembly has no code and is mapped from behind the executable's segments; no variable makes a socket."""
    published, why = shapes.publish(next(shape for shape in shapes.SHAPES if shape.title == "10.0 single-file"))
    if published is None:
        raise Skip(why)
    with Sample(published, {"DOTNET_PerfMapEnabled": "1", "DOTNET_EnableDiagnostics": "0"}, resting=True) as sample:
        sample.stand_still()
        methods, _ = read_methods(sample.map_path)
        core = gcore(context, sample.pid)
    answers = resolve(context, core, methods)
    named = sum(answers[start]["name"] == name.decode() for start, (_, name) in methods.items())
    context.figure(f"single-file: {named} of {len(methods)} jitted methods of the core file have their name")
    expect(len(methods) > 300 and named == len(methods), f"{len(methods) - named} methods differ")
    os.unlink(core)


def check_cut(context, core, methods):
    """A core file that was cut off gives right names or reasons."""
    with open(core, "r+b") as file:
        file.truncate(os.path.getsize(core) // 3)
    answers = resolve(context, core, methods)
    for start, answer in answers.items():
        if answer["name"]:
            expect(answer["name"] == methods[start][1].decode(errors="surrogateescape"), f"another name: {answer}")
        else:
            expect(answer["reason"] or answer["status"] == "not mapped", f"no reason is given: {answer}")


def test_a_core_file_of_createdump_is_read_or_refused_with_the_reason(context):
    context.oracle()
    with Sample(context.sdk(), {"DOTNET_PerfMapEnabled": "3"}, resting=True) as sample:
        methods, precompiled = stopped(context, sample)
        full, normal = (createdump(context, sample.pid, kind) for kind in ("full", "normal"))
    compare(context, "createdump --full", full, methods, precompiled)
    check_cut(context, full, methods)
    answers = resolve(context, normal, list(methods))
    reasons = {answer["reason"] for answer in answers.values() if answer["status"] != "not mapped"}
    context.figure(f"createdump --normal: {reasons}")
    expect(not any(answer["name"] for answer in answers.values()), "names out of a core that has none")
    expect(all(reason and ("core file lacks" in reason or "beginning" in reason) for reason in reasons), f"the reason is {reasons}")
    os.unlink(full)


def test_a_file_that_is_younger_than_the_core_file_is_not_used(context):
    runtime = context.sdk()
    directory = os.path.join(context.directory("core-app"), "app")
    shutil.copytree(os.path.dirname(runtime.sample), directory, dirs_exist_ok=True)
    moved = Runtime(runtime.dotnet, os.path.join(directory, "sample.dll"), runtime.framework, runtime.description)
    with Sample(moved, {"DOTNET_PerfMapEnabled": "3"}, resting=True) as sample:
        sample.stand_still()
        methods, _ = read_methods(sample.map_path)
        core = gcore(context, sample.pid)
    own = {start: method for start, method in methods.items() if b"[sample] Sample." in method[1]}
    expect(len(own) > 5, "no methods of the sample itself")
    before = resolve(context, core, own)
    expect(all(before[start]["name"] == method[1].decode() for start, method in own.items()), "not named before")
    os.utime(moved.sample)
    after = resolve(context, core, own)
    os.unlink(core)
    expect(not any(answer["name"] for answer in after.values()), f"names of a file that is younger: {list(after.values())[:1]}")


def test_what_is_no_core_file_is_one_clear_line(context):
    path = os.path.join(context.scratch, "no-core")
    with open(path, "wb") as file:
        file.write(b"\x7fELF\2\1\1" + bytes(9) + b"\4\0\x3e\0" + b"\xff" * 200)
    for name in (path, "/etc/passwd", "/dev/null", "/no/such/file", context.scratch):
        done = context.mapgen.run("resolve", f"--core={name}", "0x1000")
        expect(done.returncode == 1 and len(done.stderr.strip().splitlines()) == 1, f"{name}: {done.returncode} {done.stderr}")
