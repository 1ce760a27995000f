/* SPDX-License-Identifier: MIT */
#include "libsym/quick_look_up.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/huge_memory.h"

/* ---- where jitted code is ---------------------------------------------------------------- */

/* Of the kernel's own code there is more to be said than that no line names it. */
static bool is_kernels(const struct sym_mapping *mapping)
{
	return mapping->path[0] == '[' && strncmp(mapping->path, "[anon:", 6) != 0;
}

static bool may_have_jitted_code(const struct sym_snapshot *snapshot, uint32_t group, size_t line)
{
	const struct sym_mapping *mapping = &snapshot->space->mappings[line];
	struct sym_image *image = NULL;

	if (!(mapping->protection & SYM_EXECUTE) || is_kernels(mapping) ||
	    (snapshot->lines[line].group != SNAPSHOT_NO_GROUP &&
	     snapshot->lines[line].group != group))
		return false;
	sym_error_destroy(snapshot_image_of(snapshot, line, &image));
	return snapshot_is_memory(snapshot, line);
}

static uint64_t end_of(const struct index_region *region)
{
	return region->base > UINT64_MAX - region->span_bytes ? UINT64_MAX
							      : region->base + region->span_bytes;
}

/* Adds the part of a region that is mapped there; goes on with the last one where it can. */
static bool add_range(struct buf *ranges, const struct sym_mapping *mapping,
		      const struct index_region *region)
{
	uint64_t start = mapping->start_address, end = mapping->end_address;
	struct quick_range *last = NULL;

	if (start < region->base)
		start = region->base;
	if (end > end_of(region))
		end = end_of(region);
	if (start >= end)
		return true;
	if (ranges->size_bytes)
		last = (struct quick_range *)(ranges->data + ranges->size_bytes) - 1;
	if (last && last->base == region->base && last->start + last->size_bytes == start &&
	    !strcmp(last->path, mapping->path)) {
		last->size_bytes += end - start;
		return true;
	}
	return buf_append(ranges,
			  &(struct quick_range){
				  .start = start,
				  .size_bytes = end - start,
				  .path = mapping->path,
				  .base = region->base,
				  .bucket_rate = region->bucket_rate,
				  .leaves = region->leaves,
				  .buckets = region->buckets,
			  },
			  sizeof(struct quick_range));
}

/* Both go upwards, so of regions only those count that end behind the mapping's start. */
static bool list_ranges(const struct sym_snapshot *snapshot, uint32_t group,
			const struct index *index, struct buf *ranges)
{
	const struct address_space *space = snapshot->space;
	size_t first = 0;

	for (size_t i = 0; i < space->mapping_count; i++) {
		const struct sym_mapping *mapping = &space->mappings[i];

		while (first < index->region_count &&
		       end_of(&index->regions[first]) <= mapping->start_address)
			first++;
		if (first == index->region_count || !may_have_jitted_code(snapshot, group, i))
			continue;
		for (size_t j = first;
		     j < index->region_count && index->regions[j].base < mapping->end_address; j++)
			if (!add_range(ranges, mapping, &index->regions[j]))
				return false;
	}
	return true;
}

/* The last one stands there several times: see quick_range_of(). */
static void take_ranges(struct quick_look_up *quick, const struct quick_range *ranges, size_t count)
{
	quick->range_count = count;
	for (size_t i = 0; i < count + INDEX_REGION_COPIES; i++)
		quick->ranges[i] = ranges[i < count ? i : count - 1];
}

static void take_codes(struct quick_look_up *quick, const struct perfmap_first *map)
{
	for (size_t i = 0; i < map->index->value_count; i++) {
		uint32_t value = map->index->values[i];

		quick->tiers[i] = perfmap_tier(value);
		quick->kinds[i] = (uint8_t)perfmap_kind(value);
	}
}

struct quick_look_up *quick_look_up_create(const struct sym_snapshot *snapshot, uint32_t group,
					   const struct perfmap_first *map, bool asks_others)
{
	static const struct quick_range none;
	struct quick_look_up *quick = NULL;
	struct buf ranges;
	size_t count;

	buf_init(&ranges, SIZE_MAX);
	if (index_can_count_bits() && list_ranges(snapshot, group, map->index, &ranges)) {
		count = ranges.size_bytes / sizeof(struct quick_range);
		quick = huge_memory_allocate(sizeof(*quick) + (count + 1 + INDEX_REGION_COPIES) *
								      sizeof(struct quick_range));
	}
	if (quick) {
		*quick = (struct quick_look_up){
			.names = map->names,
			.asks_others = asks_others,
			.group = group,
		};
		take_codes(quick, map);
		if (count)
			take_ranges(quick, (const struct quick_range *)ranges.data, count);
		else
			take_ranges(quick, &none, 1);
	}
	buf_deinit(&ranges);
	return quick;
}

/* ---- many -------------------------------------------------------------------------------- */

/* Finds the leaves of the next group, and fetches them. */
static void enter(struct quick_batch *batch)
{
	const struct quick_look_up *quick = batch->quick;
	const uint64_t *addresses = batch->addresses + batch->entered;
	struct quick_place *places = batch->lanes[batch->entered / QUICK_LANES % 2];
	size_t left = batch->count - batch->entered;
	size_t count = left < QUICK_LANES ? left : QUICK_LANES;

	for (size_t i = 0; i < count; i++) {
		if (!quick_place_of(quick, addresses[i], &places[i]))
			places[i].leaf = NULL;
		__builtin_prefetch(places[i].leaf);
	}
	batch->entered += count;
}

void quick_batch_begin(struct quick_batch *batch)
{
	batch->entered = batch->done = 0;
	enter(batch);
}

/* Whether there is a name is no branch here, so it does not matter how often there is one. False:
 * it takes more than this. */
static inline bool answer_one(const struct quick_batch *batch, size_t number,
			      const struct quick_place *place)
{
	struct quick_found found;
	struct index_spot spot;

	if (__builtin_expect(!place->leaf, 0))
		return false;
	index_find_in_leaf(place->leaf, place->distance, &spot);
	found.hit = spot.offset_bytes < spot.size_bytes;
	if (__builtin_expect(spot.size_bytes == INDEX_ODD, 0) ||
	    (__builtin_expect(batch->quick->asks_others, 0) && !found.hit))
		return false;
	if (!quick_describe(batch->quick, &spot, &found))
		return false;
	quick_answer(batch->quick, batch->addresses[number], place->path, &found, batch->result,
		     number);
	return true;
}

size_t quick_batch_turn(struct quick_batch *batch, size_t rest[QUICK_LANES])
{
	const struct quick_place *places = batch->lanes[batch->done / QUICK_LANES % 2];
	size_t first = batch->done, end = batch->entered, rest_count = 0;

	if (end < batch->count)
		enter(batch);
	for (size_t i = first; i < end; i++, places++)
		if (!answer_one(batch, i, places))
			rest[rest_count++] = i;
	batch->done = end;
	return rest_count;
}
