/* SPDX-License-Identifier: MIT */
/*
 * Line tables of code that has samples. Each address of a function is asked for its line, in
 * batches; a row begins where the line changes.
 */
#include <string.h>

#include "libsym/base/cleanup.h"
#include "mapgen/perfdata/fixup_internal.h"

enum {
	BATCH = 4096,
};

DEFINE_GUARD(line_resolver, struct sym_resolver *, sym_resolver_destroy)
DEFINE_GUARD(line_result, struct sym_result *, sym_result_destroy)

/* A line table cannot mark a line as approximate, so such a line is left out. */
static const char *known_file(const struct sym_answer *answer)
{
	return answer->line && answer->line_quality != SYM_LINE_NEAREST ? answer->file : NULL;
}

struct last_row {
	const char *file;
	uint32_t line;
	bool is_begun; /* the sequence has a row */
};

static bool is_same(const struct last_row *last, const struct sym_answer *answer)
{
	const char *file = known_file(answer);

	if (!file || !last->file)
		return !file && !last->file;
	return last->line == answer->line && !strcmp(last->file, file);
}

static void add_answer(struct symfile_lines *lines, const struct sym_answer *answer,
		       uint64_t address, struct last_row *last)
{
	const char *file = known_file(answer);

	if (!last->is_begun && !file)
		return;
	if (!last->is_begun)
		symfile_lines_begin(lines, address);
	else if (is_same(last, answer))
		return;
	symfile_lines_add(lines, address, file, answer->line, answer->column);
	*last = (struct last_row){ file, answer->line, true };
}

/* Names of files live until the next call with the result: `last` is forgotten between batches. */
static bool add_range(struct symfile *elf, struct sym_resolver *resolver, struct sym_result *result,
		      const struct address_range *range)
{
	uint64_t addresses[BATCH];

	for (uint64_t from = range->start; from < range->end; from += BATCH) {
		struct last_row last = { 0 };
		size_t count = range->end - from < BATCH ? (size_t)(range->end - from) : BATCH;
		struct sym_error *error;

		for (size_t i = 0; i < count; i++)
			addresses[i] = from + i;
		error = sym_resolver_resolve(resolver, addresses, count, result);
		if (error) {
			sym_error_destroy(error);
			return false;
		}
		for (size_t i = 0; i < count; i++)
			add_answer(&elf->lines, sym_result_at(result, i), addresses[i], &last);
		if (last.is_begun)
			symfile_lines_end(&elf->lines, from + count);
	}
	return true;
}

void fixup_add_lines(struct symfile *elf, struct sym_snapshot *snapshot,
		     const struct address_ranges *code)
{
	struct sym_resolver *resolver GUARDED(line_resolver) = NULL;
	struct sym_result *result GUARDED(line_result) = NULL;
	struct sym_error *error = sym_resolver_create(snapshot, &resolver);

	if (!error)
		error = sym_result_create(&result);
	if (!error)
		error = sym_result_set_fields(result, SYM_FIELD_LINES);
	for (size_t i = 0; !error && i < code->count; i++)
		if (!add_range(elf, resolver, result, &code->items[i]))
			break;
	sym_error_destroy(error);
}
