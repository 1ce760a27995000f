/* SPDX-License-Identifier: MIT */
#include "mapgen/cli/suggest.h"

#include <criterion/criterion.h>
#include <string.h>

static const char *suggest(const char *typed)
{
	static const char *const words[] = { "merge",   "record",    "report",
					     "resolve", "symbolize", "list",
					     "info",    "perf-fix",  "fetch-symbols" };
	struct suggestion suggestion = suggestion_of(typed, strlen(typed));

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		suggestion_offer(&suggestion, words[i]);
	return suggestion.best ? suggestion.best : "none";
}

Test(suggest, one_slip_is_forgiven)
{
	cr_expect_str_eq(suggest("mrege"), "merge");
	cr_expect_str_eq(suggest("merg"), "merge");
	cr_expect_str_eq(suggest("merrge"), "merge");
	cr_expect_str_eq(suggest("nerge"), "merge");
	cr_expect_str_eq(suggest("lst"), "list");
}

Test(suggest, long_words_may_have_more_slips)
{
	cr_expect_str_eq(suggest("symbolise"), "symbolize");
	cr_expect_str_eq(suggest("sybmolise"), "symbolize");
	cr_expect_str_eq(suggest("fecth-smybols"), "fetch-symbols");
}

Test(suggest, a_part_of_a_word_counts)
{
	cr_expect_str_eq(suggest("symbols"), "fetch-symbols");
	cr_expect_str_eq(suggest("fetch"), "fetch-symbols");
	cr_expect_str_eq(suggest("perf"), "perf-fix");
}

Test(suggest, the_nearest_word_wins)
{
	cr_expect_str_eq(suggest("recort"), "record");
	cr_expect_str_eq(suggest("repord"), "record");
	cr_expect_str_eq(suggest("reprot"), "report");
}

Test(suggest, what_is_far_from_every_word_has_no_suggestion)
{
	cr_expect_str_eq(suggest("frobnicate"), "none");
	cr_expect_str_eq(suggest("x"), "none");
	cr_expect_str_eq(suggest(""), "none");
	cr_expect_str_eq(suggest("a-word-that-is-longer-than-any-word-we-know"), "none");
}

Test(suggest, only_the_given_bytes_count)
{
	struct suggestion suggestion = suggestion_of("nams=short", 4);

	suggestion_offer(&suggestion, "names");
	cr_expect_str_eq(suggestion.best, "names");
}
