/* SPDX-License-Identifier: MIT */
/* Function tables of Go programs: names, bounds, lines and inlining, by number and by vaddr. The
 * bytes of the table serve as funcdata too. */
#include <stdlib.h>
#include <string.h>

#include "libsym/format/elf/gopclntab.h"
#include "libsym/limits.h"
#include "tests/support/go_table_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	MOST_FUNCTIONS = 64,
	MOST_ROWS = 16
};

static void check_text(const char *text)
{
	if (text && strlen(text) > LIMIT_NAME_BYTES)
		abort();
}

static void follow_inlined(const struct gopclntab *table, const struct gopclntab_function *function,
			   uint64_t vaddr)
{
	struct reader all = reader_over(table->bytes.data, table->bytes.size_bytes);
	size_t row_bytes = gopclntab_inline_row_bytes(table);
	int32_t row = gopclntab_inline_row(table, function, vaddr);
	uint32_t rows;

	if (!gopclntab_inline_rows(table, function, &rows))
		return;
	for (int i = 0; i < MOST_ROWS && row >= 0; i++) {
		struct gopclntab_inlined inlined;

		if (!gopclntab_inlined(table, function,
				       reader_part(&all, rows + (size_t)row * row_bytes, row_bytes),
				       &inlined))
			return;
		check_text(inlined.name);
		check_text(inlined.call.file);
		row = inlined.parent;
	}
}

static void look_at(const struct gopclntab *table, uint64_t number)
{
	struct gopclntab_function function;

	if (!read_function(table, number, &function))
		return;
	if (!*function.name || function.vaddr > UINT64_MAX - function.size_bytes)
		abort();
	check_text(function.name);
	for (uint64_t i = 0; i < 4; i++) {
		uint64_t vaddr = function.vaddr + function.size_bytes / 4 * i;

		check_text(gopclntab_line(table, &function, vaddr).file);
		follow_inlined(table, &function, vaddr);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gopclntab_bytes bytes = { .data = data, .size_bytes = size };
	struct gopclntab table;
	uint64_t start;

	if (!gopclntab_open(bytes, &table))
		return 0;
	for (uint64_t i = 0; i < table.function_count && i < MOST_FUNCTIONS; i++) {
		look_at(&table, i);
		if (gopclntab_start(&table, i, &start) &&
		    gopclntab_find(&table, start) != GOPCLNTAB_NONE &&
		    gopclntab_find(&table, start) >= table.function_count)
			abort();
	}
	return 0;
}
