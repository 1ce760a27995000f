/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "mapgen/events/event_kind.h"
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

static void expect_printed(uint8_t type, const void *payload, size_t size_bytes,
			   const char *expected)
{
	struct nettrace_field field = { .name = (char *)"a", .type = type };
	const struct nettrace_fields fields = { .items = &field, .count = type != 0 };
	const struct event_kind kind = { .pointer_bytes = 8, .fields = &fields };
	const struct runtime_event event = { .kind = &kind,
					     .payload = payload,
					     .payload_bytes = size_bytes };
	struct buf text;

	buf_init(&text, 1000);
	event_print(&event, &text);
	cr_expect_str_eq(buf_string(&text) ?: "", expected);
	buf_deinit(&text);
}

Test(event_values, prints_dates_and_what_is_no_number)
{
	static const uint64_t whole = 134118110450000000, part = 134118110450000001,
			      year_30000 = UINT64_MAX / 2;
	static const double no_number = -NAN, infinite = -INFINITY, two = 2.5;

	expect_printed(NETTRACE_DATE, &whole, 8, "a=2026-01-02T07:04:05Z");
	expect_printed(NETTRACE_DATE, &part, 8, "a=2026-01-02T07:04:05.0000001Z");
	expect_printed(NETTRACE_DATE, &year_30000, 8, "a=30828-09-14T02:48:05.4775807Z");
	expect_printed(NETTRACE_F64, &no_number, 8, "a=NaN");
	expect_printed(NETTRACE_F64, &infinite, 8, "a=-Infinity");
	expect_printed(NETTRACE_F64, &two, 8, "a=2.5");
}

Test(event_values, says_that_an_event_is_not_described)
{
	expect_printed(0, "abc", 3, "(3 bytes, which the stream does not describe)");
	expect_printed(0, "", 0, "");
}
