/* SPDX-License-Identifier: MIT */
/*
 * Opening and replacing files where somebody else may have prepared the ground.
 * Knows nothing of symbols; errors are errno values, returned negative.
 */
#ifndef LIBSYM_BASE_PATH_H
#define LIBSYM_BASE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "libsym/base/buf.h"

/* Last component of a path; the whole path when it has no slash. Borrowed from `path`. */
const char *path_file_name(const char *path);

bool path_is_same_file(const struct stat *a, const struct stat *b);

enum path_flags {
	PATH_NO_SYMLINKS = 1 << 0, /* refuse every symbolic link, also in the middle */
	PATH_REGULAR =
		1 << 1, /* refuse (-EINVAL) what is no regular file; FIFOs are not waited for */
	PATH_DIRECTORY = 1 << 2,
};

/*
 * Opens `path` for reading as if `root_fd` were "/": absolute paths, ".." and
 * absolute symlinks stay below it (openat2 with RESOLVE_IN_ROOT, Linux 5.6; a
 * walk by hand where there is no such call). With root_fd < 0 the machine's own
 * root serves. What is of another kind than the flags ask for is never opened.
 * Returns a descriptor (O_CLOEXEC) or a negative errno.
 */
int path_open_in_root(int root_fd, const char *path, unsigned int flags);

/*
 * Reads [offset, offset + size_bytes) of `fd` to `room`. Returns 0, -EIO when
 * the file ends before, or another negative errno.
 */
int path_read_at(int fd, void *room, size_t size_bytes, uint64_t offset);

/*
 * Appends a whole file, from its first byte on, to `buf` (also one of /proc,
 * whose size is not known, or what is left in a pipe); 0 or a negative errno
 * (-EFBIG: past the buffer's maximum).
 */
int path_read_all(int fd, struct buf *buf);

/* Creates `path` and its missing parents with `mode`; 0 or a negative errno. An existing directory
 * is no error. */
int path_make_directories(const char *path, mode_t mode);

/*
 * A file that is written beside its place and renamed over it when whole.
 *
 * path_output_open() makes a file without a name in the directory of `path`, of which nothing is
 * left when the program is killed; where the file system has no such files, a hidden temporary
 * (O_EXCL, O_NOFOLLOW). Mode 0600. Until path_output_commit() nothing of it is visible under
 * `path`; path_output_abandon() removes it. Either call ends the object.
 */
struct path_output {
	int fd; /* -1 when not open */
	int directory_fd;
	char *temporary_name; /* heap, name inside the directory; NULL while it has none */
	char *name;           /* heap, final name inside the directory */
};

int path_output_open(struct path_output *output, const char *path);
/* As above, in an open directory (borrowed: it is duplicated). */
int path_output_open_at(struct path_output *output, int directory_fd, const char *name);
/* It will be at `path` instead, in a directory of the same file system. 0; or a negative errno, and
 * it is abandoned. */
int path_output_move(struct path_output *output, const char *path);
/* Gives the file `mode`, flushes it when `durable`, renames it into place. */
int path_output_commit(struct path_output *output, mode_t mode, bool durable);
void path_output_abandon(struct path_output *output);
/* Writes all bytes and commits, or abandons; 0 or a negative errno. */
int path_output_finish(struct path_output *output, const void *bytes, size_t size_bytes,
		       mode_t mode);

/* Is it a regular file, no link, of these bytes? */
bool path_holds(int directory_fd, const char *name, const void *bytes, size_t size_bytes);

/* Writes all bytes, through short writes and EINTR; 0 or a negative errno. */
int path_write_all(int fd, const void *bytes, size_t size_bytes);

/* A copy of a NULL-terminated list of paths; NULL stays NULL. False when there is no memory. */
bool path_list_copy(const char *const *paths, char ***ret);
void path_list_free(char **paths);

#endif
