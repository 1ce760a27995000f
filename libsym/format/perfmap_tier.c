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

const struct perfmap_ending perfmap_endings[PERFMAP_TIERS] = {
	{ "", PERFMAP_ENDING_BYTES },
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

const uint8_t perfmap_endings_of_key[1 << PERFMAP_ENDING_KEY_BITS][4] = {
	[0] = { 3, 8 }, [1] = { 2 },  [4] = { 10 }, [5] = { 4 },  [7] = { 9 },
	[8] = { 6 },    [9] = { 11 }, [11] = { 1 }, [13] = { 5 }, [15] = { 7 },
};

/* Of the end of a name, how many bytes belong to the name. */
static size_t split_ending(const char *text, unsigned int *number_ret)
{
	const uint8_t *tier = perfmap_endings_to_try(text);
	const struct perfmap_ending *ending = &perfmap_endings[*tier];

	while (memcmp(text + ending->name_bytes, ending->text + ending->name_bytes,
		      PERFMAP_ENDING_BYTES - ending->name_bytes) != 0)
		ending = &perfmap_endings[*++tier];
	*number_ret = *tier;
	return ending->name_bytes;
}

/* The same of a name that has fewer bytes. What is all in brackets is a name. */
static size_t split_short(const char *name, size_t name_bytes, unsigned int *number_ret)
{
	char text[PERFMAP_ENDING_BYTES] = { 0 };
	size_t missing_bytes = PERFMAP_ENDING_BYTES - name_bytes;

	memcpy(text + missing_bytes + 1, name + 1, name_bytes - 1);
	return split_ending(text, number_ret) - missing_bytes;
}

size_t perfmap_find_tier(const char *name, size_t name_bytes, unsigned int *number_ret)
{
	if (!name_bytes || name[name_bytes - 1] != ']') {
		*number_ret = 0;
		return name_bytes;
	}
	if (name_bytes < PERFMAP_ENDING_BYTES)
		return split_short(name, name_bytes, number_ret);
	name_bytes -= PERFMAP_ENDING_BYTES;
	return name_bytes + split_ending(name + name_bytes, number_ret);
}
