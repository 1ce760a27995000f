/* SPDX-License-Identifier: MIT */
/* Preloaded into a reader: it cannot read the memory of other processes, as with Yama or seccomp,
 * but can see everything else of them. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>

ssize_t process_vm_readv(pid_t pid, const struct iovec *rooms, unsigned long room_count,
			 const struct iovec *pieces, unsigned long piece_count, unsigned long flags)
{
	(void)pid, (void)rooms, (void)room_count, (void)pieces, (void)piece_count, (void)flags;
	errno = EPERM;
	return -1;
}

int open64(const char *path, int flags, ...)
{
	int (*next)(const char *path, int flags, ...) = dlsym(RTLD_NEXT, "open64");
	size_t length = strlen(path);
	va_list arguments;
	mode_t mode;

	if (length > 4 && !strcmp(path + length - 4, "/mem")) {
		errno = EACCES;
		return -1;
	}
	va_start(arguments, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
	va_end(arguments);
	return next(path, flags, mode);
}
