# SPDX-License-Identifier: MIT
"""BCC's own tools, unchanged, under `dotnet-mapgen bcc`: they ask libsym, and every frame of .NET code gets a name."""
import os
import re
import shutil
import subprocess

from harness import Sample, Skip, expect

BCC_PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def bcc_tool(name):
    program = shutil.which(name, path=BCC_PATH)
    if not program:
        raise Skip(f"{name} is not installed (package bpfcc-tools)")
    if os.geteuid() != 0:
        raise Skip("BPF needs root")
    return program


def run_tool(context, arguments, ours=True, options=(), variables=None, seconds=120):
    """Runs a tool, under `dotnet-mapgen bcc` or as it is."""
    command = [bcc_tool(arguments[0]), *map(str, arguments[1:])]
    if ours:
        command = [context.mapgen.program, "bcc", "--report", *options, "--", *command]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                          env=dict(os.environ, **(variables or {})), timeout=seconds)
    if not ours and done.returncode and "bpf" in done.stderr.lower():
        raise Skip(f"BPF does not work here ({done.stderr.strip().splitlines()[-1]})")
    return done


def folded(text):
    """Stacks of folded output: (frames, outermost first, without the command name; count)."""
    stacks = []
    for line in text.splitlines():
        match = re.fullmatch(r"(.*) (\d+)", line)
        if match and ";" in line:
            stacks.append((match.group(1).split(";")[1:], int(match.group(2))))
    return stacks


def report_of(done, pid):
    """What our library said that it answered, as {source: count}."""
    match = re.search(rf"libsym-bcc: process {pid}: (\d+) of (\d+) look-ups named(.*); looked at", done.stderr)
    if not match:
        return None
    counts = {word: int(count) for word, count in re.findall(r", (\w+) (\d+)", match.group(3))}
    return {"named": int(match.group(1)), "asked": int(match.group(2)), **counts}


def test_profile_bpfcc_names_a_process_without_any_variable(context):
    with Sample(context.sdk(), {"DOTNET_PerfMapEnabled": "0"}) as sample:
        plain = folded(run_tool(context, ["profile-bpfcc", "-p", sample.pid, "-U", "-f", "-F", 99, 4], ours=False).stdout)
        if not plain:
            raise Skip("profile-bpfcc gives no stacks here; as root, tests/dotnet/prepare-bpf.sh sets up what it can")
        done = run_tool(context, ["profile-bpfcc", "-p", sample.pid, "-U", "-f", "-F", 99, 4])
    stacks, report = folded(done.stdout), report_of(done, sample.pid)
    expect(stacks, f"no stacks: {done.stderr.strip()[-200:]}")
    expect(report, f"libsym did not answer: {done.stderr.strip()[-200:]}")
    for text, counted in (("as it is", plain), ("with libsym", stacks)):
        frames = sum(len(names) * count for names, count in counted)
        named = sum(count for names, count in counted for name in names if name != "[unknown]")
        context.figure(f"profile-bpfcc {text}: {named} of {frames} user frames named ({100 * named / frames:.1f} %)")
    managed = [name for names, _ in plain for name in names if "::" in name and "]" in name]
    expect(not managed, f"libbcc alone knew {managed[:1]}")
    expect(report.get("runtime", 0) and report.get("r2r", 0), f"no jitted or no precompiled code: {report}")
    expect(any(name.endswith("[PreJIT]") for names, _ in stacks for name in names), "no precompiled method")
    expect(any("::Run(" in name for names, _ in stacks for name in names), "no method of the sample")
