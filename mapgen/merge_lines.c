/* SPDX-License-Identifier: MIT */
#include "mapgen/merge_lines.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/buf.h"
#include "libsym/base/cleanup.h"
#include "libsym/base/hex.h"

static bool is_precompiled(const struct sym_symbol *symbol)
{
	return symbol->source == SYM_SOURCE_READYTORUN || symbol->source == SYM_SOURCE_RELATIVE_MAP;
}

struct merge_counts merge_lines_count(const struct sym_symbols *symbols, size_t image_count)
{
	size_t count = sym_symbols_count(symbols);
	char *seen AUTO_FREE = calloc(image_count + 1, 1);
	struct merge_counts counts = { 0 };

	for (size_t i = 0; i < count; i++) {
		const struct sym_symbol *symbol = sym_symbols_at(symbols, i);

		if (symbol->source == SYM_SOURCE_PERF_MAP)
			counts.runtime++;
		if (symbol->source == SYM_SOURCE_RUNTIME && symbol->kind == SYM_SYMBOL_FUNCTION)
			counts.jitted++;
		if (!is_precompiled(symbol))
			continue;
		counts.precompiled++;
		if (seen && symbol->image_index < image_count && !seen[symbol->image_index]) {
			seen[symbol->image_index] = 1;
			counts.images++;
		}
	}
	return counts;
}

/* A walk over lines that are sorted by start. */
struct lines {
	const char *next;
	const char *end;
	uint64_t start; /* of the present line */
	const char *line;
	size_t size_bytes; /* with its newline; 0 at the end */
};

static void lines_step(struct lines *lines)
{
	const char *newline = memchr(lines->next, '\n', (size_t)(lines->end - lines->next));

	lines->line = lines->next;
	lines->size_bytes = newline ? (size_t)(newline - lines->next) + 1 : 0;
	lines->next += lines->size_bytes;
	lines->start = UINT64_MAX;
	hex_read_u64(lines->line, lines->size_bytes, &lines->start);
}

static struct lines lines_over(const char *text, size_t size_bytes)
{
	struct lines lines = { .next = text, .end = text + size_bytes };

	lines_step(&lines);
	return lines;
}

/* Adds the lines of `wanted` that `present` has not; `present` goes on from call to call. */
static size_t add_missing(struct lines wanted, struct lines *present, struct buf *missing)
{
	size_t count = 0;

	for (; wanted.size_bytes; lines_step(&wanted)) {
		while (present->size_bytes && present->start < wanted.start)
			lines_step(present);
		if (present->size_bytes == wanted.size_bytes &&
		    !memcmp(present->line, wanted.line, wanted.size_bytes))
			continue;
		buf_append(missing, wanted.line, wanted.size_bytes);
		count++;
	}
	return count;
}

/* Does a symbol of the list share a byte with [start, start + size_bytes)? The list is disjoint. */
static bool overlaps(const struct sym_symbols *list, uint64_t start, uint64_t size_bytes)
{
	size_t low = 0, high = sym_symbols_count(list);

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct sym_symbol *symbol = sym_symbols_at(list, middle);

		if (symbol->start + symbol->size_bytes <= start)
			low = middle + 1;
		else
			high = middle;
	}
	return low < sym_symbols_count(list) &&
	       sym_symbols_at(list, low)->start < start + size_bytes;
}

/* Is a symbol one that may be added to the map? */
static bool is_addable(const struct sym_symbol *symbol, const struct sym_symbols *present)
{
	if (is_precompiled(symbol))
		return true;
	return symbol->source == SYM_SOURCE_RUNTIME && symbol->kind == SYM_SYMBOL_FUNCTION &&
	       !overlaps(present, symbol->start, symbol->size_bytes);
}

/* Renders each run of symbols to add by itself, so that one of a run lies side by side. */
static struct sym_error *add_runs(const struct sym_symbols *wanted,
				  const struct sym_symbols *present_list, uint32_t write_flags,
				  struct lines *present, struct buf *missing, size_t *count)
{
	size_t total = sym_symbols_count(wanted), end;

	for (size_t first = 0; first < total; first = end) {
		bool addable = is_addable(sym_symbols_at(wanted, first), present_list);
		char *text AUTO_FREE = NULL;
		struct sym_error *error;
		size_t size_bytes;

		for (end = first + 1; end < total; end++)
			if (is_addable(sym_symbols_at(wanted, end), present_list) != addable)
				break;
		if (!addable)
			continue;
		error = sym_symbols_format(wanted, first, end - first, SYM_MAP_PERF, write_flags,
					   &text, &size_bytes);
		if (error)
			return error;
		*count += add_missing(lines_over(text, size_bytes), present, missing);
	}
	return NULL;
}

struct sym_error *merge_lines_missing(const struct sym_symbols *wanted,
				      const struct sym_symbols *present, uint32_t write_flags,
				      char **text_ret, size_t *size_bytes_ret, size_t *count_ret)
{
	char *present_text AUTO_FREE = NULL;
	size_t present_bytes, count = 0;
	struct lines lines;
	struct buf missing;
	struct sym_error *error =
		sym_symbols_format(present, 0, sym_symbols_count(present), SYM_MAP_PERF, 0,
				   &present_text, &present_bytes);

	if (error)
		return error;
	lines = lines_over(present_text, present_bytes);
	/* What is missing is part of what was rendered, which the library has bounded. */
	buf_init(&missing, SIZE_MAX / 2);
	error = add_runs(wanted, present, write_flags, &lines, &missing, &count);
	if (!error) {
		*text_ret = buf_steal(&missing, size_bytes_ret);
		*count_ret = count;
	}
	buf_deinit(&missing);
	return error;
}
