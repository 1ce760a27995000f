# SPDX-License-Identifier: MIT
"""dotnet-mapgen stack: what each thread does at this moment.

The oracles: the program's own StackTrace for managed frames, eu-stack for the native ones that they call.
"""
import json
import os
import re
import subprocess

from harness import build_environment, build_project, built, expect, need


def method_of(name):
    """"instance int32 [stacks] Stacks.Chain`1[System.__Canon]::Step(!0,int32)" is "Stacks.Chain`1::Step"."""
    head, _, method = name.partition("::")
    while "[" in head:  # the assembly and type arguments, innermost first
        bare = re.sub(r"\[[^\[\]]*\]", "", head)
        if bare == head:
            break
        head = bare
    return head.split()[-1] + "::" + re.split(r"[(\[]", method, maxsplit=1)[0]


class Stacks:
    """The program of fixtures/src/stacks, whose threads wait."""

    def __init__(self, context):
        self.process = subprocess.Popen(context.once("stacks", self.build), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=build_environment())
        self.pid = self.process.pid
        self.own = {}
        for line in self.process.stdout:
            if line.strip() == "ready":
                break
            thread, _, frames = line.rstrip("\n").partition(" ")
            self.own[thread] = frames.split(";")
        expect(len(self.own) == 40, f"{len(self.own)} threads began")

    @staticmethod
    def build():
        """Words that run it."""
        artifacts = built("stacks")
        why = build_project("fixtures/src/stacks", artifacts)
        if why:
            return None, f"the program does not build: {why}"
        return ["dotnet", os.path.join(artifacts, "bin", "stacks", "release", "stacks.dll")], None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def managed_of(thread):
    """Methods of a thread, innermost first."""
    return [method_of(frame["name"]) for frame in thread["frames"] if frame["kind"] in ("jitted", "precompiled") and "::" in frame["name"]]


def test_stack_has_the_frames_that_the_program_has_itself(context):
    with Stacks(context) as program:
        report = json.loads(context.mapgen.must("stack", str(program.pid), "--json").stdout)
    threads = {thread["name"]: thread for thread in report["threads"]}
    equal = frames = 0
    wrong = []
    for name, own in program.own.items():
        expect(name in threads, f"{name} is not there")
        thread = threads[name]
        expect(thread["whole"], f"{name} ends early: {thread['end']}")
        ours = managed_of(thread)
        begin = next((i for i, method in enumerate(ours) if method == own[0]), None)
        if begin is None or ours[begin:] != own:
            wrong.append((name, ours[begin or 0:], own))
        else:
            equal += 1
            frames += len(own)
    context.figure(f"{equal} of {len(program.own)} threads have the {frames} managed frames of their own StackTrace; each was held "
                   f"for at most {max(thread['held_us'] for thread in report['threads'])} us")
    expect(not wrong, f"{len(wrong)} differ, first: {wrong[0] if wrong else None}")
    expect(frames > 1000, f"only {frames} frames were compared")


def native_part(images):
    """The files of the frames until the first one that is no ELF file: managed code."""
    part = []
    for image in images:
        name = os.path.basename(image)
        if not re.search(r"\.so(\.|$)", name):
            break
        part.append(name)
    return part


def images_of_eu_stack(text):
    """For each thread the file of each frame, innermost first."""
    threads = {}
    for line in text.splitlines():
        if line.startswith("TID "):
            frames = threads.setdefault(int(line[4:].rstrip(":")), [])
        elif line.startswith("#"):
            frames.append(line.partition(" - ")[2])
    return threads


def test_stack_has_the_native_frames_of_eu_stack_down_to_the_first_managed_one(context):
    need("eu-stack")
    with Stacks(context) as program:
        report = json.loads(context.mapgen.must("stack", str(program.pid), "--json").stdout)
        theirs = images_of_eu_stack(subprocess.run(["eu-stack", "-m", "-p", str(program.pid)], capture_output=True, text=True, timeout=120).stdout)
    compared = frames = 0
    wrong = []
    for thread in report["threads"]:
        # The others spin: they are elsewhere by now.
        if thread["name"] not in program.own or int(thread["name"].partition("-")[2]) % 3 == 2:
            continue
        ours, wanted = native_part(frame["image"] for frame in thread["frames"]), native_part(theirs.get(thread["tid"], []))
        compared += 1
        frames += len(wanted)
        if ours != wanted:
            wrong.append((thread["name"], ours, wanted))
    context.figure(f"{compared - len(wrong)} of {compared} waiting threads have the native frames of eu-stack, {frames} frames")
    expect(not wrong, f"{len(wrong)} differ, first: {wrong[:1]}")
    expect(compared > 20 and frames > 100, f"only {frames} frames of {compared} threads were compared")
