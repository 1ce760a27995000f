/* SPDX-License-Identifier: MIT */
/*
 * Fields of answers beyond a name: source lines and inlined functions, from the debug information
 * of images and from jitdumps.
 */
#include "libsym/image/image_lines.h"
#include "libsym/resolver/resolver.h"
#include "libsym/symbols/result.h"

/* The dump is the one that gave the name: both are replaced together. */
static void describe_jitted(const struct resolving *resolving, uint64_t time_ns,
			    struct sym_answer *answer)
{
	const struct self_reported_code *written = atomic_load(&resolving->resolver->written);
	struct source_line line;

	if (!written || !written->jitdump ||
	    !jitdump_source_find_line(written->jitdump, answer->address, time_ns, answer->name,
				      &line))
		return;
	answer->file = line.file;
	answer->line = line.line;
	answer->line_quality = line.line ? SYM_LINE_EXACT : SYM_LINE_NONE;
}

static struct sym_error *describe_one(const struct resolving *resolving, uint64_t time_ns,
				      struct resolver_jitted *jitted, struct sym_result *result,
				      size_t number)
{
	struct sym_answer *answer = &result->slots[number];
	struct sym_error *error = resolver_take_jitted_line(jitted, result, number);

	if (error || answer->inlined_count)
		return error;
	if (answer->source == SYM_SOURCE_JITDUMP && result->fields & SYM_FIELD_LINES)
		describe_jitted(resolving, time_ns, answer);
	/* The image belongs to the library, which may change it. */
	else if (answer->image && answer->image_position != UINT64_MAX)
		error = image_describe_whole((struct sym_image *)answer->image,
					     answer->image_position, result, number);
	return error;
}

struct sym_error *resolver_describe(const struct resolving *resolving, const uint64_t *times_ns,
				    struct sym_result *result)
{
	struct resolver_jitted jitted = { 0 };
	struct sym_error *error = NULL;

	for (size_t i = 0; i < result->count; i++)
		result->slots[i].il_offset = UINT32_MAX;
	if (result->fields & (SYM_FIELD_LINES | SYM_FIELD_INLINED))
		error = resolver_find_jitted_lines(resolving, result, &jitted);
	for (size_t i = 0; !error && i < result->count; i++)
		error = describe_one(resolving, times_ns ? times_ns[i] : 0, &jitted, result, i);
	resolver_jitted_deinit(&jitted);
	result_finish(result);
	return error;
}
