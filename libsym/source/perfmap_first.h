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

struct perfmap_first {
	const struct index *index; /* values: of lines, as perfmap_tier.h has them */
	const struct perfmap_names *names;
};

static inline const char *perfmap_tier(uint32_t value)
{
	return perfmap_tiers[perfmap_tier_of(value)];
}

static inline enum sym_symbol_kind perfmap_kind(uint32_t value)
{
	return value & PERFMAP_STUB_BIT ? SYM_SYMBOL_STUB : SYM_SYMBOL_FUNCTION;
}

#endif
