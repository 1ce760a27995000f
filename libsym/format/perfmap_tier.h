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

enum {
	PERFMAP_TIERS = 12
};

/* By number; 0 is none, and NULL. */
extern const char *const perfmap_tiers[PERFMAP_TIERS];

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
