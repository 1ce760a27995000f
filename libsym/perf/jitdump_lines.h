/* SPDX-License-Identifier: MIT */
/*
 * Source lines of jitted code, from a jitdump.
 * They are read from the file when they are requested, and only if the base of their addresses is
 * certain.
 * A record is known by its offset. jitdump_source.h decides which record applies.
 */
#ifndef LIBSYM_PERF_JITDUMP_LINES_H
#define LIBSYM_PERF_JITDUMP_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "libsym/base/text_set.h"
#include "libsym/format/perf/jitdump.h"
#include "libsym/perf/growing_file.h"

/* Zero before its first use. */
struct jitdump_lines {
	/*
	 * Which base the addresses count from. Code has a line within its first bytes, or its first
	 * line lies just after an ELF header. All addresses of a dump have the same base.
	 */
	bool from_code, from_header;
	struct text_set files;
};

void jitdump_lines_deinit(struct jitdump_lines *lines);

/* Records which base a record of lines counts from. */
void jitdump_lines_note(struct jitdump_lines *lines, const struct jitdump_record *record);

/* The lines at `record_offset` of a file, for code with a size. */
struct jitdump_lines_of {
	const struct growing_file *file;
	bool swapped;
	uint64_t record_offset;
	uint64_t code_size_bytes;
};

struct source_line {
	const char *file; /* lives as long as the jitdump_lines */
	uint32_t line;
};

/*
 * False when the dump has no line for that byte of the code, or when out of memory. For one thread
 * at a time.
 */
bool jitdump_lines_find(struct jitdump_lines *lines, const struct jitdump_lines_of *of,
			uint64_t offset_bytes, struct source_line *ret);

#endif
