/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/format/perf/perfmap_tier.h"

/* Splits the name after `front_bytes` other bytes, in a block of the exact size, so that a
 * sanitizer detects a read outside. */
static void expect_split(const char *name, const char *rest, const char *tier, size_t front_bytes)
{
	size_t bytes = front_bytes + strlen(name), length;
	char *text = malloc(bytes);
	const char *found = "";

	memset(text, 'F', front_bytes);
	memcpy(text + front_bytes, name, bytes - front_bytes);
	length = perfmap_tier_split(text, bytes, &found);
	cr_expect_eq(length, front_bytes + strlen(rest), "%s behind %zu", name, front_bytes);
	if (tier)
		cr_expect_str_eq(found, tier);
	else
		cr_expect_null(found, "%s behind %zu", name, front_bytes);
	free(text);
}

Test(perfmap_tier, splits_a_tier_that_a_runtime_writes)
{
	static const char *const cases[][3] = {
		{ "M()[OptimizedTier1]", "M()", "OptimizedTier1" },
		{ "M()[PreJIT]", "M()", "PreJIT" },
		{ "M()[OptimizedTier1OSR]", "M()", "OptimizedTier1OSR" },
		{ "M()[Unknown]", "M()", "Unknown" },
		{ "M()[MinOptJitted]", "M()", "MinOptJitted" },
		{ "M()[Optimized]", "M()", "Optimized" },
		{ "M()[QuickJitted]", "M()", "QuickJitted" },
		{ "M()[InstrumentedTier]", "M()", "InstrumentedTier" },
		{ "M()[InstrumentedTierOptimized]", "M()", "InstrumentedTierOptimized" },
		{ "M()[PreJit-cold]", "M()", "PreJit-cold" },
		{ "M()[ReadyToRun]", "M()", "ReadyToRun" },
		{ "M[QuickJitted]()", "M[QuickJitted]()", NULL },
		{ "M()[PreJit-cole]", "M()[PreJit-cole]", NULL },
		{ "M()[InstrumentedTierOptimizedX]", "M()[InstrumentedTierOptimizedX]", NULL },
		{ "M()[InstrumentedTierOptimizedXYZ]", "M()[InstrumentedTierOptimizedXYZ]", NULL },
		{ "M()[Instrumented]", "M()[Instrumented]", NULL },
		{ "M(int32[])", "M(int32[])", NULL },
		{ "T[Optimized", "T[Optimized", NULL },
		{ "M(int32[])[Optimized]", "M(int32[])", "Optimized" },
		{ "M()[QuickJitted][Optimized]", "M()[QuickJitted]", "Optimized" },
		{ "M()XQuickJitted]", "M()XQuickJitted]", NULL },
		{ "M()[quickJitted]", "M()[quickJitted]", NULL },
		{ "M()[InstrumentedTierXptimized]", "M()[InstrumentedTierXptimized]", NULL },
		{ "M()[Optimized] ", "M()[Optimized] ", NULL },
		{ "M[]", "M[]", NULL },
		{ "]", "]", NULL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		for (size_t front_bytes = 0; front_bytes < 70; front_bytes++)
			expect_split(cases[i][0], cases[i][1], cases[i][2], front_bytes);
}

Test(perfmap_tier, keeps_a_name_that_is_all_in_brackets)
{
	expect_split("[Optimized]", "[Optimized]", NULL, 0);
	expect_split("[PreJIT]", "[PreJIT]", NULL, 0);
	expect_split("[InstrumentedTierOptimized]", "[InstrumentedTierOptimized]", NULL, 0);
	expect_split("", "", NULL, 0);
}

Test(perfmap_tier, finds_no_tier_with_one_byte_changed)
{
	for (unsigned int number = 1; number < PERFMAP_TIERS; number++) {
		char name[128], other[128];
		const char *tier;

		snprintf(name, sizeof(name), "instance void [A] B::C(int32)[%s]",
			 perfmap_tiers[number]);
		expect_split(name, "instance void [A] B::C(int32)", perfmap_tiers[number], 0);
		for (size_t i = strlen("instance void [A] B::C(int32)"); i < strlen(name); i++) {
			memcpy(other, name, sizeof(name));
			other[i] ^= 1;
			cr_expect_eq(perfmap_tier_split(other, strlen(other), &tier), strlen(other),
				     "%s", other);
			cr_expect_null(tier);
		}
	}
}
