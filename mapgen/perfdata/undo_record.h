/* SPDX-License-Identifier: MIT */
/*
 * The changes of perf-fix, so that they can be put back: FILE.undo beside the file, or `undo`
 * inside a directory. Text, a line a record:
 *
 *     dotnet-mapgen undo 1
 *     PART OFFSET OLD NEW
 *
 * PART is the name of the file inside a directory, `-` for a file by itself; OFFSET is hexadecimal;
 * OLD and NEW are the bytes of the record, as hexadecimal digits. The meaning of the bytes is not
 * known here.
 */
#ifndef MAPGEN_PERFDATA_UNDO_RECORD_H
#define MAPGEN_PERFDATA_UNDO_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/buf.h"

struct undo_record {
	struct buf text;
	size_t count;
};

void undo_record_init(struct undo_record *undo);
void undo_record_deinit(struct undo_record *undo);

void undo_record_add(struct undo_record *undo, const char *part, uint64_t offset,
		     const uint8_t *old_bytes, const uint8_t *new_bytes, size_t count);

/* Appends the lines of `more` to those of `undo`. */
void undo_record_append(struct undo_record *undo, const struct undo_record *more);

/* Writes the record to `path`, atomically. */
struct sym_error *undo_record_write(const struct undo_record *undo, const char *path,
				    unsigned int mode);

/* A line of a record that is read; the reader owns the bytes. */
struct undo_line {
	const char *part;
	uint64_t offset;
	const uint8_t *old_bytes;
	const uint8_t *new_bytes;
	size_t count;
};

/*
 * Calls `take` for each line of the file; it returns NULL to continue.
 */
struct sym_error *undo_record_read(const char *path,
				   struct sym_error *(*take)(void *context,
							     const struct undo_line *line),
				   void *context);

#endif
