/* SPDX-License-Identifier: MIT */
/*
 * The inner step of a look-up: how many of some ascending keys are at or below one,
 * by comparing them all at once. Knows nothing of what keys mean.
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
/* What is above stands behind what is not: the first one above is the count. */
static inline size_t index_keys_count(__m128i above_low, __m128i above_high, unsigned int count)
{
	int above = _mm_movemask_epi8(_mm_packs_epi16(above_low, above_high));

	return (size_t)__builtin_ctz((unsigned int)above | 1u << count);
}

/* Of a leaf; what is compared behind its keys, because vectors have 8 each, does not count. */
static inline size_t index_leaf_keys_at_or_below(const struct index_leaf *leaf, int16_t key)
{
	const __m128i *vectors = (const __m128i *)(const void *)leaf;
	__m128i all = _mm_set1_epi16(key);

	return index_keys_count(_mm_cmpgt_epi16(_mm_loadu_si128(vectors), all),
				_mm_cmpgt_epi16(_mm_loadu_si128(vectors + 1), all), INDEX_LEAF);
}

/* Of INDEX_FIRST_KEYS. */
static inline size_t index_keys_at_or_below(const int32_t *keys, int32_t key)
{
	const __m128i *vectors = (const __m128i *)keys;
	__m128i all = _mm_set1_epi32(key);
	__m128i a = _mm_cmpgt_epi32(_mm_loadu_si128(vectors), all);
	__m128i b = _mm_cmpgt_epi32(_mm_loadu_si128(vectors + 1), all);
	__m128i c = _mm_cmpgt_epi32(_mm_loadu_si128(vectors + 2), all);
	__m128i d = _mm_cmpgt_epi32(_mm_loadu_si128(vectors + 3), all);

	return index_keys_count(_mm_packs_epi32(a, b), _mm_packs_epi32(c, d), INDEX_FIRST_KEYS);
}
#else
static inline size_t index_leaf_keys_at_or_below(const struct index_leaf *leaf, int16_t key)
{
	size_t count = 0;

	for (size_t i = 0; i < INDEX_LEAF; i++)
		count += leaf->keys[i] <= key;
	return count;
}

static inline size_t index_keys_at_or_below(const int32_t *keys, int32_t key)
{
	size_t count = 0;

	for (size_t i = 0; i < INDEX_FIRST_KEYS; i++)
		count += keys[i] <= key;
	return count;
}
#endif

#endif
