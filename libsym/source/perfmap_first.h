/* SPDX-License-Identifier: MIT */
/*
 * What a perf map had when it was read first, for look-ups by the million: the search
 * itself, without a call. Stays as long as its source, whatever is refreshed.
 */
#ifndef LIBSYM_SOURCE_PERFMAP_FIRST_H
#define LIBSYM_SOURCE_PERFMAP_FIRST_H

#include <stdint.h>

#include "libsym/index_search.h"
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

struct perfmap_found {
	const char *name, *tier;
	uint64_t offset_bytes, size_bytes;
	enum sym_symbol_kind kind;
};

/* `ret` is of use for a hit only; INDEX_CAREFUL: not on the ordinary way. */
static inline __attribute__((always_inline)) enum index_outcome
perfmap_first_find(const struct perfmap_first *first, uint64_t address, struct perfmap_found *ret)
{
	const struct index *index = first->index;
	struct index_spot spot;
	enum index_outcome outcome =
		index_find_spot(index_region_of(index, address), address, &spot);
	uint32_t value;

	if (__builtin_expect(outcome != INDEX_HIT, 0))
		return outcome;
	value = index->values[spot.leaf->codes[spot.slot]];
	ret->name = perfmap_names_at(first->names, spot.leaf->numbers[spot.slot]);
	if (__builtin_expect(!ret->name, 0))
		return INDEX_CAREFUL;
	ret->tier = perfmap_tier(first->tiers, value);
	ret->offset_bytes = spot.offset_bytes;
	ret->size_bytes = spot.size_bytes;
	ret->kind = perfmap_kind(value);
	return INDEX_HIT;
}

#endif
