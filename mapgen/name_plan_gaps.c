/* SPDX-License-Identifier: MIT */
/*
 * The part of name_plan.c for code that no record tells of. perf reads what is mapped and listens
 * from then on: what is mapped between the two is in no record (perf 6.1; seen where a process
 * was young or the machine busy). Records can be changed, not added, as none may change in size,
 * but one can be made to reach further: perf lets each record take its place from the records
 * before it, so one of the first of all may cover what all others are cut out of.
 */
#include <stdlib.h>

#include "libsym/base/cleanup.h"
#include "mapgen/name_plan_internal.h"
#include "mapgen/target.h"

static bool find_recorded(const struct deciding *deciding, struct address_ranges *ret)
{
	struct address_range *items AUTO_FREE = calloc(deciding->count + 1, sizeof(*items));

	if (!items)
		return false;
	for (size_t i = 0; i < deciding->count; i++)
		items[i] = (struct address_range){ deciding->mappings[i].start_address,
						   deciding->mappings[i].end_address };
	return address_ranges_unite(items, deciding->count, ret);
}

static bool may_have_managed_code(const struct sym_snapshot *snapshot,
				  const struct sym_mapping *mapping)
{
	if (mapping_class_of(mapping->path) == MAPPING_CODE)
		return true;
	return mapping->image_index != UINT32_MAX &&
	       target_is_precompiled(sym_snapshot_image_at(snapshot, mapping->image_index));
}

/* `ranges` from *at on end behind the start of the mapping. */
static bool add_the_rest(const struct sym_mapping *mapping, const struct address_ranges *ranges,
			 size_t *at, struct address_ranges *ret)
{
	uint64_t position = mapping->start_address;

	while (position < mapping->end_address) {
		const struct address_range *next;

		while (*at < ranges->count && ranges->items[*at].end <= position)
			++*at;
		next = *at < ranges->count ? &ranges->items[*at] : NULL;
		if (!next || next->start >= mapping->end_address)
			return address_ranges_append(ret, position, mapping->end_address);
		if (next->start > position && !address_ranges_append(ret, position, next->start))
			return false;
		position = next->end;
	}
	return true;
}

bool unrecorded_find(const struct deciding *deciding, const struct sym_snapshot *snapshot,
		     struct unrecorded *ret)
{
	struct address_ranges recorded = { 0 };
	bool done = find_recorded(deciding, &recorded);
	size_t at = 0;

	for (size_t i = 0; done && i < sym_snapshot_mapping_count(snapshot); i++) {
		const struct sym_mapping *mapping = sym_snapshot_mapping_at(snapshot, i);

		if (!(mapping->protection & SYM_EXECUTE) ||
		    address_ranges_have(&recorded, mapping->start_address,
					mapping->end_address - mapping->start_address))
			continue;
		done = add_the_rest(mapping, &recorded, &at,
				    may_have_managed_code(snapshot, mapping) ? &ret->code
									     : &ret->other);
	}
	address_ranges_deinit(&recorded);
	return done;
}

void unrecorded_deinit(struct unrecorded *unrecorded)
{
	address_ranges_deinit(&unrecorded->code);
	address_ranges_deinit(&unrecorded->other);
}

/* Keeps those that are marked. */
static void keep_marked(struct address_ranges *ranges, const bool *marked)
{
	size_t kept = 0;

	for (size_t i = 0; i < ranges->count; i++)
		if (marked[i])
			ranges->items[kept++] = ranges->items[i];
	ranges->count = kept;
}

bool unrecorded_take_in(struct unrecorded *unrecorded, const struct deciding *deciding,
			struct recorded_mapping *const *mappings, size_t count)
{
	size_t range_count = unrecorded->code.count;
	bool *reached AUTO_FREE = calloc(range_count + 1, sizeof(*reached));

	if (!reached)
		return false;
	for (size_t i = 0; range_count && i < count; i++)
		if (mapping_class_of(mappings[i]->name) == MAPPING_CODE &&
		    (mappings[i]->has_room || deciding->plan->anonymous))
			recorded_mapping_reach(deciding->mappings, mappings[i], &unrecorded->other,
					       &unrecorded->code, reached);
	keep_marked(&unrecorded->code, reached);
	return true;
}
