/* SPDX-License-Identifier: MIT */
/*
 * Source lines of jitted code, as a jitdump has them: read from the file when somebody asks, and
 * given only where it is certain what their addresses count from. Knows which record is meant by
 * its offset; when its code lay where is for others to know.
 */
#ifndef LIBSYM_SOURCE_JITDUMP_LINES_H
#define LIBSYM_SOURCE_JITDUMP_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "libsym/format/jitdump.h"
#include "libsym/index_name_set.h"
#include "libsym/source/written_file.h"

/* Zero before its first use. */
struct jitdump_lines {
	/* Some code has a line in its first bytes or its head; some has its first one just behind a
	 * header of ELF. All addresses of a dump are of one kind. */
	bool from_code, from_header;
	struct index_name_set *files; /* NULL before the first line */
};

void jitdump_lines_deinit(struct jitdump_lines *lines);

/* Takes note of a record of lines. */
void jitdump_lines_note(struct jitdump_lines *lines, const struct jitdump_record *record);

/* Where lines are looked for: those that lie at `record_offset` of a file, of code that has a size.
 */
struct jitdump_lines_of {
	const struct written_file *file;
	bool swapped;
	uint64_t record_offset;
	uint64_t code_size_bytes;
};

struct source_line {
	const char *file; /* lives as long as the jitdump_lines */
	uint32_t line;
};

/* False where nothing is known of that byte of the code, also for want of memory. By one thread at
 * a time. */
bool jitdump_lines_find(struct jitdump_lines *lines, const struct jitdump_lines_of *of,
			uint64_t offset_bytes, struct source_line *ret);

#endif
