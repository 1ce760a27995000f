/* SPDX-License-Identifier: MIT */
/*
 * The ordinary way of a look-up, for those who do many: an ordinary piece, in a bucket that
 * lists all its leaves. It has few instructions and no branch that goes one way or the
 * other by what is asked; everything else is left to who looks with care (index.c).
 */
#ifndef LIBSYM_INDEX_SEARCH_H
#define LIBSYM_INDEX_SEARCH_H

#include <stdbool.h>

#include "libsym/index_keys.h"

/* The region with the highest base at or below the position; the first one when all are above. */
static inline const struct index_region *index_region_of(const struct index *index,
							 uint64_t position)
{
	const struct index_region *region = index->regions;
	size_t count = index->region_count;

	while (__builtin_expect(count > 1 + INDEX_REGION_COPIES, 0)) {
		size_t half = count / 2;

		region = region[half].base <= position ? region + half : region;
		count -= half;
	}
	/* Behind the last one are copies of it. */
	return region + (region[1].base <= position) + (region[2].base <= position) +
	       (region[3].base <= position);
}

/* The leaf in which a position less than span_bytes behind the base of the region is if it is in
 * any, or one behind it that begins in the same unit of the bucket's keys. NULL when it is to be
 * looked for with care. */
static inline __attribute__((always_inline)) const struct index_leaf *
index_leaf_within(const struct index_region *region, uint64_t distance)
{
	uint64_t place = index_place(region, distance);
	const struct index_bucket *bucket = index_bucket_of(region, place);

	if (__builtin_expect(bucket->leaf & INDEX_CROWD, 0))
		return NULL;
	return &region->leaves[bucket->leaf + index_leaves_at_or_below(bucket, place)];
}

/* The same for any distance. */
static inline __attribute__((always_inline)) const struct index_leaf *
index_find_leaf(const struct index_region *region, uint64_t distance)
{
	if (__builtin_expect(distance >= region->span_bytes, 0))
		return NULL;
	return index_leaf_within(region, distance);
}

/* Where a position is in an ordinary piece. */
struct index_spot {
	const struct index_leaf *leaf;
	size_t slot;
	uint32_t offset_bytes, size_bytes;
};

/* Finds the piece that starts last at or below the distance. It covers the position if
 * `offset_bytes` is less than `size_bytes`, unless that is INDEX_ODD. */
static inline __attribute__((always_inline)) void
index_find_in_leaf(const struct index_leaf *leaf, uint32_t distance, struct index_spot *ret)
{
	size_t pieces = index_pieces_at_or_below(leaf, distance);

	while (__builtin_expect(!pieces, 0))
		pieces = index_pieces_at_or_below(--leaf, distance);
	ret->leaf = leaf;
	ret->slot = pieces - 1;
	ret->offset_bytes = distance - (uint32_t)leaf->keys[pieces - 1];
	ret->size_bytes = leaf->sizes[pieces - 1];
}

static inline size_t index_piece_of(const struct index_region *region,
				    const struct index_spot *spot)
{
	return region->first_piece + (size_t)(spot->leaf - region->leaves) * INDEX_LEAF +
	       spot->slot;
}

enum index_outcome {
	INDEX_MISS,
	INDEX_HIT,
	INDEX_CAREFUL /* it is to be looked for with care */
};

static inline __attribute__((always_inline)) enum index_outcome
index_find_spot(const struct index_region *region, uint64_t position, struct index_spot *ret)
{
	uint64_t distance = position - region->base;
	const struct index_leaf *leaf = index_find_leaf(region, distance);

	if (__builtin_expect(!leaf, 0))
		return distance >= region->reach_bytes ? INDEX_MISS : INDEX_CAREFUL;
	index_find_in_leaf(leaf, (uint32_t)distance, ret);
	if (__builtin_expect(ret->offset_bytes < ret->size_bytes, 1))
		return INDEX_HIT;
	return __builtin_expect(ret->size_bytes == INDEX_ODD, 0) ? INDEX_CAREFUL : INDEX_MISS;
}

#endif
