# SPDX-License-Identifier: MIT
"""The example profiler: it builds, names what it counts, measures absences, and says what it costs."""
import os
import re
import subprocess
import sys

from harness import ROOT, Fail, Memory, Sample, Skip, expect

EXCLUSIVE = True  # BPF programs and perf top see the whole machine

SECONDS = 3


def profiler(context):
    """The program, built by its own make target."""
    if os.geteuid() != 0:
        raise Skip("BPF needs root")
    built = subprocess.run(["make", "-s", f"BUILD={context.build}", "profiler"], cwd=ROOT, stdin=subprocess.DEVNULL,
                           capture_output=True, text=True)
    if built.returncode:
        why = (built.stderr.strip().splitlines() or ["no output"])[0]
        if "not found" in why or "No such file" in why:
            raise Skip(f"make profiler: {why} (packages clang, libbpf-dev)")
        raise Fail(f"make profiler: {why}")
    return os.path.join(ROOT, context.build, "examples", "stack_profiler")


def folded(program, *options):
    """([(frames, amount)], what it said of its cost)."""
    done = subprocess.run([program, "-v", "-d", str(SECONDS), *map(str, options)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, errors="replace", timeout=120)
    if done.returncode:
        raise Skip(f"BPF does not work here: {(done.stderr.strip().splitlines() or ['no output'])[-1]}")
    lines = [line.rsplit(" ", 1) for line in done.stdout.splitlines()]
    return [(stack.split(";"), int(amount)) for stack, amount in lines], done.stderr.strip().splitlines()[-1]


def test_profiler_names_what_it_counts(context):
    program = profiler(context)
    with Sample(context.sdk()) as sample:
        stacks, cost = folded(program, "-p", sample.pid)
        memory = Memory(sample.pid)
    samples = sum(amount for _, amount in stacks)
    frames = sum(amount * (len(names) - 1) for names, amount in stacks)
    bare = [(int(name, 16), amount) for names, amount in stacks for name in names[1:] if re.fullmatch(r"0x[0-9a-f]+", name)]
    managed = sum(amount for names, amount in stacks for name in names[1:] if "::" in name and "Sample." in name)
    left = [address for address, _ in bare if memory.kind_of(address) in ("jit", "r2r")]
    context.figure(f"on the CPU: {samples} samples, {frames} frames, {sum(amount for _, amount in bare)} without name or bounds")
    context.figure(cost)
    expect(samples > 20 and managed > 20, f"{samples} samples, {managed} frames of the sample's own methods")
    expect(not left, f"managed code without a name: {[hex(address) for address in left[:3]]}")


def test_profiler_measures_time_off_the_cpu(context):
    program = profiler(context)
    sleeper = subprocess.Popen([sys.executable, "-c", "import time\nprint(flush=True)\nwhile True: time.sleep(0.02)"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, bufsize=0)
    try:
        sleeper.stdout.readline()
        stacks, cost = folded(program, "-p", sleeper.pid, "-o")
    finally:
        sleeper.kill()
        sleeper.wait()
    seconds = sum(amount for names, amount in stacks if any("nanosleep" in name for name in names)) / 1e6
    context.figure(f"off the CPU: {seconds:.2f} s in nanosleep of {SECONDS} s")
    context.figure(cost)
    expect(0.6 * SECONDS < seconds < 1.2 * SECONDS, f"{seconds:.2f} s asleep of {SECONDS} s")
