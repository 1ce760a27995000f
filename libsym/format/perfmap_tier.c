/* SPDX-License-Identifier: MIT */
#include "libsym/format/perfmap_tier.h"

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

const char *const perfmap_tiers[PERFMAP_TIERS] = {
	NULL,
	"Unknown",
	"MinOptJitted",
	"Optimized",
	"QuickJitted",
	"OptimizedTier1",
	"OptimizedTier1OSR",
	"InstrumentedTier",
	"InstrumentedTierOptimized",
	"PreJIT",
	"PreJit-cold",
	"ReadyToRun",
};

enum {
	ENDING_BYTES = 32, /* those of the longest word, its brackets, and some more */
	KEY_BYTES = 8,     /* those of the shortest word and its brackets */
	KEY_BITS = 4
};

/* How names end that have a tier, and how many bytes of that belong to the name. */
static const struct ending {
	char text[ENDING_BYTES];
	size_t name_bytes;
} endings[PERFMAP_TIERS] = {
	{ "", ENDING_BYTES }, /* any */
	{ "                       [Unknown]", 23 },
	{ "                  [MinOptJitted]", 18 },
	{ "                     [Optimized]", 21 },
	{ "                   [QuickJitted]", 19 },
	{ "                [OptimizedTier1]", 16 },
	{ "             [OptimizedTier1OSR]", 13 },
	{ "              [InstrumentedTier]", 14 },
	{ "     [InstrumentedTierOptimized]", 5 },
	{ "                        [PreJIT]", 24 },
	{ "                   [PreJit-cold]", 19 },
	{ "                    [ReadyToRun]", 20 },
};

/*
 * Which of them a name can end with, and at last none: the last bytes tell, as key_of() has them.
 * Its factor was found by trying; test_perfmap.c has every word.
 */
static const uint8_t tiers_of_key[1 << KEY_BITS][3] = {
	[0] = { 3, 8 }, [1] = { 2 },  [4] = { 10 }, [5] = { 4 },  [7] = { 9 },
	[8] = { 6 },    [9] = { 11 }, [11] = { 1 }, [13] = { 5 }, [15] = { 7 },
};

static inline unsigned int key_of(const char *text)
{
	uint64_t last;

	memcpy(&last, text + ENDING_BYTES - KEY_BYTES, KEY_BYTES);
	return (unsigned int)(le64toh(last) * 0xf9270f4eb8b333a9 >> (64 - KEY_BITS));
}

/* Are the bytes behind the name's the same? */
static inline bool ends_so(const char *text, const struct ending *ending)
{
#ifdef __SSE2__
	const __m128i *left = (const __m128i *)text, *right = (const __m128i *)ending->text;
	__m128i low = _mm_cmpeq_epi8(_mm_loadu_si128(left), _mm_loadu_si128(right));
	__m128i high = _mm_cmpeq_epi8(_mm_loadu_si128(left + 1), _mm_loadu_si128(right + 1));
	uint64_t same = (uint32_t)_mm_movemask_epi8(low) | (uint32_t)_mm_movemask_epi8(high) << 16;

	return same >> ending->name_bytes == (uint64_t)UINT32_MAX >> ending->name_bytes;
#else
	return !memcmp(text + ending->name_bytes, ending->text + ending->name_bytes,
		       ENDING_BYTES - ending->name_bytes);
#endif
}

/* Of the end of a name, how many bytes belong to the name. No branch asks which tier it is, but for
 * a rare one. */
static inline size_t split_ending(const char *text, unsigned int *number_ret)
{
	const uint8_t *tier = tiers_of_key[key_of(text)];

	while (__builtin_expect(!ends_so(text, &endings[*tier]), 0))
		tier++;
	*number_ret = *tier;
	return endings[*tier].name_bytes;
}

/* The same of a name that has fewer bytes. What is all in brackets is a name. */
static __attribute__((noinline)) size_t split_short(const char *name, size_t name_bytes,
						    unsigned int *number_ret)
{
	char text[ENDING_BYTES] = { 0 };
	size_t missing_bytes = ENDING_BYTES - name_bytes;

	memcpy(text + missing_bytes + 1, name + 1, name_bytes - 1);
	return split_ending(text, number_ret) - missing_bytes;
}

size_t perfmap_find_tier(const char *name, size_t name_bytes, unsigned int *number_ret)
{
	if (!name_bytes || name[name_bytes - 1] != ']') {
		*number_ret = 0;
		return name_bytes;
	}
	if (name_bytes < ENDING_BYTES)
		return split_short(name, name_bytes, number_ret);
	name_bytes -= ENDING_BYTES;
	return name_bytes + split_ending(name + name_bytes, number_ret);
}
