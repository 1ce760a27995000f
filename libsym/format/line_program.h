/* SPDX-License-Identifier: MIT */
/*
 * The line number program of a unit (DWARF 2 to 5, .debug_line), run as far as addresses, files and
 * lines go. Knows sequences: what the linker threw away begins at 0 and says nothing of the code
 * that lies there. What files are called is libdw's.
 */
#ifndef LIBSYM_FORMAT_LINE_PROGRAM_H
#define LIBSYM_FORMAT_LINE_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/reader.h"

struct line_row {
	uint64_t vaddr;
	uint32_t file; /* as the program counts */
	uint32_t line; /* 0: none */
	uint32_t column;
};

/* Rows of code in one piece; up to `end` the last one holds. */
struct line_sequence {
	uint64_t start, end;
	uint32_t first, count;
};

struct line_program {
	struct line_row *rows;
	struct line_sequence *sequences; /* by start */
	uint32_t row_count, row_capacity;
	uint32_t sequence_count, sequence_capacity;
};

/* The program at `offset` of .debug_line, without sequences that begin at 0. `ret` is zeroed at
 * first, and stays so for one that is not to be understood, or without memory. */
void line_program_read(struct reader section, uint64_t offset, struct line_program *ret);
void line_program_deinit(struct line_program *program);

/* NULL: no sequence covers it. */
const struct line_row *line_program_find(const struct line_program *program, uint64_t vaddr);

#endif
