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
	size_t next;      /* first symbol of `present` that ends behind the current one */
	const char *text; /* rendered lines of `wanted`, from the current one on */
	struct buf missing;
	size_t count;
	size_t told;
	size_t covered;
};

/* Compares a line "START SIZE NAME[TIER]\n" with the name of a symbol that has this start and size.
 */
static bool says_the_same(const char *line, size_t line_bytes, const struct sym_symbol *symbol)
{
	const char *name = memchr(line, ' ', line_bytes);
	const char *end = line + line_bytes - 1;
	size_t name_bytes = strlen(symbol->name);

	name = name ? memchr(name + 1, ' ', (size_t)(end - name - 1)) : NULL;
	if (!name || (size_t)(end - ++name) < name_bytes || memcmp(name, symbol->name, name_bytes))
		return false;
	name += name_bytes;
	if (!symbol->tier)
		return name == end;
	name_bytes = strlen(symbol->tier);
	return (size_t)(end - name) == name_bytes + 2 && name[0] == '[' && end[-1] == ']' &&
	       !memcmp(name + 1, symbol->tier, name_bytes);
}

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
static bool is_missing(struct comparison *comparison, const struct sym_symbol *symbol,
		       size_t line_bytes)
{
	const struct sym_symbol *there = merge_lines_overlapping(comparison, symbol);
	bool is_told = symbol->source == SYM_SOURCE_RUNTIME, same;

	if (!there) {
		comparison->told += is_told;
		return true;
	}
	if (is_told && there->start == symbol->start &&
	    joined_lines_have(comparison->hidden, symbol->start))
		return true;
	same = there->start == symbol->start && there->size_bytes == symbol->size_bytes &&
	       says_the_same(comparison->text, line_bytes, there);
	/* Only we write lines of native code; the runtime may have written jitted code. */
	comparison->covered += is_precompiled(symbol) || (same && !is_told);
	return is_precompiled(symbol) && !same;
}

/* Renders consecutive symbols and keeps the lines that are missing. */
static struct sym_error *add_run(struct comparison *comparison, const struct sym_symbols *wanted,
				 size_t first, size_t end, uint32_t write_flags)
{
	char *text AUTO_FREE = NULL;
	size_t size_bytes;
	struct sym_error *error = sym_symbols_format(wanted, first, end - first, SYM_MAP_PERF,
						     write_flags, &text, &size_bytes);

	if (error)
		return error;
	comparison->text = text;
	for (size_t i = first; i < end; i++) {
		const struct sym_symbol *symbol = sym_symbols_at(wanted, i);
		const char *newline = strchr(comparison->text, '\n');
		size_t line_bytes;

		if (!symbol->size_bytes || !newline)
			continue; /* a symbol of no size has no line */
		line_bytes = (size_t)(newline - comparison->text) + 1;
		if (is_missing(comparison, symbol, line_bytes)) {
			buf_append(&comparison->missing, comparison->text, line_bytes);
			comparison->count++;
		}
		comparison->text += line_bytes;
	}
	return NULL;
}

static bool may_be_added(const struct sym_symbol *symbol)
{
	return is_precompiled(symbol) || symbol->source == SYM_SOURCE_RUNTIME ||
	       symbol->source == SYM_SOURCE_EH_FRAME || symbol->source == SYM_SOURCE_ELF ||
	       symbol->source == SYM_SOURCE_GOPCLNTAB;
}

static struct sym_error *add_runs(struct comparison *comparison, const struct sym_symbols *wanted,
				  uint32_t write_flags)
{
	size_t total = sym_symbols_count(wanted), end;
	struct sym_error *error = NULL;

	for (size_t first = 0; !error && first < total; first = end) {
		bool added = may_be_added(sym_symbols_at(wanted, first));

		for (end = first + 1; end < total; end++)
			if (may_be_added(sym_symbols_at(wanted, end)) != added)
				break;
		if (added)
			error = add_run(comparison, wanted, first, end, write_flags);
	}
	return error;
}

struct sym_error *merge_lines_missing(const struct sym_symbols *wanted,
				      const struct sym_symbols *present,
				      const struct address_table *hidden, uint32_t write_flags,
				      struct merge_missing *ret)
{
	struct comparison comparison = { .present = present, .hidden = hidden };
	struct sym_error *error;

	/* The missing lines are part of the rendered text, whose size the library limits. */
	buf_init(&comparison.missing, SIZE_MAX / 2);
	error = add_runs(&comparison, wanted, write_flags);
	if (!error) {
		ret->text = buf_steal(&comparison.missing, &ret->size_bytes);
		ret->lines = comparison.count;
		ret->told = comparison.told;
		ret->covered = comparison.covered;
	}
	buf_deinit(&comparison.missing);
	return error;
}
