/* SPDX-License-Identifier: MIT */
/*
 * The function table of a Go program (.gopclntab). The Go runtime needs it for stack traces, so
 * strip(1) keeps it. It contains where functions start and end, their names, the source line of
 * each instruction, and the inlined functions. Little-endian.
 *
 *   header     u32 magic, u16 0, u8 quantum (shortest instruction), u8 size of a pointer;
 *     1.2      ptr functions; then the rows below, ptr end, u32 file table
 *     1.16     ptr functions, files, names, units, files, tables, functions (offsets)
 *     1.18     as 1.16, with ptr text start before `names`; 0 since Go 1.26
 *     1.20     as 1.18, with a word more in each function
 *   row        start, function; the last one: end. 1.2, 1.16: ptr, and absolute; later u32,
 *              from the text start. `function` counts from the header in 1.2, else from the rows
 *   function   start (as in its row), u32 name, args, defer, sp table, file table, line table,
 *              count of pcdata, [1.16: unit], [1.20: first line], u8 id, flags, pad, count of
 *              funcdata; then u32 pcdata tables, then funcdata (1.18: u32 offsets; before: ptr)
 *   table      { varint zigzag of the difference in value, varint quanta for which it holds }
 *              from value -1 and the start of the function; a difference of 0 is its end
 *   files      1.2: u32 count, u32 names (offsets); else the value of the file table indexes
 *              `units` from the unit of the function, which has the offset in `files`
 *   inlined    rows of funcdata 3, indexed by pcdata 2; -1: nothing was inlined. 1.18: i16
 *              parent, u16, i32 file, line, name, pc of the call; 1.20: u32, i32 name, pc of
 *              the call, first line, and parent, file and line are those of that pc
 *
 * "Go 1.2 Runtime Symbol Information", golang.org/s/go12symtab; later versions by
 * runtime/symtab.go and cmd/link of Go 1.15, 1.19, 1.22 and 1.24.
 */
#ifndef LIBSYM_FORMAT_ELF_GOPCLNTAB_H
#define LIBSYM_FORMAT_ELF_GOPCLNTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/reader.h"

/* Bytes at a fixed address, some of which are read on demand. */
struct gopclntab_bytes {
	const uint8_t *data;
	size_t size_bytes;
	/* Makes a range inside them available; NULL: all are available. */
	bool (*need)(void *context, size_t offset, size_t size_bytes);
	void *context;
};

enum gopclntab_version {
	GOPCLNTAB_1_2,
	GOPCLNTAB_1_16,
	GOPCLNTAB_1_18,
	GOPCLNTAB_1_20
};

struct gopclntab {
	struct gopclntab_bytes bytes;
	enum gopclntab_version version;
	unsigned int quantum;
	unsigned int pointer_bytes;
	uint64_t function_count;
	/* The base of row starts: 0 before 1.18; later the value in the file, which is 0 if a
	 * relocation fills it in. The caller corrects it. */
	uint64_t text_start;
	/* Offsets. `names` is 0 before 1.16. */
	uint64_t names, units, files, tables, rows;
};

enum {
	GOPCLNTAB_HEADER_BYTES = 8,
	GOPCLNTAB_PARTS = 5 /* offsets in a header since 1.16 */
};

/* Do these GOPCLNTAB_HEADER_BYTES start a table? */
bool gopclntab_recognise(const uint8_t *head);

/* Returns false if there is no table or its header contradicts itself. */
bool gopclntab_open(struct gopclntab_bytes bytes, struct gopclntab *ret);

/* The offset of the text start in the header; 0 if there is none. */
size_t gopclntab_text_start_offset(const struct gopclntab *table);

/* The parts of a header since 1.16, in order: names, units, files, tables, rows. */
void gopclntab_parts(const struct gopclntab *table, uint64_t ret[GOPCLNTAB_PARTS]);

/* Where row `number` starts; row function_count is the end. Returns false if it cannot be read. */
bool gopclntab_start(const struct gopclntab *table, uint64_t number, uint64_t *ret);

#define GOPCLNTAB_NONE UINT64_MAX

/*
 * The row that contains a vaddr, also in a gap after its function; GOPCLNTAB_NONE if there is none.
 */
uint64_t gopclntab_find(const struct gopclntab *table, uint64_t vaddr);

struct gopclntab_function {
	uint64_t vaddr;
	uint64_t size_bytes; /* without the padding up to the next function */
	const char *name;    /* points into the bytes; never empty */
	/* private */
	uint64_t record; /* offset of the words after the start */
	uint64_t end;    /* where the next row starts */
};

/* Reads all fields except the size. Returns false for a record that contradicts its row or itself,
 * or ends after the last one. */
bool gopclntab_record(const struct gopclntab *table, uint64_t number,
		      struct gopclntab_function *ret);
/* The size of the function, which takes a walk through its tables; 0: unknown. */
uint64_t gopclntab_measure(const struct gopclntab *table,
			   const struct gopclntab_function *function);

struct gopclntab_line {
	const char *file; /* points into the bytes; NULL: unknown */
	uint32_t line;    /* 0: unknown */
};

/* The source line of a vaddr inside the function. */
struct gopclntab_line gopclntab_line(const struct gopclntab *table,
				     const struct gopclntab_function *function, uint64_t vaddr);

/* ---- inlined functions, since 1.18 ---- */

/*
 * Offset of a function's rows, relative to the program's funcdata. Returns false if there are none.
 */
bool gopclntab_inline_rows(const struct gopclntab *table, const struct gopclntab_function *function,
			   uint32_t *ret);
size_t gopclntab_inline_row_bytes(const struct gopclntab *table);
/* Row number of a vaddr; negative: nothing was inlined there. */
int32_t gopclntab_inline_row(const struct gopclntab *table,
			     const struct gopclntab_function *function, uint64_t vaddr);

struct gopclntab_inlined {
	const char *name;
	struct gopclntab_line call; /* position of the call */
	int32_t parent;             /* row of the calling function; negative: the function itself */
};

/* `row` has gopclntab_inline_row_bytes(). Returns false if it is malformed. */
bool gopclntab_inlined(const struct gopclntab *table, const struct gopclntab_function *function,
		       struct reader row, struct gopclntab_inlined *ret);

#endif
