/* SPDX-License-Identifier: MIT */
#include "libsym/format/perfmap_tier.h"

#include <string.h>

#include "libsym/format/perfmap_endings.h"

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

const uint8_t perfmap_tier_bytes[PERFMAP_TIERS] = { 0, 9, 14, 11, 13, 16, 19, 18, 27, 8, 13, 12 };

#define ENDING(ending_text, bytes, tier, next)                                                     \
	{                                                                                          \
		.text = ending_text, .other = next, .tier_bytes = bytes,                           \
		.tier_mask = (uint32_t)(UINT64_MAX << (PERFMAP_ENDING_BYTES - (bytes))),           \
		.number = tier                                                                     \
	}

static const struct perfmap_ending none = ENDING("", 0, 0, NULL);
static const struct perfmap_ending instrumented_optimized =
	ENDING("     [InstrumentedTierOptimized]", 27, 8, &none);

const struct perfmap_ending perfmap_endings[1 << PERFMAP_ENDING_KEY_BITS] = {
	ENDING("                     [Optimized]", 11, 3, &instrumented_optimized),
	ENDING("                  [MinOptJitted]", 14, 2, &none),
	ENDING("", 0, 0, NULL),
	ENDING("", 0, 0, NULL),
	ENDING("                   [PreJit-cold]", 13, 10, &none),
	ENDING("                   [QuickJitted]", 13, 4, &none),
	ENDING("", 0, 0, NULL),
	ENDING("                        [PreJIT]", 8, 9, &none),
	ENDING("             [OptimizedTier1OSR]", 19, 6, &none),
	ENDING("                    [ReadyToRun]", 12, 11, &none),
	ENDING("", 0, 0, NULL),
	ENDING("                       [Unknown]", 9, 1, &none),
	ENDING("", 0, 0, NULL),
	ENDING("                [OptimizedTier1]", 16, 5, &none),
	ENDING("", 0, 0, NULL),
	ENDING("              [InstrumentedTier]", 18, 7, &none),
};

/* Of the end of a name. */
static const struct perfmap_ending *find_ending(const char *end)
{
	const struct perfmap_ending *ending = perfmap_ending_to_try(end);

	while (memcmp(end - ending->tier_bytes,
		      ending->text + PERFMAP_ENDING_BYTES - ending->tier_bytes,
		      ending->tier_bytes) != 0)
		ending = ending->other;
	return ending;
}

/* The same of a name that has fewer bytes. What is all in brackets is a name. */
static const struct perfmap_ending *find_short(const char *name, size_t name_bytes)
{
	char text[PERFMAP_ENDING_BYTES] = { 0 };

	memcpy(text + PERFMAP_ENDING_BYTES - name_bytes + 1, name + 1, name_bytes - 1);
	return find_ending(text + PERFMAP_ENDING_BYTES);
}

size_t perfmap_find_tier(const char *name, size_t name_bytes, unsigned int *number_ret)
{
	const struct perfmap_ending *ending = &none;

	if (name_bytes && name[name_bytes - 1] == ']')
		ending = name_bytes < PERFMAP_ENDING_BYTES ? find_short(name, name_bytes)
							   : find_ending(name + name_bytes);
	*number_ret = ending->number;
	return name_bytes - ending->tier_bytes;
}
