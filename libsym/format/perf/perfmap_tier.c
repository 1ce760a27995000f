/* SPDX-License-Identifier: MIT */
#include "libsym/format/perf/perfmap_tier.h"

#include <string.h>

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

static const uint8_t word_lengths[PERFMAP_TIERS] = { 0, 7, 12, 9, 11, 14, 17, 16, 25, 6, 11, 10 };

size_t perfmap_tier_find(const char *name, size_t name_bytes, unsigned int *number_ret)
{
	const char *open =
		name_bytes && name[name_bytes - 1] == ']' ? memrchr(name, '[', name_bytes) : NULL;
	size_t word_bytes;

	*number_ret = 0;
	/* A name that is wholly in brackets has no tier. */
	if (!open || open == name)
		return name_bytes;
	word_bytes = name_bytes - (size_t)(open - name) - 2;
	for (unsigned int i = 1; i < PERFMAP_TIERS; i++)
		if (word_bytes == word_lengths[i] &&
		    !memcmp(open + 1, perfmap_tiers[i], word_bytes)) {
			*number_ret = i;
			return (size_t)(open - name);
		}
	return name_bytes;
}
