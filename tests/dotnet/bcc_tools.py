# SPDX-License-Identifier: MIT
"""BCC's tools as tests and figures run them: as they are or with libsym inside, and what their stacks hold."""
import os
import re
import shutil
import subprocess

from harness import ROOT, Fail, Memory, Runtime, Skip, build_project, built, expect

BCC_PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
SYSTEM_PYTHON = "/usr/bin/python3"  # the one that the package python3-bpfcc is for
NO_VARIABLE = {"DOTNET_PerfMapEnabled": "0"}
# libbcc closes descriptors that it has never opened (strace shows numbers like 1701273970), and once in a while the tool's
# output, or a map of its stacks: of 42 runs of bpftrace beside a perf map 7 lost stacks, one of them all.
ATTEMPTS = 6
BPF_WORKED = []


def bcc_tool(name):
    program = shutil.which(name, path=BCC_PATH)
    if not program:
        raise Skip(f"{name} is not installed (package {'bpftrace' if name == 'bpftrace' else 'bpfcc-tools'})")
    if os.geteuid() != 0:
        raise Skip("BPF needs root")
    return program


def has_kprobes():
    return os.path.exists("/sys/kernel/tracing/kprobe_events") or os.path.exists("/sys/kernel/debug/kprobes")


def has_its_descriptors(done):
    return "Bad file descriptor" not in done.stderr


def has_its_stacks(done):
    """The map without a name in bpftrace's output, as text or JSON."""
    return has_its_descriptors(done) and re.search(r'@\[|"@"', done.stdout) and "failed to look up stack id" not in done.stderr


def run_tool(context, arguments, ours=True, options=(), variables=None, addresses=False, seconds=240, is_whole=has_its_descriptors):
    """Runs a tool, under `dotnet-mapgen bcc` or as it is, then again until the output is whole; with "@ADDRESS" behind
    user names if asked."""
    command = [bcc_tool(arguments[0]), *map(str, arguments[1:])]
    if addresses:
        runner = "bcc_without_kprobes.py" if arguments[0] == "offcputime-bpfcc" and not has_kprobes() else "bcc_with_addresses.py"
        command = [SYSTEM_PYTHON, os.path.join(ROOT, "tests", "dotnet", runner), *command]
    if ours:
        command = [context.mapgen.program, "bcc", "--report", *options, "--", *command]
    for _ in range(1 if ours else ATTEMPTS):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                              env=dict(os.environ, **(variables or {})), timeout=seconds)
        if is_whole(done):
            break
    return done


def folded(done):
    """Stacks of folded output: (frames, outermost first, without the command name; count)."""
    stacks = []
    for line in done.stdout.splitlines():
        match = re.fullmatch(r"(.*) (\d+)", line)
        if match and ";" in line:
            stacks.append((match.group(1).split(";")[1:], int(match.group(2))))
    if not stacks:
        reason = (done.stderr.strip().splitlines() or ["no stacks"])[-1]
        if BPF_WORKED:
            raise Fail(f"no stacks this time: {reason}")
        raise Skip(f"BPF does not work here ({reason}); as root, tests/dotnet/prepare-bpf.sh sets up what it can")
    BPF_WORKED.append(True)
    return stacks


def report_of(done, pid):
    """The answers that our library reported, as {source: count}; None when it was not asked."""
    match = re.search(rf"libsym-bcc: process {pid}: (\d+) of (\d+) look-ups named(.*); looked at", done.stderr)
    if not match:
        return None
    counts = {word: int(count) for word, count in re.findall(r", (\w+) (\d+)", match.group(3))}
    return {"named": int(match.group(1)), "asked": int(match.group(2)), **counts}


class Shares:
    """User frames by the memory that they lie in, and how many of them have a name."""

    def __init__(self, stacks, memory):
        self.rows, self.unnamed = {}, {}
        for names, count in stacks:
            for text in names:
                name, at, address = text.rpartition("@")
                if not at:
                    continue  # the kernel's, or the "-" between kernel and user
                row = self.rows.setdefault(memory.kind_of(int(address, 16)), [0, 0, 0])
                row[0] += count
                row[1] += count * (name != "[unknown]")
                row[2] += count * (name != "[unknown]" and "!0x" not in name)
                if name == "[unknown]":
                    self.unnamed[address] = self.unnamed.get(address, 0) + count

    def total(self, *kinds):
        return sum(self.rows.get(kind, [0])[0] for kind in kinds)

    def share(self, *kinds):
        total = self.total(*kinds)
        return sum(self.rows.get(kind, [0, 0])[1] for kind in kinds) / total if total else 1.0

    def text(self):
        return ", ".join(f"{kind} {100 * row[1] / row[0]:.2f} % of {row[0]}" for kind, row in sorted(self.rows.items()))


def workload_runtime(kind):
    """A program of fixtures/src/workloads as a Runtime for Sample: (Runtime, None) or (None, why)."""
    artifacts = built("workloads")
    dotnet = shutil.which("dotnet")
    why = build_project("fixtures/src/workloads", artifacts) if dotnet else "no .NET SDK"
    if why:
        return None, why
    program = os.path.join(artifacts, "bin", "workloads", "release", "workloads.dll")
    runtime = Runtime(dotnet, program, "net10.0", f"workload {kind}")
    runtime.command = [dotnet, program, kind]
    return runtime, None


def workload(context, kind):
    return context.once("workload " + kind, lambda: workload_runtime(kind))


def shares_of(done, pid, at_least=20):
    shares = Shares(folded(done), Memory(pid))
    expect(shares.total("jit", "r2r") >= at_least, f"only {shares.total('jit', 'r2r')} managed frames: {shares.text()}")
    return shares


def libcoreclr_of(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.rstrip().endswith("/libcoreclr.so"):
                return line.split(None, 5)[5].strip()
    raise Skip("no libcoreclr.so in the process")
