/* SPDX-License-Identifier: MIT */
/*
 * A file that a process is writing, as its writer sees it: the bytes in the file, then the bytes
 * that the process has not flushed yet.
 * unflushed_stdio.h finds the latter.
 * The state is that of the last growing_file_look().
 */
#ifndef LIBSYM_PERF_GROWING_FILE_H
#define LIBSYM_PERF_GROWING_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "libsym/base/buf.h"

/* Reads what the writer of a file has not flushed yet. */
struct unflushed {
	/*
	 * Reads what follows the end of the file open as `fd`, and the status of the file at that
	 * time.
	 * `ret` is empty at first. Later it has the previous bytes, which are replaced.
	 * Its maximum is LIMIT_STDIO_BYTES.
	 * False, and an empty `ret`, when the bytes are unknown: the process writes all the time,
	 * or its memory cannot be read any more.
	 */
	bool (*read)(void *context, int fd, struct buf *ret, struct stat *status_ret);
	void (*close)(void *context);
	void *context; /* NULL: no reader, and nothing to close */
};

static inline void unflushed_close(struct unflushed *held)
{
	if (held->context)
		held->close(held->context);
	held->context = NULL;
}

struct growing_file {
	int fd;
	struct unflushed writer;
	struct stat status;
	struct buf held; /* follows the bytes that `status` counts */
};

/* Takes ownership of both, also of what `writer` points to. Reads nothing. */
void growing_file_init(struct growing_file *file, int fd, struct unflushed writer);
void growing_file_deinit(struct growing_file *file);

/* 0 or a negative errno. */
int growing_file_look(struct growing_file *file);

/* Size with the unflushed bytes. */
uint64_t growing_file_bytes(const struct growing_file *file);

/* Reads up to `bytes`; fewer only at the end. A negative errno on failure. */
ssize_t growing_file_read(const struct growing_file *file, void *room, size_t bytes,
			  uint64_t offset);

#endif
