/* SPDX-License-Identifier: MIT */
/*
 * The tier that a runtime appends to a method's name: "M()[OptimizedTier1]". The known words are
 * those that runtimes write (prestub.cpp, perfmap.cpp): Unknown, MinOptJitted, Optimized,
 * QuickJitted, OptimizedTier1, OptimizedTier1OSR, InstrumentedTier, InstrumentedTierOptimized,
 * PreJIT, PreJit-cold, ReadyToRun. Any other word belongs to the name.
 */
#ifndef LIBSYM_FORMAT_PERF_PERFMAP_TIER_H
#define LIBSYM_FORMAT_PERF_PERFMAP_TIER_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/libsym.h"

enum {
	PERFMAP_TIERS = 12
};

/* Indexed by number; 0 is no tier, and NULL. */
extern const char *const perfmap_tiers[PERFMAP_TIERS];

/* The value of a line: the number of its tier, and whether it is a stub. */
#define PERFMAP_STUB_BIT ((uint32_t)16)

_Static_assert((uint32_t)PERFMAP_TIERS <= PERFMAP_STUB_BIT, "a tier is no stub");

static inline unsigned int perfmap_tier_of(uint32_t value)
{
	return value & (PERFMAP_STUB_BIT - 1);
}

static inline const char *perfmap_tier(uint32_t value)
{
	return perfmap_tiers[perfmap_tier_of(value)];
}

/* The number of the tier in the flags of an event MethodLoad; 0: none. Events have no "Unknown". */
static inline unsigned int perfmap_tier_of_flags(uint64_t flags)
{
	unsigned int number = flags >> 7 & 7;

	return number ? number + 1 : 0;
}

static inline enum sym_symbol_kind perfmap_tier_kind(uint32_t value)
{
	return value & PERFMAP_STUB_BIT ? SYM_SYMBOL_STUB : SYM_SYMBOL_FUNCTION;
}

/* Returns the length of the name without its tier, and the tier's number in *number_ret. */
size_t perfmap_tier_find(const char *name, size_t name_bytes, unsigned int *number_ret);

/* Like perfmap_tier_find(); *tier_ret is a static string or NULL. */
static inline size_t perfmap_tier_split(const char *name, size_t name_bytes, const char **tier_ret)
{
	unsigned int number;
	size_t bytes = perfmap_tier_find(name, name_bytes, &number);

	*tier_ret = perfmap_tiers[number];
	return bytes;
}

#endif
