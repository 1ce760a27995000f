/* SPDX-License-Identifier: MIT */
/*
 * The line number program of a unit (DWARF 2 to 5, .debug_line), run for addresses, files and
 * lines. Sequences that start at 0 are dropped: the linker removed their code, and other code lies
 * there. libdw has the names of files.
 */
#ifndef LIBSYM_FORMAT_ELF_LINE_PROGRAM_H
#define LIBSYM_FORMAT_ELF_LINE_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/reader.h"

struct line_row {
	uint64_t vaddr;
	uint32_t file; /* as the program numbers files */
	uint32_t line; /* 0: none */
	uint32_t column;
};

/* Rows of contiguous code. The last row is valid up to `end`. */
struct line_sequence {
	uint64_t start, end;
	uint32_t first, count;
};

struct line_program {
	struct line_row *rows;
	struct line_sequence *sequences; /* ascending by start */
	uint32_t row_count, sequence_count;
	size_t row_capacity, sequence_capacity;
};

/* Runs the program at `offset` of .debug_line, without sequences that start at 0. `ret` is zeroed
 * by the caller, and stays zeroed if the program is malformed or memory runs out. */
void line_program_read(struct reader section, uint64_t offset, struct line_program *ret);
void line_program_deinit(struct line_program *program);

/* NULL if no sequence covers the vaddr. */
const struct line_row *line_program_find(const struct line_program *program, uint64_t vaddr);

#endif
