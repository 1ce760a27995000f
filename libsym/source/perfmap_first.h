/* SPDX-License-Identifier: MIT */
/*
 * What a perf map had when it was read first, for look-ups by the million (quick_look_up.h).
 * Stays as long as its source, whatever is refreshed.
 */
#ifndef LIBSYM_SOURCE_PERFMAP_FIRST_H
#define LIBSYM_SOURCE_PERFMAP_FIRST_H

#include <stdint.h>

#include "libsym/format/perfmap_tier.h"
#include "libsym/index_layout.h"
#include "libsym/libsym.h"
#include "libsym/source/perfmap_names.h"

/* Values of its index: the number of the tier (perfmap_tier.h), and this. */
#define PERFMAP_STUB_BIT ((uint32_t)16)

struct perfmap_first {
	const struct index *index;
	const struct perfmap_names *names;
};

_Static_assert((uint32_t)PERFMAP_TIERS <= PERFMAP_STUB_BIT, "a tier is no stub");

static inline const char *perfmap_tier(uint32_t value)
{
	return perfmap_tiers[value & (PERFMAP_STUB_BIT - 1)];
}

static inline enum sym_symbol_kind perfmap_kind(uint32_t value)
{
	return value & PERFMAP_STUB_BIT ? SYM_SYMBOL_STUB : SYM_SYMBOL_FUNCTION;
}

#endif
