/* SPDX-License-Identifier: MIT */
/*
 * Bytes of a file, or of a range of it, in memory at their own offsets. Only requested parts are
 * read: a symbol table costs its own pages and not the file. The file is not mapped, because others
 * may truncate it. A change of the file since it was opened is detected.
 *
 * Bytes that were read never change, so readers need no lock; sparse_file_need() itself does.
 */
#ifndef LIBSYM_FILE_SPARSE_FILE_H
#define LIBSYM_FILE_SPARSE_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "libsym/budget_api.h"
#include "libsym/error.h"

struct sparse_file {
	int fd;          /* borrowed */
	uint64_t offset; /* of byte 0 in the file */
	size_t size_bytes;
	uint8_t *data;       /* size_bytes of zeroes until read; NULL before the first request */
	uint64_t *present;   /* a bit per page */
	uint64_t held_bytes; /* total of what was read */
	int64_t changed_ns;  /* the file's mtime when it was opened */
	int64_t touched_ns;  /* the inode's ctime, which cannot be set back */
	uint64_t links;
	uint64_t file_size_bytes;
	/* Receives the message of the first IO error, to be freed by the owner. Other sparse files
	 * over the same file share it. NULL: not recorded. */
	_Atomic(char *) *problem;
	struct budget_account *account; /* charged for what is read; NULL: none */
};

#define SPARSE_FILE_TO_END UINT64_MAX

/* `fd` must stay open. `size_bytes` SPARSE_FILE_TO_END: all of it. Errors: IO, FORMAT (the range is
 * not in the file), LIMIT. */
struct sym_error *sparse_file_init(struct sparse_file *file, int fd, const char *path,
				   uint64_t offset, uint64_t size_bytes)
	__attribute__((warn_unused_result));
void sparse_file_deinit(struct sparse_file *file);

/* A second one over the same range and the same state of the file, with nothing read yet. */
struct sparse_file sparse_file_duplicate(const struct sparse_file *file);

/* Copies bytes of the range to `room`, bypassing the memory. Errors: IO, STALE, FORMAT if there are
 * fewer. */
struct sym_error *sparse_file_read_at(const struct sparse_file *file, const char *path, void *room,
				      size_t size_bytes, uint64_t offset)
	__attribute__((warn_unused_result));

/*
 * Makes [offset, offset + size_bytes) of `data` valid. Bytes past the end are ignored; readers
 * check bounds. Holes are not read and cost nothing. Errors: IO, STALE if the file was changed
 * since it was opened, LIMIT.
 */
struct sym_error *sparse_file_need(struct sparse_file *file, const char *path, uint64_t offset,
				   uint64_t size_bytes) __attribute__((warn_unused_result));

/* STALE if size or mtime have changed since the file was opened. */
struct sym_error *sparse_file_check(const struct sparse_file *file, const char *path)
	__attribute__((warn_unused_result));

/*
 * Also returns false if only the ctime has changed, since size and mtime may have been restored. So
 * false is not an error: the caller opens the file again. Unlinking the file does not count as a
 * change.
 */
bool sparse_file_is_as_opened(const struct sparse_file *file);

/* Records an error as if it had occurred here. Ignores NULL and errors other than IO. */
void sparse_file_record_problem(const struct sparse_file *file, const struct sym_error *error);

/* mtime and ctime in ns since 1970. */
int64_t sparse_file_time_ns(const struct stat *status);
int64_t sparse_file_inode_time_ns(const struct stat *status);

#endif
