/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "mapgen/perfdata/recorded_maps.h"

enum {
	MOST = 8
};

static struct recorded_mapping items[MOST];
static struct address_range unrecorded[MOST];
static struct address_ranges ranges = { .items = unrecorded };
static struct address_ranges others;
static bool reached[MOST];
static size_t count;

/* A mapping that existed when perf began, in file order. */
static struct recorded_mapping *record(uint64_t start, uint64_t end)
{
	items[count] = (struct recorded_mapping){
		.is_first_sight = true,
		.start_address = start,
		.end_address = end,
		.shown_start_address = start,
		.shown_end_address = end,
	};
	return &items[count++];
}

static struct recorded_mapping *record_later(uint64_t start, uint64_t end)
{
	struct recorded_mapping *mapping = record(start, end);

	mapping->is_first_sight = false;
	return mapping;
}

static void leave_out(uint64_t start, uint64_t end)
{
	unrecorded[ranges.count++] = (struct address_range){ start, end };
}

/* A '1' for each range that it reaches, in order. */
static void expect_reach(struct recorded_mapping *mapping, const char *expected)
{
	recorded_mapping_reach(items, mapping, &others, &ranges, reached);
	cr_assert_eq(strlen(expected), ranges.count);
	for (size_t i = 0; i < ranges.count; i++)
		cr_expect_eq(reached[i], expected[i] == '1', "range %zu", i);
}

static void expect_shown(const struct recorded_mapping *mapping, uint64_t start, uint64_t end)
{
	cr_expect_eq(mapping->shown_start_address, start, "%#lx", mapping->shown_start_address);
	cr_expect_eq(mapping->shown_end_address, end, "%#lx", mapping->shown_end_address);
}

Test(recorded_maps, a_record_reaches_over_what_is_recorded_behind_it)
{
	struct recorded_mapping *first, *second, *third;

	record(0x1000, 0x2000);
	first = record(0x5000, 0x6000);
	second = record(0x7000, 0x8000);
	third = record(0x9000, 0xa000);
	leave_out(0x2000, 0x4000);
	leave_out(0x8000, 0x9000);
	leave_out(0xb000, 0xc000);
	expect_reach(first, "111");
	expect_shown(first, 0x2000, 0xc000);
	expect_shown(second, 0x7000, 0x8000);
	expect_shown(third, 0x9000, 0xa000);
}

Test(recorded_maps, a_record_hides_nothing_that_was_recorded_before_it)
{
	struct recorded_mapping *third;

	record(0x3000, 0x4000);
	record(0x9000, 0xa000);
	third = record(0x5000, 0x6000);
	leave_out(0x2000, 0x3000);
	leave_out(0x4000, 0x5000);
	leave_out(0x7000, 0x8000);
	leave_out(0xa000, 0xb000);
	expect_reach(third, "0110");
	expect_shown(third, 0x4000, 0x8000);
}

Test(recorded_maps, a_record_that_lies_across_one_before_it_does_not_reach_over_the_rest_of_that)
{
	struct recorded_mapping *second;

	record(0x3000, 0x9000);
	second = record(0x5000, 0x6000);
	leave_out(0x2000, 0x3000);
	leave_out(0x9000, 0xa000);
	expect_reach(second, "00");
	expect_shown(second, 0x5000, 0x6000);
}

Test(recorded_maps, a_record_stays_as_it_is_where_nothing_is_left_out)
{
	struct recorded_mapping *first = record(0x5000, 0x6000);

	record(0x9000, 0xa000);
	expect_reach(first, "");
	expect_shown(first, 0x5000, 0x6000);
}

Test(recorded_maps, a_record_reaches_over_nothing_that_no_record_tells_of)
{
	struct address_range native[] = { { 0x3000, 0x4000 }, { 0x7000, 0x8000 } };
	struct recorded_mapping *first = record(0x5000, 0x6000);

	others = (struct address_ranges){ native, 2 };
	leave_out(0x2000, 0x3000);
	leave_out(0x4000, 0x5000);
	leave_out(0x6000, 0x7000);
	leave_out(0x8000, 0x9000);
	expect_reach(first, "0110");
	expect_shown(first, 0x4000, 0x7000);
}

Test(recorded_maps, what_is_mapped_later_stands_in_no_way_wherever_it_is_in_the_file)
{
	struct recorded_mapping *second;

	record_later(0x7000, 0x8000);
	second = record(0x5000, 0x6000);
	leave_out(0x8000, 0x9000);
	expect_reach(second, "1");
	expect_shown(second, 0x5000, 0x9000);
}

Test(recorded_maps, what_is_mapped_later_reaches_what_continues_it)
{
	struct recorded_mapping *second;

	record(0x3000, 0x4000);
	second = record_later(0x5000, 0x6000);
	leave_out(0x4000, 0x5000);
	leave_out(0x6000, 0x7000);
	leave_out(0x8000, 0x9000);
	expect_reach(second, "010");
	expect_shown(second, 0x5000, 0x7000);
}

Test(recorded_maps, what_one_record_has_reached_no_other_does)
{
	struct recorded_mapping *first = record(0x3000, 0x4000), *second = record(0x5000, 0x6000);

	leave_out(0x8000, 0x9000);
	expect_reach(first, "1");
	expect_reach(second, "1");
	expect_shown(first, 0x3000, 0x9000);
	expect_shown(second, 0x5000, 0x6000);
}
