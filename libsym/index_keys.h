/* SPDX-License-Identifier: MIT */
/*
 * The inner steps of a look-up: how many of some ascending keys are at or below one,
 * by comparing them all at once.
 */
#ifndef LIBSYM_INDEX_KEYS_H
#define LIBSYM_INDEX_KEYS_H

#include <stddef.h>
#include <stdint.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "libsym/index_layout.h"

#ifdef __SSE2__
/* Of 16 places that hold 16 bits each, one bit for those that are above the key. */
static inline unsigned int index_places_above(const void *places, int16_t key)
{
	const __m128i *vectors = places;
	__m128i all = _mm_set1_epi16(key);
	__m128i low = _mm_cmpgt_epi16(_mm_loadu_si128(vectors), all);
	__m128i high = _mm_cmpgt_epi16(_mm_loadu_si128(vectors + 1), all);

	return (unsigned int)_mm_movemask_epi8(_mm_packs_epi16(low, high));
}

/* What is above stands behind what is not; what is compared behind the keys does not count. */
static inline size_t index_leaf_keys_at_or_below(const struct index_leaf *leaf, int16_t key)
{
	unsigned int above = index_places_above(leaf, key);

	return (size_t)__builtin_ctz(above | 1u << INDEX_LEAF);
}

/* The number of the leaf takes up two places before the keys. */
static inline size_t index_bucket_keys_at_or_below(const struct index_bucket *bucket, int16_t key)
{
	unsigned int above = index_places_above(bucket, key) >> 2;

	return (size_t)__builtin_ctz(above | 1u << INDEX_BUCKET);
}
#else
static inline size_t index_count_keys(const int16_t *keys, size_t count, int16_t key)
{
	size_t at_or_below = 0;

	for (size_t i = 0; i < count; i++)
		at_or_below += keys[i] <= key;
	return at_or_below;
}

static inline size_t index_leaf_keys_at_or_below(const struct index_leaf *leaf, int16_t key)
{
	return index_count_keys(leaf->keys, INDEX_LEAF, key);
}

static inline size_t index_bucket_keys_at_or_below(const struct index_bucket *bucket, int16_t key)
{
	return index_count_keys(bucket->keys, INDEX_BUCKET, key);
}
#endif

#endif
