/* SPDX-License-Identifier: MIT */
/*
 * What answers are to have beyond a name: source lines and inlined functions. An image tells them
 * from its debug information, a jit from its dump.
 */
#include "libsym/resolver.h"
#include "libsym/result.h"

/* The dump is the one that gave the name: what replaces it is exchanged with the names. */
static void describe_jitted(const struct resolving *resolving, uint64_t time_ns,
			    struct sym_answer *answer)
{
	const struct written *written = atomic_load(resolver_written_place(resolving));
	struct source_line line;

	if (!written || !written->jitdump ||
	    !jitdump_source_find_line(written->jitdump, answer->address, time_ns, answer->name,
				      &line))
		return;
	answer->file = line.file;
	answer->line = line.line;
}

struct sym_error *resolver_describe(const struct resolving *resolving, const uint64_t *times_ns,
				    struct sym_result *result)
{
	struct sym_error *error = NULL;

	for (size_t i = 0; !error && i < result->count; i++) {
		struct sym_answer *answer = &result->slots[i].answer;

		if (answer->source == SYM_SOURCE_JITDUMP && result->want & SYM_WANT_LINES)
			describe_jitted(resolving, times_ns ? times_ns[i] : 0, answer);
		/* It is ours, and not const for us. */
		else if (answer->image && answer->image_position != UINT64_MAX)
			error = module_describe((struct sym_image *)answer->image,
						answer->image_position, result, i);
	}
	result_finish(result);
	return error;
}
