/* SPDX-License-Identifier: MIT */
/*
 * Looking up in a frozen index. The steps of one look-up wait for each other,
 * mostly for memory, so a batch takes each step for many positions in turn:
 * while one waits for its cache line, the others go on.
 */
#include "libsym/index_keys.h"

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
	free(index->regions);
	free(index->leaves);
	free(index->buckets);
	if (index->owns_names)
		index_names_destroy(index->names);
	free(index->odd);
	free(index);
}

size_t index_count(const struct index *index)
{
	return index->count;
}

static int compare_odd(const void *key, const void *element)
{
	uint32_t piece = *(const uint32_t *)key;
	const struct index_odd *odd = element;

	return piece < odd->piece ? -1 : piece > odd->piece;
}

static const struct index_odd *find_odd(const struct index *index, size_t piece)
{
	uint32_t number = (uint32_t)piece;

	return bsearch(&number, index->odd, index->odd_count, sizeof(*index->odd), compare_odd);
}

/* The region of a leaf. */
static const struct index_region *region_of_leaf(const struct index *index, size_t leaf)
{
	const struct index_region *region = index->regions;
	size_t count = index->region_count;

	while (count > 1) {
		size_t half = count / 2;

		if (region[half].first_leaf <= leaf)
			region += half;
		count -= half;
	}
	return region;
}

/* The leaf of a piece. None holds more than INDEX_LEAF, so it is not before the one where all are
 * full; mostly close behind. */
static size_t leaf_of_piece(const struct index *index, size_t piece)
{
	size_t low = piece / INDEX_LEAF, step = 1, high;

	while (low + step < index->leaf_count && index->leaves[low + step].first_piece <= piece) {
		low += step;
		step *= 2;
	}
	high = low + step < index->leaf_count ? low + step : index->leaf_count;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (index->leaves[middle].first_piece <= piece)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static inline void describe(const struct index *index, const struct index_leaf *leaf, size_t slot,
			    uint64_t start, struct index_entry *ret)
{
	uint32_t number = leaf->numbers[slot];
	const struct index_odd *odd = NULL;

	if (__builtin_expect(leaf->sizes[slot] == INDEX_ODD, 0))
		odd = find_odd(index, leaf->first_piece + slot);
	*ret = (struct index_entry){
		.start = start,
		.size_bytes = odd ? odd->size_bytes : leaf->sizes[slot],
		.symbol_start = odd ? odd->symbol_start : start,
		.symbol_size_bytes = odd ? odd->symbol_size_bytes : leaf->sizes[slot],
		.name = index->is_numbered ? "" : index_names_at(index->names, number),
		.number = number,
		.value = odd ? odd->value : index->values[leaf->codes[slot]],
	};
}

void index_at(const struct index *index, size_t i, struct index_entry *ret)
{
	size_t leaf_number = leaf_of_piece(index, i);
	const struct index_leaf *leaf = &index->leaves[leaf_number];
	const struct index_region *region = region_of_leaf(index, leaf_number);
	size_t slot = i - leaf->first_piece;

	describe(index, leaf, slot,
		 region->base + leaf->distance + index_key_distance(leaf->keys[slot]), ret);
}

/* ---- one step ---------------------------------------------------------------- */

/* The region with the highest base at or below the position; the first one when all are above. */
static inline const struct index_region *region_of_position(const struct index *index,
							    uint64_t position)
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

/* A position far behind the last start of its region is told apart by its size. */
static inline uint32_t distance_in(const struct index_region *region, uint64_t position)
{
	uint64_t distance = position - region->base;

	return distance < INDEX_NO_LEAF ? (uint32_t)distance : INDEX_NO_LEAF - 1;
}

/* Behind the last leaf that begins there may be buckets that are not there; the last one has it. */
static inline const struct index_bucket *
bucket_of(const struct index *index, const struct index_region *region, uint32_t distance)
{
	size_t bucket = distance >> region->bucket_shift;

	return &index->buckets[region->first_bucket +
			       (bucket < region->bucket_count ? bucket : region->bucket_count)];
}

/* Leaves crowd in this bucket: the last one of them that is not above the position. */
static __attribute__((noinline)) size_t search_crowd(const struct index *index,
						     const struct index_region *region,
						     const struct index_bucket *bucket,
						     uint32_t distance)
{
	const struct index_leaf *leaves = index->leaves + region->first_leaf;
	size_t low = bucket[0].leaf & ~INDEX_CROWD, high = bucket[1].leaf & ~INDEX_CROWD;

	while (low < high) {
		size_t middle = low + (high - low + 1) / 2;

		if (leaves[middle].distance <= distance)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

/* The number, in its region, of the leaf in which the position is if it is anywhere, or of one
 * behind it that begins in the same unit of the bucket's keys. */
static inline size_t find_leaf(const struct index *index, const struct index_region *region,
			       const struct index_bucket *bucket, uint32_t distance)
{
	uint32_t place = distance & ((1u << region->bucket_shift) - 1);

	if (__builtin_expect(bucket->leaf & INDEX_CROWD, 0))
		return search_crowd(index, region, bucket, distance);
	return bucket->leaf + index_bucket_keys_at_or_below(
				      bucket, index_key((uint16_t)(place >> region->key_shift)));
}

/* A piece that a position may lie in. */
struct place {
	const struct index_leaf *leaf;
	size_t slot;
	uint64_t start;
};

static inline __attribute__((always_inline)) struct place
search_leaf(const struct index *index, const struct index_region *region, size_t leaf_number,
	    uint64_t position)
{
	const struct index_leaf *leaf = &index->leaves[region->first_leaf + leaf_number];
	uint64_t start = region->base + leaf->distance, distance;
	size_t slot;

	while (__builtin_expect(position < start, 0)) {
		leaf--;
		start = region->base + leaf->distance;
	}
	distance = position - start;
	distance = distance < INDEX_NO_KEY ? distance : INDEX_NO_KEY - 1;
	/* The leaf begins at or below the position, so at least one key does. */
	slot = index_leaf_keys_at_or_below(leaf, index_key((uint16_t)distance)) - 1;
	return (struct place){ leaf, slot, start + index_key_distance(leaf->keys[slot]) };
}

static inline __attribute__((always_inline)) bool
covers(const struct index *index, const struct place *place, uint64_t position)
{
	uint64_t size_bytes = place->leaf->sizes[place->slot];

	if (__builtin_expect(size_bytes == INDEX_ODD, 0))
		size_bytes = find_odd(index, place->leaf->first_piece + place->slot)->size_bytes;
	return position - place->start < size_bytes;
}

/* False when the position lies before all. */
static inline __attribute__((always_inline)) bool
find_place(const struct index *index, uint64_t position, bool answer, struct place *ret)
{
	const struct index_region *region;
	uint32_t distance;
	size_t leaf;

	if (!index->count || position < index->regions[0].base)
		return false;
	region = region_of_position(index, position);
	distance = distance_in(region, position);
	leaf = find_leaf(index, region, bucket_of(index, region, distance), distance);
	/* On its way while the first line comes. */
	if (answer)
		__builtin_prefetch(index->leaves[region->first_leaf + leaf].numbers);
	*ret = search_leaf(index, region, leaf, position);
	return true;
}

size_t index_find(const struct index *index, uint64_t position)
{
	struct place place;

	if (!find_place(index, position, false, &place) || !covers(index, &place, position))
		return INDEX_NONE;
	return place.leaf->first_piece + place.slot;
}

static __attribute__((noinline)) size_t look_up_odd(const struct index *index,
						    const struct place *place, uint64_t position,
						    struct index_entry *ret)
{
	if (!covers(index, place, position))
		return INDEX_NONE;
	describe(index, place->leaf, place->slot, place->start, ret);
	return place->leaf->first_piece + place->slot;
}

size_t index_look_up(const struct index *index, uint64_t position, struct index_entry *ret)
{
	const struct index_leaf *leaf;
	struct place place;
	uint64_t size_bytes;

	if (!find_place(index, position, true, &place))
		return INDEX_NONE;
	leaf = place.leaf;
	size_bytes = leaf->sizes[place.slot];
	if (__builtin_expect(size_bytes == INDEX_ODD, 0))
		return look_up_odd(index, &place, position, ret);
	if (position - place.start >= size_bytes)
		return INDEX_NONE;
	ret->start = ret->symbol_start = place.start;
	ret->size_bytes = ret->symbol_size_bytes = size_bytes;
	ret->number = leaf->numbers[place.slot];
	ret->name = index_names_at(index->names, ret->number);
	ret->value = index->values[leaf->codes[place.slot]];
	return leaf->first_piece + place.slot;
}

/* ---- many ---------------------------------------------------------------------- */

struct lane {
	const struct index_region *region;
	const struct index_bucket *bucket;
	size_t leaf;
	uint32_t distance;
};

/* Finds the leaves of so many positions as there are lanes, and fetches them. */
static void find_leaves(const struct index *index, const uint64_t *positions, size_t count,
			bool answer, struct lane *lanes)
{
	size_t i;

	for (i = 0; i < count; i++) {
		const struct index_region *region = region_of_position(index, positions[i]);
		uint32_t distance = distance_in(region, positions[i]);

		lanes[i] = (struct lane){ .region = region,
					  .distance = distance,
					  .bucket = bucket_of(index, region, distance) };
		__builtin_prefetch(lanes[i].bucket);
	}
	for (i = 0; i < count; i++) {
		const struct index_leaf *leaf;

		lanes[i].leaf =
			find_leaf(index, lanes[i].region, lanes[i].bucket, lanes[i].distance);
		leaf = &index->leaves[lanes[i].region->first_leaf + lanes[i].leaf];
		__builtin_prefetch(leaf);
		if (answer)
			__builtin_prefetch(leaf->numbers);
	}
}

static void find_lanes(const struct index *index, const uint64_t *positions, size_t count,
		       size_t *ret)
{
	struct lane lanes[BATCH_LANES];

	find_leaves(index, positions, count, false, lanes);
	for (size_t i = 0; i < count; i++) {
		struct place place;

		ret[i] = INDEX_NONE;
		if (positions[i] < index->regions[0].base)
			continue;
		place = search_leaf(index, lanes[i].region, lanes[i].leaf, positions[i]);
		if (covers(index, &place, positions[i]))
			ret[i] = place.leaf->first_piece + place.slot;
	}
}

void index_find_batch(const struct index *index, const uint64_t *positions, size_t count,
		      size_t *ret)
{
	size_t i;

	for (i = 0; i < count && !index->count; i++)
		ret[i] = INDEX_NONE;
	for (; i < count; i += BATCH_LANES)
		find_lanes(index, positions + i, count - i < BATCH_LANES ? count - i : BATCH_LANES,
			   ret + i);
}

void index_warm(const struct index *index, const uint64_t *positions, size_t count)
{
	struct lane lanes[BATCH_LANES];
	size_t some;

	for (; count && index->count; count -= some, positions += some) {
		some = count < BATCH_LANES ? count : BATCH_LANES;
		find_leaves(index, positions, some, true, lanes);
	}
}
