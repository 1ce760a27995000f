/* SPDX-License-Identifier: MIT */
/*
 * Line tables for a symbol file: DWARF 4 sections with one compilation unit and one sequence for
 * each function that was added. addr2line and objdump read them for perf.
 *
 *   .debug_abbrev  the unit: name, low_pc, high_pc, stmt_list
 *   .debug_info    the unit, which covers all that was added
 *   .debug_line    files by their whole path, and the rows
 */
#ifndef MAPGEN_SYMFILE_SYMFILE_LINES_H
#define MAPGEN_SYMFILE_SYMFILE_LINES_H

#include <stdint.h>

#include "libsym/base/buf.h"

struct symfile_source_file;

struct symfile_lines {
	struct buf files; /* entries of the header of .debug_line */
	struct buf rows;
	struct symfile_source_file *by_path;
	uint32_t file_count;
	uint64_t low, high;
	/* State of the sequence that is open. */
	uint64_t address;
	uint32_t file, line, column;
};

void symfile_lines_init(struct symfile_lines *lines);
void symfile_lines_deinit(struct symfile_lines *lines);

/* Begins a function; then rows follow in ascending order of their addresses, and its end. */
void symfile_lines_begin(struct symfile_lines *lines, uint64_t address);
/* `path` NULL: from here on no line is known. */
void symfile_lines_add(struct symfile_lines *lines, uint64_t address, const char *path,
		       uint32_t line, uint32_t column);
void symfile_lines_end(struct symfile_lines *lines, uint64_t end_address);

/* The three sections, in this order; the buffers are empty. Nothing is written without rows. */
void symfile_lines_write(struct symfile_lines *lines, struct buf sections[3]);

#endif
