/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "mapgen/events/event_values.h"
#include "tests/support/nettrace_builder.h"

static void expect_text(const uint8_t activity[16], const char *expected)
{
	struct buf text;

	buf_init(&text, 100);
	event_activity_text(activity, &text);
	cr_expect_str_eq(buf_string(&text), expected);
	buf_deinit(&text);
}

/* Examples in src/TraceEvent/Computers/StartStopActivityComputer.cs and ActivityTracker.cs. */
Test(event_values, prints_the_path_of_an_activity)
{
	static const uint8_t path[16] = { 0x11, 0x20, 0, 0, 0,    0,    0,    0,
					  0,    0,    0, 0, 0xbe, 0xb9, 0x99, 0x59 };
	static const uint8_t large[16] = { 0x1c, 0x7f, 0, 0, 0,    0,    0,    0,
					   0,    0,    0, 0, 0xc9, 0x18, 0x9a, 0x59 };
	static const uint8_t guid[16] = { 0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66,
					  0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff };

	expect_text(path, "//1/1/2");
	expect_text(large, "//1/127");
	expect_text(guid, "00112233-4455-6677-8899-aabbccddeeff");
}
