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
				.wants_inlined = (result->fields & SYM_FIELD_INLINED) != 0,
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

struct sym_error *resolver_find_jitted_lines(const struct resolving *resolving,
					     const struct sym_result *result,
					     struct resolver_jitted *ret)
{
	const struct jitted_code *live = NULL;
	struct clr_target target;

	*ret = (struct resolver_jitted){ 0 };
	if (!has_jitted(result))
		return NULL;
	live = resolver_get_live(resolving);
	ret->places = make_places(result, &ret->count);
	if (!live || !ret->places)
		return &sym_error_no_memory;
	target = snapshot_clr_target(resolving->snapshot);
	return jitted_lines_find(&resolving->snapshot->ground->jitted_lines, &target,
				 live->info.method, ret->places, ret->count);
}

struct sym_error *resolver_take_jitted_line(struct resolver_jitted *jitted,
					    struct sym_result *result, size_t number)
{
	struct sym_answer *answer = &result->slots[number];
	const struct jitted_place *place;

	if (jitted->next == jitted->count || !is_jitted(answer))
		return NULL;
	place = &jitted->places[jitted->next++];
	if (result->fields & SYM_FIELD_LINES) {
		managed_line_answer(place->inlined.items ? &place->inlined.line : &place->line,
				    answer);
		answer->line_reason = answer->line_reason ?: place->inlined.reason;
	}
	return result_add_inlined(result, number, place->inlined.items, place->inlined.count);
}

void resolver_jitted_deinit(struct resolver_jitted *jitted)
{
	for (size_t i = 0; i < jitted->count; i++)
		free(jitted->places[i].inlined.items);
	free(jitted->places);
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
