/* SPDX-License-Identifier: MIT */
/*
 * The cases of BCC's test_c_api.cc, rewritten with libsym.h: own process, exited process, library
 * in a private mount namespace, PID namespace, perf map inside and outside of it. Those with
 * namespaces need root.
 */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

#include "libsym/base/cleanup.h"
#include "libsym/libsym.h"
#include "tests/support/asked.h"
#include "tests/support/cannot_run.h"

enum {
	WITH_LIBRARY = 1 << 0,    /* in a tmpfs of its own mount namespace */
	WITH_PID_SPACE = 1 << 1,  /* it is process 1 of its namespace */
	WITH_MAP_INSIDE = 1 << 2, /* /tmp/perf-1.map (or its PID), in a /tmp of its own */
	WITH_MAP_OUTSIDE = 1 << 3 /* /tmp/perf-PID.map of the host */
};

/* The report of a child. */
struct told {
	uint64_t function, code;
	int failed; /* errno, or 0 */
};

struct child {
	pid_t pid;   /* as this process counts */
	pid_t waits; /* the process to wait for */
	struct told told;
	int to_child;
};

static int copy_file(const char *from, const char *to)
{
	char bytes[4096];
	int in AUTO_CLOSE = open(from, O_RDONLY | O_CLOEXEC);
	int out AUTO_CLOSE = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	ssize_t got;

	if (in < 0 || out < 0)
		return errno;
	while ((got = read(in, bytes, sizeof(bytes))) > 0)
		if (write(out, bytes, (size_t)got) != got)
			return EIO;
	return got < 0 ? errno : 0;
}

static int load_library(struct told *told)
{
	Dl_info info;
	void *library;
	int failed;

	if (!dladdr((void *)(uintptr_t)XXH64, &info))
		return ENOENT;
	failed = copy_file(info.dli_fname, "/tmp/libprivate.so");
	library = failed ? NULL : dlopen("/tmp/libprivate.so", RTLD_NOW);
	if (!library)
		return failed ? failed : ENOEXEC;
	told->function = (uintptr_t)dlsym(library, "XXH64");
	return 0;
}

static void write_map(const char *directory, pid_t pid, uint64_t code)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/perf-%d.map", directory, (int)pid);
	file = fopen(path, "w");
	if (!file)
		return;
	/* Two adjacent ones. */
	fprintf(file, "%llx 10 right_next_door_fn\n%llx 10 dummy_fn\n",
		(unsigned long long)code + 0x10, (unsigned long long)code);
	fclose(file);
}

static void live(unsigned int with, int out)
{
	struct told told = { .function = (uintptr_t)abs };
	void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	told.code = (uintptr_t)code;
	if (with & (WITH_LIBRARY | WITH_MAP_INSIDE)) {
		if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount("tmpfs", "/tmp", "tmpfs", 0, NULL))
			told.failed = errno;
	}
	if (!told.failed && (with & WITH_LIBRARY))
		told.failed = load_library(&told);
	if (!told.failed && (with & WITH_MAP_INSIDE))
		write_map("/tmp", getpid(), told.code);
	if (write(out, &told, sizeof(told)) != sizeof(told))
		_exit(1);
	pause();
	_exit(0);
}

/* Ends with the test process in any case. */
static void start(struct child *child, unsigned int with)
{
	int pipes[2], ids[2];

	cr_assert_eq(pipe(pipes), 0);
	cr_assert_eq(pipe(ids), 0);
	child->waits = fork();
	if (child->waits == 0) {
		pid_t inner;

		if (!(with & WITH_PID_SPACE))
			live(with, pipes[1]);
		if (unshare(CLONE_NEWPID)) {
			struct told told = { .failed = errno };

			_exit(write(pipes[1], &told, sizeof(told)) != sizeof(told));
		}
		inner = fork();
		if (inner == 0)
			live(with, pipes[1]);
		if (write(ids[1], &inner, sizeof(inner)) != sizeof(inner))
			_exit(1);
		waitpid(inner, NULL, 0); /* it ends with its parent */
		_exit(0);
	}
	cr_assert_eq(read(pipes[0], &child->told, sizeof(child->told)),
		     (ssize_t)sizeof(child->told));
	child->pid = child->waits;
	if (with & WITH_PID_SPACE && !child->told.failed)
		cr_assert_eq(read(ids[0], &child->pid, sizeof(child->pid)),
			     (ssize_t)sizeof(child->pid));
	for (int i = 0; i < 2; i++) {
		close(pipes[i]);
		close(ids[i]);
	}
	if (child->told.failed == EPERM || child->told.failed == EACCES) {
		kill(child->pid, SIGKILL);
		cannot_run("namespaces need root");
	}
	cr_assert_eq(child->told.failed, 0, "%s", strerror(child->told.failed));
	if (with & WITH_MAP_OUTSIDE)
		write_map("/tmp", child->pid, child->told.code);
}

static void finish(struct child *child)
{
	char path[64];

	kill(child->pid, SIGKILL);
	waitpid(child->waits, NULL, 0);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)child->pid);
	unlink(path);
}

/* libc's own function; a sanitizer has functions of the same names. */
static void *libc_function(const char *name)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);

	return libc ? dlsym(libc, name) : NULL;
}

/* An alias is accepted, if the linker has it at the same address. */
static void expect_function(struct asked *asked, uint64_t address, const char *file)
{
	const struct sym_answer *answer = asked_answer(asked, address);
	Dl_info info;

	cr_assert_eq(answer->status, SYM_RESOLVED, "%s", sym_status_text(answer->status));
	cr_expect_eq(answer->offset_bytes, 0);
	cr_expect_not_null(strstr(answer->image_path, file), "%s", answer->image_path);
	if (dladdr((void *)(uintptr_t)address, &info) && info.dli_sname &&
	    strcmp(info.dli_sname, answer->name) != 0)
		cr_expect((uintptr_t)dlsym(RTLD_DEFAULT, answer->name) == address ||
				  (uintptr_t)libc_function(answer->name) == address,
			  "%s", answer->name);
}

static void expect_map(struct asked *asked, const struct child *child)
{
	const struct sym_answer *answer = asked_answer(asked, child->told.code);

	cr_assert_eq(answer->status, SYM_RESOLVED, "%s", sym_status_text(answer->status));
	cr_expect_str_eq(answer->name, "dummy_fn");
	cr_expect_eq(answer->source, SYM_SOURCE_PERF_MAP);
	answer = asked_answer(asked, child->told.code + 0xf);
	cr_expect_str_eq(answer->name, "dummy_fn");
	cr_expect_eq(answer->offset_bytes, 0xf);
	answer = asked_answer(asked, child->told.code + 0x10);
	cr_expect_str_eq(answer->name, "right_next_door_fn");
	cr_expect_eq(answer->offset_bytes, 0);
	cr_expect_neq(asked_answer(asked, child->told.code + 0x20)->status, SYM_RESOLVED);
}

Test(bcc_cases, resolves_the_own_process)
{
	struct asked asked;

	asked = asked_open(getpid(), SYM_JIT_PERF_MAP);
	expect_function(&asked, (uintptr_t)expect_function, "unit");
	expect_function(&asked, (uintptr_t)libc_function("strtol"), "libc");
	expect_function(&asked, (uintptr_t)dlsym(RTLD_DEFAULT, "XXH64"), "libxxhash");
	asked_close(&asked);
}

Test(bcc_cases, resolves_a_process_that_has_exited)
{
	struct child child;
	struct asked asked;

	start(&child, 0);
	asked = asked_open(child.pid, SYM_JIT_PERF_MAP);
	finish(&child);
	cr_assert_neq(kill(child.pid, 0), 0);
	expect_function(&asked, (uintptr_t)expect_function, "unit");
	expect_function(&asked, (uintptr_t)libc_function("strtol"), "libc");
	asked_close(&asked);
}

static void expect_library(unsigned int with, bool exited)
{
	struct child child;
	struct asked asked;
	const struct sym_answer *answer;

	start(&child, with | WITH_LIBRARY);
	cr_assert_neq(access("/tmp/libprivate.so", F_OK), 0, "it is private");
	asked = asked_open(child.pid, SYM_JIT_PERF_MAP);
	if (exited)
		finish(&child);
	answer = asked_answer(&asked, child.told.function);
	cr_assert_eq(answer->status, SYM_RESOLVED, "%s", sym_status_text(answer->status));
	cr_expect_not_null(strstr(answer->name, "XXH64"), "%s", answer->name);
	cr_expect_str_eq(answer->image_path, "/tmp/libprivate.so");
	asked_close(&asked);
	if (!exited)
		finish(&child);
}

Test(bcc_cases, resolves_a_library_of_a_private_mount_namespace)
{
	expect_library(0, false);
}

Test(bcc_cases, resolves_a_library_of_a_pid_and_mount_namespace)
{
	expect_library(WITH_PID_SPACE, false);
}

Test(bcc_cases, resolves_a_library_of_namespaces_that_have_ended)
{
	expect_library(WITH_PID_SPACE, true);
}

static void expect_perf_map(unsigned int with)
{
	struct child child;
	struct asked asked;

	start(&child, with);
	asked = asked_open(child.pid, SYM_JIT_PERF_MAP);
	expect_map(&asked, &child);
	asked_close(&asked);
	finish(&child);
}

Test(bcc_cases, reads_a_perf_map_of_the_same_namespaces)
{
	expect_perf_map(WITH_MAP_OUTSIDE);
}

Test(bcc_cases, reads_a_perf_map_in_a_private_mount_namespace)
{
	expect_perf_map(WITH_MAP_INSIDE);
}

Test(bcc_cases, reads_a_perf_map_in_a_pid_and_mount_namespace)
{
	expect_perf_map(WITH_PID_SPACE | WITH_MAP_INSIDE);
}

Test(bcc_cases, reads_a_perf_map_outside_of_a_pid_namespace)
{
	expect_perf_map(WITH_PID_SPACE | WITH_MAP_OUTSIDE);
}
