/* SPDX-License-Identifier: MIT */
/*
 * The inner steps of a look-up: where a position is in the buckets, and how many of some
 * ascending keys are at or below one, by comparing them all at once.
 */
#ifndef LIBSYM_INDEX_KEYS_H
#define LIBSYM_INDEX_KEYS_H

#include <stddef.h>
#include <stdint.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "libsym/index_layout.h"

/* Where something is in a bucket, a part of its width, are the bits 24 to 31 of this. */
static inline uint64_t index_place(const struct index_region *region, uint64_t distance)
{
	return distance * region->bucket_rate;
}

/* What is said of a leaf that begins at such a place, not the first one: so that what is below a
 * key of a position, with signed comparison, all that SSE2 has, begins at or below it. */
static inline int8_t index_place_key(uint64_t place)
{
	return (int8_t)((place >> 24 & UINT8_MAX) - 1 - 0x80);
}

#define INDEX_NO_PLACE INT8_MAX

static inline const struct index_bucket *index_bucket_of(const struct index_region *region,
							 uint64_t place)
{
	return &region->buckets[place >> 32];
}

#ifdef __SSE2__
/* How many leaves begin in the bucket at or below the place. */
static inline uint32_t index_leaves_at_or_below(const struct index_bucket *bucket, uint64_t place)
{
	__m128i key = _mm_cvtsi64_si128((int64_t)(place ^ 0x80000000u)), below;

	/* The fourth byte, everywhere. */
	key = _mm_shufflelo_epi16(_mm_unpacklo_epi8(key, key), 0xff);
	below = _mm_cmpgt_epi8(_mm_unpacklo_epi64(key, key),
			       _mm_load_si128((const __m128i *)bucket));
	/* They stand in front; what is compared behind the keys does not count. */
	return (uint32_t)__builtin_ctz(~(uint32_t)_mm_movemask_epi8(below) | 1u << INDEX_BUCKET);
}

/* How many pieces of the leaf start at or below the distance. */
static inline size_t index_pieces_at_or_below(const struct index_leaf *leaf, uint32_t distance)
{
	const __m128i *keys = (const __m128i *)leaf;
	__m128i all = _mm_set1_epi32((int32_t)(distance + 1));
	__m128i low = _mm_cmpgt_epi32(all, _mm_load_si128(keys));
	__m128i high = _mm_cmpgt_epi32(all, _mm_load_si128(keys + 1));
	unsigned int below = (unsigned int)_mm_movemask_epi8(_mm_packs_epi32(low, high));

	return (unsigned int)__builtin_ctz(below + 1) / 2;
}
#else
static inline uint32_t index_leaves_at_or_below(const struct index_bucket *bucket, uint64_t place)
{
	int32_t key = (int32_t)(place >> 24 & UINT8_MAX) - 0x80;
	uint32_t at_or_below = 0;

	for (size_t i = 0; i < INDEX_BUCKET; i++)
		at_or_below += bucket->keys[i] < key;
	return at_or_below;
}

static inline size_t index_pieces_at_or_below(const struct index_leaf *leaf, uint32_t distance)
{
	size_t at_or_below = 0;

	for (size_t i = 0; i < INDEX_LEAF; i++)
		at_or_below += leaf->keys[i] <= (int32_t)distance;
	return at_or_below;
}
#endif

#endif
