/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include "libsym/base/address_ranges.h"
#include "tests/support/alloc_fail.h"

/* 0x1000 to 0x3000 in two adjacent parts, and the last bytes of the address space. */
static bool make(struct address_ranges *ret)
{
	*ret = (struct address_ranges){ 0 };
	return address_ranges_append(ret, 0x1000, 0x2000) &&
	       address_ranges_append(ret, 0x2000, 0x3000) &&
	       address_ranges_append(ret, 0xffffffffffff0000, 0xffffffffffffffff);
}

Test(address_ranges, contain_what_lies_in_one_range)
{
	struct address_ranges ranges, none = { 0 };

	cr_assert(make(&ranges));
	cr_expect_eq(ranges.count, 2, "what touches is one");
	cr_expect(address_ranges_contain(&ranges, 0x1000, 0x2000));
	cr_expect(address_ranges_contain(&ranges, 0x2fff, 1));
	cr_expect(address_ranges_contain(&ranges, 0x2fff, 0));
	cr_expect(address_ranges_contain(&ranges, 0xffffffffffff0000, 0xffff));
	cr_expect_not(address_ranges_contain(&ranges, 0xfff, 2));
	cr_expect_not(address_ranges_contain(&ranges, 0x2fff, 2));
	cr_expect_not(address_ranges_contain(&ranges, 0x3000, 0));
	cr_expect_not(address_ranges_contain(&ranges, 0xffffffffffff0000, UINT64_MAX), "it wraps");
	cr_expect_not(address_ranges_contain(&ranges, UINT64_MAX, 1));
	cr_expect_not(address_ranges_contain(&none, 0, 0));
	address_ranges_deinit(&ranges);
}

Test(address_ranges, unite_overlapping_touching_and_equal_ranges)
{
	static const struct address_range items[] = {
		{ 0x5000, 0x6000 }, { 0x1000, 0x3000 }, { 0x2000, 0x2800 }, { 0x2000, 0x4000 },
		{ 0x1000, 0x1800 }, { 0x6000, 0x7000 }, { 0x8000, 0x8000 },
	};
	struct address_ranges ranges = { 0 };

	for (size_t i = 0; i < sizeof(items) / sizeof(*items); i++)
		cr_assert(address_ranges_append(&ranges, items[i].start, items[i].end));
	address_ranges_unite(&ranges);
	cr_assert_eq(ranges.count, 2);
	cr_expect_eq(ranges.items[0].start, 0x1000);
	cr_expect_eq(ranges.items[0].end, 0x4000);
	cr_expect_eq(ranges.items[1].start, 0x5000);
	cr_expect_eq(ranges.items[1].end, 0x7000);
	address_ranges_deinit(&ranges);
}

Test(address_ranges, overlap_what_shares_a_byte)
{
	struct address_range items[] = { { 0x1000, 0x2000 }, { 0x3000, 0x4000 } };
	const struct address_ranges ranges = { items, 2 }, none = { 0 };

	cr_expect(address_ranges_overlap(&ranges, 0x1fff, 0x2000));
	cr_expect(address_ranges_overlap(&ranges, 0x500, 0x1001));
	cr_expect(address_ranges_overlap(&ranges, 0x2800, 0x3001));
	cr_expect(address_ranges_overlap(&ranges, 0, UINT64_MAX));
	cr_expect_not(address_ranges_overlap(&ranges, 0x2000, 0x3000));
	cr_expect_not(address_ranges_overlap(&ranges, 0x500, 0x1000));
	cr_expect_not(address_ranges_overlap(&ranges, 0x4000, 0x5000));
	cr_expect_not(address_ranges_overlap(&none, 0, UINT64_MAX));
}

static bool make_and_copy(void *unused)
{
	struct address_ranges ranges = { 0 }, copy = { 0 }, united = { 0 };
	bool made = make(&ranges) && address_ranges_copy(&ranges, &copy) &&
		    address_ranges_append(&united, 0x3000, 0x4000) &&
		    address_ranges_append(&united, 0x1000, 0x2000);

	(void)unused;
	address_ranges_unite(&united);
	cr_expect(!made || address_ranges_contain(&copy, 0x1000, 0x2000));
	cr_expect(!made || united.count == 2);
	address_ranges_deinit(&ranges);
	address_ranges_deinit(&copy);
	address_ranges_deinit(&united);
	return made;
}

Test(address_ranges, survive_every_failed_allocation)
{
	cr_expect_eq(alloc_fail_each(make_and_copy, NULL), 6);
}
