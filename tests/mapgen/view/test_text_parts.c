/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "mapgen/view/text_parts.h"

static void expect_cell(size_t terminal_columns, size_t width, const char *name,
			const char *expected)
{
	const struct view view = { .width = terminal_columns };
	size_t size_bytes;
	char *text = NULL;
	FILE *to = open_memstream(&text, &size_bytes);

	cr_assert_not_null(to);
	text_parts_put_name(&view, name, width, to);
	fclose(to);
	cr_expect_str_eq(text, expected);
	free(text);
}

Test(text_parts, fills_a_column)
{
	expect_cell(80, 8, "Store", "Store   ");
	expect_cell(80, 8, NULL, "        ");
	expect_cell(0, 4, "Store", "Store");
}

Test(text_parts, counts_characters_and_not_bytes)
{
	expect_cell(80, 8,
		    "\xc3\x9c"
		    "ber",
		    "\xc3\x9c"
		    "ber    ");
	expect_cell(80, 8, "\xc3\x9c\xc3\x9c\xc3\x9c\xc3\x9c\xc3\x9c\xc3\x9c\xc3\x9c\xc3\x9c",
		    "\xc3\x9c\xc3\x9c\xc3\x9c\xc3\x9c\xc3\x9c\xc3\x9c\xc3\x9c\xc3\x9c");
}

Test(text_parts, leaves_the_middle_of_a_long_name_out)
{
	expect_cell(80, 10, "Store.TopByTag", "St...ByTag");
	/* Between characters. */
	expect_cell(80, 10, "\xc3\x9c\xc3\x9c\xc3\x9c\xc3\x9c-12345\xe2\x82\xac",
		    "\xc3\x9c\xc3\x9c...2345\xe2\x82\xac");
}
