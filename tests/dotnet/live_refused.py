# SPDX-License-Identifier: MIT
"""Processes that may not be read, become another program, or are in a container: what is said, and that nothing is named wrongly.

The oracle of the container is the runtime's own rundown, taken inside.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from harness import Memory, Sample, Skip, expect, read_map
from live_bad_input import MAP_OFF
from live_containers import child_of, copied_sample, in_namespaces
from live_deleted import Place
from live_watch import Watch
from waiting import wait_until

HERE = os.path.dirname(os.path.abspath(__file__))
PRELOAD = os.path.join(HERE, os.pardir, "support", "preload")
ASKED, FAILURES = 120, 90
ALLOCATIONS = ("malloc", "calloc", "realloc", "reallocarray", "posix_memalign", "aligned_alloc", "strdup", "strndup", "asprintf")


def as_root():
    if os.geteuid() != 0:
        raise Skip("needs root")


def preloaded(context, name):
    """A library of ours for LD_PRELOAD, built here."""
    library = os.path.join(context.directory("preload"), f"{name}.so")
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        raise Skip("no C compiler")
    subprocess.run([compiler, "-D_GNU_SOURCE", "-shared", "-fPIC", "-O1", "-fno-builtin", "-fexceptions", "-static-libgcc", "-o", library,
                    os.path.join(PRELOAD, f"{name}.c"), "-ldl", "-lpthread"], check=True)
    return library


def read_refused(context, pid, prefix=(), environment=None):
    """merge by the contract alone."""
    return subprocess.run([*prefix, context.mapgen.program, "merge", str(pid), "--jit=memory",
                           "-o", os.path.join(context.scratch, "refused.map")],
                          capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env=dict(context.mapgen.environment or os.environ, **(environment or {})))


def expect_said(done, *words):
    expect(done.returncode in (1, 3), f"exit code {done.returncode}: {done.stderr[:300]}")
    for word in words:
        expect(word in done.stderr, f"{word!r} is not in {done.stderr[:400]!r}")


def test_root_without_capabilities_is_told_which_one_is_missing(context):
    """Same user and group as the target, fewer capabilities: not even its mappings are to be seen."""
    as_root()
    with Sample(context.sdk(), MAP_OFF, resting=True) as sample:
        done = read_refused(context, sample.pid, ["setpriv", "--bounding-set=-all", "--inh-caps=-all"])
    expect_said(done, "every capability that it has", "CAP_SYS_PTRACE")


def test_memory_that_may_not_be_read_names_the_capability(context):
    """Mappings are to be seen, memory is not: as with seccomp, or Yama's ptrace_scope. The kernel of a test
    machine may have no Yama: its file is put there in a mount namespace of our own."""
    as_root()
    refusing = {"LD_PRELOAD": preloaded(context, "refuse_memory")}
    with Sample(context.sdk(), MAP_OFF, resting=True) as sample:
        done = read_refused(context, sample.pid, environment=refusing)
        if not os.path.exists("/proc/sys/kernel/yama/ptrace_scope"):
            expect_said(done, "same user and group", "no fewer capabilities", "CAP_SYS_PTRACE")
        for scope, words in (("1", ("ptrace_scope", "CAP_SYS_PTRACE")), ("2", ("ptrace_scope", "CAP_SYS_PTRACE")),
                             ("3", ("ptrace_scope", "forbids it to everyone"))):
            prefix = ["unshare", "--mount", "sh", "-c",
                      f"mount -t tmpfs tmpfs /proc/sys/kernel && mkdir /proc/sys/kernel/yama && "
                      f"echo {scope} > /proc/sys/kernel/yama/ptrace_scope && exec \"$@\"", "sh"]
            expect_said(read_refused(context, sample.pid, prefix, refusing), *words)


def test_what_may_not_be_read_is_asked_for(context):
    as_root()
    output = os.path.join(context.scratch, "asked.map")
    refusing = dict(context.mapgen.environment or os.environ, LD_PRELOAD=preloaded(context, "refuse_memory"))
    with Sample(context.sdk(), MAP_OFF, resting=True) as sample:
        done = subprocess.run([context.mapgen.program, "merge", str(sample.pid), "-o", output], capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, env=refusing)
        rows = [name for _, _, name in read_map(output) if "[QuickJitted]" in name or "[OptimizedTier1" in name]
    expect(done.returncode in (0, 3), f"exit code {done.returncode}: {done.stderr[:300]}")
    expect("rundown" in done.stdout + done.stderr, f"the way is not said: {done.stdout[:300]!r}")
    expect(len(rows) > 100, f"{len(rows)} jitted methods")


def test_one_want_of_memory_names_nothing_wrongly(context):
    """Whichever allocation fails: a method keeps its name, or the failure is reported. If the list cannot be read
    from memory, the runtime is queried, which has no names for its own stubs."""
    log = os.path.join(context.scratch, "allocations")
    environment = dict(context.mapgen.environment or os.environ, LD_PRELOAD=preloaded(context, "fail_once"), FAIL_OBJECT="/dotnet-mapgen")
    with Sample(context.sdk(), MAP_OFF, resting=True) as sample:
        output = os.path.join(context.scratch, "whole.map")
        context.mapgen.must("merge", sample.pid, "-o", output, codes=(0, 3))
        rows = read_map(output)
        starts = [start for start, _, _ in rows[::max(1, len(rows) // ASKED)]]

        def ask(**variables):
            done = subprocess.run([context.mapgen.program, "resolve", str(sample.pid)], text=True, capture_output=True,
                                  input="".join(f"{start:x}\n" for start in starts), env=dict(environment, **variables))
            expect(done.returncode >= 0, f"{variables}: signal {-done.returncode}")
            expect(done.returncode in (0, 3) or done.stderr, f"{variables}: exit code {done.returncode}, nothing said")
            return done.stdout.splitlines() if done.returncode in (0, 3) else []

        whole = ask(FAIL_LOG=log)
        expect(len(whole) == len(starts) > ASKED // 2, f"{len(whole)} answers about {len(starts)} methods")
        with open(log, encoding="ascii") as file:
            calls = [line.split()[1] for line in file if line.split()[0] in ALLOCATIONS]
        unread = 0
        for place in calls[::max(1, len(calls) // FAILURES)]:
            for old, new in zip(whole, ask(FAIL_PLACE=place)):
                unread += "[not readable" in new
                expect(new == old or "[not readable" in new or ("[runtime stub]" in new and "[precode]" in old),
                       f"allocation {place}: {old!r} became {new!r}")
    expect(unread, "no failure was felt")


def test_want_of_room_for_everything_does_not_make_a_runtime_none(context):
    """A limit of the address space (ulimit -v): missing names are reported, or that they could not be read."""
    output = os.path.join(context.scratch, "limited.map")
    with Sample(context.sdk(), MAP_OFF, resting=True) as sample:
        for command in (("list", sample.pid), ("info", sample.pid), ("merge", sample.pid, "-o", output),
                        ("fetch-symbols", sample.pid, "--offline")):
            refused = 0
            for limit in range(10000, 70000, 4000):
                done = subprocess.run(["sh", "-c", 'ulimit -v "$1"; shift; exec "$@"', "sh", str(limit), context.mapgen.program,
                                       *map(str, command)], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
                said = f"{command[0]} with {limit} kB: {done.returncode} {done.stderr[-200:]}"
                refused += done.returncode == 1
                expect(done.returncode in (1, 3, 127) or done.stdout.count("\n") > 3 or ", 0 with their own" not in done.stderr, said)
                expect("hosts no" not in done.stderr and (done.returncode != 1 or done.stderr), said)
            expect(refused, f"{command[0]}: no limit was felt")


SLOW_ANSWER = """
import mmap, os, socket, sys, threading, time
with open(sys.argv[1], "rb") as file:
    runtime = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ | mmap.PROT_EXEC, flags=mmap.MAP_PRIVATE)
with open("/proc/self/stat") as stat:
    start = stat.read().rpartition(")")[2].split()[19]
path = f"/tmp/dotnet-diagnostic-{os.getpid()}-{start}-socket"
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen()
def answer(connection):
    connection.recv(65536)
    print("asked", flush=True)
    connection.sendall(b"DOTNET_IPC_V1\\0" + bytes([28, 0, 0xff, 0, 0, 0]) + bytes(8))
    for byte in b"Nettrace" + bytes(1000):
        connection.sendall(bytes([byte]))
        time.sleep(0.5)
def serve():
    while True:
        threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()
threading.Thread(target=serve, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
os.unlink(path)
"""


def test_a_runtime_that_answers_byte_by_byte_does_not_hold_a_watch(context):
    with Sample(context.sdk(), MAP_OFF, resting=True) as sample:
        library = next(row[3] for row in Memory(sample.pid).rows if row[3].endswith("/libcoreclr.so"))
    process = subprocess.Popen([sys.executable, "-c", SLOW_ANSWER, library], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        process.stdout.readline()
        watch = Watch(context, process.pid, "--jit=rundown", "-o", os.path.join(context.scratch, "slow.map"))
        process.stdout.readline()  # "asked"
        watch.process.terminate()
        _, errors = watch.process.communicate(timeout=90)
    finally:
        watch.process.kill()
        process.communicate("")
    expect(watch.process.returncode == 3 and "did not answer in time" in errors, f"{watch.process.returncode}: {errors}")


class Becoming:
    """A sample that becomes `sleep` on demand; it keeps its number and its start time."""

    def __init__(self, context):
        self.flag = os.path.join(context.directory("becoming"), f"now-{time.monotonic_ns()}")
        self.sample = Sample(context.sdk(), dict(MAP_OFF, LD_PRELOAD=preloaded(context, "become_program"),
                                                 BECOME_WHEN=self.flag), resting=True)

    def begin(self):
        with open(self.flag, "w", encoding="ascii"):
            pass

    def wait(self):
        wait_until(lambda: program_of(self.sample.pid) == "sleep",
                 lambda: f"it did not become another program, it {state_of(self.sample.pid)}")


def program_of(pid):
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return ""


def stat_fields(pid):
    """Those behind the program's name: the first is number 3 of proc(5)."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
        return stat.read().rpartition(")")[2].split()


def start_time(pid):
    """In clock ticks since boot."""
    return int(stat_fields(pid)[22 - 3])


def state_of(pid):
    fields = stat_fields(pid)
    return f"is {program_of(pid) or 'nothing'} in state {fields[0]}, wait status {fields[-1]}"


def test_a_watch_ends_when_its_process_becomes_another_program(context):
    output = os.path.join(context.scratch, "exec.map")
    becoming = Becoming(context)
    with becoming.sample as sample:
        watch = Watch(context, sample.pid, "-o", output, "--interval=0.2")
        wait_until(lambda: os.path.exists(output), "no map was written")
        before = read_map(output)
        becoming.begin()
        becoming.wait()
        report = watch.report()
        after = read_map(output)
    expect(report["end"] == "process", f"it says that it ended by {report['end']}")
    expect(len(before) > 10000 and len(after) >= len(before), f"{len(before)} lines before, {len(after)} after")


def test_a_process_that_becomes_another_program_half_way_is_named_by_neither(context):
    """The old program's map is written, or none: the two are never mixed."""
    written = refused = 0
    for moment in (0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.3, 0.6):
        output = os.path.join(context.scratch, f"half-{moment}.map")
        becoming = Becoming(context)
        with becoming.sample as sample:
            process = subprocess.Popen([context.mapgen.program, "merge", str(sample.pid), "-o", output],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       text=True, env=context.mapgen.environment)
            time.sleep(moment)
            becoming.begin()
            _, errors = process.communicate(timeout=60)
            becoming.wait()
        expect(process.returncode in (0, 1, 3), f"exit code {process.returncode}: {errors[:300]}")
        if process.returncode == 1:
            expect(errors.strip(), "refused without a word")
            refused += 1
            continue
        rows = read_map(output)
        written += 1
        expect(sum(name.endswith("[PreJIT]") for _, _, name in rows) > 10000, f"a map of {len(rows)} lines")
    context.figure(f"{written} maps of the old program, {refused} refusals")


def test_a_container_with_a_directory_of_its_own_for_sockets_is_asked_through_its_root(context):
    """The socket is in the target's TMPDIR inside its mount namespace; nothing of it is to be seen outside."""
    prefix = in_namespaces()
    prefix = [*prefix[:-2], 'mount -t tmpfs tmpfs /tmp && mkdir /tmp/sockets && TMPDIR=/tmp/sockets exec "$@"', "sh"]
    with Sample(copied_sample(context), MAP_OFF, prefix, resting=True) as sample:
        pid = child_of(sample.pid)
        inside = [name for name in os.listdir(f"/proc/{pid}/root/tmp/sockets") if name.startswith("dotnet-diagnostic-")]
        expect(inside, "the runtime made no socket in its TMPDIR")
        expect(not os.path.exists("/tmp/sockets"), "the socket is to be seen outside")
        output = os.path.join(context.scratch, "contained.map")
        context.mapgen.must("merge", pid, "--jit=rundown", "-o", output)
        asked = {start: name for start, _, name in read_map(output)}
        context.mapgen.must("merge", pid, "--jit=memory", "-o", output)
        read = [(start, name) for start, _, name in read_map(output) if name.endswith("[QuickJitted]")]
    named = sum(asked.get(start, "").split("[")[0] == name.split("[")[0] for start, name in read)
    context.figure(f"{named} of {len(read)} jitted methods told by the runtime in the container")
    expect(read and named >= 0.99 * len(read), f"{named} of {len(read)} methods")


def test_a_socket_of_somebody_else_is_not_asked(context):
    """Only a socket of the runtime's own user counts, whichever users can reach it."""
    as_root()
    with Sample(context.sdk(), MAP_OFF, resting=True) as sample:
        # A killed process that had the number before may have left one, with the time of its own start.
        path = f"/tmp/dotnet-diagnostic-{sample.pid}-{start_time(sample.pid)}-socket"
        expect(os.path.exists(path), f"the sample has no {path}")
        os.chown(path, 65534, 65534)
        done = context.mapgen.run("merge", sample.pid, "--jit=rundown", "-o", os.path.join(context.scratch, "owned.map"))
        os.chown(path, 0, 0)
    expect(done.returncode in (1, 3), f"exit code {done.returncode}: it was asked")
    expect("socket" in done.stderr, f"the socket is not named: {done.stderr[:300]!r}")


def test_why_a_runtime_was_not_asked_is_said_where_an_older_map_has_no_name(context):
    """A map that merge wrote lacks later methods. It does not count as an answer of the runtime."""
    with Sample(context.npm(), {"COMPlus_PerfMapEnabled": "0"}) as sample:
        context.mapgen.must("merge", sample.pid)
        sample.stand_still()
        starts = [row[0] for row in Memory(sample.pid).rows if "x" in row[2] and not row[3]]
        answers = [answer for answer in context.mapgen.resolve(sample.pid, starts).values() if not answer["resolved"]]
    expect(answers, "everything has a name: this tried nothing")
    wrong = [answer for answer in answers if "is stopped" not in (answer["reason"] or "")]
    expect(not wrong, f"{len(wrong)} of {len(answers)} do not say why, first: {wrong[:1]}")


def test_a_runtime_that_waits_to_be_resumed_is_said_to_run_no_code(context):
    command = [*context.sdk().command, "900"]
    environment = dict(os.environ, DOTNET_DefaultDiagnosticPortSuspend="1")
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, env=environment)
    target = os.path.join(context.scratch, "suspended.map")
    try:
        socket = f"dotnet-diagnostic-{process.pid}-"
        wait_until(lambda: any(name.startswith(socket) for name in os.listdir(tempfile.gettempdir())), "no socket")
        wait_until(lambda: "runs no .NET code yet" in
                 context.mapgen.run("merge", process.pid, "-o", target).stderr, "it is not said")
        asked = context.mapgen.run("merge", process.pid, "--jit=rundown", "-o", target).stderr
        expect("runs no .NET code yet" in asked, f"who asks the runtime is told: {asked}")
    finally:
        process.kill()
        process.wait()


def test_a_map_is_not_replaced_where_nobody_can_see_who_writes_it(context):
    """The right to trace is not the right to list descriptors of others."""
    as_root()
    place = Place(context, context.sdk(), "unlisted")
    with Sample(place.runtime, {"HOME": place.home, "DOTNET_ROOT": place.runtime_directory, "DOTNET_PerfMapEnabled": "1"},
                prefix=place.prefix, resting=True) as sample:
        before = os.stat(sample.map_path)
        few = ["setpriv", "--bounding-set=-all,+sys_ptrace,+chown,+fowner", "--inh-caps=-all"]
        done = subprocess.run([*few, context.mapgen.program, "merge", str(sample.pid)], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, env=context.mapgen.environment or os.environ)
        after = os.stat(sample.map_path)
        listed = subprocess.run([*few, context.mapgen.program, "list", "--json"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    expect_said(done, "may be writing", "CAP_DAC_READ_SEARCH")
    expect(before.st_ino == after.st_ino, "the runtime's file was replaced")
    rows = [row for row in json.loads(listed.stdout) if row["pid"] == sample.pid]
    expect(len(rows) == 1 and rows[0]["writes_perf_map"] is None, f"list: {rows}")
