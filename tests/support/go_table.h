/* SPDX-License-Identifier: MIT */
/*
 * Function tables of Go programs for tests, in every version of the format, and small ELF files
 * around them. Each function has four quarters: the first is its own code (line L of its file), the
 * second is go_table_outer inlined into it (L + 10), the other two are go_table_inner inlined into
 * that (L + 20).
 */
#ifndef TESTS_SUPPORT_GO_TABLE_H
#define TESTS_SUPPORT_GO_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "libsym/base/buf.h"

extern const char go_table_outer[], go_table_inner[];

enum go_table_version {
	GO_TABLE_1_2,
	GO_TABLE_1_16,
	GO_TABLE_1_18,
	GO_TABLE_1_20,
	GO_TABLE_VERSIONS
};

struct go_table_function {
	const char *name;
	uint32_t distance; /* from the text start */
	uint32_t size_bytes;
	const char *file;
	uint32_t line;
};

struct go_table {
	enum go_table_version version;
	unsigned int pointer_bytes;
	uint64_t text_start;
	uint64_t stated_text_start; /* in the header, since 1.18 */
	const struct go_table_function *functions;
	size_t count;
	uint32_t end_distance; /* of the row after the last one */
};

/* Positions in the table, for tests that damage it, and for moduledata. */
struct go_table_layout {
	size_t rows, first_record, parts[5];
};

/* Appends the table to an empty buffer; `layout` may be NULL. */
void go_table_write(const struct go_table *table, struct buf *ret, struct go_table_layout *layout);

/* Appends funcdata: two rows for each function, in order. */
void go_table_write_inlined(const struct go_table *table, struct buf *ret);

/* ---- a program ---- */

enum {
	GO_TABLE_TEXT = 0x402000, /* vaddr of the first function; .text starts 0x1000 before */
	GO_TABLE_TEXT_BYTES = 0x1000
};

struct go_table_program {
	struct go_table table;
	bool joined;           /* the table is inside .data.rel.ro, after other data */
	bool relocated;        /* position independent: pointers are in relocations only */
	bool described;        /* there is moduledata */
	bool in_section;       /* moduledata is in .go.module, not among other data */
	uint64_t export_vaddr; /* an export "exported" in .dynsym; 0: none */
	uint64_t export_bytes; /* 0: it has no size */
};

/* A file without .symtab, as a memfd. */
int go_table_file(const struct go_table_program *program);

#endif
