/* SPDX-License-Identifier: MIT */
/* Lines of jitted code: the addresses of a batch are looked up together. */
#include <stdlib.h>

#include "libsym/image/image_lines.h"
#include "libsym/resolver/resolver.h"
#include "libsym/snapshot/snapshot_runtime.h"
#include "libsym/symbols/result.h"

static bool is_jitted(const struct sym_answer *answer)
{
	return answer->status == SYM_RESOLVED && answer->source == SYM_SOURCE_RUNTIME &&
	       answer->kind == SYM_SYMBOL_FUNCTION && answer->offset_bytes <= UINT32_MAX;
}

/* The jitted methods among the answers, in their order; NULL when out of memory. */
static struct jitted_place *make_places(const struct sym_result *result, size_t *count_ret)
{
	struct jitted_place *places = calloc(result->count + 1, sizeof(*places));
	size_t next = 0;

	for (size_t i = 0; places && i < result->count; i++) {
		const struct sym_answer *answer = &result->slots[i];

		if (is_jitted(answer))
			places[next++] = (struct jitted_place){
				.start_address = answer->address - answer->offset_bytes,
				.size_bytes = answer->size_bytes,
				.offset_bytes = (uint32_t)answer->offset_bytes,
				.name = answer->name,
			};
	}
	*count_ret = next;
	return places;
}

static bool has_jitted(const struct sym_result *result)
{
	for (size_t i = 0; i < result->count; i++)
		if (is_jitted(&result->slots[i]))
			return true;
	return false;
}

struct sym_error *resolver_describe_jitted_methods(const struct resolving *resolving,
						   struct sym_result *result)
{
	const struct jitted_code *live = NULL;
	struct jitted_place *places AUTO_FREE = NULL;
	struct clr_target target;
	struct sym_error *error;
	size_t count = 0, next = 0;

	if (!has_jitted(result))
		return NULL;
	live = resolver_get_live(resolving);
	places = make_places(result, &count);
	if (!live || !places)
		return &sym_error_no_memory;
	target = snapshot_clr_target(resolving->snapshot);
	error = jitted_lines_find(&resolving->snapshot->ground->jitted_lines, &target,
				  live->info.method, places, count);
	for (size_t i = 0; !error && i < result->count; i++)
		if (is_jitted(&result->slots[i]))
			managed_line_answer(&places[next++].line, &result->slots[i]);
	return error;
}

/* ---- rows ---------------------------------------------------------------------------- */

static struct sym_error *append_jitted_rows(const struct resolving *resolving,
					    const struct sym_result *methods, struct buf *ret)
{
	const struct jitted_code *live = NULL;
	struct jitted_place *places AUTO_FREE = NULL;
	struct clr_target target;
	size_t count = 0;

	if (!has_jitted(methods))
		return NULL;
	live = resolver_get_live(resolving);
	places = make_places(methods, &count);
	if (!live || !places)
		return &sym_error_no_memory;
	target = snapshot_clr_target(resolving->snapshot);
	return jitted_lines_append_rows(&resolving->snapshot->ground->jitted_lines, &target,
					live->info.method, places, count, ret);
}

struct sym_error *resolver_append_rows(const struct resolving *resolving,
				       const struct sym_result *methods, struct buf *ret)
{
	for (size_t i = 0; i < methods->count; i++)
		image_append_rows(&methods->slots[i], ret);
	return append_jitted_rows(resolving, methods, ret);
}
