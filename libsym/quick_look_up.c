/* SPDX-License-Identifier: MIT */
#include "libsym/quick_look_up.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/huge_memory.h"
#include "libsym/quick_layers.h"

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

	if (!(mapping->protection & SYM_EXECUTE) || is_kernels(mapping))
		return false;
	if (snapshot->lines[line].group != SNAPSHOT_NO_GROUP &&
	    snapshot->lines[line].group != group)
		return snapshot_is_memory(snapshot, line);
	sym_error_destroy(snapshot_image_of(snapshot, line, &image));
	return snapshot_is_memory(snapshot, line);
}

static uint64_t end_of(const struct index_region *region)
{
	return region->base > UINT64_MAX - region->span_bytes ? UINT64_MAX
							      : region->base + region->span_bytes;
}

static struct quick_range *last_of(struct buf *ranges)
{
	return ranges->size_bytes ? (struct quick_range *)(ranges->data + ranges->size_bytes) - 1
				  : NULL;
}

/* Bytes of executable memory, from `start` to in front of `end`. */
struct piece {
	uint64_t start, end;
	const char *path;
};

/* Adds the part of a region that lies there; goes on with the last one where it can. */
static bool add_range(struct buf *ranges, const struct piece *piece,
		      const struct index_region *region)
{
	uint64_t start = piece->start, end = piece->end;
	struct quick_range *last = last_of(ranges);

	if (start < region->base)
		start = region->base;
	if (end > end_of(region))
		end = end_of(region);
	if (start >= end)
		return true;
	if (last && last->size_bytes && last->base == region->base &&
	    last->start + last->size_bytes == start && !strcmp(last->path, piece->path)) {
		last->size_bytes += end - start;
		return true;
	}
	return buf_append(ranges,
			  &(struct quick_range){
				  .start = start,
				  .size_bytes = end - start,
				  .path = piece->path,
				  .base = region->base,
				  .bucket_rate = region->bucket_rate,
				  .leaves = region->leaves,
				  .buckets = region->buckets,
			  },
			  sizeof(struct quick_range));
}

/* The same where something came later. */
static bool add_layered(struct buf *ranges, const struct piece *piece)
{
	struct quick_range *last = last_of(ranges);

	if (last && !last->size_bytes && last->start + last->base == piece->start &&
	    !strcmp(last->path, piece->path)) {
		last->base += piece->end - piece->start;
		return true;
	}
	return buf_append(ranges,
			  &(struct quick_range){
				  .start = piece->start,
				  .path = piece->path,
				  .base = piece->end - piece->start,
			  },
			  sizeof(struct quick_range));
}

/* What is being listed, upwards. */
struct listing {
	struct buf ranges;
	const struct index *index; /* the lowest level */
	struct quick_stretches layered;
	/* The first ones that do not end in front of what comes next. */
	size_t next_region, next_stretch;
};

static bool list_plain(struct listing *listing, const struct piece *piece)
{
	const struct index *index = listing->index;

	while (listing->next_region < index->region_count &&
	       end_of(&index->regions[listing->next_region]) <= piece->start)
		listing->next_region++;
	for (size_t i = listing->next_region;
	     i < index->region_count && index->regions[i].base < piece->end; i++)
		if (!add_range(&listing->ranges, piece, &index->regions[i]))
			return false;
	return true;
}

static bool list_piece(struct listing *listing, struct piece piece)
{
	const struct quick_stretches *layered = &listing->layered;
	uint64_t end = piece.end;

	for (; piece.start < end; piece.start = piece.end) {
		const struct index_extent *stretch = NULL;
		bool done;

		while (listing->next_stretch < layered->count &&
		       layered->items[listing->next_stretch].last < piece.start)
			listing->next_stretch++;
		if (listing->next_stretch < layered->count)
			stretch = &layered->items[listing->next_stretch];
		piece.end = end;
		if (stretch && stretch->first <= piece.start) {
			if (stretch->last < end)
				piece.end = stretch->last + 1;
			done = add_layered(&listing->ranges, &piece);
		} else {
			if (stretch && stretch->first < end)
				piece.end = stretch->first;
			done = list_plain(listing, &piece);
		}
		if (!done)
			return false;
	}
	return true;
}

static bool list_ranges(const struct sym_snapshot *snapshot, uint32_t group,
			struct listing *listing)
{
	const struct address_space *space = snapshot->space;

	for (size_t i = 0; i < space->mapping_count; i++) {
		const struct sym_mapping *mapping = &space->mappings[i];
		struct piece piece = { mapping->start_address, mapping->end_address,
				       mapping->path };

		if (may_have_jitted_code(snapshot, group, i) && !list_piece(listing, piece))
			return false;
	}
	return true;
}

static uint64_t bytes_of(const struct quick_range *range)
{
	return range->size_bytes ? range->size_bytes : range->base;
}

/* By pages: what is there counts as much as what is large. */
static uint32_t weight_of(const struct quick_range *range)
{
	uint64_t pages = (bytes_of(range) >> 12) + 1;

	return pages < UINT32_MAX ? (uint32_t)pages : UINT32_MAX;
}

/* False when there is no memory. */
static bool take_ranges(struct quick_look_up *quick, const struct quick_range *ranges, size_t count)
{
	struct address_span *spans AUTO_FREE = calloc(count + 1, sizeof(*spans));
	struct address_slots slots;

	if (!spans)
		return false;
	for (size_t i = 0; i < count; i++) {
		spans[i] = (struct address_span){ .start = ranges[i].start,
						  .size_bytes = bytes_of(&ranges[i]),
						  .weight = weight_of(&ranges[i]) };
		quick->ranges[i] = ranges[i];
	}
	quick->range_count = count;
	quick->ranges[count] = (struct quick_range){ 0 };
	address_slots_choose(spans, count, ADDRESS_SLOTS_MOST, &slots);
	quick->slot_shift = slots.shift;
	quick->slot_mask = slots.mask;
	for (uint32_t i = 0; i <= slots.mask; i++)
		quick->slots[i] =
			slots.spans[i] == ADDRESS_SLOT_NONE ? (uint16_t)count : slots.spans[i];
	return true;
}

/* The last level knows the codes of all. */
static void take_codes(struct quick_look_up *quick, const struct index *last)
{
	for (size_t i = 0; i < last->value_count; i++) {
		uint32_t value = last->values[i];

		quick->tiers[i] = perfmap_tier(value);
		quick->kinds[i] = (uint8_t)perfmap_kind(value);
	}
}

void quick_look_up_destroy(struct quick_look_up *quick)
{
	while (quick) {
		struct quick_look_up *before = quick->before;

		free(quick->parts);
		free(quick->cells);
		free(quick);
		quick = before;
	}
}

static struct quick_look_up *make(const struct perfmap_first *map, const struct index_view *view,
				  struct quick_range *ranges, size_t count)
{
	struct quick_look_up *quick;

	/* The numbers of ranges have so many bits. */
	if (count >= ADDRESS_SLOT_NONE)
		return NULL;
	quick = huge_memory_allocate(sizeof(*quick) + (count + 1) * sizeof(struct quick_range));
	if (!quick)
		return NULL;
	*quick = (struct quick_look_up){ .names = map->names };
	if ((view->count > 1 && !quick_layers_make(quick, ranges, count, view)) ||
	    !take_ranges(quick, ranges, count)) {
		quick_look_up_destroy(quick);
		return NULL;
	}
	take_codes(quick, view->levels[view->count - 1]->index);
	return quick;
}

struct quick_look_up *quick_look_up_create(const struct sym_snapshot *snapshot, uint32_t group,
					   const struct perfmap_first *map,
					   const struct index_view *view, bool asks_others)
{
	struct listing listing = { .index = view->levels[0]->index };
	struct quick_look_up *quick = NULL;

	if (!view->shares_codes || !index_can_count_bits())
		return NULL;
	buf_init(&listing.ranges, SIZE_MAX);
	if (quick_stretches_init(&listing.layered, view) && list_ranges(snapshot, group, &listing))
		quick = make(map, view, (struct quick_range *)listing.ranges.data,
			     listing.ranges.size_bytes / sizeof(struct quick_range));
	if (quick) {
		quick->asks_others = asks_others;
		quick->group = group;
	}
	quick_stretches_deinit(&listing.layered);
	buf_deinit(&listing.ranges);
	return quick;
}

/* ---- where something came later ---------------------------------------------------------- */

/* Has nothing where it is asked. */
static _Alignas(64) const struct index_leaf nothing = {
	.keys = { 0, INDEX_NO_KEY, INDEX_NO_KEY, INDEX_NO_KEY, INDEX_NO_KEY },
	.sizes = { 1 },
};

/* A level that has nothing there leads to the one below it, so that only the last one is left to be
 * looked at. */
static bool place_in_layers(const struct quick_look_up *quick, const struct quick_range *range,
			    uint64_t address, struct quick_place *ret)
{
	uint64_t behind = address - range->start;
	const struct quick_part *part;
	size_t number;

	ret->path = range->path;
	for (number = range->cells[behind >> quick->cell_bits]; number; number = part->next) {
		struct index_spot spot;
		uint64_t distance;

		part = &quick->parts[number];
		distance = address - part->base;
		if (distance >= part->reach_bytes)
			continue;
		if (distance >= part->span_bytes)
			return false;
		ret->distance = (uint32_t)distance;
		ret->leaf =
			index_leaf_within(&(struct index_region){ .bucket_rate = part->bucket_rate,
								  .leaves = part->leaves,
								  .buckets = part->buckets },
					  distance);
		if (!ret->leaf || !part->next)
			return ret->leaf != NULL;
		index_find_in_leaf(ret->leaf, ret->distance, &spot);
		if (spot.offset_bytes < spot.size_bytes || spot.size_bytes == INDEX_ODD)
			return true;
	}
	ret->leaf = &nothing;
	ret->distance = 1;
	return true;
}

static const struct quick_range *search_range(const struct quick_look_up *quick, uint64_t address)
{
	const struct quick_range *range = quick->ranges;
	size_t count = quick->range_count;

	while (count > 1) {
		size_t half = count / 2;

		range = range[half].start <= address ? range + half : range;
		count -= half;
	}
	return range;
}

static __attribute__((noinline)) bool place_in_crowd(const struct quick_range *range,
						     uint64_t address, struct quick_place *ret)
{
	const struct index_region region = quick_region(range);
	uint64_t distance = address - range->base;

	ret->leaf = &range->leaves[index_leaf_number(&region, distance)];
	ret->path = range->path;
	ret->distance = (uint32_t)distance;
	return true;
}

bool quick_place_apart(const struct quick_look_up *quick, const struct quick_range *range,
		       uint64_t address, struct quick_place *ret)
{
	if (address - range->start >= bytes_of(range)) {
		range = search_range(quick, address);
		if (address - range->start >= bytes_of(range))
			return false;
	}
	return range->cells ? place_in_layers(quick, range, address, ret)
			    : place_in_crowd(range, address, ret);
}

/* ---- many -------------------------------------------------------------------------------- */

/* How many addresses of the batch are in the group that begins with the number `first`. */
static size_t group_count(const struct quick_batch *batch, size_t first)
{
	size_t left = first < batch->count ? batch->count - first : 0;

	return left < QUICK_LANES ? left : QUICK_LANES;
}

static struct quick_place *places_of(struct quick_batch *batch, size_t first)
{
	return batch->places[first / QUICK_LANES % 2];
}

/* Fetches their buckets. */
static void approach(const struct quick_batch *batch, size_t first)
{
	for (size_t i = 0, count = group_count(batch, first); i < count; i++) {
		uint64_t address = batch->addresses[first + i];

		quick_approach(quick_range_of(batch->quick, address), address);
	}
}

/* Finds their leaves, and fetches them. */
static void enter(struct quick_batch *batch, size_t first)
{
	struct quick_place *places = places_of(batch, first);

	for (size_t i = 0, count = group_count(batch, first); i < count; i++) {
		if (!quick_place_of(batch->quick, batch->addresses[first + i], &places[i]))
			places[i].leaf = NULL;
		__builtin_prefetch(places[i].leaf);
	}
}

void quick_batch_begin(struct quick_batch *batch)
{
	batch->done = 0;
	approach(batch, 0);
	approach(batch, QUICK_LANES);
	enter(batch, 0);
}

/* Whether there is a name is no branch here, so it does not matter how often there is one. False:
 * it takes more than this. */
static inline __attribute__((always_inline)) bool
answer_at(const struct quick_look_up *quick, uint64_t address, const struct quick_place *place,
	  struct sym_result *result, size_t number)
{
	struct quick_found found;
	struct index_spot spot;
	bool is_here;

	index_find_in_leaf(place->leaf, place->distance, &spot);
	found.hit = spot.offset_bytes < spot.size_bytes;
	if (__builtin_expect(spot.size_bytes == INDEX_ODD, 0) ||
	    (__builtin_expect(quick->asks_others, 0) && !found.hit))
		return false;
	is_here = quick_describe(quick, &spot, &found);
	if (__builtin_expect(!is_here, 0))
		return false;
	quick_answer(quick, address, place->path, &found, result, number);
	return true;
}

bool quick_resolve(const struct quick_look_up *quick, uint64_t address, struct sym_result *result)
{
	struct quick_place place;

	return quick_place_of(quick, address, &place) &&
	       answer_at(quick, address, &place, result, 0);
}

size_t quick_batch_turn(struct quick_batch *batch, size_t rest[QUICK_LANES])
{
	size_t first = batch->done, count = group_count(batch, first), rest_count = 0;
	const struct quick_place *places = places_of(batch, first);

	approach(batch, first + 2 * QUICK_LANES);
	enter(batch, first + QUICK_LANES);
	for (size_t i = 0; i < count; i++)
		if (!places[i].leaf || !answer_at(batch->quick, batch->addresses[first + i],
						  &places[i], batch->result, first + i))
			rest[rest_count++] = first + i;
	batch->done += count;
	return rest_count;
}
