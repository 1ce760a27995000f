# SPDX-License-Identifier: MIT
"""Jits that compile into shared memory, open their perf map or jitdump, and fork, as php-fpm does: all processes write to the one file,
which has the number of the first. The program here writes what it likes, so each name says which process wrote it."""
import contextlib
import os
import signal
import subprocess

from native_tools import Fail, Skip
from waiting import wait_until

# Regions: shared and mapped before the forks; private; mapped by each process after its fork, at the same address, not shared.
FORKING = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
enum { REGION = 0x4000, SIZE = 0x40 };
static char *shared, *own, *late;
static int is_dump, is_odd, fd;
static void put(const void *bytes, size_t count) { if (write(fd, bytes, count) != (ssize_t)count) exit(2); }
static void open_file(void)
{
	struct { uint32_t magic, version, size, machine, pad, pid; uint64_t time, flags; } header =
		{ 0x4a695444, 1, sizeof(header), 62, 0, getpid(), 0, 0 };
	char path[64];

	snprintf(path, sizeof(path), !is_dump ? "/tmp/perf-%d.map" : is_odd ? "/tmp/jit-4-%d.dump" : "/tmp/jit-%d.dump", getpid());
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0644);
	if (fd < 0)
		exit(2);
	if (is_dump) {
		put(&header, sizeof(header));
		if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
			exit(2);
	}
}
static void tell(char *code, const char *who, const char *what)
{
	struct { uint32_t id, total; uint64_t time; uint32_t pid, tid; uint64_t vma, address, size, index; } record =
		{ .pid = getpid(), .tid = getpid(), .vma = (uintptr_t)code, .address = (uintptr_t)code, .size = SIZE };
	struct timespec now;
	char name[64], line[128];

	snprintf(name, sizeof(name), "%s_of_%s", what, who);
	clock_gettime(CLOCK_MONOTONIC, &now);
	record.time = now.tv_sec * 1000000000ull + now.tv_nsec;
	record.total = sizeof(record) + strlen(name) + 1 + SIZE;
	if (!is_dump) {
		put(line, snprintf(line, sizeof(line), "%lx %x %s\n", (long)code, SIZE, name));
		return;
	}
	put(&record, sizeof(record));
	put(name, strlen(name) + 1);
	put(code, SIZE);
}
static char *map(void *place, int flags)
{
	char *region = mmap(place, REGION, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_ANONYMOUS | flags, -1, 0);

	if (region == MAP_FAILED)
		exit(2);
	return region;
}
/* Each compiles at a place of its own in the shared region, and all at the same ones in the others. */
static void compile(const char *who, int number)
{
	tell(shared + number * 0x100, who, "shared");
	tell(own, who, "private");
	map(late, MAP_SHARED | MAP_FIXED);
	tell(late, who, "late");
	printf("%s %d %lx %lx %lx\n", who, getpid(), (long)shared, (long)own, (long)late);
	fflush(stdout);
}
int main(int count, char **words)
{
	int compiled[2];
	char byte;

	if (pipe(compiled))
		return 1;
	is_odd = !strcmp(words[1], "oddly named jitdump");
	is_dump = is_odd || !strcmp(words[1], "jitdump");
	shared = map(NULL, MAP_SHARED);
	own = map(NULL, MAP_PRIVATE);
	late = map(NULL, MAP_PRIVATE);
	open_file();
	if (count > 2 && fork())
		return 0;
	if (fork()) {
		if (getchar() == EOF)
			return 0;
		compile("master", 0);
	} else if (fork()) {
		compile("child", 1);
		if (write(compiled[1], "", 1) != 1)
			return 1;
		if (fork())
			pause();
		execl("/bin/sleep", "sleep", "60", (char *)NULL);
	} else {
		if (read(compiled[0], &byte, 1) == 1)
			compile("grandchild", 2);
	}
	pause();
}
"""
PLACES = {"master": 0, "child": 1, "grandchild": 2}


class Forking:
    """The program, its processes as this machine counts them, and where their code is."""

    def __init__(self, tools, what, *before, daemon=False):
        program = tools.path("forking")
        tools.run("gcc", "-O1", "-o", program, tools.write("forking.c", FORKING))
        self.process = subprocess.Popen([*before, program, what, *(["daemon"] if daemon else [])], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.pids, self.inner = {}, {}
        for _ in range(2):
            self.hear()
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.hear()
        if before:
            self.pids = {who: self.outer_pid(pid) for who, pid in self.inner.items()}
        first = self.process.pid if daemon else self.inner["master"]
        self.files = [f"/tmp/perf-{first}.map", f"/tmp/jit-{first}.dump", f"/tmp/jit-4-{first}.dump"]

    def hear(self):
        words = self.process.stdout.readline().split()
        if len(words) != 5:
            raise Fail(f"the program did not start: {words}")
        self.inner[words[0]] = self.pids[words[0]] = int(words[1])
        self.shared, self.private, self.late = (int(word, 16) for word in words[2:])

    def outer_pid(self, inner):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/status", encoding="utf-8") as status:
                    fields = dict(line.split(":", 1) for line in status if ":" in line)
                if os.getsid(int(pid)) == self.process.pid and fields["NStgid"].split()[-1] == str(inner) and \
                        len(fields["NStgid"].split()) > 1:
                    return int(pid)
        raise Fail(f"no process {inner} in the namespace")

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()
        for path in self.files:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


def named(tools, pid, address):
    done = subprocess.run([tools.program, "resolve", str(pid), f"{address:x}"], capture_output=True, text=True, timeout=60)
    words = done.stdout.split()
    if len(words) < 2:
        raise Fail(f"no answer: {done.stderr}")
    return None if words[1].startswith("[") else words[1].split("+")[0], done.stdout + done.stderr


def expect(tools, forking, asker, address, name):
    found, text = named(tools, forking.pids[asker], address)
    if found != name:
        raise Fail(f"{asker}: {address:x} is {found}, not {name}: {text}")


def check_all(tools, forking):
    for asker in ("child", "grandchild"):
        for who, number in PLACES.items():
            for offset in (0, 0x3f):
                expect(tools, forking, asker, forking.shared + number * 0x100 + offset, f"shared_of_{who}")
            expect(tools, forking, asker, forking.shared + number * 0x100 + 0x40, None)
        for address in (forking.private, forking.late):
            expect(tools, forking, asker, address, None)


def test_forked_process_goes_on_with_the_perf_map_of_its_parent(tools):
    tools.need("gcc")
    with Forking(tools, "perfmap") as forking:
        check_all(tools, forking)


def test_forked_process_goes_on_with_the_jitdump_of_its_parent(tools):
    tools.need("gcc")
    with Forking(tools, "jitdump") as forking:
        check_all(tools, forking)


def test_forked_process_whose_jitdump_has_another_name(tools):
    """JavaScriptCore puts a thread's number before that of the process. It is the mapping that proves whose it is."""
    tools.need("gcc")
    with Forking(tools, "oddly named jitdump") as forking:
        expect(tools, forking, "master", forking.shared, "shared_of_master")
        expect(tools, forking, "master", forking.private, "private_of_master")
        check_all(tools, forking)


def test_forked_process_in_a_pid_namespace(tools):
    tools.need("gcc", "unshare")
    if os.geteuid():
        raise Skip("a namespace needs root")
    for what in ("perfmap", "jitdump"):
        with Forking(tools, what, "unshare", "--pid", "--fork") as forking:
            if forking.inner["master"] != 1:
                raise Fail(f"the master is {forking.inner}")
            check_all(tools, forking)


def test_forked_process_whose_map_has_its_own_lines_too(tools):
    """Lines under the process's own number win over lines that it shares with others."""
    tools.need("gcc")
    with Forking(tools, "perfmap") as forking:
        path = f"/tmp/perf-{forking.pids['child']}.map"
        try:
            with open(path, "w", encoding="utf-8") as own:
                own.write(f"{forking.shared:x} 40 own_line\n{forking.private:x} 40 own_private\n")
            expect(tools, forking, "child", forking.shared, "own_line")
            expect(tools, forking, "child", forking.shared + 0x100, "shared_of_child")
            expect(tools, forking, "child", forking.private, "own_private")
            expect(tools, forking, "grandchild", forking.shared, "shared_of_master")
        finally:
            os.unlink(path)


def wait_for_another_parent(pid, parent):
    def has_another():
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            return f"PPid:\t{parent}\n" not in status.read()
    wait_until(has_another, f"{pid} is still a child of {parent}, which was killed")


def test_forked_process_whose_parent_is_gone(tools):
    """Shared lines can only be compared with the processes that are left; the reason says so."""
    tools.need("gcc")
    for what in ("perfmap", "jitdump"):
        with Forking(tools, what) as forking:
            os.kill(forking.pids["master"], signal.SIGKILL)
            # It has given up its memory before its child is another's.
            wait_for_another_parent(forking.pids["child"], forking.pids["master"])
            for asker in ("child", "grandchild"):
                found, text = named(tools, forking.pids[asker], forking.shared)
                if asker == "child" and (found or "another process began to write it" not in text):
                    raise Fail(f"{what}: {asker}: {text}")
                # Both are what is left: what they share was the master's.
                if asker == "grandchild" and found != "shared_of_master":
                    raise Fail(f"{what}: {asker}: {text}")


def test_forked_process_of_a_daemon(tools):
    """The process that began the file has ended at once; the daemon goes on with it."""
    tools.need("gcc")
    for what in ("perfmap", "jitdump"):
        with Forking(tools, what, daemon=True) as forking:
            check_all(tools, forking)


def test_forked_process_that_became_another_program(tools):
    """It holds the map open still, and shares nothing."""
    tools.need("gcc")
    with Forking(tools, "perfmap") as forking:
        with open(f"/proc/{forking.pids['child']}/task/{forking.pids['child']}/children", encoding="ascii") as children:
            sleeper = [pid for pid in children.read().split() if int(pid) != forking.pids["grandchild"]]
        if len(sleeper) != 1:
            raise Fail(f"children: {sleeper}")
        wait_until(lambda: os.readlink(f"/proc/{sleeper[0]}/exe") != os.readlink(f"/proc/{forking.pids['child']}/exe"),
                   "it stays the same program")
        found, text = named(tools, sleeper[0], forking.shared)
        if found:
            raise Fail(text)
