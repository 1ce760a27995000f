/* SPDX-License-Identifier: MIT */
/*
 * The tier that a runtime appends to a method's name: "M()[OptimizedTier1]". Knows the words
 * that runtimes write (dotnet-formats: prestub.cpp, perfmap.cpp): Unknown, MinOptJitted,
 * Optimized, QuickJitted, OptimizedTier1, OptimizedTier1OSR, InstrumentedTier,
 * InstrumentedTierOptimized, PreJIT, PreJit-cold, ReadyToRun. Any other word belongs to the name.
 */
#ifndef LIBSYM_FORMAT_PERFMAP_TIER_H
#define LIBSYM_FORMAT_PERFMAP_TIER_H

#include <stddef.h>
#include <stdint.h>

enum {
	PERFMAP_TIERS = 12
};

/* By number; 0 is none, and NULL. */
extern const char *const perfmap_tiers[PERFMAP_TIERS];

/* So many bytes of a name they and their brackets are. */
extern const uint8_t perfmap_tier_bytes[PERFMAP_TIERS];

/* What is known of a line, in a word: the number of its tier, and that it tells of a stub. */
#define PERFMAP_STUB_BIT ((uint32_t)16)

_Static_assert((uint32_t)PERFMAP_TIERS <= PERFMAP_STUB_BIT, "a tier is no stub");

static inline unsigned int perfmap_tier_of(uint32_t value)
{
	return value & (PERFMAP_STUB_BIT - 1);
}

/* The length of the name without it, and its number. */
size_t perfmap_find_tier(const char *name, size_t name_bytes, unsigned int *number_ret);

/* The same; *tier_ret is a static string or NULL. */
static inline size_t perfmap_split_tier(const char *name, size_t name_bytes, const char **tier_ret)
{
	unsigned int number;
	size_t bytes = perfmap_find_tier(name, name_bytes, &number);

	*tier_ret = perfmap_tiers[number];
	return bytes;
}

#endif
