/* SPDX-License-Identifier: MIT */
#include "tests/support/chosen_id.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/cannot_run.h"
#include "tests/support/elf_builder.h"
#include "tests/support/waiting.h"

enum {
	PAGE_BYTES = 0x1000,
	TRIES = 100
};

pid_t fork_with_id(pid_t id)
{
	struct clone_args arguments = {
		.exit_signal = SIGCHLD,
		.set_tid = id ? (uint64_t)(uintptr_t)&id : 0,
		.set_tid_size = id ? 1 : 0,
	};
	long result = -1;

	/* A reaped process may keep its number a moment longer. */
	for (int i = 0; i < TRIES && result < 0; i++) {
		result = syscall(SYS_clone3, &arguments, sizeof(arguments));
		if (result < 0 && errno != EEXIST)
			break;
		if (result < 0)
			wait_pause();
	}
	if (result < 0 && (errno == EPERM || errno == ENOSYS || errno == EINVAL))
		cannot_run("the kernel does not allow choosing a process id");
	cr_assert_geq(result, 0, "clone3: %s", strerror(errno));
	return (pid_t)result;
}

static void map_at(uint64_t address, int fd, size_t size_bytes)
{
	int flags = MAP_PRIVATE | MAP_FIXED_NOREPLACE | (fd < 0 ? MAP_ANONYMOUS : 0);

	if (mmap((void *)(uintptr_t)address, size_bytes, PROT_READ | PROT_EXEC, flags, fd, 0) ==
	    MAP_FAILED)
		_exit(1);
}

/* Writes a library with one function; returns its descriptor. */
static int write_native(const struct look_alike *what)
{
	char path[512], symbol[64];
	struct elf_builder_symbol symbols[] = {
		{ symbol, ELF_BUILDER_TEXT_VADDR, LOOK_ALIKE_SIZE_BYTES, STB_GLOBAL, STT_FUNC },
	};
	size_t size_bytes;
	uint8_t *bytes;
	int fd;

	snprintf(symbol, sizeof(symbol), "%s_native", what->name);
	snprintf(path, sizeof(path), "%s/%s.so", what->directory, what->name);
	bytes = elf_builder_make(symbols, 1,
				 (struct elf_builder_options){ .position_independent = true },
				 &size_bytes);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	cr_assert_eq(write(fd, bytes, size_bytes), (ssize_t)size_bytes);
	free(bytes);
	return fd;
}

/*
 * ---- in the new process -------------------------------------------------------------------
 *
 * The parent may have threads, one of which may hold malloc()'s lock. So none of these functions
 * may allocate.
 */

static void map_native(int fd)
{
	/* Flat: the text has the same offset in the file and in memory. */
	map_at(LOOK_ALIKE_NATIVE - ELF_BUILDER_TEXT_OFFSET, fd,
	       ELF_BUILDER_TEXT_OFFSET + ELF_BUILDER_TEXT_BYTES);
}

static void write_perf_map(const struct look_alike *what)
{
	char path[64], line[128];
	int fd, length;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	length = snprintf(line, sizeof(line), "%llx %x %s_mapped\n",
			  (unsigned long long)LOOK_ALIKE_MAPPED, LOOK_ALIKE_SIZE_BYTES, what->name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (write(fd, line, (size_t)length) != length)
		_exit(1);
	close(fd);
}

/* jitdump-specification.txt of perf: a header, one JIT_CODE_LOAD. */
static void map_dump(const struct look_alike *what)
{
	const uint32_t header[] = { 0x4a695444, 1, 40, 62, 0, (uint32_t)getpid(), 1, 0, 0, 0 };
	static const uint8_t code[LOOK_ALIKE_SIZE_BYTES];
	char path[512], symbol[64];
	int fd, length = snprintf(symbol, sizeof(symbol), "%s_dumped", what->name) + 1;
	const uint32_t load[] = { 0,
				  (uint32_t)(56 + (size_t)length + sizeof(code)),
				  1,
				  0,
				  (uint32_t)getpid(),
				  (uint32_t)getpid() };
	const uint64_t place[] = { LOOK_ALIKE_DUMPED, LOOK_ALIKE_DUMPED, sizeof(code), 1 };

	snprintf(path, sizeof(path), "%s/jit-%d.dump", what->directory, (int)getpid());
	unlink(path);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (write(fd, header, sizeof(header)) < 0 || write(fd, load, sizeof(load)) < 0 ||
	    write(fd, place, sizeof(place)) < 0 || write(fd, symbol, (size_t)length) < 0 ||
	    write(fd, code, sizeof(code)) < 0 ||
	    mmap(NULL, PAGE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		_exit(1);
	close(fd);
}

static void live(const struct look_alike *what, int native, int ready)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	map_native(native);
	map_at(LOOK_ALIKE_MAPPED, -1, PAGE_BYTES);
	map_at(LOOK_ALIKE_DUMPED, -1, PAGE_BYTES);
	if (what->flags & LOOK_ALIKE_MAP)
		write_perf_map(what);
	if (what->flags & LOOK_ALIKE_DUMP)
		map_dump(what);
	if (write(ready, "r", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

/* ---- in the parent -------------------------------------------------------------------- */

pid_t look_alike_start(pid_t id, const struct look_alike *what)
{
	int ready[2], native = write_native(what);
	pid_t child;
	char byte;

	cr_assert_eq(pipe2(ready, O_CLOEXEC), 0);
	child = fork_with_id(id);
	if (child == 0)
		live(what, native, ready[1]);
	close(native);
	close(ready[1]);
	cr_assert_eq(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return child;
}

void look_alike_end(pid_t id)
{
	kill(id, SIGKILL);
	cr_assert_eq(waitpid(id, NULL, 0), id);
}

void look_alike_forget(pid_t id)
{
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)id);
	unlink(path);
}
