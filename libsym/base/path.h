/* SPDX-License-Identifier: MIT */
/* Opening and replacing files in places that another user may control. Errors are negative errno
 * values. */
#ifndef LIBSYM_BASE_PATH_H
#define LIBSYM_BASE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "libsym/base/buf.h"

/* The last component of a path; the whole path if it has no slash. Points into `path`. */
const char *path_file_name(const char *path);

bool path_ends_with(const char *path, const char *ending);
/* Is it named like an assembly: .dll or .exe in any case, behind a name? */
bool path_is_assembly(const char *path);

bool path_is_same_file(const struct stat *a, const struct stat *b);

enum path_flags {
	PATH_NO_SYMLINKS = 1 << 0, /* reject symbolic links, also inside the path (-ELOOP) */
	PATH_REGULAR =
		/* reject anything except a regular file (-EINVAL); never waits for a FIFO */
		1 << 1,
	PATH_DIRECTORY = 1 << 2,
	PATH_SAME_MOUNT = 1 << 3, /* reject mount points, also over the file itself (-EXDEV) */
	PATH_LOCATE = 1 << 4,     /* return an O_PATH descriptor; open nothing */
};

/*
 * Opens `path` for reading as if `root_fd` were "/": absolute paths, ".." and absolute symbolic
 * links stay below it (openat2() with RESOLVE_IN_ROOT, Linux 5.6). With root_fd < 0 the machine's
 * own root is used. A file of another type than `flags` allows is never opened. Returns a
 * descriptor (O_CLOEXEC) or a negative errno.
 */
int path_open_in_root(int root_fd, const char *path, unsigned int flags);

/* Opens the target of an O_PATH descriptor for reading; does not wait for a FIFO. */
int path_reopen(int located_fd);

/* Reads [offset, offset + size_bytes) of `fd` to `room`. Returns 0, -EIO if the file ends earlier,
 * or another negative errno. */
int path_read_at(int fd, void *room, size_t size_bytes, uint64_t offset);

/*
 * Appends a whole file to `buf`, from its first byte. It may be a file of /proc, whose size is
 * unknown, or the rest of a pipe. Returns 0 or a negative errno (-EFBIG: larger than the buffer's
 * maximum).
 */
int path_read_all(int fd, struct buf *buf);

/* Creates `path` and its missing parents with `mode`. Returns 0, also if it exists, or a negative
 * errno. */
int path_make_directories(const char *path, mode_t mode);

/*
 * A file that is written beside its final place and renamed over it when complete.
 *
 * path_output_open() creates a file without a name in the directory of `path` (O_TMPFILE), so
 * nothing is left behind if the program is killed. File systems without O_TMPFILE get a hidden
 * temporary file (O_EXCL, O_NOFOLLOW). The mode is 0600. The file appears under `path` only with
 * path_output_commit(); path_output_abandon() removes it. Either call ends the object.
 */
struct path_output {
	int fd; /* -1: not open */
	int directory_fd;
	char *temporary_name; /* heap; name inside the directory; NULL if it has none */
	char *name;           /* heap; final name inside the directory */
};

int path_output_open(struct path_output *output, const char *path);
/* Like path_output_open(), in an open directory. `directory_fd` is duplicated. */
int path_output_open_at(struct path_output *output, int directory_fd, const char *name);
/* Changes the final path, to a directory of the same file system. Returns 0, or a negative errno
 * and abandons the file. */
int path_output_move(struct path_output *output, const char *path);
/* Sets `mode`, flushes the file if `durable`, and renames it into place. */
int path_output_commit(struct path_output *output, mode_t mode, bool durable);
void path_output_abandon(struct path_output *output);
/* Writes all bytes and commits, or abandons. Returns 0 or a negative errno. */
int path_output_finish(struct path_output *output, const void *bytes, size_t size_bytes,
		       mode_t mode);

/* Is it a regular file (not a link) with exactly these bytes? */
bool path_has_content(int directory_fd, const char *name, const void *bytes, size_t size_bytes);

/* Writes all bytes, continuing after short writes and EINTR. Returns 0 or a negative errno. */
int path_write_all(int fd, const void *bytes, size_t size_bytes);

/* Writes to `to_fd` what is left of `from_fd`, a file or a pipe. Returns 0 or a negative errno. */
int path_copy_rest(int from_fd, int to_fd);

/* Copies a NULL-terminated list of paths; NULL stays NULL. Returns false if out of memory. */
bool path_list_copy(const char *const *paths, char ***ret);
void path_list_free(char **paths);

#endif
