/* SPDX-License-Identifier: MIT */
/*
 * Names for code that no record covers. perf reads the mappings and listens to events afterwards; a
 * mapping that is made in between is in no record (perf 6.1; seen with young processes and on busy
 * machines). Records cannot be added here, because no record may change in size. But a record can
 * be extended: perf cuts each record out of those before it, so one of the first records may cover
 * what all later ones are cut out of.
 */
#include <stdlib.h>

#include "libsym/base/cleanup.h"
#include "mapgen/cli/target.h"
#include "mapgen/perfdata/fixup_internal.h"

/* As perf recorded them: what a changed record gets in addition is still without names. */
static bool find_recorded(const struct process_fixup *process_fixup, struct address_ranges *ret)
{
	bool done = true;

	for (size_t i = 0; done && i < process_fixup->count; i++)
		done = address_ranges_append(ret, process_fixup->mappings[i].start_address,
					     process_fixup->mappings[i].end_address);
	address_ranges_unite(ret);
	return done;
}

static bool may_have_managed_code(const struct sym_snapshot *snapshot,
				  const struct sym_mapping *mapping)
{
	if (mapping_class_of(mapping->path) == MAPPING_CODE)
		return true;
	return mapping->image_index != UINT32_MAX &&
	       target_is_precompiled(sym_snapshot_image_at(snapshot, mapping->image_index));
}

/* `ranges` from *at on lie behind the start of the mapping. */
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

bool unrecorded_find(const struct process_fixup *process_fixup, const struct sym_snapshot *snapshot,
		     struct unrecorded *ret)
{
	struct address_ranges recorded = { 0 };
	bool done = find_recorded(process_fixup, &recorded);
	size_t at = 0;

	for (size_t i = 0; done && i < sym_snapshot_mapping_count(snapshot); i++) {
		const struct sym_mapping *mapping = sym_snapshot_mapping_at(snapshot, i);

		if (!(mapping->protection & SYM_EXECUTE) ||
		    address_ranges_contain(&recorded, mapping->start_address,
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

/* Keeps the marked ones. */
static void keep_marked(struct address_ranges *ranges, const bool *marked)
{
	size_t kept = 0;

	for (size_t i = 0; i < ranges->count; i++)
		if (marked[i])
			ranges->items[kept++] = ranges->items[i];
	ranges->count = kept;
}

bool unrecorded_take_in(struct unrecorded *unrecorded, const struct process_fixup *process_fixup,
			struct recorded_mapping *const *mappings, size_t count)
{
	size_t range_count = unrecorded->code.count;
	bool *reached AUTO_FREE = calloc(range_count + 1, sizeof(*reached));

	if (!reached)
		return false;
	for (size_t i = 0; range_count && i < count; i++)
		if (mapping_class_of(mappings[i]->name) == MAPPING_CODE &&
		    (mappings[i]->has_room || process_fixup->plan->anonymous))
			recorded_mapping_reach(process_fixup->mappings, mappings[i],
					       &unrecorded->other, &unrecorded->code, reached);
	keep_marked(&unrecorded->code, reached);
	return true;
}
