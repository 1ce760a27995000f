/* SPDX-License-Identifier: MIT */
/*
 * The ordinary way of a look-up, for those who do many: an ordinary piece. It has few instructions
 * and no branch that goes one way or the other by what is asked; everything else is left to who
 * looks with care (index.c).
 */
#ifndef LIBSYM_INDEX_SEARCH_H
#define LIBSYM_INDEX_SEARCH_H

#include <stdbool.h>

#include "libsym/index_keys.h"

/* The region in which the position is if it is in any but for a few. */
static inline const struct index_region *index_region_of(const struct index *index,
							 uint64_t position)
{
	return &index->slots[position >> index->slot_shift & index->slot_mask];
}

/* For index_leaf_number(), in a bucket of which a cell has several leaves. It needs the buckets and
 * the leaves of the region. */
size_t index_leaf_in_crowd(const struct index_region *region, const struct index_bucket *bucket,
			   uint64_t place, uint64_t distance);

/* The number, in its region, of the leaf in which a position less than span_bytes behind the base
 * is if it is in any, or of one behind it that begins in the same cell. */
static inline __attribute__((always_inline)) size_t
index_leaf_number(const struct index_region *region, uint64_t distance)
{
	uint64_t place = index_place(region, distance);
	const struct index_bucket *bucket = index_bucket_of(region, place);

	if (__builtin_expect(bucket->crowd, 0))
		return index_leaf_in_crowd(region, bucket, place, distance);
	return index_leaf_at(bucket, place);
}

static inline __attribute__((always_inline)) const struct index_leaf *
index_leaf_within(const struct index_region *region, uint64_t distance)
{
	return &region->leaves[index_leaf_number(region, distance)];
}

/* Where a position is in an ordinary piece. */
struct index_spot {
	const struct index_leaf *leaf;
	size_t leaf_number; /* of the region; only as index_hits_within() leaves it */
	size_t slot;
	uint32_t offset_bytes, size_bytes;
};

/* Finds the piece that starts last at or below the distance, or the first one of the leaf. It
 * covers the position if `offset_bytes` is less than `size_bytes`. */
static inline __attribute__((always_inline)) void
index_look_in_leaf(const struct index_leaf *leaf, uint32_t distance, struct index_spot *ret)
{
	size_t slot = index_slot_of(leaf, distance);

	ret->leaf = leaf;
	ret->slot = slot;
	ret->offset_bytes = distance - (uint32_t)leaf->keys[slot];
	ret->size_bytes = leaf->sizes[slot];
}

/* The same in leaves before this one too: what it does not cover is in no ordinary piece, and in
 * none at all unless `size_bytes` is INDEX_ODD. */
static inline __attribute__((always_inline)) void
index_find_in_leaf(const struct index_leaf *leaf, uint32_t distance, struct index_spot *ret)
{
	index_look_in_leaf(leaf, distance, ret);
	while (__builtin_expect((int32_t)ret->offset_bytes < 0, 0))
		index_look_in_leaf(--leaf, distance, ret);
}

/* Finds the ordinary piece that covers a position less than span_bytes behind the base. False: it
 * is to be looked for with more care. That there is one is foretold: what is done with a leaf once
 * it is there waits for it in the processor, and there is little room to wait. */
static inline __attribute__((always_inline)) bool
index_hits_within(const struct index_region *region, uint64_t distance, struct index_spot *ret)
{
	ret->leaf_number = index_leaf_number(region, distance);
	index_look_in_leaf(&region->leaves[ret->leaf_number], (uint32_t)distance, ret);
	return __builtin_expect(ret->offset_bytes < ret->size_bytes, 1);
}

/* The same for any position, and where the leaf before has it. What is nowhere in the region may be
 * in another. */
static inline __attribute__((always_inline)) bool
index_find_spot(const struct index_region *region, uint64_t position, struct index_spot *ret)
{
	uint64_t distance = position - region->base;

	if (__builtin_expect(distance >= region->span_bytes, 0))
		return false;
	if (index_hits_within(region, distance, ret))
		return true;
	if ((int32_t)ret->offset_bytes >= 0)
		return false;
	index_look_in_leaf(&region->leaves[--ret->leaf_number], (uint32_t)distance, ret);
	return ret->offset_bytes < ret->size_bytes;
}

/* Of what these have found. */
static inline size_t index_piece_of(const struct index_region *region,
				    const struct index_spot *spot)
{
	return region->first_piece + spot->leaf_number * INDEX_LEAF + spot->slot;
}

#endif
