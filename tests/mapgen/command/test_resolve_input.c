/* SPDX-License-Identifier: MIT */
/* Forms of the questions of resolve. */
#include "mapgen/command/resolve_input.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

Test(resolve_input, reads_places_in_il)
{
	struct question question = question_parse("/app/A+B.dll!0x0600001b+IL0x1f");

	cr_expect(not(question.malformed));
	cr_expect(eq(u32, question.token, 0x0600001b));
	cr_expect(eq(u64, question.value, 0x1f));
	cr_expect(eq(sz, question.image_bytes, 12));
	cr_expect(eq(u32, question_parse("app!/A.dll!0600001b+IL1f").token, 0x0600001b));
}

Test(resolve_input, reads_the_build_and_the_mark_of_places_in_il)
{
	static const char mvid[] = "6b7ce0d5-5a4f-4a6e-9d1c-0123456789ab";
	struct question question =
		question_parse("a!/A.dll!6b7ce0d5-5a4f-4a6e-9d1c-0123456789ab!0x0600001b+IL~0x1f");

	cr_expect(not(question.malformed));
	cr_expect(question.is_approximate);
	cr_expect(eq(sz, question.image_bytes, 8));
	cr_assert_not_null(question.mvid);
	cr_expect(eq(int, strncmp(question.mvid, mvid, MVID_TEXT), 0));
	question = question_parse("a!/A.dll!0x0600001b+IL0x1f");
	cr_expect_null(question.mvid);
	cr_expect_not(question.is_approximate);
	cr_expect(eq(sz, question.image_bytes, 8));
}

Test(resolve_input, reads_addresses_and_positions_as_before)
{
	cr_expect(eq(u64, question_parse("0x7f00").value, 0x7f00));
	cr_expect(eq(u32, question_parse("A.dll+0x10").token, 0));
	cr_expect(eq(u64, question_parse("A.dll+0x10").value, 0x10));
}

Test(resolve_input, marks_malformed_places_in_il)
{
	static const char *const bad[] = {
		"A.dll+IL0x1",           "!0x06000001+IL0x1",           "A.dll!0x02000001+IL0x1",
		"A.dll!+IL0x1",          "A.dll!0x06000001+IL",         "A.dll!0x06000001+ILx",
		"A.dll!0x106000001+IL1", "A.dll!0x06000001+IL100000000"
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect(eq(int, question_parse(bad[i]).malformed, 1), "%s", bad[i]);
}
