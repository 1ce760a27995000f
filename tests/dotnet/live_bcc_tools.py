# SPDX-License-Identifier: MIT
"""BCC's own tools, unchanged: with libsym inside every frame of .NET code gets a name, with a merged map nearly so."""
import os
import re

from bcc_tools import (NO_VARIABLE, folded, has_its_stacks, has_kprobes, libcoreclr_of, report_of, run_tool, shares_of, workload)
from harness import Sample, Skip, expect
from waiting import wait_until_warm

EXCLUSIVE = True  # BPF programs and perf top see the whole machine

GOAL = 0.995


def managed_names(stacks):
    return [name for names, _ in stacks for name in names if "::" in name and "]" in name]


def test_profile_bpfcc_names_a_process_without_any_variable(context):
    with Sample(context.sdk(), NO_VARIABLE) as sample:
        plain = folded(run_tool(context, ["profile-bpfcc", "-p", sample.pid, "-U", "-f", "-F", 799, 2], ours=False))
        done = run_tool(context, ["profile-bpfcc", "-p", sample.pid, "-U", "-f", "-F", 799, 2])
    stacks, report = folded(done), report_of(done, sample.pid)
    expect(report, f"libsym did not answer: {done.stderr.strip()[-200:]}")
    for text, counted in (("as it is", plain), ("with libsym", stacks)):
        frames = sum(len(names) * count for names, count in counted)
        named = sum(count for names, count in counted for name in names if name != "[unknown]")
        context.figure(f"profile-bpfcc {text}: {named} of {frames} user frames named ({100 * named / frames:.1f} %)")
    expect(not managed_names(plain), f"libbcc alone knew {managed_names(plain)[:1]}")
    expect(report.get("runtime", 0) and report.get("r2r", 0), f"no jitted or no precompiled code: {report}")
    expect(any(name.endswith("[PreJIT]") for name in managed_names(stacks)), "no precompiled method")
    expect(any("::Run(" in name for name in managed_names(stacks)), "no method of the sample")


def check_tool(context, title, pid, arguments, method, ours=True):
    done = run_tool(context, arguments, ours=ours, addresses=True)
    shares = shares_of(done, pid)
    context.figure(f"{title}: {shares.text()}")
    expect(ours == (report_of(done, pid) is not None), "the wrong library answered")
    expect(any(method in name for name in managed_names(folded(done))), f"no stack has {method}")
    expect(shares.share("jit", "r2r") >= GOAL, f"unnamed: {sorted(shares.unnamed.items())[:5]}")
    if ours:
        expect(shares.share("native") >= 0.99, f"native frames: {100 * shares.share('native'):.2f} %")


def off_cpu(context):
    """The function that offcputime-bpfcc attaches to here, for the figures."""
    if has_kprobes():
        return "offcputime-bpfcc"
    # Debian's file is run, its BPF function cut in two and attached to tracepoints: see bcc_without_kprobes.py.
    for event in ("sched/sched_switch", "rseq/rseq_update"):
        if not os.path.exists(f"/sys/kernel/tracing/events/{event}"):
            raise Skip(f"this kernel has neither kprobes, which offcputime-bpfcc needs, nor the tracepoint {event}")
    return "offcputime-bpfcc (no kprobes here: on sched_switch and rseq_update)"


def test_offcputime_names_who_waits(context):
    title = off_cpu(context)
    with Sample(workload(context, "calls"), NO_VARIABLE) as sample:
        done = run_tool(context, ["offcputime-bpfcc", "-p", sample.pid, "-U", "-f", 2], addresses=True, ours=False)
        expect(not managed_names(folded(done)), "libbcc alone knew managed names: this measures nothing")
        check_tool(context, f"{title} with libsym", sample.pid,
                   ["offcputime-bpfcc", "-p", sample.pid, "-U", "-f", 2], "Callers::WaitForTurn")
        text = run_tool(context, ["offcputime-bpfcc", "-p", sample.pid, 2], addresses=True).stdout
    # As people read it: the kernel's frames first, then the user's, then who and for how long.
    blocks = [block.splitlines() for block in text.split("\n\n") if "Callers::WaitForTurn" in block]
    expect(blocks, "the long form has no stack of who waits")
    for lines in blocks:
        expect("@" not in lines[0], f"the first is no frame of the kernel: {lines[0]}")
        expect(not [line for line in lines if "[unknown]" in line], f"unnamed in the long form: {lines}")
        microseconds = int(lines[-1])
        expect(0 < microseconds < 10_000_000, f"{microseconds} us of one stack in 2 s")


def test_stackcount_of_the_scheduler_names_who_waits(context):
    with Sample(workload(context, "calls"), NO_VARIABLE) as sample:
        check_tool(context, "stackcount-bpfcc t:sched:sched_switch with libsym", sample.pid,
                   ["stackcount-bpfcc", "-p", sample.pid, "-U", "-f", "-D", 2, "t:sched:sched_switch"],
                   "Callers::WaitForTurn")


def test_stackcount_of_read_names_the_managed_callers(context):
    with Sample(workload(context, "calls"), NO_VARIABLE) as sample:
        check_tool(context, "stackcount-bpfcc c:read with libsym", sample.pid,
                   ["stackcount-bpfcc", "-p", sample.pid, "-U", "-f", "-D", 2, "c:read"], "Callers::Read")


def test_stackcount_of_a_function_of_the_runtime_names_the_managed_callers(context):
    with Sample(workload(context, "calls"), NO_VARIABLE) as sample:
        function = libcoreclr_of(sample.pid) + ":MetaDataGetDispenser"
        check_tool(context, "stackcount-bpfcc libcoreclr.so with libsym", sample.pid,
                   ["stackcount-bpfcc", "-p", sample.pid, "-U", "-f", "-D", 2, function], "Callers::CallRuntime")


def test_a_merged_map_alone_names_managed_frames_in_every_tool(context):
    # Without tiering nothing is jitted again; what comes after a merge is not in the map.
    with Sample(workload(context, "calls"), {**NO_VARIABLE, "DOTNET_TieredCompilation": "0"}) as sample:
        wait_until_warm(sample.process, 1)
        for title, arguments, method in (
                ("stackcount-bpfcc", ["-f", "-D", 2, "t:sched:sched_switch"], "Callers::WaitForTurn"),
                ("profile-bpfcc", ["-f", "-F", 999, 2], "Callers::"),
                ("offcputime-bpfcc", ["-f", 2], "Callers::WaitForTurn"),
                ("stackcount-bpfcc", ["-f", "-D", 2, "c:read"], "Callers::Read")):
            context.mapgen.must("merge", sample.pid)
            check_tool(context, f"{title} with a merged map", sample.pid,
                       [title, "-p", sample.pid, "-U", *arguments], method, ours=False)


def bpftrace_names(done):
    """(named, unnamed) lines of bpftrace's stacks."""
    lines = [line.strip() for line in done.stdout.splitlines() if line.startswith("    ")]
    unnamed = [line for line in lines if re.fullmatch(r"0x[0-9a-f]+", line) or line.startswith("[unknown]")]
    return lines, unnamed


def bpftrace_program(pid):
    """Until there are enough samples: on a busy machine 3 seconds have had none."""
    return (f"profile:hz:199 /pid == {pid}/ {{ @[ustack] = count(); @seen++; if (@seen >= 150) {{ exit(); }} }} "
            "interval:s:60 { exit(); }")


def test_bpftrace_with_libbcc_names_frames_by_libsym(context):
    with Sample(context.sdk(), NO_VARIABLE) as sample:
        done = run_tool(context, ["bpftrace", "-e", bpftrace_program(sample.pid)])
    lines, unnamed = bpftrace_names(done)
    context.figure(f"bpftrace with libsym: {len(lines) - len(unnamed)} of {len(lines)} frames named, symbol cache as it comes")
    expect("libsym-bcc: process" in done.stderr, f"libsym was not asked: {done.stderr.strip()[-200:]}")
    expect(len(lines) > 50, f"only {len(lines)} frames")
    expect(len(unnamed) <= 0.01 * len(lines), f"{len(unnamed)} of {len(lines)} have no name, as {unnamed[:3]}")
    expect(any("[PreJIT]" in line for line in lines), "no precompiled method")


def test_bpftrace_reads_a_merged_map_when_it_keeps_a_symbol_cache(context):
    # Without tiering, as above.
    with Sample(context.sdk(), {**NO_VARIABLE, "DOTNET_TieredCompilation": "0"}) as sample:
        context.mapgen.must("merge", sample.pid)
        done = run_tool(context, ["bpftrace", "-e", bpftrace_program(sample.pid)], ours=False,
                        variables={"BPFTRACE_CACHE_USER_SYMBOLS": "1"}, is_whole=has_its_stacks)
    lines, unnamed = bpftrace_names(done)
    expect(lines, f"bpftrace gives no stack, ends with {done.returncode}: {(done.stdout + done.stderr).strip()[-300:]}")
    context.figure(f"bpftrace with a merged map: {len(lines) - len(unnamed)} of {len(lines)} frames named")
    expect(any("[PreJIT]" in line for line in lines), "no precompiled method")
    expect(any("::Run(" in line for line in lines), "no jitted method")
