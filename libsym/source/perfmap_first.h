/* SPDX-License-Identifier: MIT */
/*
 * What a perf map had when it was read first, for look-ups by the million (quick_look_up.h).
 * Stays as long as its source, whatever is refreshed.
 */
#ifndef LIBSYM_SOURCE_PERFMAP_FIRST_H
#define LIBSYM_SOURCE_PERFMAP_FIRST_H

#include <stdint.h>

#include "libsym/index_layout.h"
#include "libsym/libsym.h"
#include "libsym/source/perfmap_names.h"
#include "libsym/source/tier_table.h"

/* Values of its index: the number of the tier, and this. */
#define PERFMAP_STUB_BIT ((uint32_t)TIER_TABLE_ROOM)

struct perfmap_first {
	const struct index *index;
	const struct perfmap_names *names;
	const struct tier_table *tiers;
};

static inline const char *perfmap_tier(const struct tier_table *tiers, uint32_t value)
{
	return tiers->tiers[value & TIER_TABLE_MASK];
}

static inline enum sym_symbol_kind perfmap_kind(uint32_t value)
{
	return value & PERFMAP_STUB_BIT ? SYM_SYMBOL_STUB : SYM_SYMBOL_FUNCTION;
}

#endif
