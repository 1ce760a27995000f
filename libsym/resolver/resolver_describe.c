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

struct sym_error *resolver_describe(const struct resolving *resolving, const uint64_t *times_ns,
				    struct sym_result *result)
{
	struct sym_error *error = NULL;

	for (size_t i = 0; !error && i < result->count; i++) {
		struct sym_answer *answer = &result->slots[i];

		answer->il_offset = UINT32_MAX;
		if (answer->source == SYM_SOURCE_JITDUMP && result->fields & SYM_FIELD_LINES)
			describe_jitted(resolving, times_ns ? times_ns[i] : 0, answer);
		/* The image belongs to the library, which may change it. */
		else if (answer->image && answer->image_position != UINT64_MAX)
			error = image_describe_whole((struct sym_image *)answer->image,
						     answer->image_position, result, i);
	}
	if (!error && result->fields & SYM_FIELD_LINES)
		error = resolver_describe_jitted_methods(resolving, result);
	result_finish(result);
	return error;
}
