/* SPDX-License-Identifier: MIT */
#include "mapgen/cli/message.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static void expect_reason(const char *subject, const char *reason, const char *kept)
{
	struct failures failures = { 0 };

	failures_add(&failures, subject, strdup(reason));
	cr_assert_eq(failures.count, 1);
	cr_expect_str_eq(failures.items[0].subject, subject);
	cr_expect_str_eq(failures.items[0].reason, kept);
	failures_deinit(&failures);
}

Test(message, names_the_subject_of_a_failure_once)
{
	expect_reason("/tmp/perf-7.map", "/tmp/perf-7.map: belongs to uid 1", "belongs to uid 1");
	expect_reason("/tmp/perf-7.map", "belongs to uid 1", "belongs to uid 1");
	expect_reason("/tmp/a", "/tmp/ab: malformed", "/tmp/ab: malformed");
	expect_reason("/tmp/a", "/tmp/a is malformed", "/tmp/a is malformed");
	expect_reason("", ": malformed", ": malformed");
}

static void expect_printable(const char *text, const char *printable)
{
	char *copy = message_printable(text);

	cr_expect_str_eq(copy, printable);
	free(copy);
}

Test(message, keeps_text_of_every_script)
{
	expect_printable("Gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
			 "Gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80");
	/* Latin-1 */
	expect_printable("Gr\xfc\xdf", "Gr\xfc\xdf");
}

Test(message, replaces_control_characters)
{
	expect_printable("a\x1b[2J\tb\nc\x7f", "a?[2J?b?c?");
}

/* U+009B is CSI, U+0085 is a new line. */
Test(message, replaces_control_characters_above_ascii)
{
	for (int byte = 0x80; byte < 0xa0; byte++) {
		expect_printable((char[]){ 'a', (char)0xc2, (char)byte, 'b', '\0' }, "a?b");
		expect_printable((char[]){ 'a', (char)byte, 'b', '\0' }, "a?b");
	}
	expect_printable("a\xe2\x80\xae"
			 "b",
			 "a?b");
}
