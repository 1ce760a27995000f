/* SPDX-License-Identifier: MIT */
/*
 * A file that a process is writing, as its writer sees it: what the system has of it, and behind
 * that what the process still holds back. How that is found out is for others to know
 * (stdio_buffer.h). What is known is that of the last look.
 */
#ifndef LIBSYM_SOURCE_WRITTEN_FILE_H
#define LIBSYM_SOURCE_WRITTEN_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "libsym/base/buf.h"

/* Who knows what the writer of a file holds back. */
struct held_back {
	/*
	 * What follows the end of the file that `fd` is open for, and the file's status then. `ret`
	 * is empty at first, and has what was found the last time, which stays where nothing was
	 * written since. False: it cannot be told, because the process wrote all the time, or
	 * cannot be looked at any more; `ret` is empty then. LIMIT_STDIO_BYTES at most: those of
	 * `ret`.
	 */
	bool (*read)(void *context, int fd, struct buf *ret, struct stat *status_ret);
	void (*close)(void *context);
	void *context; /* NULL: nobody knows, and there is nothing to be closed */
};

static inline void held_back_close(struct held_back *held)
{
	if (held->context)
		held->close(held->context);
	held->context = NULL;
}

struct written_file {
	int fd;
	struct held_back writer;
	struct stat status;
	struct buf held; /* behind the bytes that `status` says */
};

/* Takes both over, what `writer` points to too; looks at nothing. */
void written_file_init(struct written_file *file, int fd, struct held_back writer);
void written_file_deinit(struct written_file *file);

/* 0 or a negative errno. */
int written_file_look(struct written_file *file);

/* With what is held back. */
uint64_t written_file_bytes(const struct written_file *file);

/* At most `bytes`, fewer at the end only; a negative errno. */
ssize_t written_file_read(const struct written_file *file, void *room, size_t bytes,
			  uint64_t offset);

#endif
