/* SPDX-License-Identifier: MIT */
/*
 * The only way to open a file that another user may have put in place.
 *
 * The file is examined before it is opened, because opening a device or a FIFO has side effects.
 * Only a regular file is opened, for reading, with O_NONBLOCK, O_NOCTTY and O_CLOEXEC. Files of
 * procfs, sysfs and similar file systems are rejected: their text depends on the reader.
 *
 * Errors are negative errno values; foreign_file_problem() describes them.
 */
#ifndef LIBSYM_BASE_FOREIGN_FILE_H
#define LIBSYM_BASE_FOREIGN_FILE_H

#include <sys/stat.h>

#include "libsym/base/rights.h"

enum foreign_file_flags {
	FOREIGN_NO_LINKS = 1 << 0, /* reject symbolic links, also inside the path */
	/* Reject mount points between `root_fd` and the file, and over the file. */
	FOREIGN_SAME_MOUNT = 1 << 1,
	/* The path is a link in /proc/PID, which the kernel resolves. */
	FOREIGN_KERNEL_LINK = 1 << 2,
};

/*
 * Opens `path` as if `root_fd` were "/" (path_open_in_root(); negative: the machine's own root).
 *
 * rights: those of the process that chose the path; NULL: the caller's own. If the caller may not
 *   assume them (rights_assume()), it uses no capability, and the file must belong to that user or
 *   be readable by all.
 *
 * Returns a descriptor, and the file's status in *status_ret (may be NULL). Returns -EINVAL if it
 * is not a regular file, -EOPNOTSUPP for a file of procfs and the like, -ELOOP and -EXDEV by
 * `flags`, or another negative errno.
 */
int foreign_file_open(int root_fd, const char *path, unsigned int flags,
		      const struct rights *rights, struct stat *status_ret);

/* Finds out what is there without opening it: 0 and *ret, or the same errors. */
int foreign_file_examine(int root_fd, const char *path, unsigned int flags,
			 const struct rights *rights, struct stat *ret);

/* Opens a directory on the way to such a file, as an O_PATH descriptor. Use it with the same
 * rights. */
int foreign_directory_open(int root_fd, const char *path, const struct rights *rights);

/* Static text for an error of these functions ("is not a regular file"). */
const char *foreign_file_problem(int result);

#endif
