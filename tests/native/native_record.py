# SPDX-License-Identifier: MIT
"""Stacks that `record` writes; the oracles are perf, which reads them, and the program itself, which knows who called whom."""
import collections
import errno
import glob
import json
import os
import re
import resource
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile

from native_tools import Fail, Skip
from sampling import sampling

# No frame pointers; `inner` runs, `wait_here` waits in libc, and `handler` runs on top of a signal frame. `work` and `handler` take some ms each.
PROGRAM = r"""
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#define KEEP __attribute__((noinline, noclone))
volatile unsigned long count;
KEEP static void inner(int rounds) { char room[100]; for (int i = 0; i < rounds; i++) { room[i % 100] = (char)i; count += (unsigned char)room[i % 7]; } }
KEEP static void middle(int rounds) { volatile long many[50]; many[rounds % 50] = 1; inner(rounds); many[0] = count; }
KEEP static void outer(int rounds) { middle(rounds); count++; }
KEEP static void handler(int number) { (void)number; for (int i = 0; i < 30; i++) outer(100000); count++; }
KEEP static void raise_it(void) { raise(SIGUSR1); count++; }
KEEP static void wait_here(void) { usleep(600); count++; }
KEEP static void *waiter(void *unused) { for (;;) wait_here(); return unused; }
KEEP static void work(void) { for (int i = 0; i < 30; i++) outer(100000); raise_it(); }
int main(void)
{
	pthread_t thread;
	signal(SIGUSR1, handler);
	pthread_create(&thread, NULL, waiter, NULL);
	printf("ready\n");
	fflush(stdout);
	for (;;)
		work();
}
"""


class Running:
    """A program while it runs, the one above unless another is given."""

    def __init__(self, tools, name, source=PROGRAM, prefix=(), directory=None):
        tools.need("gcc", "perf")
        path = os.path.join(directory or tools.scratch, name)
        tools.run("gcc", "-O2", "-fomit-frame-pointer", "-pthread", "-o", path, tools.write(f"{name}.c", source))
        self.process = subprocess.Popen([*prefix, path], stdout=subprocess.PIPE)
        self.pid = self.process.pid

    def __enter__(self):
        if self.process.stdout.readline() != b"ready\n":
            raise Fail("the program did not start")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def record(tools, *words):
    done = subprocess.run([tools.program, "record", *map(str, words)], capture_output=True, text=True, timeout=60)
    if done.returncode == 1 and "perf_event_open" in done.stderr:
        raise Skip(f"no events: {done.stderr.strip()}")
    return done


def stacks(tools, path, event):
    """Chains of functions of an event, innermost first, as perf script tells them; frames of the kernel are left out."""
    text = tools.run("perf", "script", "-i", path, "-F", "comm,tid,event,ip,sym")
    found = []
    for sample in text.split("\n\n"):
        lines = sample.strip("\n").split("\n")
        if event not in lines[0]:
            continue
        frames = [line.split(None, 1) for line in lines[1:] if line.strip()]
        found.append([name for address, name in frames if not (address.startswith("ffff") and len(address) == 16)])
    return found


def expect_most(found, wanted, what):
    """Nearly all of the chains that have the first function of `wanted` go on as it says."""
    have = [chain for chain in found if wanted[0] in chain]
    whole = [chain for chain in have if chain[chain.index(wanted[0]):][:len(wanted)] == wanted]
    if len(have) < 20 or len(whole) < 0.99 * len(have):
        bad = collections.Counter(" ".join(chain) for chain in have if chain not in whole).most_common(3)
        raise Fail(f"{what}: {len(whole)} of {len(have)} of {len(found)} chains go on as they should; {bad}")
    return len(whole)


def test_record_writes_whole_stacks(tools):
    """Stacks of code without frame pointers, of code that a signal interrupted, and of threads that wait in libc."""
    output = tools.path("whole.data")
    rate, seconds = sampling(1200, 1)
    with Running(tools, "recorded") as running:
        done = record(tools, running.pid, "-o", output, "-d", seconds, "-F", rate, "--off-cpu")
    if done.returncode:
        raise Fail(f"{done.returncode} {done.stderr}")
    if stat.S_IMODE(os.stat(output).st_mode) != 0o600:
        raise Fail("others may read the recording")
    on_cpu = stacks(tools, output, "cpu-clock")
    waiting = stacks(tools, output, "context-switches")
    ordinary = [chain for chain in on_cpu if "main" in chain and "handler" not in chain]
    in_handler = [chain for chain in on_cpu if "handler" in chain]
    count = expect_most(ordinary, ["inner", "middle", "outer", "work", "main"], "ordinary code")
    handled = expect_most(in_handler, ["inner", "middle", "outer", "handler"], "a handler")
    for chain in in_handler:
        if chain[-1] != "_start" or "raise_it" not in chain:
            raise Fail(f"a stack ends at the signal frame: {chain}")
    if {chain[-1] for chain in ordinary} != {"_start"}:
        raise Fail(f"stacks end at {collections.Counter(chain[-1] for chain in ordinary)}")
    waits = expect_most(waiting, ["wait_here", "waiter", "start_thread"], "waiting")
    tools.figure(f"{count} ordinary stacks, {handled} of a signal handler, {waits} of a thread that waits")


def test_record_freezes_names(tools):
    """The archive names each frame after the process has ended and its file is gone."""
    output = tools.path("frozen.trace.zip")
    with Running(tools, "frozen") as running:
        done = record(tools, "frozen", "-o", output, "-d", 1, "-F", 299)
        again = record(tools, "frozen", "-d", 1, "-o", tools.path("no/such/directory/x.data"))
    if done.returncode or again.returncode != 1:
        raise Fail(f"{done.returncode} {done.stderr} {again.returncode} {again.stderr}")
    with zipfile.ZipFile(output) as archive:
        if archive.testzip():
            raise Fail(f"damaged: {archive.testzip()}")
        about = json.loads(archive.read("recording.json"))
        names = {line.split("\t")[-1] for line in archive.read("names/symbols").decode().split("\n") if line.startswith("S\t")}
        perf_data = tools.write("frozen.data", "")
        with open(perf_data, "wb") as file:
            file.write(archive.read("perf.data"))
    if not 0 < about["own_cpu_seconds"] < 60 or about["pids"] != [running.pid] or about["format"] != 1 or about["losses"]["lost_records"]:
        raise Fail(f"{about}")
    if not {"inner", "middle", "outer", "work", "main", "__libc_start_call_main"} <= names:
        raise Fail(f"names: {sorted(names)}")
    if about["cpu_samples"] != len(stacks(tools, perf_data, "cpu-clock")):
        raise Fail(f"{about['cpu_samples']} samples, perf script has {len(stacks(tools, perf_data, 'cpu-clock'))}")


# Two pairs of threads that wait for one another, with deep stacks: as many context switches as the machine can do. `main` waits longer.
SWITCHING = r"""
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static int to[2][2], back[2][2];
volatile unsigned long count;
__attribute__((noinline, noclone)) static void deep(int depth, int pair, int side)
{
	volatile char room[512], byte = 1;
	memset((void *)room, depth, sizeof(room));
	if (depth)
		deep(depth - 1, pair, side);
	else if (side ? write(to[pair][1], (void *)&byte, 1) + read(back[pair][0], (void *)&byte, 1) : read(to[pair][0], (void *)&byte, 1) + write(back[pair][1], (void *)&byte, 1))
		count++;
	count += room[3];
}
static void *run(void *number) { for (;;) deep(8, (long)number / 2, (long)number % 2); return NULL; }
int main(void)
{
	pthread_t thread;
	for (int i = 0; i < 2; i++)
		if (pipe(to[i]) || pipe(back[i]))
			return 1;
	for (long i = 0; i < 4; i++)
		pthread_create(&thread, NULL, run, (void *)i);
	printf("ready\n");
	fflush(stdout);
	for (;;)
		usleep(1000);
}
"""


def test_record_counts_each_context_switch(tools):
    """Each switch has its time, and a sample or a place in the count of those that were lost, however many there are."""
    output = tools.path("switching.trace.zip")
    with Running(tools, "switching", SWITCHING) as running:
        done = record(tools, running.pid, "-o", output, "-d", 1, "--off-cpu")
    if done.returncode:
        raise Fail(f"{done.returncode} {done.stderr}")
    with zipfile.ZipFile(output) as archive:
        about = json.loads(archive.read("recording.json"))
        perf_data = archive.extract("perf.data", tools.path("switching.parts"))
    lines = tools.run("perf", "script", "-i", perf_data, "-F", "tid,event", "--show-switch-events").split("\n")
    outs = sum("PERF_RECORD_SWITCH OUT" in line for line in lines)
    samples = sum("context-switches" in line for line in lines)
    lost = about["losses"]["lost_switch_samples"]
    if samples != about["switch_samples"]:
        raise Fail(f"{samples} samples, the recording counts {about['switch_samples']}")
    if not about["losses"]["lost_records"] and abs(outs - samples - lost) > 20:
        raise Fail(f"{outs} switches, {samples} samples, {lost} lost")
    tools.figure(f"{outs} switches in 1 s, {samples} with a stack, {lost} without")


def switches(tools, path):
    """The switches of each thread in the order of time, as perf script prints them: (time in us, "sample", "OUT" or "IN")."""
    text = tools.run("perf", "script", "-i", path, "-F", "tid,time,event", "--show-switch-events")
    found = collections.defaultdict(list)
    for line in text.split("\n"):
        words = re.match(r"\s*(\d+)\s+(\d+)\.(\d{6}):.*(context-switches|SWITCH (OUT|IN))", line)
        if words:
            found[words[1]].append((int(words[2] + words[3]), words[5] or "sample"))
    return found


def test_record_keeps_stacks_of_long_waits(tools):
    """--off-cpu=MIN_US: each stack belongs to a wait of at least that time, by the switches in the same file, and each such wait has a stack."""
    output, shortest = tools.path("long.data"), 300
    with Running(tools, "long-waits", SWITCHING) as running:
        done = record(tools, running.pid, "-o", output, "-d", 1, f"--off-cpu={shortest}")
    if done.returncode:
        raise Fail(f"{done.returncode} {done.stderr}")
    long, short, missing, wrong = 0, 0, [], []
    for tid, events in switches(tools, output).items():
        for at, (time, what) in enumerate(events):
            ends = [end for end, kind in events[at:at + 4] if kind == "IN" and end >= time]
            if what != "OUT" or not ends:
                continue
            has_sample = any(kind == "sample" and abs(when - time) <= 100 for when, kind in events[max(0, at - 2):at + 2])
            waited = ends[0] - time
            long += has_sample
            short += not has_sample
            # The sample is taken some microseconds before the switch.
            if waited > shortest + 100 and not has_sample:
                missing.append((tid, time, waited))
            if waited < shortest - 100 and has_sample:
                wrong.append((tid, time, waited))
    lost = re.search(r"(\d+) context switches have times and no stack", done.stdout)
    if not short or long <= 20 or len(missing) + len(wrong) > 0.01 * long + 1 + (int(lost[1]) if lost else 0):
        raise Fail(f"{long} waits with a stack, {short} without; without one {missing[:3]}, of short waits {wrong[:3]}")
    if f"waits of less than {shortest} us have times and no stack" not in done.stdout:
        raise Fail(done.stdout)
    tools.figure(f"{long} waits with a stack, {short} without")


def test_record_starts_a_program(tools):
    """The recording covers the program from its first instruction to its end, and reports the end."""
    tools.need("gcc", "perf")
    # Longer than the recorder waits between two looks, also on a busy machine.
    source = PROGRAM.replace("for (;;)\n\t\twork();", "for (int i = 0; i < 60; i++)\n\t\twork();\n\treturn 7;")
    program, output = tools.path("started"), tools.path("started.data")
    tools.run("gcc", "-O2", "-fomit-frame-pointer", "-pthread", "-o", program, tools.write("started.c", source))
    done = record(tools, "-F", 999, "-o", output, "--", program, "-x")
    if done.returncode or "started ended with status 7" not in done.stdout or "ready" not in done.stdout:
        raise Fail(f"{done.returncode} {done.stdout} {done.stderr}")
    found = stacks(tools, output, "cpu-clock")
    if expect_most(found, ["inner", "middle", "outer"], "a program that was started") < 20:
        raise Fail("hardly a sample")
    done = record(tools, "-o", output, "--", "sh", "-c", "kill -9 $$")
    if done.returncode or "sh was ended by signal 9" not in done.stdout:
        raise Fail(f"{done.returncode} {done.stdout} {done.stderr}")
    for words, status, says in ((["--", tools.path("not-there")], 1, "cannot run: No such file"), (["--"], 2, "no program"),
                                ([os.getpid(), "--", "true"], 2, "not both")):
        left = tools.path("left.data")
        done = record(tools, "-o", left, *words)
        if done.returncode != status or says not in done.stderr or os.path.exists(left):
            raise Fail(f"record {words}: {done.returncode} {done.stderr} {os.path.exists(left)}")


def names_in(path):
    """Lines of the table of names, by their first letter."""
    found = collections.defaultdict(list)
    with zipfile.ZipFile(path) as archive:
        for line in archive.read("names/symbols").decode().split("\n"):
            found[line[:1]].append(line.split("\t")[1:])
    return found


def test_record_maps_ids_of_a_container(tools):
    """Threads have the ids that their own PID namespace gives them, images their build-ids; /proc and readelf say the same."""
    tools.need("unshare", "readelf")
    output = tools.path("inside.trace.zip")
    with Running(tools, "inside", prefix=("unshare", "--pid", "--fork", "--kill-child")) as running:
        children = tools.run("pgrep", "-P", running.pid).split()
        wanted = {}
        for tid in os.listdir(f"/proc/{children[0]}/task"):
            with open(f"/proc/{children[0]}/task/{tid}/status", encoding="utf-8") as file:
                wanted[tid] = re.search(r"^NSpid:.*\t(\d+)$", file.read(), re.M)[1]
        done = record(tools, children[0], "-o", output, "-d", 1)
    if done.returncode:
        raise Fail(f"{done.returncode} {done.stderr}")
    names = names_in(output)
    threads = {tid: inside for _, tid, inside, _ in names["T"]}
    if threads != wanted or set(wanted.values()) != {"1", "2"}:
        raise Fail(f"threads {threads}, /proc has {wanted}")
    checked = 0
    for _, _, kind, identity, path in names["I"]:
        notes = re.search(r"Build ID: ([0-9a-f]+)", tools.run("readelf", "-n", path)) if kind == "elf" and os.path.exists(path) else None
        if notes and notes[1] != identity:
            raise Fail(f"{path}: {identity}, readelf says {notes[1]}")
        checked += bool(notes)
    if checked < 2:
        raise Fail(f"{names['I']}")


REFUSING = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <dlfcn.h>
long syscall(long number, ...)
{
	long (*next)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall"), a[6];
	va_list rest;
	va_start(rest, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(rest, long);
	va_end(rest);
	if (number == SYS_perf_event_open) {
		errno = atoi(getenv("REFUSED_WITH"));
		return -1;
	}
	return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
"""


def test_record_says_what_would_permit_it(tools):
    """A filter of system calls answers EPERM, the kernel EACCES, and a kernel without perf events ENOSYS."""
    tools.need("gcc")
    library, output = tools.path("refusing.so"), tools.path("refused.data")
    tools.run("gcc", "-shared", "-fPIC", "-o", library, tools.write("refusing.c", REFUSING))
    for number, says in ((errno.EPERM, "seccomp"), (errno.EACCES, "CAP_PERFMON"), (errno.ENOSYS, "no perf events"), (errno.EMFILE, "ulimit -n")):
        done = subprocess.run([tools.program, "record", "-o", output, "--", "sleep", "1"], capture_output=True, text=True, timeout=60,
                              env=dict(os.environ, LD_PRELOAD=library, REFUSED_WITH=str(number)))
        if done.returncode != 1 or says not in done.stderr or done.stderr.count("\n") != 1 or os.path.exists(output):
            raise Fail(f"{errno.errorcode[number]}: {done.returncode} {done.stderr}")


def test_record_of_another_user(tools):
    """Without root: own processes, no kernel, times of waits without stacks; processes of others are refused with a reason."""
    tools.need("setpriv", "gcc", "perf")
    if os.geteuid():
        raise Skip("not root")
    with tempfile.TemporaryDirectory(prefix="libsym-record-", dir="/var/tmp") as scratch:
        os.chown(scratch, 65534, 65534)
        program = shutil.copy(tools.program, scratch)
        copies = [shutil.copy(path, scratch) for path in glob.glob(os.path.join(os.path.dirname(tools.program), "libsym.so*"))]
        environment = dict(os.environ, LD_LIBRARY_PATH=scratch) if copies else None
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        output = os.path.join(scratch, "own.data")
        source = PROGRAM.replace("usleep(600)", "usleep(20000)")
        with Running(tools, "own", source, prefix=user, directory=scratch) as running:
            done = subprocess.run([*user, program, "record", str(running.pid), "--off-cpu", "-F", "800", "-d", "1", "-o", output],
                                  capture_output=True, text=True, timeout=60, env=environment)
            other = subprocess.run([*user, program, "record", "1", "-d", "1", "-o", os.path.join(scratch, "x.data")],
                                   capture_output=True, text=True, timeout=60, env=environment)
        if done.returncode == 1 and "kernel.perf_event_paranoid=2" in done.stderr:
            raise Skip(done.stderr.strip())
        if done.returncode or "off-CPU times have no stacks" not in done.stdout or other.returncode != 1 or not other.stderr:
            raise Fail(f"{done.returncode} {done.stdout} {done.stderr} {other.returncode} {other.stderr}")
        own = shutil.copy(output, tools.path("own.data"))
        os.chown(own, 0, 0)
        found = stacks(tools, own, "cpu-clock")
        expect_most([chain for chain in found if "handler" not in chain], ["inner", "middle", "outer", "work", "main"], "ordinary code")
        text = tools.run("perf", "script", "-i", own, "-F", "ip,event", "--show-switch-events")
        if "SWITCH OUT" not in text or re.search(r"\bffffffff[0-9a-f]{8}\b", text) or "context-switches" in text:
            raise Fail("no times of waits, or frames of the kernel")


THREADS = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline, noclone)) static void in_thread(void) { for (;;) usleep(200000); }
static void *run(void *unused) { in_thread(); return unused; }
int main(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int count = 0;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 65536);
	while (count < atoi(getenv("THREADS")) && !pthread_create(&thread, &attributes, run, NULL))
		count++;
	fprintf(stderr, "%d\n", count);
	printf("ready\n");
	fflush(stdout);
	pause();
}
"""


def test_record_of_ten_thousand_threads(tools):
    """All are followed; where descriptors do not suffice, one line says what is too low."""
    output = tools.path("threads.trace.zip")
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with open("/proc/self/status", encoding="utf-8") as file:
        can_raise = int(re.search(r"CapEff:\s*(\w+)", file.read())[1], 16) >> 24 & 1  # CAP_SYS_RESOURCE
    # An event of each kind on each processor.
    os.environ["THREADS"] = str(10000 if can_raise else min(10000, (hard - 1000) // (2 * os.cpu_count())))
    with Running(tools, "threads", THREADS) as running:
        count = len(os.listdir(f"/proc/{running.pid}/task"))
        done = record(tools, running.pid, "-d", 1, "--off-cpu", "-o", output)
        without = subprocess.run(["setpriv", "--bounding-set=-sys_resource", "--inh-caps=-sys_resource", "prlimit", "--nofile=2000:2000",
                                  tools.program, "record", str(running.pid), "-d", "1", "-o", tools.path("few.data")],
                                 capture_output=True, text=True, timeout=60)
    if without.returncode != 1 or "ulimit -n" not in without.stderr or without.stderr.count("\n") != 1 or os.path.exists(tools.path("few.data")):
        raise Fail(f"with 2,000 descriptors: {without.returncode} {without.stderr}")
    if done.returncode:
        raise Fail(f"{done.returncode} {done.stderr}")
    names = names_in(output)
    if len(names["T"]) < count:
        raise Fail(f"{len(names['T'])} of {count} threads have a name")
    tools.figure(f"{count} threads: {done.stdout.splitlines()[1].strip()}")


FORKING = """
import os
def spin():
    return sum(range(60000))
for number in range(1000):
    child = os.fork()
    if not child:
        spin()
        os._exit(0)
    os.waitpid(child, 0)
"""


def test_record_of_a_thousand_children(tools):
    """Processes that end before they can be looked at have the stacks of what they were forked from."""
    output = tools.path("children.data")
    done = record(tools, "--off-cpu", "-o", output, "--", sys.executable, tools.write("forking.py", FORKING))
    if done.returncode or "ended with status 0" not in done.stdout:
        raise Fail(f"{done.returncode} {done.stdout} {done.stderr}")
    unknown = re.search(r"(\d+) samples of processes that had ended", done.stdout)
    text = tools.run("perf", "script", "-i", output, "--show-task-events", "-F", "pid,event")
    forks = text.count("PERF_RECORD_FORK")
    samples = sum("context-switches" in line or "cpu-clock" in line for line in text.split("\n"))
    if forks < 1000 or samples < 1000 or (unknown and int(unknown[1]) > 0.05 * samples):
        raise Fail(f"{forks} forks, {samples} samples: {done.stdout}")
    tools.figure(f"{forks} forks, {samples} samples, {unknown[1] if unknown else 0} of unknown processes")


# Each program runs longer than the recorder waits between two looks: what has ended before the first cannot be read.
EXECUTING = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
volatile unsigned long count;
__attribute__((noinline, noclone)) static void STAGE(int rounds) { for (int i = 0; i < rounds; i++) count += i; }
int main(int argc, char **argv)
{
	if (!getenv("NEXT_HAS_WAITED"))
		printf("ready\n"), fflush(stdout), setenv("NEXT_HAS_WAITED", "1", 1);
	for (int i = 0; i < 100; i++)
		STAGE(10000000);
	if (argc > 1)
		execv(argv[1], argv + 1);
	return 0;
}
"""


def test_record_of_a_program_that_calls_exec(tools):
    """Each program has its own names, and the recording ends when the last one does."""
    paths = []
    for stage in ("first", "second", "third"):
        paths.append(tools.path(f"exec-{stage}"))
        tools.run("gcc", "-O2", f"-DSTAGE={stage}_stage", "-fomit-frame-pointer", "-no-pie", "-o", paths[-1],
                  tools.write(f"exec-{stage}.c", EXECUTING))
    output = tools.path("exec.trace.zip")
    done = record(tools, "-F", 500, "-o", output, "--", *paths)
    if done.returncode:
        raise Fail(f"{done.returncode} {done.stderr}")
    with zipfile.ZipFile(output) as archive:
        data = archive.extract("perf.data", tools.path("exec.parts"))
    found = stacks(tools, data, "cpu-clock")
    for stage in ("first", "second", "third"):
        expect_most(found, [f"{stage}_stage", "main"], stage)
    names = {fields[-1] for fields in names_in(output)["S"]}
    if not {"first_stage", "second_stage", "third_stage"} <= names:
        raise Fail(f"names: {sorted(names)}")


def test_record_on_a_full_disk(tools):
    """One line, exit 1, and nothing under the final name nor beside it."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
    with Running(tools, "full", SWITCHING) as running:
        for name in ("full.data", "full.trace.zip"):
            directory = tools.path(f"{name}.directory")
            os.mkdir(directory)
            done = subprocess.run([tools.program, "record", str(running.pid), "--off-cpu", "-d", "1", "-o", os.path.join(directory, name)],
                                  capture_output=True, text=True, timeout=60, preexec_fn=limit)
            if done.returncode != 1 or done.stderr.count("\n") != 1 or "File too large" not in done.stderr or os.listdir(directory):
                raise Fail(f"{name}: {done.returncode} {done.stderr} {os.listdir(directory)}")


def test_record_asks_which_of_several(tools):
    with Running(tools, "twin") as one, Running(tools, "twin") as other:
        done = record(tools, "twin", "-d", 1, "-o", tools.path("twin.data"))
    if done.returncode != 2 or not all(re.search(rf"\b{pid}\b", done.stderr) for pid in (one.pid, other.pid)):
        raise Fail(f"{done.returncode} {done.stderr}")
    for words, status in ((["no-such-process-name"], 2), ([], 2), (["-F", "0", "1"], 2)):
        done = record(tools, *words)
        if done.returncode != status or not done.stderr:
            raise Fail(f"record {words}: {done.returncode} {done.stderr}")
