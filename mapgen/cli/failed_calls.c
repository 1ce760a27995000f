/* SPDX-License-Identifier: MIT */
/*
 * The linker calls these functions instead of those of the C library (-Wl,--wrap, the list
 * FAILED_CALLS of the Makefile). Each calls the original and counts a failure.
 *
 * Most of the library treats a failure as damage of one source: that source gives no names. This is
 * right for a damaged file. When memory or descriptors run out, the same file would have given
 * names a moment later, so the command must report it. What is counted here cannot get lost on the
 * way through the library.
 *
 * Only errors count that no file and no mapping can cause: memory, descriptors, disks, and peers
 * that hang up. EIO does not count for memory of a process, because the kernel also returns it for
 * memory that is not mapped.
 */
#include "mapgen/cli/failed_calls.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

static atomic_size_t calls;
static _Atomic(const char *) first_name;
static atomic_int first_errno;

struct failed_calls failed_calls_get(void)
{
	return (struct failed_calls){
		.count = atomic_load(&calls),
		.name = atomic_load(&first_name),
		.errno_value = atomic_load(&first_errno),
	};
}

static void failed_calls_count(const char *name, int errno_value)
{
	const char *none = NULL;

	if (atomic_compare_exchange_strong(&first_name, &none, name))
		atomic_store(&first_errno, errno_value);
	atomic_fetch_add(&calls, 1);
}

static bool is_of_a_process(int fd)
{
	struct statfs status;

	return !fstatfs(fd, &status) && status.f_type == PROC_SUPER_MAGIC;
}

/* `fd`: the descriptor that was read, else -1. Does not change errno. */
static void failed_calls_check(const char *name, bool failed, int fd)
{
	int errno_value = errno;

	if (!failed)
		return;
	switch (errno_value) {
	case ENOMEM:
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ENOSPC:
	case ECONNREFUSED:
	case ECONNRESET:
	case EPIPE:
		failed_calls_count(name, errno_value);
		break;
	case EIO:
		if (fd < 0 || !is_of_a_process(fd))
			failed_calls_count(name, errno_value);
		break;
	default:
		break;
	}
	errno = errno_value;
}

/* The name of a C function, its parameters, the same as arguments, whether `done` is a failure, and
 * the descriptor. */
#define WATCHED(type, name, parameters, arguments, failed, fd)                                     \
	type __real_##name parameters;                                                             \
	type __wrap_##name parameters;                                                             \
	type __wrap_##name parameters                                                              \
	{                                                                                          \
		type done = __real_##name arguments;                                               \
		failed_calls_check(#name, failed, fd);                                             \
		return done;                                                                       \
	}

/* ---- memory ------------------------------------------------------------------------- */

WATCHED(void *, malloc, (size_t bytes), (bytes), !done, -1)
WATCHED(void *, calloc, (size_t number, size_t bytes), (number, bytes), !done, -1)
WATCHED(void *, realloc, (void *old, size_t bytes), (old, bytes), !done && bytes, -1)
WATCHED(void *, reallocarray, (void *old, size_t number, size_t bytes), (old, number, bytes),
	!done && number && bytes, -1)
WATCHED(void *, aligned_alloc, (size_t alignment, size_t bytes), (alignment, bytes), !done, -1)
WATCHED(char *, strdup, (const char *text), (text), !done, -1)
WATCHED(char *, strndup, (const char *text, size_t length), (text, length), !done, -1)
WATCHED(int, vasprintf, (char **ret, const char *format, va_list values), (ret, format, values),
	done < 0, -1)
WATCHED(void *, mmap64, (void *at, size_t bytes, int protection, int flags, int fd, off64_t offset),
	(at, bytes, protection, flags, fd, offset), done == MAP_FAILED, -1)
WATCHED(void *, mmap, (void *at, size_t bytes, int protection, int flags, int fd, off_t offset),
	(at, bytes, protection, flags, fd, offset), done == MAP_FAILED, -1)

int __real_posix_memalign(void **ret, size_t alignment, size_t bytes);
int __wrap_posix_memalign(void **ret, size_t alignment, size_t bytes);
int __wrap_posix_memalign(void **ret, size_t alignment, size_t bytes)
{
	int errno_value = __real_posix_memalign(ret, alignment, bytes);

	if (errno_value == ENOMEM)
		failed_calls_count("posix_memalign", errno_value);
	return errno_value;
}

int __wrap_asprintf(char **ret, const char *format, ...) __attribute__((format(printf, 2, 3)));
int __wrap_asprintf(char **ret, const char *format, ...)
{
	va_list values;
	int length;

	va_start(values, format);
	length = vasprintf(ret, format, values);
	va_end(values);
	return length;
}

int __real_pthread_create(pthread_t *ret, const pthread_attr_t *attributes, void *(*start)(void *),
			  void *argument);
int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attributes, void *(*start)(void *),
			  void *argument);
int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attributes, void *(*start)(void *),
			  void *argument)
{
	int errno_value = __real_pthread_create(ret, attributes, start, argument);

	if (errno_value)
		failed_calls_count("pthread_create", errno_value);
	return errno_value;
}

/*
 * With _FORTIFY_SOURCE the compiler calls these instead. Their extra first argument says whether %n
 * is allowed, or how much room there is.
 */
WATCHED(int, __vasprintf_chk, (char **ret, int flag, const char *format, va_list values),
	(ret, flag, format, values), done < 0, -1)
WATCHED(char *, __realpath_chk, (const char *path, char *room, size_t bytes), (path, room, bytes),
	!done, -1)
WATCHED(int, __open64_2, (const char *path, int flags), (path, flags), done < 0, -1)

int __wrap___asprintf_chk(char **ret, int flag, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int __wrap___asprintf_chk(char **ret, int flag, const char *format, ...)
{
	va_list values;
	int length;

	(void)flag;
	va_start(values, format);
	length = vasprintf(ret, format, values);
	va_end(values);
	return length;
}

/* ---- files ---------------------------------------------------------------------------- */

/* The mode is always passed; a call that does not use it ignores it. */
#define MODE_OF(last)                                                                              \
	({                                                                                         \
		va_list values;                                                                    \
		mode_t mode;                                                                       \
		va_start(values, last);                                                            \
		mode = (last) & (O_CREAT | __O_TMPFILE) ? va_arg(values, mode_t) : 0;              \
		va_end(values);                                                                    \
		mode;                                                                              \
	})

int __real_open(const char *path, int flags, ...);
int __real_open64(const char *path, int flags, ...);
int __real_openat64(int directory, const char *path, int flags, ...);
int __real_fcntl64(int fd, int command, ...);
long __real_syscall(long number, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_openat64(int directory, const char *path, int flags, ...);
int __wrap_fcntl64(int fd, int command, ...);
long __wrap_syscall(long number, ...);

int __wrap_open(const char *path, int flags, ...)
{
	int fd = __real_open(path, flags, MODE_OF(flags));

	failed_calls_check("open", fd < 0, -1);
	return fd;
}

int __wrap_open64(const char *path, int flags, ...)
{
	int fd = __real_open64(path, flags, MODE_OF(flags));

	failed_calls_check("open", fd < 0, -1);
	return fd;
}

int __wrap_openat64(int directory, const char *path, int flags, ...)
{
	int fd = __real_openat64(directory, path, flags, MODE_OF(flags));

	failed_calls_check("openat", fd < 0, -1);
	return fd;
}

int __wrap_fcntl64(int fd, int command, ...)
{
	va_list values;
	void *argument;
	int done;

	va_start(values, command);
	argument = va_arg(values, void *);
	va_end(values);
	done = __real_fcntl64(fd, command, argument);
	failed_calls_check("fcntl", done < 0, -1);
	return done;
}

/* It passes all words on that a call may have, as the C library does; the caller has given fewer.
 */
__attribute__((no_sanitize("address"))) long __wrap_syscall(long number, ...)
{
	va_list values;
	long words[6], done;

	va_start(values, number);
	for (int i = 0; i < 6; i++)
		words[i] = va_arg(values, long);
	va_end(values);
	done = __real_syscall(number, words[0], words[1], words[2], words[3], words[4], words[5]);
	failed_calls_check("syscall", done < 0, -1);
	return done;
}

WATCHED(ssize_t, read, (int fd, void *room, size_t bytes), (fd, room, bytes), done < 0, fd)
WATCHED(ssize_t, pread, (int fd, void *room, size_t bytes, off_t offset), (fd, room, bytes, offset),
	done < 0, fd)
WATCHED(ssize_t, pread64, (int fd, void *room, size_t bytes, off64_t offset),
	(fd, room, bytes, offset), done < 0, fd)
WATCHED(ssize_t, write, (int fd, const void *bytes, size_t count), (fd, bytes, count), done < 0, -1)
WATCHED(off64_t, lseek64, (int fd, off64_t offset, int whence), (fd, offset, whence), done < 0, -1)
WATCHED(int, fstat64, (int fd, struct stat64 *status), (fd, status), done < 0, -1)
WATCHED(int, fstatfs64, (int fd, struct statfs64 *status), (fd, status), done < 0, -1)
WATCHED(int, statfs64, (const char *path, struct statfs64 *status), (path, status), done < 0, -1)
WATCHED(int, fstatvfs64, (int fd, struct statvfs64 *status), (fd, status), done < 0, -1)
WATCHED(int, stat64, (const char *path, struct stat64 *status), (path, status), done < 0, -1)
WATCHED(int, lstat64, (const char *path, struct stat64 *status), (path, status), done < 0, -1)
WATCHED(int, fstatat64, (int directory, const char *path, struct stat64 *status, int flags),
	(directory, path, status, flags), done < 0, -1)
WATCHED(int, statx,
	(int directory, const char *path, int flags, unsigned int mask, struct statx *status),
	(directory, path, flags, mask, status), done < 0, -1)
WATCHED(int, access, (const char *path, int mode), (path, mode), done < 0, -1)
WATCHED(int, faccessat, (int directory, const char *path, int mode, int flags),
	(directory, path, mode, flags), done < 0, -1)
WATCHED(ssize_t, readlink, (const char *path, char *room, size_t bytes), (path, room, bytes),
	done < 0, -1)
WATCHED(ssize_t, readlinkat, (int directory, const char *path, char *room, size_t bytes),
	(directory, path, room, bytes), done < 0, -1)
WATCHED(char *, realpath, (const char *path, char *room), (path, room), !done, -1)
WATCHED(DIR *, opendir, (const char *path), (path), !done, -1)
WATCHED(DIR *, fdopendir, (int fd), (fd), !done, -1)
WATCHED(FILE *, fopen64, (const char *path, const char *mode), (path, mode), !done, -1)
WATCHED(FILE *, fdopen, (int fd, const char *mode), (fd, mode), !done, -1)
WATCHED(int, dup, (int fd), (fd), done < 0, -1)
WATCHED(int, memfd_create, (const char *name, unsigned int flags), (name, flags), done < 0, -1)
WATCHED(int, socket, (int domain, int type, int protocol), (domain, type, protocol), done < 0, -1)
WATCHED(int, poll, (struct pollfd * waits, nfds_t number, int timeout_ms),
	(waits, number, timeout_ms), done < 0, -1)

WATCHED(int, connect, (int fd, const struct sockaddr *address, socklen_t bytes),
	(fd, address, bytes), done < 0, -1)
WATCHED(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *bytes),
	(fd, level, name, value, bytes), done < 0, -1)
WATCHED(ssize_t, send, (int fd, const void *bytes, size_t count, int flags),
	(fd, bytes, count, flags), done < 0, -1)
WATCHED(ssize_t, recv, (int fd, void *room, size_t bytes, int flags), (fd, room, bytes, flags),
	done < 0, -1)

WATCHED(int, unlink, (const char *path), (path), done < 0, -1)
WATCHED(int, unlinkat, (int directory, const char *path, int flags), (directory, path, flags),
	done < 0, -1)

/* NULL at the end of the directory too: then errno has not changed. */
struct dirent64 *__real_readdir64(DIR *directory);
struct dirent64 *__wrap_readdir64(DIR *directory);
struct dirent64 *__wrap_readdir64(DIR *directory)
{
	struct dirent64 *entry;
	int before = errno;

	errno = 0;
	entry = __real_readdir64(directory);
	failed_calls_check("readdir", !entry && errno, -1);
	if (!errno)
		errno = before;
	return entry;
}
