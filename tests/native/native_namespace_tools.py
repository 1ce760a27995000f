# SPDX-License-Identifier: MIT
"""Checks with BPF tools and the other forms of perf-fix on a process in other namespaces, for native_namespaces.py. No tests of its own."""
import os
import re
import shutil
import signal
import subprocess

from native_tools import Fail

BPF_PATH = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
# For the process that works while a tool looks, and the tool's own compiler.
LONGEST_SECONDS = 120


def expect(condition, place, done):
    if not condition:
        raise Fail(f"{place.name}: {' '.join(map(str, done.args[1:]))} ended with {done.returncode}: "
                   f"{done.stdout[:2000]}{done.stderr[-600:]}")


# ---- tools of BPF ----------------------------------------------------------------------

def work(target):
    """A turn in the library, and one in the code of no file."""
    target.process.stdin.write("\n")
    target.process.stdin.flush()
    return target.process.stdout.readline() == "done\n"


def under_bcc(tools, *words):
    """A tool with libsym inside."""
    return subprocess.Popen([tools.program, "bcc", "--jit=perfmap", "--", *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, errors="replace", env=dict(os.environ, PATH=BPF_PATH), cwd="/")


def has_ended(tool):
    """Waits a moment for that: the processors are for the tool, too."""
    try:
        return tool.wait(0.2) is not None
    except subprocess.TimeoutExpired:
        return False


def while_it_works(tools, target, *words):
    """Runs a tool to its end while the process works."""
    with under_bcc(tools, *words) as tool:
        while not has_ended(tool) and work(target):
            pass
        output, errors = tool.communicate(timeout=LONGEST_SECONDS)
    return subprocess.CompletedProcess(tool.args, tool.returncode, output, errors)


def frames_of(text):
    """Names of the innermost frames of folded stacks, which frame pointers cannot spoil."""
    lines = [re.fullmatch(r"(.*) \d+", line) for line in text.splitlines()]
    return {line.group(1).split(";")[-1] for line in lines if line and ";" in line.group(1)}


def has_bpf(tools, program, done):
    """Tests that need no BPF go on without it."""
    if done.returncode == 0 and done.stdout.strip():
        return True
    said = (done.stderr.strip().splitlines() or ["no output"])[-1]
    tools.figure(f"{program}: BPF does not work here: {said}")
    return False


def sampling_program(pid):
    return (f"profile:hz:499 /pid == {pid}/ {{ @[ustack(1)] = count(); @seen++; if (@seen == 40) {{ printf(\"enough\\n\"); }} "
            "if (@seen == 80) { exit(); } } interval:s:60 { exit(); }")


def expect_bpf_names(tools, place, target, library):
    """Sampled by a timer, and counted where the library is entered."""
    jitted = {"jitted_loop" if place.writable else "[unknown]"}
    if shutil.which("profile-bpfcc", path=BPF_PATH):
        done = while_it_works(tools, target, "profile-bpfcc", "-p", target.pid, "-U", "-f", "-F", 199, 1)
        if not has_bpf(tools, "profile-bpfcc", done):
            return
        expect({"exported_function"} | jitted <= frames_of(done.stdout), place, done)
    if shutil.which("stackcount-bpfcc", path=BPF_PATH) and os.path.exists(library):
        done = while_it_works(tools, target, "stackcount-bpfcc", "-p", target.pid, "-U", "-f", "-D", 1, f"{library}:exported_function")
        expect(frames_of(done.stdout) == {"exported_function"}, place, done)
    if shutil.which("bpftrace", path=BPF_PATH):
        done = while_it_works(tools, target, "bpftrace", "-e", sampling_program(target.pid))
        wanted = ["exported_function+"] + ["jitted_loop+"] * place.writable
        expect(all(f" {name}" in done.stdout for name in wanted), place, done)


def expect_bpf_of_gone(tools, place, target, end):
    """The process ends while the tool looks; the tool asks for names afterwards: there are none, and no others."""
    if not shutil.which("bpftrace", path=BPF_PATH):
        end()
        return
    with under_bcc(tools, "bpftrace", "-B", "line", "-e", sampling_program(target.pid)) as tool:
        begun = False
        for line in tool.stdout:
            if line.startswith("Attach"):
                begun = True
                target.process.stdin.write("\n" * 50)
                target.process.stdin.flush()
            if line == "enough\n":
                break
        end()
        tool.send_signal(signal.SIGINT)
        output, errors = tool.communicate(timeout=LONGEST_SECONDS)
    done = subprocess.CompletedProcess(tool.args, tool.returncode, output, errors)
    if begun:
        expect("@[" in output and not re.search("exported_function|jitted_loop", output), place, done)
    else:
        has_bpf(tools, "bpftrace", done)
