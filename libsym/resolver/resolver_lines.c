/* SPDX-License-Identifier: MIT */
/* Lines of jitted code: the addresses of a batch are looked up together. */
#include <stdlib.h>

#include "libsym/resolver/resolver.h"
#include "libsym/snapshot/snapshot_runtime.h"
#include "libsym/symbols/result.h"

static bool is_jitted(const struct sym_answer *answer)
{
	return answer->status == SYM_RESOLVED && answer->source == SYM_SOURCE_RUNTIME &&
	       answer->kind == SYM_SYMBOL_FUNCTION && answer->offset_bytes <= UINT32_MAX;
}

struct sym_error *resolver_describe_jitted_methods(const struct resolving *resolving,
						   struct sym_result *result)
{
	const struct jitted_code *live = NULL;
	struct jitted_place *places AUTO_FREE = NULL;
	struct clr_target target;
	struct sym_error *error;
	size_t count = 0, next = 0;

	for (size_t i = 0; i < result->count; i++)
		count += is_jitted(&result->slots[i]);
	if (!count)
		return NULL;
	live = resolver_get_live(resolving);
	places = calloc(count, sizeof(*places));
	if (!live || !places)
		return &sym_error_no_memory;
	for (size_t i = 0; i < result->count; i++) {
		const struct sym_answer *answer = &result->slots[i];

		if (is_jitted(answer))
			places[next++] = (struct jitted_place){
				.start_address = answer->address - answer->offset_bytes,
				.size_bytes = answer->size_bytes,
				.offset_bytes = (uint32_t)answer->offset_bytes,
				.name = answer->name,
			};
	}
	target = snapshot_clr_target(resolving->snapshot);
	error = jitted_lines_find(&resolving->snapshot->ground->jitted_lines, &target,
				  live->info.method, places, count);
	next = 0;
	for (size_t i = 0; !error && i < result->count; i++)
		if (is_jitted(&result->slots[i]))
			managed_line_answer(&places[next++].line, &result->slots[i]);
	return error;
}
