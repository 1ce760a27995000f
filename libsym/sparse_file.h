/* SPDX-License-Identifier: MIT */
/*
 * The bytes of a file, or of a range of it, in memory at their own offsets, of
 * which only those are read that somebody asked for: a symbol table costs its
 * own pages and not the file. Knows how to notice that the file was changed
 * since it was opened. Refuses to map the file (others may truncate it) and to
 * know what the bytes mean.
 *
 * Bytes that were read once are never written again, so that readers need no
 * lock; sparse_file_need() itself does.
 */
#ifndef LIBSYM_SPARSE_FILE_H
#define LIBSYM_SPARSE_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "libsym/error.h"

struct sparse_file {
	int fd;          /* borrowed */
	uint64_t offset; /* of byte 0 in the file */
	size_t size_bytes;
	uint8_t *data;       /* size_bytes of zeroes until read; NULL while nothing was asked for */
	uint64_t *present;   /* a bit a page */
	uint64_t held_bytes; /* of those that were read */
	int64_t changed_ns;  /* time of the file's last change when it was opened */
	int64_t touched_ns;  /* the same of its inode, which nobody sets back */
	uint64_t links;
	uint64_t file_size_bytes;
	/* Where its owner wants to have the message of the first error IO, for free(); others over
	 * the same file note theirs there too. NULL: nowhere. */
	_Atomic(char *) *trouble;
};

#define SPARSE_FILE_TO_END UINT64_MAX

/*
 * `fd` must stay open. `size_bytes` SPARSE_FILE_TO_END: all of it.
 * Errors: IO, FORMAT (the range is not in the file), LIMIT.
 */
struct sym_error *sparse_file_init(struct sparse_file *file, int fd, const char *path,
				   uint64_t offset, uint64_t size_bytes)
	__attribute__((warn_unused_result));
void sparse_file_deinit(struct sparse_file *file);

/* Another one over the same range of the same file as it was then, with nothing read yet. */
struct sparse_file sparse_file_again(const struct sparse_file *file);

/* Copies bytes of the range to `room`, past what is in memory. Errors: IO, STALE, FORMAT where
 * there are fewer. */
struct sym_error *sparse_file_read_at(const struct sparse_file *file, const char *path, void *room,
				      size_t size_bytes, uint64_t offset)
	__attribute__((warn_unused_result));

/*
 * Sees to it that [offset, offset + size_bytes) is in `data`; what lies behind
 * the end is left out without an error, readers check bounds anyway.
 * Errors: IO, STALE when the file was changed since it was opened, LIMIT.
 */
struct sym_error *sparse_file_need(struct sparse_file *file, const char *path, uint64_t offset,
				   uint64_t size_bytes) __attribute__((warn_unused_result));

/* STALE when size or time of the file are not those it had when it was opened. */
struct sym_error *sparse_file_check(const struct sparse_file *file, const char *path)
	__attribute__((warn_unused_result));

/*
 * False too where size and time are as they were and may have been set back, so it is not to be
 * taken for an error: who opens the file again loses nothing. That somebody took its name away
 * is no such change.
 */
bool sparse_file_is_as_opened(const struct sparse_file *file);

/* As if it had been an error of this file; NULL and errors other than IO are not noted. */
void sparse_file_note_trouble(const struct sparse_file *file, const struct sym_error *error);

/* Time of last change, in ns since 1970; and that of the inode's. */
int64_t sparse_file_time_ns(const struct stat *status);
int64_t sparse_file_inode_time_ns(const struct stat *status);

#endif
