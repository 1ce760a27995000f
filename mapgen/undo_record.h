/* SPDX-License-Identifier: MIT */
/*
 * What perf-fix changed, so that it can be put back: FILE.undo beside the file, or
 * `undo` inside a directory. Text, a line a record:
 *
 *     dotnet-mapgen undo 1
 *     PART OFFSET OLD NEW
 *
 * PART is the name of the file inside a directory, `-` for a file by itself; OFFSET is
 * hexadecimal; OLD and NEW are the bytes of the record, as hexadecimal digits. Knows
 * nothing of what the bytes mean.
 */
#ifndef MAPGEN_UNDO_RECORD_H
#define MAPGEN_UNDO_RECORD_H

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

/* The lines of `more` behind those of `undo`. */
void undo_record_append(struct undo_record *undo, const struct undo_record *more);

/* Writes it to `path`, atomically. NULL on success, else heap text: why not. */
char *undo_record_write(const struct undo_record *undo, const char *path, unsigned int mode);

/* One line of a record that is read; the bytes are the reader's. */
struct undo_line {
	const char *part;
	uint64_t offset;
	const uint8_t *old_bytes;
	const uint8_t *new_bytes;
	size_t count;
};

/*
 * Hands each line of the file to `take`, which returns NULL to go on. NULL when
 * all were taken, else heap text: what is wrong.
 */
char *undo_record_read(const char *path, char *(*take)(void *context, const struct undo_line *line),
		       void *context);

#endif
