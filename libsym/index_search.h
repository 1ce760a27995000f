/* SPDX-License-Identifier: MIT */
/*
 * The ordinary way of a look-up, for those who do many: an ordinary piece, in a bucket
 * of which no cell has several leaves. It has few instructions and no branch that goes one way or
 * the other by what is asked; everything else is left to who looks with care (index.c).
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

/* The leaf in which a position less than span_bytes behind the base of the region is if it is in
 * any, or one behind it that begins in the same cell. NULL where several leaves begin in a cell:
 * index_leaf_number() tells. */
static inline __attribute__((always_inline)) const struct index_leaf *
index_leaf_within(const struct index_region *region, uint64_t distance)
{
	uint64_t place = index_place(region, distance);
	const struct index_bucket *bucket = index_bucket_of(region, place);

	if (__builtin_expect(bucket->crowd, 0))
		return NULL;
	return &region->leaves[index_leaf_at(bucket, place)];
}

/* The number of such a leaf, wherever it is. It needs the buckets and the leaves of the region; as
 * all here, where index_can_count_bits(). */
size_t index_leaf_number(const struct index_region *region, uint64_t distance);

/* Where a position is in an ordinary piece. */
struct index_spot {
	const struct index_leaf *leaf;
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
 * it is there waits for it in the processor, and there is little room to wait. For the same reason
 * nothing is called. */
static inline __attribute__((always_inline)) bool
index_hits_within(const struct index_region *region, uint64_t distance, struct index_spot *ret)
{
	uint64_t place = index_place(region, distance);
	const struct index_bucket *bucket = index_bucket_of(region, place);

	if (__builtin_expect(bucket->crowd, 0))
		return false;
	index_look_in_leaf(&region->leaves[index_leaf_at(bucket, place)], (uint32_t)distance, ret);
	return __builtin_expect(ret->offset_bytes < ret->size_bytes, 1);
}

#endif
