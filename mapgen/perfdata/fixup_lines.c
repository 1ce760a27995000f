/* SPDX-License-Identifier: MIT */
/*
 * Line tables of managed code that has samples: jitted code of a live process, precompiled code of
 * an image. A method is one sequence. Its rows are those of its IL map whose line differs from the
 * one before.
 */
#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "mapgen/perfdata/fixup_internal.h"

enum {
	BATCH = 1024, /* methods */
};

DEFINE_GUARD(line_resolver, struct sym_resolver *, sym_resolver_destroy)
DEFINE_GUARD(line_result, struct sym_result *, sym_result_destroy)

/* The methods of a run, and what knows their lines. */
struct line_asking {
	struct symfile_lines *lines;
	struct sym_image *image; /* NULL: the process of `resolver` */
	struct sym_resolver *resolver;
	struct sym_result *result;
	uint64_t *methods; /* a position in each */
	size_t method_count;
};

/* The sequence that is being written. */
struct open_sequence {
	bool is_begun;
	uint64_t start, end; /* of the method */
	const char *file;    /* of the last row */
	uint32_t line;
};

/* A line table cannot mark a line as approximate, so such a line is left out. */
static const char *known_file(const struct sym_answer *answer)
{
	return answer->line && answer->line_quality != SYM_LINE_NEAREST ? answer->file : NULL;
}

static bool is_same_line(const struct open_sequence *last, const struct sym_answer *answer)
{
	const char *file = known_file(answer);

	if (!file || !last->file)
		return !file && !last->file;
	return last->line == answer->line && !strcmp(last->file, file);
}

static void end_sequence(struct symfile_lines *lines, struct open_sequence *sequence)
{
	if (sequence->is_begun)
		symfile_lines_end(lines, sequence->end);
	*sequence = (struct open_sequence){ 0 };
}

static void add_row(struct symfile_lines *lines, const struct sym_answer *answer,
		    struct open_sequence *last)
{
	const char *file = known_file(answer);
	const uint64_t start = answer->address - answer->offset_bytes;

	if (last->is_begun && last->start != start) {
		if (last->end > start)
			last->end = start;
		end_sequence(lines, last);
	}
	if (!last->is_begun && !file)
		return;
	if (!last->is_begun)
		symfile_lines_begin(lines, answer->address);
	else if (is_same_line(last, answer))
		return;
	symfile_lines_add(lines, answer->address, file, answer->line, answer->column);
	*last = (struct open_sequence){ true, start, start + answer->size_bytes, file,
					answer->line };
}

static struct sym_error *add_batch(const struct line_asking *asking, size_t first, size_t count)
{
	const uint64_t *methods = asking->methods + first;
	struct open_sequence sequence = { 0 };
	struct sym_error *error =
		asking->image ? sym_image_resolve_rows(asking->image, SYM_POSITION_OFFSET, methods,
						       count, asking->result)
			      : sym_resolver_resolve_rows(asking->resolver, methods, count,
							  asking->result);

	if (error)
		return error;
	for (size_t i = 0; i < sym_result_count(asking->result); i++)
		add_row(asking->lines, sym_result_at(asking->result, i), &sequence);
	end_sequence(asking->lines, &sequence);
	return NULL;
}

static struct sym_error *add_methods(const struct line_asking *asking)
{
	struct sym_error *error = sym_result_set_fields(asking->result, SYM_FIELD_LINES);

	for (size_t i = 0; !error && i < asking->method_count; i += BATCH) {
		size_t left = asking->method_count - i;

		error = add_batch(asking, i, left < BATCH ? left : BATCH);
	}
	return error;
}

void fixup_add_lines(struct symfile *elf, const struct symbol_run *run)
{
	uint64_t *methods AUTO_FREE = calloc(run->count + 1, sizeof(*methods));
	struct sym_resolver *resolver GUARDED(line_resolver) = NULL;
	struct sym_result *result GUARDED(line_result) = NULL;
	struct line_asking asking = { .lines = &elf->lines,
				      .image = run->lines_of_image,
				      .methods = methods };
	struct sym_error *error = sym_result_create(&result);

	for (size_t i = 0; methods && i < run->count; i++)
		if (run->symbols[i]->kind == SYM_SYMBOL_FUNCTION &&
		    address_ranges_overlap(run->code, run->symbols[i]->start,
					   run->symbols[i]->start + run->symbols[i]->size_bytes))
			methods[asking.method_count++] = run->symbols[i]->start;
	if (!error && !asking.image)
		error = sym_resolver_create(run->lines_of, &resolver);
	asking.resolver = resolver;
	asking.result = result;
	if (!error)
		error = add_methods(&asking);
	sym_error_destroy(error);
}
