/* SPDX-License-Identifier: MIT */
#include "mapgen/perfmap/merge_lines.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/buf.h"
#include "libsym/base/cleanup.h"
#include "mapgen/perfmap/joined_lines.h"

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

		if (symbol->kind == SYM_SYMBOL_UNNAMED)
			counts.unnamed++;
		if (symbol->source == SYM_SOURCE_ELF && symbol->kind == SYM_SYMBOL_STUB)
			counts.linkage++;
		if (symbol->source == SYM_SOURCE_ELF && symbol->kind == SYM_SYMBOL_FUNCTION)
			counts.ahead++;
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

/* Both lists are sorted and disjoint, so one pass compares them. */
struct comparison {
	const struct sym_symbols *present;
	const struct address_table *hidden;
	size_t next; /* first symbol of `present` that ends behind the current one */
	struct buf missing;
	struct merge_missing counts; /* without the text */
};

/* The first symbol that overlaps, or NULL. */
static const struct sym_symbol *merge_lines_overlapping(struct comparison *comparison,
							const struct sym_symbol *symbol)
{
	const struct sym_symbol *there;

	while ((there = sym_symbols_at(comparison->present, comparison->next)) &&
	       there->start + there->size_bytes <= symbol->start)
		comparison->next++;
	return there && there->start < symbol->start + symbol->size_bytes ? there : NULL;
}

/*
 * A precompiled method is missing unless it is there exactly. Jitted code and code without a name
 * are missing only where nothing is there, because the runtime may have written newer lines.
 */
static struct sym_error *is_missing(struct comparison *comparison, const struct sym_symbol *symbol,
				    const char *line, bool *ret)
{
	const struct sym_symbol *there = merge_lines_overlapping(comparison, symbol);
	bool is_told = symbol->source == SYM_SOURCE_RUNTIME, same;
	char *line_there AUTO_FREE = NULL;
	size_t size_bytes;
	struct sym_error *error;

	*ret = true;
	if (!there)
		comparison->counts.told += is_told;
	if (!there || (is_told && there->start == symbol->start &&
		       joined_lines_have(comparison->hidden, symbol->start)))
		return NULL;
	error = sym_symbols_format(comparison->present, comparison->next, 1, SYM_MAP_PERF, 0,
				   &line_there, &size_bytes);
	same = !error && !strcmp(line, line_there);
	/* Only we write lines of native code; the runtime may have written jitted code. */
	comparison->counts.covered += is_precompiled(symbol) || (same && !is_told);
	*ret = is_precompiled(symbol) && !same;
	return error;
}

static struct sym_error *add_if_missing(struct comparison *comparison,
					const struct sym_symbols *wanted, size_t index,
					uint32_t write_flags)
{
	char *line AUTO_FREE = NULL;
	size_t size_bytes;
	bool missing = false;
	struct sym_error *error =
		sym_symbols_format(wanted, index, 1, SYM_MAP_PERF, write_flags, &line, &size_bytes);

	if (!error)
		error = is_missing(comparison, sym_symbols_at(wanted, index), line, &missing);
	if (!error && missing) {
		buf_append(&comparison->missing, line, size_bytes);
		comparison->counts.lines++;
	}
	return error;
}

/* A symbol of no size has no line. */
static bool may_be_added(const struct sym_symbol *symbol)
{
	return symbol->size_bytes &&
	       (is_precompiled(symbol) || symbol->source == SYM_SOURCE_RUNTIME ||
		symbol->source == SYM_SOURCE_EH_FRAME || symbol->source == SYM_SOURCE_ELF ||
		symbol->source == SYM_SOURCE_GOPCLNTAB);
}

struct sym_error *merge_lines_missing(const struct sym_symbols *wanted,
				      const struct sym_symbols *present,
				      const struct address_table *hidden, uint32_t write_flags,
				      struct merge_missing *ret)
{
	struct comparison comparison = { .present = present, .hidden = hidden };
	struct sym_error *error = NULL;

	/* The library limits the number of symbols, and the size of each. */
	buf_init(&comparison.missing, SIZE_MAX / 2);
	for (size_t i = 0; !error && i < sym_symbols_count(wanted); i++)
		if (may_be_added(sym_symbols_at(wanted, i)))
			error = add_if_missing(&comparison, wanted, i, write_flags);
	if (!error) {
		*ret = comparison.counts;
		ret->text = buf_steal(&comparison.missing, &ret->size_bytes);
	}
	buf_deinit(&comparison.missing);
	return error;
}
