# SPDX-License-Identifier: MIT
"""BCC's profiler reads the map that merge leaves: precompiled frames get names."""
import os
import shutil
import subprocess

from harness import Sample, Skip, expect

EXCLUSIVE = True  # BPF programs and perf top see the whole machine


def profile(pid, seconds=2):
    """Folded user stacks of profile-bpfcc, as lists of frame names."""
    program = shutil.which("profile-bpfcc", path=os.environ.get("PATH", "") + ":/usr/sbin")
    if not program:
        raise Skip("profile-bpfcc is not installed (package bpfcc-tools)")
    if os.geteuid() != 0:
        raise Skip("BPF needs root")
    done = subprocess.run([program, "-p", str(pid), "-U", "-f", "-F", "799", str(seconds)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, errors="replace", timeout=120)
    lines = [line for line in done.stdout.splitlines() if ";" in line]
    if not lines:
        reason = (done.stderr.strip().splitlines() or ["no stacks"])[-1]
        raise Skip(f"BPF does not work here ({reason}); as root, tests/dotnet/prepare-bpf.sh sets up what it can")
    return [(line.rsplit(" ", 1)[0].split(";")[1:], int(line.rsplit(" ", 1)[1])) for line in lines]


def share_named(stacks):
    frames = sum(len(names) * count for names, count in stacks)
    named = sum(count for names, count in stacks for name in names if name != "[unknown]")
    return named, frames


def test_bcc_names_precompiled_frames_after_merge(context):
    # Without tiering the framework stays in its precompiled code, so that there is much to name.
    with Sample(context.sdk(), {"DOTNET_PerfMapEnabled": "1", "DOTNET_TieredCompilation": "0"}) as sample:
        before = profile(sample.pid)
        context.mapgen.must("merge", sample.pid)
        after = profile(sample.pid)
    for text, stacks in (("before", before), ("after", after)):
        named, frames = share_named(stacks)
        context.figure(f"profile-bpfcc {text} merge: {named} of {frames} user frames named ({100 * named / max(frames, 1):.1f} %)")
    precompiled = sum(count for names, count in after for name in names if name.endswith("[PreJIT]"))
    context.figure(f"precompiled frames with names: {precompiled}")
    expect(not any(name.endswith("[PreJIT]") for names, _ in before for name in names), "named before merge already")
    expect(precompiled > 0, "no precompiled frame has a name")
