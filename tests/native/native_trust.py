# SPDX-License-Identifier: MIT
"""Attacks by a user without any rights on root's dotnet-mapgen.

The attacker is uid 65534 in user, mount and PID namespaces of its own, where it mounts what it likes. It is a
program that looks like a .NET process; arguments select what it does, and it reports when that is done.
"""
import contextlib
import os
import shutil
import struct
import subprocess

from native_tools import Fail, Skip

ATTACKER = 65534
AS_ATTACKER = ["setpriv", f"--reuid={ATTACKER}", f"--regid={ATTACKER}", "--clear-groups"]
CODE = 0x7000000000

HOST = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>
static void check(int failed, const char *what) { if (failed) { perror(what); exit(1); } }
int main(int count, char **words)
{
	char map[64];
	snprintf(map, sizeof(map), "/tmp/perf-%d.map", (int)getpid());
	check(mmap((void *)0x7000000000, 1 << 20, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
	      MAP_FAILED, "code");
	for (int i = 1; i < count; i++) {
		if (!strcmp(words[i], "map")) {
			int fd = open(words[++i], O_RDONLY);
			check(fd < 0 || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED, words[i]);
			close(fd);
		} else if (!strcmp(words[i], "tmpfs")) {
			check(mount("tmpfs", words[++i], "tmpfs", 0, "mode=1777"), "tmpfs");
		} else if (!strcmp(words[i], "proc")) {
			check(mount("proc", "/proc", "proc", 0, NULL), "proc");
		} else if (!strcmp(words[i], "bind")) {
			check(mount(words[i + 1], words[i + 2], NULL, MS_BIND, NULL), "bind");
			i += 2;
		} else if (!strcmp(words[i], "bind-on-map")) {
			char source[64];
			snprintf(source, sizeof(source), "/proc/self/fd/%d", open(words[++i], O_PATH));
			check(mount("tmpfs", "/tmp", "tmpfs", 0, "mode=1777"), "tmpfs");
			close(open(map, O_CREAT | O_WRONLY, 0644));
			check(mount(source, map, NULL, MS_BIND, NULL), "bind");
		} else if (!strcmp(words[i], "copy-and-map")) {
			char room[1 << 16];
			int from = open(words[i + 1], O_RDONLY), to = open(words[i + 2], O_CREAT | O_RDWR, 0644);
			ssize_t size = read(from, room, sizeof(room));
			check(size <= 0 || write(to, room, size) != size, words[i + 2]);
			check(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, to, 0) == MAP_FAILED, words[i + 2]);
			i += 2;
		} else if (!strcmp(words[i], "write") || !strcmp(words[i], "lock")) {
			static const char line[] = "7000000000 10 own_line\n";
			int fd = open(map, O_CREAT | O_WRONLY | O_TRUNC, 0644), other = open(map, O_RDONLY);
			check(fd < 0 || other < 0 || write(fd, line, strlen(line)) < 0, map);
			check(words[i][0] == 'l' && flock(other, LOCK_EX), "flock");
		}
	}
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
"""


def prepare(tools):
    """The program, and what it maps to look like .NET, where the attacker can reach them."""
    tools.need("gcc", "setpriv", "unshare")
    if os.geteuid():
        raise Skip("root runs the product here")
    program, runtime = tools.path("trust/host"), tools.path("trust/shared/Microsoft.NETCore.App/10.0.12/libcoreclr.so")
    if not os.path.exists(program):
        source = tools.write("trust/host.c", HOST)
        os.makedirs(os.path.dirname(runtime), exist_ok=True)
        with open(runtime, "wb") as file:
            file.write(bytes(4096))
        tools.run("gcc", "-o", program, source)
        for path in (tools.scratch, tools.path("trust")):
            os.chmod(path, 0o755)
    done = subprocess.run([*AS_ATTACKER, "unshare", "-Urmpf", "--propagation", "private", "true"], capture_output=True, text=True,
                          cwd="/")
    if done.returncode:
        raise Skip(f"a user without rights cannot have namespaces here: {done.stderr.strip()}")
    return program, runtime


def child_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return int(file.read().split()[0])


@contextlib.contextmanager
def attacker(tools, *words, namespaces=True):
    """Yields the PID here of a look-alike that has done what its arguments select."""
    program, runtime = prepare(tools)
    prefix = ["unshare", "-Urmpf", "--kill-child", "--propagation", "private"] if namespaces else []
    command = [*AS_ATTACKER, *prefix, program, "map", runtime, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/") as process:
        pid = None
        try:
            if process.stdout.readline() != "ready\n":
                raise Fail(f"the attacker failed: {process.stderr.read()}")
            pid = child_of(process.pid) if namespaces else process.pid
            yield pid
        finally:
            process.kill()
            for name in (f"perf-{pid}.map", f"perf-{pid}.map.runtime"):
                with contextlib.suppress(FileNotFoundError):
                    os.remove(f"/tmp/{name}")


def run(tools, *words, text=None, timeout=120):
    return subprocess.run([tools.program, *map(str, words)], capture_output=True, text=True, errors="replace", input=text,
                          timeout=timeout)


def roots_directory(tools, name):
    path = tools.path(name)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    os.chmod(path, 0o755)
    return path


def expect_untouched(directory, done):
    left = os.listdir(directory)
    if left:
        raise Fail(f"root's directory has {left} now: {done.stdout}{done.stderr}")
    if not done.returncode:
        raise Fail(f"that nothing was written is no failure: {done.stdout}{done.stderr}")


def test_a_directory_of_root_mounted_on_tmp_gets_no_map(tools):
    """Whatever is written inside the process's root is written with its rights."""
    directory = roots_directory(tools, "trust/roots-directory")
    for command in (["merge", "--in-target"], ["watch", "--in-target", "--for=1"]):
        with attacker(tools, "bind", directory, "/tmp") as pid:
            done = run(tools, *command, "--jit=none", pid)
            expect_untouched(directory, done)
    with attacker(tools, "bind", directory, "/tmp") as pid:
        expect_untouched(directory, run(tools, "merge", "--jit=none", "-o", f"/proc/{pid}/root/tmp/x.map", pid))


def test_a_directory_that_the_process_may_write_gets_its_map(tools):
    """With a /tmp of its own there is a map, and it belongs to the process."""
    with attacker(tools, "tmpfs", "/tmp") as pid:
        done = run(tools, "merge", "--in-target", "--jit=none", pid)
        if done.returncode:
            raise Fail(done.stderr)
        status = os.stat(f"/proc/{pid}/root/tmp/perf-1.map")
        if (status.st_uid, status.st_gid, status.st_mode & 0o777) != (ATTACKER, ATTACKER, 0o644):
            raise Fail(f"it belongs to {status.st_uid}:{status.st_gid}, mode {status.st_mode:o}")


def expect_no_secret(tools, pid, *secrets):
    """Neither where tools look, nor inside, nor on standard output."""
    output = tools.path("trust/merged.map")
    done = [run(tools, "merge", "--jit=perfmap", pid), run(tools, "merge", "--jit=perfmap", "-o", output, pid)]
    for path in (f"/tmp/perf-{pid}.map", output):
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        for secret in secrets:
            if secret in text:
                raise Fail(f"{path} has {secret!r}, which only root may read")
    for result in done:
        if result.returncode:
            raise Fail(result.stderr)


def secret_map(tools, name):
    """Lines that would pass every check of lines, in a file that only root may read and that is not too old."""
    path = tools.write(name, f"{CODE:x} 10 secret_of_root\n")
    os.chmod(path, 0o600)
    later = os.stat(path).st_mtime + 3600
    os.utime(path, (later, later))
    return path


def test_a_file_of_root_mounted_over_the_map_is_not_read(tools):
    with attacker(tools, "bind-on-map", secret_map(tools, "trust/secret.map")) as pid:
        expect_no_secret(tools, pid, "secret_of_root")


def test_a_file_of_root_in_a_directory_mounted_on_tmp_is_not_read(tools):
    """Nothing is mounted over the file itself: the rights of the process decide."""
    directory = roots_directory(tools, "trust/secret-directory")
    secret_map(tools, "trust/secret-directory/perf-1.map")
    with attacker(tools, "bind", directory, "/tmp") as pid:
        expect_no_secret(tools, pid, "secret_of_root")


def test_addresses_of_the_kernel_do_not_get_into_a_map(tools):
    with attacker(tools, "proc", "bind-on-map", "/proc/kallsyms") as pid:
        expect_no_secret(tools, pid, "ffffffff")


def test_only_lines_in_code_get_into_a_merged_map(tools):
    """The process writes its own map and may write anything; what lies in no code is left out."""
    with attacker(tools, namespaces=False) as pid:
        path, output = f"/tmp/perf-{pid}.map", tools.path("trust/merged.map")
        with open(path, "w", encoding="ascii") as file:
            file.write(f"{CODE:x} 10 in_code\n400000000000 10 in_nothing\nffffffff81000000 b of_the_kernel\n")
        os.chown(path, ATTACKER, ATTACKER)
        done = run(tools, "merge", "--jit=perfmap", "-o", output, pid)
        with open(output, encoding="ascii") as file:
            text = file.read()
        found = [word for word in ("in_code", "in_nothing", "of_the_kernel") if word in text]
        if found != ["in_code"]:
            raise Fail(f"the merged map has {found}: {done.stderr}")


def gone_pid():
    with subprocess.Popen(["true"]) as process:
        process.wait()
        return process.pid


def left_map(pid, owner):
    path = f"/tmp/perf-{pid}.map"
    with open(path, "w", encoding="ascii") as file:
        file.write("7f0000001000 1000 NAME_IN_THE_MAP\n")
    os.chown(path, owner, owner)
    return path


def test_a_map_for_a_process_that_is_gone_is_believed_by_its_owner(tools):
    """Anybody can put one down. Root's counts, and it is said whose it is."""
    prepare(tools)
    for owner in (0, ATTACKER):
        pid = gone_pid()
        text = (f"dotnet {pid}/{pid}  1055.039651:     200000 cpu-clock: \n"
                "\t    7f0000001010 [unknown] (/memfd:doublemapper (deleted))\n\n")
        path = left_map(pid, owner)
        try:
            done = run(tools, "symbolize", text=text)
        finally:
            os.remove(path)
        if ("NAME_IN_THE_MAP" in done.stdout) != (owner == 0):
            raise Fail(f"map of uid {owner}: {done.stdout}{done.stderr}")
        if f"uid {owner}" not in done.stderr:
            raise Fail(f"it is not said that the map is uid {owner}'s: {done.stderr}")


def test_a_lock_on_the_map_is_not_waited_for(tools):
    """Any user who can read the map can lock it for ever: merge appends without the lock after 2 s. The time-out here is none of
    that, it only keeps a wait without end from holding the tests; before there was a bound, it took 31 s."""
    with attacker(tools, "lock", namespaces=False) as pid:
        try:
            done = run(tools, "merge", "--jit=none", pid, timeout=25)
        except subprocess.TimeoutExpired:
            raise Fail("merge waits for a lock that another holds") from None
        if done.returncode:
            raise Fail(done.stderr)


def test_nothing_is_written_where_the_rights_cannot_be_taken(tools):
    """A caller without CAP_SETUID may not take the rights: then nothing is written inside the process's root."""
    with attacker(tools, "tmpfs", "/tmp") as pid:
        done = subprocess.run(["setpriv", "--bounding-set=-setuid,-setgid", tools.program, "merge", "--in-target", "--jit=none",
                               str(pid)], capture_output=True, text=True, timeout=120)
        if not done.returncode or os.path.lexists(f"/proc/{pid}/root/tmp/perf-1.map"):
            raise Fail(f"{done.stdout}{done.stderr}")
        if "CAP_SETUID" not in done.stderr:
            raise Fail(f"what it takes is not said: {done.stderr}")


def jitdump(tools, name, function):
    """A jitdump of process 1 in its namespace with one function, begun later than any process here."""
    text = function.encode() + b"\0"
    record = struct.pack("<IIQ II QQQQ", 0, 56 + len(text) + 16, 1 << 62, 1, 1, CODE, CODE, 16, 1) + text + bytes(16)
    path = tools.path(name)
    with open(path, "wb") as file:
        file.write(struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 1, 1 << 62, 0) + record)
    return path


def test_a_jitdump_of_root_mounted_over_the_own_one_is_not_read(tools):
    prepare(tools)
    own, secret = jitdump(tools, "trust/own.dump", "own_function"), jitdump(tools, "trust/secret.dump", "secret_of_root")
    os.chmod(own, 0o644)
    os.chmod(secret, 0o600)
    begin = ["tmpfs", "/tmp", "copy-and-map", own, "/tmp/jit-1.dump"]
    for words, wanted in ((begin, "own_function"), ([*begin, "bind", secret, "/tmp/jit-1.dump"], None)):
        with attacker(tools, *words) as pid:
            done = run(tools, "resolve", "--jit=perfmap", pid, f"{CODE + 4:x}")
            if "secret_of_root" in done.stdout or (wanted and wanted not in done.stdout):
                raise Fail(f"{words}: {done.stdout}{done.stderr}")


def test_a_directory_that_only_root_may_search_is_not_searched_for_a_socket(tools):
    """The process says where its socket is. What is there is another thing to root than to the process."""
    prepare(tools)
    directory = roots_directory(tools, "trust/sockets")
    os.environ["TMPDIR"] = directory
    try:
        with attacker(tools, namespaces=False) as pid:
            seen = []
            for mode in (0o755, 0o700):
                os.chmod(directory, mode)
                done = run(tools, "resolve", "--jit=rundown", pid, f"{CODE:x}")
                seen.append("has no diagnostics socket of its own" in done.stdout + done.stderr)
                if mode == 0o700 and "Permission denied" not in done.stdout + done.stderr:
                    raise Fail(f"root searched the directory: {done.stdout}{done.stderr}")
            if seen != [True, False]:
                raise Fail(f"{seen}: {done.stdout}{done.stderr}")
    finally:
        del os.environ["TMPDIR"]


SPLIT = """
static inline __attribute__((always_inline)) int name_in_the_split_file(int n) { return n * 7 + (n >> 3); }
int outer(int n) { return name_in_the_split_file(n) ^ 5; }
"""


def test_a_split_file_that_only_root_may_read_is_not_read_for_another_user(tools):
    """DWARF names the files that it is continued in, by paths of its own choice."""
    prepare(tools)
    tools.need("objdump")
    directory = tools.path("trust/compiled")
    os.makedirs(directory)
    tools.write("trust/compiled/split.c", SPLIT)
    # A cache of the compiler would know the directory of an earlier run.
    tools.run("gcc", "-g", "-gsplit-dwarf", "-O1", "-fPIC", "-c", "split.c", cwd=directory, env=dict(os.environ, CCACHE_DISABLE="1"))
    library = tools.path("trust/split.so")
    tools.run("gcc", "-shared", "-nostdlib", "-Wl,-z,noseparate-code", "-o", library, "split.o", cwd=directory)
    vaddr = int(next(line for line in tools.run("objdump", "-t", library).splitlines() if line.endswith(" outer")).split()[0], 16)
    with attacker(tools, "map", library, namespaces=False) as pid:
        with open(f"/proc/{pid}/maps", encoding="ascii") as maps:
            base = next(int(line.split("-")[0], 16) for line in maps if line.rstrip().endswith("/split.so"))
        for mode in (0o755, 0o700):
            os.chmod(directory, mode)
            done = run(tools, "resolve", "--inlines", "--jit=none", pid, f"{base + vaddr:x}")
            if "outer" not in done.stdout or ("name_in_the_split_file" in done.stdout) != (mode == 0o755):
                raise Fail(f"mode {mode:o}: {done.stdout}{done.stderr}")
