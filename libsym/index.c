/* SPDX-License-Identifier: MIT */
/*
 * Looking up in a frozen index. The steps of one look-up wait for each other,
 * mostly for memory, so a batch takes each step for many positions in turn:
 * while one waits for its cache line, the others go on.
 */
#include "libsym/index_search.h"

#include <stdlib.h>
#include <string.h>

/* Look-ups that go side by side: about as many misses as a core keeps in flight. */
enum {
	BATCH_LANES = 32
};

void index_destroy(struct index *index)
{
	if (!index)
		return;
	free(index->slots);
	free(index->regions);
	free(index->leaves);
	free(index->buckets);
	index_names_destroy(index->names);
	free(index->odd);
	free(index);
}

size_t index_count(const struct index *index)
{
	return index->count;
}

/* Of a piece whose size is INDEX_ODD. */
static const struct index_odd *find_odd(const struct index *index, const struct index_leaf *leaf,
					size_t slot)
{
	const struct index_odd *odd = index->odd + leaf->odd_before;

	for (size_t i = 0; i < slot; i++)
		odd += leaf->sizes[i] == INDEX_ODD;
	return odd;
}

/* The region of a piece. */
static const struct index_region *region_of_piece(const struct index *index, size_t piece)
{
	const struct index_region *region = index->regions;
	size_t count = index->region_count;

	while (count > 1) {
		size_t half = count / 2;

		if (region[half].first_piece <= piece)
			region += half;
		count -= half;
	}
	return region;
}

/* Where a piece is. */
struct place {
	const struct index_leaf *leaf;
	size_t slot;
	size_t piece;
	uint64_t start;
};

static inline struct place place_in(const struct index_region *region, size_t piece)
{
	const struct index_leaf *leaf = &region->leaves[piece / INDEX_LEAF];
	size_t slot = piece % INDEX_LEAF;

	return (struct place){ .leaf = leaf,
			       .slot = slot,
			       .piece = region->first_piece + piece,
			       .start = region->base + (uint64_t)leaf->keys[slot] };
}

static inline const char *name_of(const struct index *index, uint32_t number)
{
	return index->names ? index_names_at(index->names, number) : "";
}

static inline void describe(const struct index *index, const struct place *place,
			    struct index_entry *ret)
{
	const struct index_leaf *leaf = place->leaf;
	uint32_t number = leaf->numbers[place->slot];
	uint16_t size_bytes = leaf->sizes[place->slot];
	const struct index_odd *odd = NULL;

	if (size_bytes == INDEX_ODD)
		odd = find_odd(index, leaf, place->slot);
	*ret = (struct index_entry){
		.start = place->start,
		.size_bytes = odd ? odd->size_bytes : size_bytes,
		.symbol_start = odd ? odd->symbol_start : place->start,
		.symbol_size_bytes = odd ? odd->symbol_size_bytes : size_bytes,
		.name = name_of(index, number),
		.number = number,
		.value = odd ? odd->value : index->values[leaf->codes[place->slot]],
	};
}

void index_at(const struct index *index, size_t i, struct index_entry *ret)
{
	const struct index_region *region = region_of_piece(index, i);
	struct place place = place_in(region, i - region->first_piece);

	describe(index, &place, ret);
}

/* ---- one step ---------------------------------------------------------------- */

/* The last leaf of a bucket that is not above the position, or the one before them. */
static size_t search_crowd(const struct index_region *region, const struct index_bucket *bucket,
			   uint32_t distance)
{
	size_t low = bucket[0].before == UINT32_MAX ? 0 : bucket[0].before;
	size_t high = bucket[1].before;

	while (low < high) {
		size_t middle = low + (high - low + 1) / 2;

		if (region->leaves[middle].keys[0] <= (int32_t)distance)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

static inline size_t leaf_number(const struct index_region *region, uint64_t distance,
				 bool can_count_bits)
{
	uint64_t place = index_place(region, distance);
	const struct index_bucket *bucket = index_bucket_of(region, place);

	if (bucket->crowd && bucket->crowd != INDEX_CROWD)
		bucket = index_finer_of(region, bucket, &place);
	if (bucket->crowd)
		return search_crowd(region, bucket, (uint32_t)distance);
	if (can_count_bits)
		return index_leaf_at(bucket, place);
	return bucket->before + (uint32_t)__builtin_popcountll(index_cells_to(bucket, place));
}

__attribute__((noinline)) size_t index_leaf_number(const struct index_region *region,
						   uint64_t distance)
{
	return leaf_number(region, distance, true);
}

static inline const struct index_leaf *leaf_of(const struct index_region *region, uint64_t distance)
{
	const struct index_leaf *leaf = index_leaf_within(region, distance);

	return __builtin_expect(leaf != NULL, 1)
		       ? leaf
		       : &region->leaves[index_leaf_number(region, distance)];
}

/* The region with the highest base at or below the position; the first one when all are above. */
static const struct index_region *search_region(const struct index *index, uint64_t position)
{
	const struct index_region *region = index->regions;
	size_t count = index->region_count;

	while (count > 1) {
		size_t half = count / 2;

		region = region[half].base <= position ? region + half : region;
		count -= half;
	}
	return region;
}

/* Step by step, whatever lies on the way. False when the position lies before all. */
static bool find_place(const struct index *index, uint64_t position, struct place *ret)
{
	const struct index_region *region = search_region(index, position);
	uint64_t distance = position - region->base;
	size_t leaf, last;

	if (distance >= region->reach_bytes)
		return false;
	if (distance < region->span_bytes) {
		leaf = leaf_number(region, distance, index_can_count_bits());
		while (region->leaves[leaf].keys[0] > (int32_t)distance)
			leaf--;
		last = leaf * INDEX_LEAF + index_slot_of(&region->leaves[leaf], (uint32_t)distance);
	} else {
		last = region->piece_count - 1;
	}
	*ret = place_in(region, last);
	return true;
}

static bool covers(const struct index *index, const struct place *place, uint64_t position)
{
	uint64_t size_bytes = place->leaf->sizes[place->slot];

	if (size_bytes == INDEX_ODD)
		size_bytes = find_odd(index, place->leaf, place->slot)->size_bytes;
	return position - place->start < size_bytes;
}

/* Finds the ordinary piece that covers a position, as far as that is nearly always enough. False:
 * find_other() goes on, from `leaf`; NULL: it is in no leaf of the region. */
static inline __attribute__((always_inline)) bool
find_spot(const struct index_region *region, uint64_t position, struct index_spot *ret)
{
	uint64_t distance = position - region->base;

	ret->leaf = NULL;
	if (__builtin_expect(distance >= region->span_bytes, 0))
		return false;
	index_look_in_leaf(leaf_of(region, distance), (uint32_t)distance, ret);
	if (__builtin_expect(ret->offset_bytes < ret->size_bytes, 1))
		return true;
	if ((int32_t)ret->offset_bytes >= 0)
		return false;
	index_look_in_leaf(ret->leaf - 1, (uint32_t)distance, ret);
	return ret->offset_bytes < ret->size_bytes;
}

static __attribute__((noinline)) bool find_other(const struct index *index,
						 const struct index_region *region,
						 uint64_t position, const struct index_leaf *leaf,
						 struct place *ret)
{
	uint64_t distance = position - region->base;

	if (!leaf)
		return find_place(index, position, ret) && covers(index, ret, position);
	while (leaf->keys[0] > (int32_t)distance)
		leaf--;
	*ret = place_in(region, (size_t)(leaf - region->leaves) * INDEX_LEAF +
					index_slot_of(leaf, (uint32_t)distance));
	return covers(index, ret, position);
}

static size_t piece_of(const struct index_region *region, const struct index_spot *spot)
{
	return region->first_piece + (size_t)(spot->leaf - region->leaves) * INDEX_LEAF +
	       spot->slot;
}

size_t index_find(const struct index *index, uint64_t position)
{
	const struct index_region *region = index_region_of(index, position);
	struct index_spot spot;
	struct place place;

	if (find_spot(region, position, &spot))
		return piece_of(region, &spot);
	return find_other(index, region, position, spot.leaf, &place) ? place.piece : INDEX_NONE;
}

size_t index_look_up(const struct index *index, uint64_t position, struct index_entry *ret)
{
	const struct index_region *region = index_region_of(index, position);
	struct index_spot spot;
	struct place place;

	if (!find_spot(region, position, &spot)) {
		if (!find_other(index, region, position, spot.leaf, &place))
			return INDEX_NONE;
		describe(index, &place, ret);
		return place.piece;
	}
	ret->start = ret->symbol_start = position - spot.offset_bytes;
	ret->size_bytes = ret->symbol_size_bytes = spot.size_bytes;
	ret->number = spot.leaf->numbers[spot.slot];
	ret->name = name_of(index, ret->number);
	ret->value = index->values[spot.leaf->codes[spot.slot]];
	return piece_of(region, &spot);
}

/* ---- many ---------------------------------------------------------------------- */

struct lane {
	const struct index_region *region;
	const struct index_leaf *leaf; /* NULL: outside the region */
};

/* Finds the leaves of so many positions as there are lanes, and fetches them. */
static void find_leaves(const struct index *index, const uint64_t *positions, size_t count,
			struct lane *lanes)
{
	size_t i;

	for (i = 0; i < count; i++) {
		const struct index_region *region = index_region_of(index, positions[i]);
		uint64_t distance = positions[i] - region->base;

		lanes[i].region = region;
		if (__builtin_expect(distance < region->span_bytes, 1))
			__builtin_prefetch(index_bucket_of(region, index_place(region, distance)));
	}
	for (i = 0; i < count; i++) {
		const struct index_region *region = lanes[i].region;
		uint64_t distance = positions[i] - region->base;

		lanes[i].leaf = NULL;
		if (__builtin_expect(distance < region->span_bytes, 1))
			lanes[i].leaf = leaf_of(region, distance);
		__builtin_prefetch(lanes[i].leaf);
	}
}

static void find_lanes(const struct index *index, const uint64_t *positions, size_t count,
		       size_t *ret)
{
	struct lane lanes[BATCH_LANES];

	find_leaves(index, positions, count, lanes);
	for (size_t i = 0; i < count; i++) {
		const struct index_region *region = lanes[i].region;
		struct index_spot spot;
		struct place place;

		if (__builtin_expect(!lanes[i].leaf, 0)) {
			ret[i] = index_find(index, positions[i]);
			continue;
		}
		index_find_in_leaf(lanes[i].leaf, (uint32_t)(positions[i] - region->base), &spot);
		if (__builtin_expect(spot.size_bytes == INDEX_ODD, 0))
			ret[i] = find_other(index, region, positions[i], spot.leaf, &place)
					 ? place.piece
					 : INDEX_NONE;
		else
			ret[i] = spot.offset_bytes < spot.size_bytes ? piece_of(region, &spot)
								     : INDEX_NONE;
	}
}

void index_find_batch(const struct index *index, const uint64_t *positions, size_t count,
		      size_t *ret)
{
	for (size_t i = 0; i < count; i += BATCH_LANES)
		find_lanes(index, positions + i, count - i < BATCH_LANES ? count - i : BATCH_LANES,
			   ret + i);
}

void index_warm(const struct index *index, const uint64_t *positions, size_t count)
{
	struct lane lanes[BATCH_LANES];
	size_t some;

	for (; count; count -= some, positions += some) {
		some = count < BATCH_LANES ? count : BATCH_LANES;
		find_leaves(index, positions, some, lanes);
	}
}
