# SPDX-License-Identifier: MIT
"""Texts that real tools print of a real process that was started with nothing set, through symbolize.

Where a name goes, the bytes beside it are compared with what the tool printed;
which method is right, the runtime's own list says.
"""
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import callstack_trace
import perf_samples
import shapes
from bcc_tools import has_its_stacks, run_tool
from harness import Memory, Sample, Skip, expect
from live_contract import read_methods
from live_frames import Methods, looked_up, percent
from sampling import sampling
from waiting import is_in_time, is_pending, wait_until, wait_until_warm


def need(program, package):
    path = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not path:
        raise Skip(f"{program} is not installed (package {package})")
    return path


def output_of(*command, seconds=120, codes=(0,), **options):
    """Text of a tool, in bytes as they are."""
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          errors="surrogateescape", timeout=seconds, **options)
    if done.returncode not in codes:
        raise Skip(f"{os.path.basename(command[0])} does not work here: "
                   f"{(done.stderr.strip().splitlines() or ['no output'])[-1]}")
    return done.stdout


def symbolize(context, text, *arguments, codes=(0,)):
    out = context.mapgen.must("symbolize", *arguments, stdin=text, codes=codes).stdout
    lines, named = text.split("\n"), out.split("\n")
    expect(len(lines) == len(named), f"{len(lines)} lines became {len(named)}")
    return list(zip(lines, named))


def is_managed(memory, address):
    return memory.kind_of(address) in ("jit", "r2r")


class Tally:
    """Frames of managed code that had no name, and those that got one."""

    def __init__(self, memory, methods=None):
        self.memory, self.methods = memory, methods
        self.frames = self.named = self.stubs = self.checked = 0
        self.unnamed, self.wrong = [], []

    def add(self, address, name, line):
        """`address`: to be looked up; `name`: None where it still has none."""
        if not is_managed(self.memory, address):
            return
        method = self.methods.at(address) if self.methods else None
        if self.methods and not method and self.memory.kind_of(address) == "jit":
            self.stubs += 1  # between methods; the runtime's list has no names there
            return
        self.frames += 1
        self.named += name is not None
        if name is None:
            self.unnamed.append(line)
        elif method:
            self.checked += 1
            if f"{method[3]}::{method[4]}" not in name:
                self.wrong.append((name, method))

    def check(self, context, what, at_least=100):
        context.figure(f"{what}: {self.frames} frames in precompiled images and jitted methods, "
                       f"{percent(self.named, self.frames)} named; {self.checked} compared with the runtime's list, "
                       f"{len(self.wrong)} wrong")
        expect(self.frames >= at_least, f"only {self.frames} managed frames")
        expect(self.named == self.frames, f"without a name: {self.unnamed[:3]}")
        expect(not self.wrong, f"wrong: {self.wrong[:2]}")
        precompiled = [row for row in (self.methods.rows if self.methods else ())
                       if (self.memory.path_of(row[1]) or "").endswith(".dll")]
        aside = [row for row in precompiled if not is_managed(self.memory, row[1])]
        expect(not aside, f"{len(aside)} of {len(precompiled)} precompiled methods would be set aside: {aside[:1]}")


# ---- perf ------------------------------------------------------------------------

def record(context, sample, *options):
    data = os.path.join(context.scratch, "symbolize.data")
    need("perf", "linux-perf")
    why = perf_samples.record(sample.pid, 0.8, data)
    if why:
        raise Skip(why)
    return output_of(*perf_samples.perf(data), "script", "-i", data, "--ns", "--no-inline", *options), data


HEAD = re.compile(r"^\S.*?(\d+)/(\d+) +(?:\[\d+\] +)?(\d+)\.(\d+):")
FRAME = re.compile(r"^(\s+[0-9a-f]+) (.*) (\([^()]*(?: \(deleted\))?\))$")


def chains_of(pairs):
    """{(thread, time): [(line, name or None, was unknown)]} of user frames."""
    chains, chain = {}, None
    for before, after in pairs:
        head = HEAD.match(before)
        old, new = FRAME.match(before), FRAME.match(after)
        if head:
            expect(before == after, f"the line '{before}' became '{after}'")
            chain = chains[int(head.group(2)), int(head.group(3)) * 10**9 + int(head.group(4))] = []
        elif old:
            expect(new and old.group(1) == new.group(1) and old.group(3) == new.group(3), f"'{before}' became '{after}'")
            unknown = old.group(2) == "[unknown]"
            expect(unknown or before == after, f"a name was changed: '{before}'")
            if "kernel" not in old.group(3):
                chain.append((after, None if new.group(2) == "[unknown]" else new.group(2)))
        else:
            expect(before == after, f"the line '{before}' became '{after}'")
    return chains


def test_symbolize_names_every_managed_frame_of_perf_script(context):
    context.oracle()
    with Sample(context.sdk()) as sample:
        text, data = record(context, sample, "-F", "+pid")
        pairs = symbolize(context, text)
        tally = Tally(Memory(sample.pid), Methods(context.rundown(sample.pid)))
    raw, unpaired = perf_samples._raw_chains(data), 0
    chains = chains_of(pairs)
    for key, chain in chains.items():
        addresses = raw.get(key, [])
        unpaired += len(addresses) != len(chain)
        if len(addresses) != len(chain):
            continue
        frames = [perf_samples.Frame(address, None) for address in addresses]
        for address, (line, name) in zip(looked_up(frames), chain):
            tally.add(address, name, line)
    expect(unpaired * 100 <= len(chains), f"{unpaired} of {len(chains)} samples could not be paired")
    tally.check(context, "perf script")
    folded = collapse(after for _, after in pairs)
    left = sum(count for stack, count in folded.items() if "[unknown]" in stack and ".dll" in stack)
    context.figure(f"folded: {len(folded)} stacks")
    expect(len(folded) > 10 and left == 0, f"{left} folded stacks with [unknown] in a dll")


# Frames without a name: where it goes, the file, and the offset into it.
PERF_TRACE = re.compile(r"^(?P<left> {39})(?P<hole>\[(?P<offset>0x[0-9a-f]+)\])(?P<right> \((?P<file>/.*)\))$")
STRACE = re.compile(r"^(?P<left> > (?P<file>/.*)\()(?P<hole>)(?P<right>\) \[(?P<offset>0x[0-9a-f]+)\])$")


def code_at(pid):
    """{path: [(offset, start, end)]} of what may be executed."""
    found = {}
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            place, protection, offset, _, _, path = (line.rstrip("\n").split(None, 5) + [""])[:6]
            if "x" in protection:
                start, end = (int(part, 16) for part in place.split("-"))
                found.setdefault(path.removesuffix(" (deleted)"), []).append((int(offset, 16), start, end))
    return found


def check_offsets(context, sample, path, pattern, what):
    """Text that a tool wrote about a process that still runs. Each name must be that of the code at the offset."""
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        text = "".join(itertools.islice(file, 20000))
    pairs = symbolize(context, text)
    tally, code = Tally(Memory(sample.pid), Methods(context.rundown(sample.pid))), code_at(sample.pid)
    for before, after in pairs:
        frame = pattern.match(before)
        if not frame:
            expect(before == after, f"'{before}' became '{after}'")
            continue
        left, right, offset = frame["left"], frame["right"], int(frame["offset"], 16) - 1
        expect(after.startswith(left) and after.endswith(right), f"'{before}' became '{after}'")
        name = after[len(left):-len(right)]
        for start_offset, start, end in code.get(frame["file"].removesuffix(" (deleted)"), ()):
            if start_offset <= offset < start_offset + end - start:
                tally.add(start + offset - start_offset, None if name == frame["hole"] else name, before)
                break
    tally.check(context, what)


def test_symbolize_names_every_frame_of_perf_trace(context):
    """It prints offsets into files, and of each event the thread only."""
    context.oracle()
    path = os.path.join(context.scratch, "traced.txt")
    with Sample(context.sdk()) as sample:
        output_of(need("perf", "linux-perf"), "trace", "--call-graph", "fp", "-p", sample.pid, "-o", path, "--",
                  *perf_samples.waiting(sample.pid, 0.5))
        check_offsets(context, sample, path, PERF_TRACE, "perf trace")


def frames_in_assemblies(path):
    """How many lines of a text that is being written name an assembly."""
    if not os.path.exists(path):
        return 0
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read().count(".dll(")


def test_symbolize_names_every_frame_of_strace(context):
    context.oracle()
    path = os.path.join(context.scratch, "strace.txt")
    with Sample(context.sdk()) as sample:
        with subprocess.Popen([need("strace", "strace"), "-k", "-f", "-o", path, "-p", str(sample.pid)], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as tracing:
            is_in_time(lambda: frames_in_assemblies(path) > 300 or tracing.poll() is not None, 60, 0.2)
            tracing.send_signal(signal.SIGINT)
            said = tracing.communicate()[1]
        if not frames_in_assemblies(path):
            raise Skip(f"strace does not work here: {said.strip()[-200:]}")
        check_offsets(context, sample, path, STRACE, "strace -k")


def collapse(lines):
    """perf script folded as stackcollapse-perf.pl does: without offsets and signatures."""
    folded, stack = {}, []
    for line in lines:
        frame = FRAME.match(line)
        if frame:
            name = re.sub(r"\+0x[0-9a-f]+$", "", frame.group(2))
            if name == "[unknown]":
                name += frame.group(3)
            stack.insert(0, name.split("(")[0] if not name.startswith("[unknown]") else name)
        elif not line.strip() and stack:
            folded[";".join(stack)] = folded.get(";".join(stack), 0) + 1
            stack = []
    return folded


def test_symbolize_names_samples_of_perf_without_callers(context):
    with Sample(context.sdk()) as sample:
        data = os.path.join(context.scratch, "flat.data")
        perf = perf_samples.perf(data)
        rate, seconds = sampling(1999, 0.5)
        output_of(*perf, "record", "-q", "-e", "cpu-clock", "-F", rate, "-p", sample.pid, "-o", data, "--", *perf_samples.waiting(sample.pid, seconds))
        text = output_of(*perf, "script", "-i", data)
        pairs = symbolize(context, text, "-p", sample.pid)
        tally = Tally(Memory(sample.pid))
    for before, after in pairs:
        found = re.search(r" ([0-9a-f]{9,16}) \[unknown\] ", before)
        if found:
            tally.add(int(found.group(1), 16), None if " [unknown] " in after else after, after)
    tally.check(context, "perf script without -g", 20)


# ---- BPF -------------------------------------------------------------------------

def need_bpf():
    if os.geteuid() != 0:
        raise Skip("BPF needs root")


def bpftrace(context, pid, key, *options):
    program = (f"profile:hz:999 /pid == {pid}/ {{ @[{key}] = count(); @seen++; if (@seen >= 300) {{ exit(); }} }} "
               "interval:s:60 { exit(); } END { clear(@seen); }")
    # Without a cache of its own 0.17 loses stacks of processes with many mappings.
    done = run_tool(context, ["bpftrace", *options, "-e", program], ours=False,
                    variables={"BPFTRACE_CACHE_USER_SYMBOLS": "1"}, is_whole=has_its_stacks)
    if "0x" not in done.stdout:
        raise Skip(f"bpftrace printed no stacks of {key}: {done.stderr.strip()[-200:]}")
    return done.stdout


def count_bare(context, pairs, pid, what, at_least):
    """Lines that were a bare address; a stack's frames are indented and but the first are callers."""
    tally, depth = Tally(Memory(pid)), 0
    for before, after in pairs:
        bare = re.match(r"^(\s*)(?:[0-9a-f]+ )?0x([0-9a-f]+)(?: \(\[unknown\]\))?$", before)
        if bare:
            kept = before == after
            tally.add(int(bare.group(2), 16) - (1 if depth else 0), None if kept else after, after)
        else:
            expect(before == after, f"'{before}' became '{after}'")
        depth = depth + 1 if before.startswith((" ", "\t")) else 0
    tally.check(context, what, at_least)


def test_symbolize_names_every_managed_frame_of_bpftrace(context):
    with Sample(context.sdk()) as sample:
        for key, what in (("ustack", "bpftrace ustack"), ("ustack(perf), pid, comm", "bpftrace ustack(perf)")):
            text = bpftrace(context, sample.pid, key)
            count_bare(context, symbolize(context, text, "-p", sample.pid), sample.pid, what, 100)
        keys = bpftrace(context, sample.pid, "usym(reg(\"ip\")), comm")
        left = [after for before, after in symbolize(context, keys, "-p", sample.pid)
                for address in re.findall(r"0x([0-9a-f]+)", after) if is_managed(Memory(sample.pid), int(address, 16))]
        expect(not left, f"keys without a name: {left[:3]}")
        text = bpftrace(context, sample.pid, "ustack", "-f", "json")
        out = context.mapgen.must("symbolize", "-p", sample.pid, stdin=text).stdout
        memory = Memory(sample.pid)
        left = [address for address in re.findall(r"0x([0-9a-f]+)", out) if is_managed(memory, int(address, 16) - 1)]
        expect(not left, f"JSON has addresses without a name: {[(text, memory.row_of(int(text, 16) - 1)) for text in left[:3]]}")


def test_symbolize_names_frames_of_bcc_that_have_an_address(context):
    need_bpf()
    with Sample(context.sdk()) as sample:
        text = output_of(need("stackcount-bpfcc", "bpfcc-tools"), "-p", sample.pid, "-v", "-D", 3, "c:pthread_cond_*wait")
        if "[unknown]" not in text:
            raise Skip("stackcount-bpfcc printed no stacks")
        pairs = symbolize(context, text, "-p", sample.pid)
        tally = Tally(Memory(sample.pid))
        folded = output_of(need("profile-bpfcc", "bpfcc-tools"), "-p", sample.pid, "-U", "-f", "1")
        same = context.mapgen.must("symbolize", "-p", sample.pid, stdin=folded, codes=(3,))
    for before, after in pairs:
        frame = re.match(r"^  ([0-9a-f]+) +\[unknown\]$", before)
        if frame:
            tally.add(int(frame.group(1), 16) - 1, None if before == after else after, after)
        else:
            expect(before == after, f"'{before}' became '{after}'")
    tally.check(context, "stackcount-bpfcc -v", 4)
    expect(same.stdout == folded, "folded text without addresses was changed")
    expect("without an address" in same.stderr, f"said: {same.stderr}")


# ---- others ------------------------------------------------------------------------

def test_symbolize_names_every_managed_frame_of_eu_stack(context):
    with Sample(context.sdk()) as sample:
        text = output_of(need("eu-stack", "elfutils"), "-p", sample.pid, codes=(0, 1))
        pairs = symbolize(context, text)
        tally = Tally(Memory(sample.pid))
    for before, after in pairs:
        frame = re.match(r"^#(\d+) +0x([0-9a-f]+)$", before)
        if frame:
            tally.add(int(frame.group(2), 16) - (frame.group(1) != "0"), None if before == after else after, after)
        expect(after.startswith(before), f"'{before}' became '{after}'")
    tally.check(context, "eu-stack", 5)


def test_symbolize_names_call_stacks_of_lttng(context):
    need("babeltrace2", "babeltrace2")
    context.oracle()
    directory = context.directory("callstacks")
    with Sample(context.sdk()) as sample:
        _, data = record(context, sample)
        chains = [chain for chain in perf_samples._raw_chains(data).values() if chain][:200]
        callstack_trace.write(directory, sample.pid, chains)
        text = output_of("babeltrace2", directory)
        expect(text.count("callstack_user = [ [0] = 0x") == len(chains), f"babeltrace2 printed {text[:200]}")
        pairs = symbolize(context, text)
        # Stacks of native code without frame pointers hold pointers into stubs that look like callers.
        tally = Tally(Memory(sample.pid), Methods(context.rundown(sample.pid)))
    for before, after in pairs:
        for index, address, name in re.findall(r'\[(\d+)\] = 0x([0-9A-F]+)(?: "((?:[^"\\]|\\.)*)")?', after):
            tally.add(int(address, 16) - (index != "0"), name or None, address)
        expect(re.sub(r'(0x[0-9A-F]+) "(?:[^"\\]|\\.)*"', r"\1", after) == before, f"'{before}' became '{after}'")
    tally.check(context, "callstack_user through babeltrace2")


class Lttng:
    """An LTTng session of user space events with the ip context, in a home of its own."""

    def __init__(self, context):
        self.directory = context.directory("lttng")
        self.environment = dict(os.environ, LTTNG_HOME=self.directory, LTTNG_UST_REGISTER_TIMEOUT="3000")
        need("lttng", "lttng-tools")
        self.daemon = None

    def run(self, *words):
        done = subprocess.run(["lttng", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env=self.environment, timeout=60)
        if done.returncode:
            raise Skip(f"lttng {words[0]}: {(done.stdout + done.stderr).strip().splitlines()[-1:]}")

    def __enter__(self):
        running = subprocess.run(["pidof", "lttng-sessiond"], capture_output=True, check=False).returncode == 0
        if not running:
            self.daemon = subprocess.Popen([need("lttng-sessiond", "lttng-tools")], stdin=subprocess.DEVNULL,
                                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.environment)
            self.wait_for_daemon()
        try:
            self.run("create", "libsym", "--output", os.path.join(self.directory, "trace"))
            self.run("enable-event", "--userspace", "lttng_ust_libc:*", "--session", "libsym")
            self.run("add-context", "--userspace", "--type", "ip", "--type", "vpid", "--session", "libsym")
            self.run("start", "libsym")
        except BaseException:
            self.__exit__()
            raise
        return self

    def wait_for_daemon(self):
        def answers():
            return self.daemon.poll() is not None or not subprocess.run(
                ["lttng", "list"], stdin=subprocess.DEVNULL, capture_output=True, env=self.environment,
                check=False, timeout=60).returncode
        is_in_time(answers, 30, 0.1)

    def __exit__(self, *_):
        subprocess.run(["lttng", "destroy", "libsym"], stdin=subprocess.DEVNULL, capture_output=True,
                       env=self.environment, check=False, timeout=60)
        if self.daemon:
            self.daemon.terminate()
            self.daemon.wait()


def test_symbolize_names_the_instruction_pointers_of_lttng(context):
    need("babeltrace2", "babeltrace2")
    wrapper = "liblttng-ust-libc-wrapper.so"
    with Lttng(context) as lttng:
        with Sample(context.sdk(), dict(lttng.environment, LD_PRELOAD=wrapper)) as sample:
            wait_until_warm(sample.process, 1)
            lttng.run("stop", "libsym")
            text = output_of("babeltrace2", os.path.join(lttng.directory, "trace"))
            lines = [line for line in text.splitlines() if f"vpid = {sample.pid} " in line or f"vpid = {sample.pid}," in line]
            if not lines:
                raise Skip(f"LTTng-UST traced nothing (is {wrapper} of liblttng-ust-dev there?)")
            text = "\n".join(lines[-20000:]) + "\n"
            pairs = symbolize(context, text)
            memory = Memory(sample.pid)
    frames, named = 0, 0
    for before, after in pairs[:-1]:
        address = int(re.search(r"\bip = (\w+)", before).group(1), 0)
        path = memory.path_of(address)
        frames += path is not None
        name = re.search(r'\bip = \w+ "((?:[^"\\]|\\.)*)"', after)
        named += path is not None and name is not None
        expect(re.sub(r'(\bip = \w+) "(?:[^"\\]|\\.)*"', r"\1", after) == before, f"'{before}' became '{after}'")
    context.figure(f"LTTng-UST ip context: {frames} events of a live process, {percent(named, frames)} told")
    expect(frames > 100, f"only {frames} events")
    expect(named >= 0.99 * frames, f"{named} of {frames} events have a name or the bounds of a function")


def start(context, *arguments):
    return subprocess.Popen([context.mapgen.program, "symbolize", *map(str, arguments)], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True, bufsize=1, env=context.mapgen.environment)


def test_symbolize_answers_a_live_pipe_line_by_line(context):
    with Sample(context.sdk()) as sample:
        kind, start_address, _, owner, method = next(row for row in context.rundown(sample.pid) if row[4] == "Repeat")
        process = start(context, "-p", sample.pid)
        try:
            for text, wanted in (("one", "one"), (f"{start_address:#x}", f"{owner}::{method}"), ("two", "two")):
                process.stdin.write(text + "\n")
                process.stdin.flush()
                answer = process.stdout.readline()
                expect(wanted in answer, f"'{answer.strip()}' answers '{text}' ({kind})")
            # Control-C is for the tool that writes; what it writes then is still named.
            process.send_signal(signal.SIGINT)
            wait_until(lambda: not is_pending(process.pid, signal.SIGINT), "the signal does not arrive")
            rest, _ = process.communicate(f"{start_address:#x}", timeout=60)
            expect(f"{owner}::{method}" in rest and not rest.endswith("\n"), f"after the interrupt: '{rest}'")
            expect(process.returncode == 0, f"exit code {process.returncode}")
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()


def test_symbolize_names_what_was_compiled_before_its_process_ended(context):
    """bpftrace prints its last maps when its target has ended. No text came since the process was first asked of."""
    for way in ("memory", "rundown"):
        with Sample(context.sdk(), {"DOTNET_PerfMapEnabled": "3"}) as sample:
            known, _ = read_methods(sample.map_path)
            process = start(context, "-p", sample.pid, "--jit=" + way)
            try:
                process.stdin.write(f"{next(iter(known)):#x}\n")
                process.stdin.flush()
                process.stdout.readline()
                wait_until(lambda: len(read_methods(sample.map_path)[0].keys() - known.keys()) >= 20,
                           "nothing is compiled", pause=0.1)
                theirs = {address: method for address, method in read_methods(sample.map_path)[0].items()
                          if address not in known and b"dynamicClass" not in method[1]}
                time.sleep(4)  # it tells in turns, and is asked in turns
                sample.end()
                lines = process.communicate("".join(f"{address:#x}\n" for address in theirs), timeout=60)[0].splitlines()
            finally:
                if process.poll() is None:
                    process.kill()
                process.wait()
        unnamed = [line for line in lines if "::" not in line]
        context.figure(f"{way}: {len(theirs)} methods that were compiled while no text came, {len(unnamed)} without a name")
        expect(len(theirs) >= 10 and len(lines) == len(theirs), f"{len(lines)} lines for {len(theirs)} methods")
        expect(not unnamed, f"without a name: {unnamed[:3]}")


def test_symbolize_names_code_that_is_jitted_while_it_runs(context):
    with Sample(context.sdk()) as sample:
        process = start(context, "-p", sample.pid)
        try:
            process.stdin.write("0x1\n")
            process.stdin.flush()
            process.stdout.readline()  # has looked at the process
            known = {row[1] for row in context.rundown(sample.pid)}
            fresh = []

            def has_fresh():
                fresh[:] = [row for row in context.rundown(sample.pid) if row[1] not in known]
                return fresh
            if not is_in_time(has_fresh, 60, 0.5):
                raise Skip("nothing was jitted meanwhile")
            row = fresh[0]
            process.stdin.write(f"{row[1]:#x}\n")
            answer = process.stdout.readline()
            expect(f"{row[3]}::{row[4]}" in answer, f"'{answer.strip()}' for {row}")
        finally:
            process.stdin.close()
            process.wait()


def test_symbolize_says_why_jitted_code_has_no_names(context):
    published, why = shapes.publish(next(shape for shape in shapes.SHAPES if shape.title == "8.0 self-contained"))
    if published is None:
        raise Skip(why)
    with Sample(published, {"DOTNET_PerfMapEnabled": "0", "DOTNET_EnableDiagnostics": "0"}) as sample:
        with open(f"/proc/{sample.pid}/maps", encoding="utf-8") as maps:
            code = next(int(line.split("-")[0], 16) for line in maps if " r-x" in line and "doublemapper" in line)
        done = context.mapgen.must("symbolize", "-p", sample.pid, stdin=f"    {code:x} [unknown] ([unknown])\n")
        expect("jitted code has no names" in done.stderr and "diagnostics socket" in done.stderr, f"it says {done.stderr}")
        done = context.mapgen.must("symbolize", "--jit=none", "-p", sample.pid, stdin=f"    {code:x} [unknown] ([unknown])\n")
        expect("no names" not in done.stderr, f"it was not to look for any, and says {done.stderr}")
