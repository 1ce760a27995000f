/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a reader: one call fails, the FAIL_AT-th (from 1) of what FAIL names: "memory"
 * (ENOMEM of malloc() and its kin), "read" (EIO of pread()) or "status" (EIO of fstat()). How many
 * calls there were goes to the file FAIL_COUNT, if that is set.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);

static atomic_long calls;
static long fail_at;
static const char *what = "";

__attribute__((constructor)) static void begin(void)
{
	const char *at = getenv("FAIL_AT");

	what = getenv("FAIL") ? getenv("FAIL") : "";
	fail_at = at ? atol(at) : 0;
}

static bool fails(const char *kind, int errno_value)
{
	if (strcmp(what, kind) || ++calls != fail_at)
		return false;
	errno = errno_value;
	return true;
}

void *malloc(size_t bytes)
{
	return fails("memory", ENOMEM) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
	return fails("memory", ENOMEM) ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
	return fails("memory", ENOMEM) ? NULL : __libc_realloc(memory, bytes);
}

ssize_t pread64(int fd, void *room, size_t bytes, off_t offset)
{
	return fails("read", EIO) ? -1 : syscall(SYS_pread64, fd, room, bytes, offset);
}

ssize_t pread(int fd, void *room, size_t bytes, off_t offset)
{
	return pread64(fd, room, bytes, offset);
}

int fstat64(int fd, struct stat64 *status)
{
	return fails("status", EIO) ? -1 : (int)syscall(SYS_fstat, fd, status);
}

int fstat(int fd, struct stat *status)
{
	return fails("status", EIO) ? -1 : (int)syscall(SYS_fstat, fd, status);
}

__attribute__((destructor)) static void end(void)
{
	const char *path = getenv("FAIL_COUNT");
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;

	if (fd < 0)
		return;
	dprintf(fd, "%ld", calls);
	close(fd);
}
