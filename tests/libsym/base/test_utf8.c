/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <limits.h>

#include "libsym/base/utf8.h"

static void expect_text(const char *in, const char *out)
{
	struct buf buf;

	buf_init(&buf, 256);
	while (*in)
		in += utf8_append(&buf, in);
	cr_expect_str_eq(buf_string(&buf), out);
	buf_deinit(&buf);
}

#define REPLACED "\xef\xbf\xbd"

Test(utf8, keeps_characters_of_every_length)
{
	expect_text("a\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf"
		    "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf",
		    "a\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf"
		    "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf");
}

Test(utf8, replaces_each_invalid_byte)
{
	expect_text("a\x80z\xff\xfe", "a" REPLACED "z" REPLACED REPLACED);
	/* Overlong, a surrogate, beyond U+10FFFF. */
	expect_text("\xc1\xbf", REPLACED REPLACED);
	expect_text("\xe0\x9f\xbf", REPLACED REPLACED REPLACED);
	expect_text("\xf0\x8f\xbf\xbf", REPLACED REPLACED REPLACED REPLACED);
	expect_text("\xed\xa0\x80", REPLACED REPLACED REPLACED);
	expect_text("\xf4\x90\x80\x80", REPLACED REPLACED REPLACED REPLACED);
}

Test(utf8, counts_and_skips_characters)
{
	static const char text[] = "a\xc3\x9c\xe2\x82\xac\xff\xf0\x9f\x98\x80";

	cr_expect_eq(utf8_count(""), 0);
	cr_expect_eq(utf8_count(text), 5);
	cr_expect_eq(utf8_skip(text, 0), text);
	cr_expect_eq(utf8_skip(text, 2), text + 3);
	cr_expect_eq(utf8_skip(text, 4), text + 7);
	cr_expect_eq(utf8_skip(text, 9), text + sizeof(text) - 1);
}

Test(utf8, pads_by_characters)
{
	cr_expect_eq(utf8_padding("\xc3\x9c"
				  "b",
				  5),
		     3);
	cr_expect_eq(utf8_padding("\xc3\x9c", 1), 0);
	cr_expect_eq(utf8_padding("abc", 2), 0);
}

Test(utf8, replaces_truncated_characters)
{
	expect_text("\xc3", REPLACED);
	expect_text("\xe2\x82", REPLACED REPLACED);
	expect_text("\xf0\x9f\x98z", REPLACED REPLACED REPLACED "z");
}

Test(utf8, replaces_each_control_character_at_each_place)
{
	for (size_t length = 1; length <= 18; length++)
		for (size_t at = 0; at < length; at++)
			for (int byte = 0; byte <= UCHAR_MAX; byte++) {
				char text[20] = "~ ~ ~ ~ ~ ~ ~ ~ ~ ", wanted[20];

				text[at] = (char)byte;
				memcpy(wanted, text, sizeof(text));
				if (byte < 0x20 || byte == 0x7f)
					wanted[at] = '?';
				utf8_replace_controls(text, length);
				cr_assert_arr_eq(text, wanted, sizeof(text), "%#x at %zu of %zu",
						 (unsigned int)byte, at, length);
			}
}
