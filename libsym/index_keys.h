/* SPDX-License-Identifier: MIT */
/*
 * The inner steps of a look-up: where a position is in the buckets, and how many of some
 * ascending keys are at or below one, by comparing them all at once.
 */
#ifndef LIBSYM_INDEX_KEYS_H
#define LIBSYM_INDEX_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "libsym/base/processor.h"
#include "libsym/index_layout.h"

/* The bucket of something is above 32 bits of this, its cell above so many: */
#define INDEX_CELL_SHIFT 26

static inline uint64_t index_place(const struct index_region *region, uint64_t distance)
{
	return distance * region->bucket_rate;
}

static inline const struct index_bucket *index_bucket_of(const struct index_region *region,
							 uint64_t place)
{
	return &region->buckets[place >> 32];
}

/* Of the 64 of its bucket. */
static inline unsigned int index_cell(uint64_t place)
{
	return place >> INDEX_CELL_SHIFT & 63;
}

/* Of a bucket that is cut into finer ones, the one for the place, which becomes a place in that. */
static inline const struct index_bucket *index_finer_of(const struct index_region *region,
							const struct index_bucket *bucket,
							uint64_t *place)
{
	*place = (uint64_t)(uint32_t)*place << (bucket->crowd & INDEX_CROWD);
	return region->buckets + (bucket->crowd >> INDEX_FINER_BITS) + (*place >> 32);
}

/* Is index_count_bits() to be had? */
static inline bool index_can_count_bits(void)
{
#if defined(__x86_64__) && !defined(__POPCNT__)
	return processor_counts_bits();
#else
	return true;
#endif
}

/* How many bits are set: one instruction on all machines of the last years, which a compiler may
 * not take for granted. */
static inline unsigned int index_count_bits(uint64_t bits)
{
#if defined(__x86_64__) && !defined(__POPCNT__)
	__asm__("popcnt %0, %0" : "+r"(bits) : : "cc");
	return (unsigned int)bits;
#else
	return (unsigned int)__builtin_popcountll(bits);
#endif
}

/* The bits for the cells that are not behind the place. */
static inline uint64_t index_cells_to(const struct index_bucket *bucket, uint64_t place)
{
	return bucket->begins << (63 - index_cell(place));
}

/* The last leaf that begins in a cell that is not behind the place. */
static inline uint32_t index_leaf_at(const struct index_bucket *bucket, uint64_t place)
{
	return bucket->before + index_count_bits(index_cells_to(bucket, place));
}

#ifdef __SSE2__
/* How many pieces of the leaf, without its first one, start at or below the distance. */
static inline size_t index_slot_of(const struct index_leaf *leaf, uint32_t distance)
{
	__m128i keys = _mm_load_si128((const __m128i *)(leaf->keys + 1));
	__m128i below = _mm_cmpgt_epi32(_mm_set1_epi32((int32_t)(distance + 1)), keys);
	int mask = _mm_movemask_ps(_mm_castsi128_ps(below));

	return (unsigned int)__builtin_ctz((unsigned int)mask + 1);
}
#else
static inline size_t index_slot_of(const struct index_leaf *leaf, uint32_t distance)
{
	size_t slot = 0;

	for (size_t i = 1; i < INDEX_LEAF; i++)
		slot += leaf->keys[i] <= (int32_t)distance;
	return slot;
}
#endif

#endif
