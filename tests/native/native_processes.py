# SPDX-License-Identifier: MIT
"""Processes that are not where they began: with another root, another view of files, another program. The names are those of the
source, the addresses those that the process itself tells."""
import ctypes
import itertools
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import time

from native_tools import Fail, Skip
from waiting import is_in_time, wait_until

BPF_SYSCALL = {"x86_64": 321, "aarch64": 280}.get(platform.machine(), 321)

LIBRARY = """
__attribute__((noinline)) int first(int x) { volatile int v = x; return v * 5; }
int exported(int x) { return first(x) + 1; }
"""

HOST = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
__attribute__((noinline)) int here(int x) { volatile int v = x; return v + 1; }
static int go_elsewhere(const char *how, const char *library, const char *directory)
{
	char old[4096];

	if (!strcmp(how, "chroot"))
		return chroot(directory) || chdir("/");
	if (!strcmp(how, "dumpable"))
		return prctl(PR_SET_DUMPABLE, 0);
	if (!strcmp(how, "deleted"))
		return unlink(library);
	if (strcmp(how, "mounted over") && strcmp(how, "pivot_root"))
		return strcmp(how, "plain");
	if (unshare(CLONE_NEWNS) || mount(0, "/", 0, MS_REC | MS_PRIVATE, 0) || mount("tmpfs", directory, "tmpfs", 0, 0))
		return 1;
	snprintf(old, sizeof(old), "%s/old", directory);
	return !strcmp(how, "pivot_root") && (mkdir(old, 0755) || syscall(SYS_pivot_root, directory, old) || chdir("/") ||
					      umount2("/old", MNT_DETACH));
}
static void *become_another(void *unused)
{
	getchar();
	execl("/bin/sleep", "sleep", "100", (char *)NULL);
	return unused;
}
int main(int count, char **words)
{
	void *library = count > 3 ? dlopen(words[2], RTLD_NOW) : NULL;
	void *exported = library ? dlsym(library, "exported") : NULL;
	pthread_t thread;

	if (count > 3 && (!exported || go_elsewhere(words[1], words[2], words[3])))
		return 1;
	if (!strcmp(words[1], "vfork") && vfork() > 0)
		return 0;
	printf("%d %lx %lx %lx\n", getpid(), (long)here, (long)exported, (long)dlsym(RTLD_DEFAULT, "qsort"));
	fflush(stdout);
	if (!strcmp(words[1], "vfork"))
		become_another(NULL);
	if (count < 4)
		pthread_create(&thread, NULL, become_another, NULL);
	if (!strcmp(words[1], "exec without a first thread"))
		pthread_exit(NULL);
	pause();
}
"""

# Root without what lets one follow /proc/PID/map_files.
FEWER_RIGHTS = ["setpriv", "--bounding-set", "-sys_admin,-checkpoint_restore", "--inh-caps", "-sys_admin,-checkpoint_restore"]


class Host:
    def __init__(self, tools, *words):
        program = tools.path("host")
        tools.run("gcc", "-o", program, tools.write("host.c", HOST), "-ldl", "-lpthread")
        self.process = subprocess.Popen([program, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline().split()
        if not line:
            self.process.wait()
            raise Fail(f"{words[0]}: the process did not start")
        self.pid, self.addresses = line[0], line[1:]

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        subprocess.run(["kill", "-9", self.pid], check=False, capture_output=True)
        self.process.kill()
        self.process.communicate()


def names(tools, pid, addresses, *before):
    text = subprocess.run([*before, tools.program, "resolve", pid, *addresses], capture_output=True, text=True, timeout=60)
    return [line.split()[1].split("+")[0] for line in text.stdout.splitlines()], text.stderr


def test_process_that_went_elsewhere_after_it_had_loaded(tools):
    """chroot(), pivot_root() with the old root detached, a mount over its files, a deleted one, one that forbids to be dumped."""
    tools.need("gcc", "setpriv")
    if os.geteuid():
        raise Skip("chroot and mounts need root")
    for how in ("plain", "chroot", "mounted over", "pivot_root", "deleted", "dumpable"):
        directory = tools.path("elsewhere")
        shutil.rmtree(directory, ignore_errors=True)
        os.mkdir(directory)
        library = os.path.join(directory, "libelsewhere.so")
        tools.run("gcc", "-shared", "-fPIC", "-o", library, tools.write("elsewhere.c", LIBRARY))
        with Host(tools, how, library, directory) as host:
            for rights in ([], FEWER_RIGHTS):
                found, why = names(tools, host.pid, host.addresses, *rights)
                if found != ["here", "exported", "qsort"]:
                    raise Fail(f"{how}{' with fewer rights' if rights else ''}: {found} {why}")


def code_addresses(pid, without="nothing"):
    """Twelve of each mapping that may be executed, and the ends of the others; but none of a file with this in its name."""
    addresses = []
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        for line in maps:
            (start, end), rights = (int(word, 16) for word in line.split()[0].split("-")), line.split()[1]
            if without in line:
                continue
            addresses += [f"0x{at:x}" for at in (range(start, end, (end - start + 11) // 12) if "x" in rights else (start, end - 1))]
    return addresses


def expect_few_as_many(tools, pid, options=(), every_one_alone=False, without="nothing"):
    """Operands are asked near their addresses, where the kernel can be asked; what comes on standard input of a whole snapshot."""
    addresses = code_addresses(pid, without)
    command = [tools.program, "resolve", *options, str(pid)]
    whole = tools.run(*command, input="\n".join(addresses) + "\n").splitlines()
    for count in (1, 7, 16, 17):
        for first in range(0, len(addresses), count * (1 if every_one_alone and count == 1 else 5)):
            part = slice(first, first + count)
            few = tools.run(*command, *addresses[part]).splitlines()
            if few != whole[part]:
                raise Fail(f"{pid}: {addresses[part]}: {few}, and of a whole snapshot {whole[part]}")
    return len(addresses)


def test_few_questions_about_a_process_are_answered_as_many(tools):
    """Programs that linkers lay out in other ways, with many libraries, with names in a perf map where they have none of their own."""
    tools.need("gcc")
    source = tools.write("layout.c", "#include <stdlib.h>\n#include <unistd.h>\nint function(int x) { return x * 3; }\n"
                                     "int main(int count, char **words) { (void)words; if (write(1, \"r\", 1) == 1) pause(); exit(function(count)); }\n")
    programs = [[sys.executable, "-c", "import ctypes, decimal, hashlib, json, sqlite3, ssl, time; print('r', flush=True); time.sleep(1000)"]]
    for number, flags in enumerate((["-no-pie", "-Wl,-z,max-page-size=0x200000"], ["-Wl,-z,noseparate-code"], ["-static-pie"], ["-s"],
                                    ["-no-pie", "-static"], ["-fuse-ld=gold"], ["-no-pie", "-Wl,-Ttext-segment=0x10000000", "-s"])):
        program = tools.path(f"layout{number}")
        tools.run("gcc", "-O1", *flags, "-o", program, source)
        programs.append([program])
    asked = 0
    for program in programs:
        with subprocess.Popen(program, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
            perf_map = f"/tmp/perf-{process.pid}.map"
            try:
                if process.stdout.read(1) != b"r":
                    raise Fail(f"{program[0]} did not start")
                # The C library's debug file takes long to read: the first program has lines of it.
                without = "nothing" if program is programs[0] else "/libc.so"
                asked += expect_few_as_many(tools, process.pid, every_one_alone=True)
                asked += expect_few_as_many(tools, process.pid, ["--lines"], without=without)
                with open(perf_map, "w", encoding="utf-8") as names_of_all:
                    names_of_all.writelines(f"{address[2:]} 4 named_{address}\n" for address in code_addresses(process.pid))
                asked += expect_few_as_many(tools, process.pid)
            finally:
                process.kill()
                if os.path.exists(perf_map):
                    os.unlink(perf_map)
    tools.figure(f"{asked} addresses of {len(programs)} programs")


def test_process_that_hidepid_hides(tools):
    """Neither taken for one that has ended, nor opened; who may see it names it as ever."""
    tools.need("gcc", "setpriv", "unshare")
    if os.geteuid():
        raise Skip("mounting needs root")
    with Host(tools, "exec") as host:
        question = f"{tools.program} resolve {host.pid} {host.addresses[0]}"
        done = subprocess.run(["unshare", "-m", "sh", "-c", f"mount -t proc -o hidepid=2 proc /proc && {question} && "
                               f"setpriv --reuid=65534 --regid=65534 --clear-groups {question}"],
                              capture_output=True, text=True, timeout=60)
    if " here+0x0 " not in done.stdout or "hidepid" not in done.stderr or done.returncode != 1:
        raise Fail(f"{done.returncode} {done.stdout} {done.stderr}")


def test_process_of_another_user_by_the_right_to_trace_alone(tools):
    """CAP_SYS_PTRACE does not open /proc/PID/mem, where the kernel's own page is read; it does read memory."""
    tools.need("gcc", "setpriv")
    if os.geteuid():
        raise Skip("to become another user needs root")
    tracer = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=+sys_ptrace", "--ambient-caps=+sys_ptrace"]
    with Host(tools, "exec") as host:
        with open(f"/proc/{host.pid}/maps", encoding="utf-8") as lines:
            vdso = next(line for line in lines if line.endswith("[vdso]\n")).split("-")
        addresses = [hex(address) for address in range(int(vdso[0], 16), int(vdso[1].split()[0], 16), 64)]
        of_root, of_tracer = (subprocess.run([*prefix, tools.program, "resolve", str(host.pid), *addresses],
                                           capture_output=True, text=True, timeout=60) for prefix in ([], tracer))
    if "__vdso_" not in of_root.stdout or of_root.stdout != of_tracer.stdout:
        raise Fail(f"{of_root.stdout[:300]} but {of_tracer.stdout[:300]} {of_tracer.stderr}")


def test_process_where_no_proc_is_mounted(tools):
    """As in a chroot: the process is not what is missing."""
    tools.need("gcc", "unshare")
    if os.geteuid():
        raise Skip("mounting needs root")
    with Host(tools, "exec") as host:
        question = f"{tools.program} resolve {host.pid} {host.addresses[0]}"
        done = subprocess.run(["unshare", "-m", "sh", "-c", f"mount -t tmpfs none /proc && {question}"],
                              capture_output=True, text=True, timeout=60)
    if "no /proc is mounted" not in done.stderr or done.returncode == 0:
        raise Fail(f"{done.returncode} {done.stdout} {done.stderr}")


def test_process_that_becomes_another_program_between_two_questions(tools):
    """exec() by a child of vfork(), by a second thread, and by one that outlived the first: no name of the first program."""
    tools.need("gcc")
    for how in ("vfork", "exec", "exec without a first thread"):
        with Host(tools, how) as host:
            ours = subprocess.Popen([tools.program, "resolve", host.pid], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True)
            ours.stdin.write(host.addresses[0] + "\n")
            ours.stdin.flush()
            first = ours.stdout.readline()
            with open(f"/proc/{host.pid}/task/{host.pid}/comm", encoding="utf-8") as file:
                before = file.read()
            host.process.stdin.write("\n")
            host.process.stdin.flush()
            while before != "sleep\n":
                with open(f"/proc/{host.pid}/comm", encoding="utf-8") as file:
                    before = file.read()
            ours.communicate(timeout=60)
            again, _ = names(tools, host.pid, host.addresses[:1])
        if " here+0x0 " not in first:
            raise Fail(f"{how}: {first}")
        if "here" in again:
            raise Fail(f"{how}: the name of a program that is gone")


def test_program_that_was_deleted_has_its_names_for_its_own_user(tools):
    """/proc/PID/exe leads to it without any capability; to a library that was deleted nothing does."""
    tools.need("gcc", "setpriv")
    if os.geteuid():
        raise Skip("another user needs root")
    as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    os.chmod(tools.scratch, 0o755)
    program, ours = tools.path("gone"), tools.path("ours")
    source = tools.write("gone.c", """
#include <stdio.h>
#include <unistd.h>
static __attribute__((noinline)) int hidden(int x) { volatile int v = x; return v * 5; }
int main(void) { return printf("%p\\n", (void *)hidden) < 0 || fflush(stdout) || pause() + hidden(1); }
""")
    tools.run("gcc", "-O1", "-o", program, source)
    shutil.copy(tools.program, ours)
    os.chmod(ours, 0o755)
    with subprocess.Popen([*as_nobody, program], stdout=subprocess.PIPE, text=True, cwd="/") as process:
        address = process.stdout.readline().strip()
        os.unlink(program)
        done = subprocess.run([*as_nobody, ours, "resolve", str(process.pid), address], capture_output=True, text=True, timeout=60, cwd="/")
        process.kill()
    if " hidden+0x0 " not in done.stdout:
        raise Fail(done.stdout + done.stderr)


SWAPPER = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **words)
{
	for (int i = 1; i < count; i++) {
		void *library = dlopen(words[i], RTLD_NOW);

		printf("%lx\n", library ? (long)dlsym(library, "exported") : 0L);
		fflush(stdout);
		getchar();
		dlclose(library);
		puts("closed");
		fflush(stdout);
		getchar();
	}
}
"""


def ask_before_and_after(command, question, swap, name):
    """The answer to a question before; and afterwards the first one with `name`, in one run of ours. It may be the former one for a moment."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as ours:
        def ask():
            ours.stdin.write(question)
            ours.stdin.flush()
            answers.append(ours.stdout.readline())
            return answers[-1]

        answers = []
        ask()
        swap()
        is_in_time(lambda: name in ask(), 5)
        ours.stdin.close()
    return answers[0], answers[-1]


def test_a_library_in_the_place_of_another_has_its_own_names_in_one_stream(tools):
    """Another file, or the same that was written in place (cp): its lines in maps do not change."""
    tools.need("gcc")
    program = tools.path("swapper")
    tools.run("gcc", "-o", program, tools.write("swapper.c", SWAPPER), "-ldl")
    libraries = []
    for name in ("before", "after"):
        libraries.append(tools.path(f"lib{name}.so"))
        source = tools.write(f"{name}.c", f"int exported(int x) {{ return x; }}\nint in_{name}(int x) {{ volatile int v = x; return v + 1; }}\n")
        tools.run("gcc", "-shared", "-fPIC", "-o", libraries[-1], source)
    places = {words[-1]: int(words[0], 16) for words in map(str.split, tools.run("nm", libraries[0]).splitlines()) if len(words) == 3}
    offset = places["in_before"] - places["exported"] + 3
    for subject, is_in_place in itertools.product(("resolve", "symbolize"), (False, True)):
        first = tools.path("in-place.so") if is_in_place else libraries[0]
        if is_in_place:
            shutil.copyfile(libraries[0], first)
        with subprocess.Popen(["setarch", "-R", program, first, first if is_in_place else libraries[1]],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            place = int(process.stdout.readline(), 16)
            moved = []

            def go_on(process=process):
                process.stdin.write("\n")
                process.stdin.flush()
                return process.stdout.readline()

            def swap(go_on=go_on, moved=moved, first=first, is_in_place=is_in_place):
                go_on()
                if is_in_place:
                    shutil.copyfile(libraries[1], first)
                moved.append(int(go_on(), 16))

            question = f"   0x{place + offset:x}\n"
            before, after = ask_before_and_after([tools.program, subject, str(process.pid)], question, swap, "in_after")
            process.kill()
        if moved != [place]:
            raise Skip("the second library lies elsewhere")
        if "in_before" not in before or "in_after" not in after:
            raise Fail(f"{subject}, written in place: {is_in_place}: {before} {after}")


def test_core_file_of_a_process(tools):
    """addr2line --core: what the process says of its addresses, once it has ended; a file that was replaced since names nothing."""
    tools.need("gcc", "gcore")
    directory = tools.path("core")
    os.mkdir(directory)
    library, source = os.path.join(directory, "libcore.so"), tools.write("elsewhere.c", LIBRARY)
    tools.run("gcc", "-shared", "-fPIC", "-o", library, source)
    with Host(tools, "plain", library, directory) as host:
        tools.run("gcore", "-o", os.path.join(directory, "core"), host.pid)
        addresses, core = host.addresses, os.path.join(directory, f"core.{host.pid}")
    for wanted in (["here", "exported", "qsort"], ["here", None, "qsort"]):
        done = tools.run(tools.program, "resolve", f"--core={core}", *addresses)
        found = [line.split()[1].split("+")[0] for line in done.splitlines()]
        if [name for name, want in zip(found, wanted) if want] != [want for want in wanted if want] or \
                (not wanted[1] and found[1] == "exported"):
            raise Fail(f"{found}, not {wanted}")
        os.remove(library)
        tools.run("gcc", "-shared", "-fPIC", "-O2", "-DMORE", "-o", library, source, "-Wl,-soname,other")


TWICE = r"""
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
__attribute__((noinline)) int here(int x) { volatile int v = x; return v * 3; }
int main(void)
{
	unsigned long start, end, offset, place = (unsigned long)here;
	FILE *lines = fopen("/proc/self/maps", "r");
	char line[4096], *again;
	while (fgets(line, sizeof(line), lines))
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 && place >= start && place < end)
			break;
	again = mmap(NULL, end - start, PROT_READ | PROT_EXEC, MAP_PRIVATE, open("/proc/self/exe", O_RDONLY), (long)offset);
	printf("%lx %lx\n", place, (unsigned long)again + (place - start));
	fflush(stdout);
	pause();
	return here(1);
}
"""


def test_core_file_of_a_process_that_has_its_code_twice(tools):
    """As V8 has its builtins: before the second view of a part is other memory, and not the beginning of the file."""
    tools.need("gcc", "gcore")
    directory = tools.path("core-twice")
    os.mkdir(directory)
    program = os.path.join(directory, "twice")
    tools.run("gcc", "-O1", "-o", program, tools.write("twice.c", TWICE))
    with subprocess.Popen([program], stdout=subprocess.PIPE, text=True) as process:
        addresses = process.stdout.readline().split()
        told = tools.run(tools.program, "resolve", process.pid, *addresses)
        tools.run("gcore", "-o", os.path.join(directory, "core"), process.pid)
        core = os.path.join(directory, f"core.{process.pid}")
        process.kill()
    found = tools.run(tools.program, "resolve", f"--core={core}", *addresses)
    if found != told or found.count(" here+0x0 ") != 2:
        raise Fail(f"{found}\nnot\n{told}")


def test_core_file_with_the_code_of_the_kernel(tools):
    """The vDSO is in no file: of a core file the names are those that the process itself has there."""
    tools.need("gcc", "gcore")
    directory = tools.path("core-vdso")
    os.mkdir(directory)
    library, source = os.path.join(directory, "libcore.so"), tools.write("elsewhere.c", LIBRARY)
    tools.run("gcc", "-shared", "-fPIC", "-o", library, source)
    with Host(tools, "plain", library, directory) as host:
        with open(f"/proc/{host.pid}/maps", encoding="utf-8") as lines:
            start, end = next(tuple(int(number, 16) for number in line.split()[0].split("-")) for line in lines if "[vdso]" in line)
        addresses = [f"{address:x}" for address in range(start, end, 64)]
        told = tools.run(tools.program, "resolve", host.pid, *addresses)
        tools.run("gcore", "-o", os.path.join(directory, "core"), host.pid)
        core = os.path.join(directory, f"core.{host.pid}")
    if "__vdso_" not in told:
        raise Fail("the process itself has no name there: " + told)
    found = tools.run(tools.program, "resolve", f"--core={core}", *addresses)
    if found != told:
        raise Fail(f"{found}\nnot\n{told}")


def test_maps_of_a_process_elsewhere(tools):
    """addr2line -M: a file with the lines of /proc/PID/maps, and the files that they name, below another root."""
    tools.need("gcc", "nm")
    tree = tools.path("tree")
    for directory in ("proc/77", "opt"):
        os.makedirs(os.path.join(tree, directory))
    source, lines, expected = tools.write("elsewhere.c", LIBRARY), [], {}
    for i, flags in enumerate((["-Wl,-z,noseparate-code"], ["-Wl,-z,noseparate-code", "-Wl,-Ttext-segment=0x41000000"])):
        path = f"/opt/lib{i}.so"
        tools.run("gcc", "-shared", "-fPIC", "-o", tree + path, source, *flags)
        base = (0x400000, 0x41000000)[i]
        lines.append(f"{base:08x}-{base + 0x1000:08x} r-xp 00000000 fd:01 {i + 1}    {path}\n")
        for line in tools.run("nm", tree + path).splitlines():
            words = line.split()
            if words[-1] in ("first", "exported"):
                expected[f"{base + int(words[0], 16) % 0x1000 + 2:x}"] = words[-1]
    tools.write("tree/proc/77/maps", "".join(lines) + "ffffffffff600000-ffffffffff601000 r-xp 00000000 00:00 0  [vsyscall]\n")
    tools.write("tree/proc/77/stat", "77 (x) S 1 77 77 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100 0 0\n")
    tools.write("tree/proc/77/status", "Name:\tx\nTgid:\t77\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n")
    found, why = names(tools, "77", [f"--root={tree}", *expected])
    if found != list(expected.values()):
        raise Fail(f"{found}, not {expected} {why}")


ONE_AFTER_THE_OTHER = """
import os, subprocess, sys, time
symbolize, programs = sys.argv[1], sys.argv[2:]
asked = subprocess.Popen([symbolize, "symbolize"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
pid, notes = None, []
def ask(address, when, where=None):
    where = where or program
    time.sleep(0.3)
    time_text = f" {when:.6f}:" if when else ""
    asked.stdin.write(f"busy {pid}/{pid}{time_text} cycles: \\n\\t{address:16x} [unknown] ({where})\\n\\n")
    asked.stdin.flush()
    lines = [asked.stdout.readline() for _ in range(3)]
    print(lines[1].split()[1])
for number, program in enumerate(programs):
    for _ in range(100):
        if pid:
            with open("/proc/sys/kernel/ns_last_pid", "w") as last:
                last.write(str(pid - 1))
        process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if pid in (None, process.pid):
            break
        process.kill(), process.communicate()
    pid = process.pid
    notes.append((int(process.stdout.readline(), 16), time.monotonic()))
    ask(notes[-1][0], notes[-1][1])
    ask(notes[-1][0], 0)
    if number:
        ask(*notes[0], programs[0])
    process.kill(), process.communicate()
    time.sleep(0.3)
    ask(notes[-1][0], 0)
"""


def test_another_process_that_got_the_id(tools):
    """In a live text: each frame is of the process that had the id at that time, and of the last where there is no time."""
    tools.need("gcc", "unshare")
    if os.geteuid():
        raise Skip("to choose the id of a process needs root")
    programs = []
    for name in ("former", "latter"):
        programs.append(tools.path(name))
        tools.run("gcc", "-o", programs[-1], tools.write(f"{name}.c", f"""
#include <stdio.h>
#include <unistd.h>
void {name}(void) {{ }}
int main(void) {{ return printf("%lx\\n", (long){name}) < 0 || fflush(stdout) || pause(); }}
"""))
    told = tools.run("unshare", "-pf", "--mount-proc", sys.executable, "-c", ONE_AFTER_THE_OTHER, tools.program, *programs, timeout=60)
    expected = ["former+0x0"] * 3 + ["latter+0x0"] * 2 + ["former+0x0", "latter+0x0"]
    if told.split() != expected:
        raise Fail(f"{told.split()}, not {expected}")


INTERRUPTED = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void handler(int number) { for (;;) pause(); }
__attribute__((noinline, noreturn)) void leave(void) { exit(1); }
void ends_in_call(void), faulty(void);
__asm__(".text\n"
	".type ends_in_call,@function\nends_in_call: .cfi_startproc\n\tpush %rax\n\t.cfi_adjust_cfa_offset 8\n"
	"\tcall leave\n\t.cfi_endproc\n.size ends_in_call,.-ends_in_call\n"
	".type faulty,@function\nfaulty: .cfi_startproc\n\tmovl $0,0\n\tret\n\t.cfi_endproc\n.size faulty,.-faulty\n");
int main(int count, char **words)
{
	signal(SIGSEGV, handler);
	printf("%p\n", (void *)faulty);
	fflush(stdout);
	if (count > 3)
		ends_in_call();
	faulty();
}
"""


def unwind(process):
    return subprocess.run(["eu-stack", "-p", str(process.pid)], capture_output=True, text=True, timeout=60, check=False).stdout


def has_four_frames(process):
    return unwind(process).count("\n#") >= 4


def compare_behind_signal(tools, process):
    faulty = int(process.stdout.readline(), 16)
    wait_until(lambda: has_four_frames(process), "it is not in its handler")
    unwound = unwind(process)
    frames = re.findall(r"^#\d+ +0x([0-9a-f]+)", unwound, re.M)
    if int(frames[3], 16) != faulty:
        raise Fail(f"eu-stack says {unwound}")
    bare = re.sub(r"^(#\d+ +0x[0-9a-f]+).*", r"\1", unwound, flags=re.M)
    head = f"a {process.pid} 1.000001: \n"
    decreased = head + "".join(f"\t{int(frames[i], 16) - (i == 2):16x} [unknown] ([unknown])\n" for i in range(1, 4))
    chain = head + "".join(f"\t{int(frames[i], 16):16x} [unknown] ([unknown])\n" for i in range(1, 4))
    named = chain.replace(f"{int(frames[2], 16):16x} [unknown]", f"{int(frames[2], 16):16x} __restore_rt+0x0")
    for what, text, wanted in (("eu-stack", unwound, "faulty"), ("eu-stack without names", bare, "faulty"),
                               ("perf, unwound", decreased, "faulty"), ("perf, frame pointers", chain, "ends_in_call"),
                               ("perf, frame pointers, with a name", named, "ends_in_call")):
        out = tools.run(tools.program, "symbolize", "-p", process.pid, "--debug-dir=" + tools.path("interrupted-debug"), input=text)
        lines = [line for line in out.splitlines() if f"{faulty:x}" in line]
        if len(lines) != 1 or not re.search(rf" {wanted}\b", lines[0]) or "handler" not in out:
            raise Fail(f"{what}: {out}")


def test_frames_behind_signal_handlers_in_texts(tools):
    """An unwinder says what was interrupted, at its first instruction here, behind a call that never returns; frame pointers lead
    past that, to where such a call would return to. The names are the source's."""
    tools.need("gcc", "eu-stack", "strip")
    if platform.machine() != "x86_64":
        raise Skip("the program is written for x86-64")
    program = tools.path("interrupted")
    tools.run("gcc", "-O1", "-w", "-Wl,--build-id=0x" + "c5" * 20, "-o", program, tools.write("interrupted.c", INTERRUPTED))
    # Where the tool has the names itself nothing is asked for.
    debug = tools.path("interrupted-debug/.build-id/c5/" + "c5" * 19 + ".debug")
    os.makedirs(os.path.dirname(debug))
    shutil.copyfile(program, debug)
    tools.run("strip", program)
    with subprocess.Popen([program], stdout=subprocess.PIPE, text=True) as process:
        try:
            compare_behind_signal(tools, process)
        finally:
            process.kill()


def load_bpf(name):
    """A socket filter that lets all through: a descriptor, and its address as the kernel lists it."""
    code = struct.pack("<BBhi", 0xb7, 0, 0, 0) + struct.pack("<BBhi", 0x95, 0, 0, 0)
    room, licence = ctypes.create_string_buffer(code), ctypes.create_string_buffer(b"GPL")
    attr = struct.pack("<IIQQIIQII16s", 1, 2, ctypes.addressof(room), ctypes.addressof(licence), 0, 0, 0, 0, 0, name.encode())
    attr = ctypes.create_string_buffer(attr.ljust(128, b"\0"))
    descriptor = ctypes.CDLL(None, use_errno=True).syscall(BPF_SYSCALL, 5, attr, 128)
    if descriptor < 0:
        raise Skip(f"no BPF program can be loaded: {os.strerror(ctypes.get_errno())}")
    return descriptor, bpf_address(name)


def bpf_address(name):
    with open("/proc/kallsyms", encoding="ascii") as listed:
        found = [line.split()[0] for line in listed if line.rstrip().endswith(f"_{name}\t[bpf]")]
    return found[0] if found and int(found[0], 16) else None


def test_a_pipe_never_has_the_name_of_a_freed_bpf_program(tools):
    """The kernel's list is the oracle. The memory of one program is used by the next."""
    ours = subprocess.Popen([tools.program, "resolve", str(os.getpid())], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(address):
        ours.stdin.write(f"0x{address}\n")
        ours.stdin.flush()
        return ours.stdout.readline().strip()

    wrong = []
    for number in range(8):
        name = f"pipe{number}x{os.getpid()}"
        descriptor, address = load_bpf(name)
        if not address:
            raise Skip("BPF programs are not listed")
        loaded, end = ask(address), time.monotonic() + 20
        while "bpf_prog_" not in loaded and time.monotonic() < end:  # the kernel leaves lines out while others are freed
            loaded = ask(address)
        os.close(descriptor)
        wait_until(lambda: not bpf_address(name), "the BPF program stays")  # noqa: B023
        freed = ask(address)
        if f"_{name}" not in loaded or f"_{name}" in freed:
            wrong.append((loaded, freed))
    ours.stdin.close()
    ours.wait()
    if wrong:
        raise Fail(f"{len(wrong)} of 8: {wrong[0]}")
