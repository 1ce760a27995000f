/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "libsym/address_slots.h"

static uint16_t owner_of(const struct address_slots *slots, uint64_t address)
{
	return slots->spans[address >> slots->shift & slots->mask];
}

/* How much of the weight of all is not found in the slot of its address, by asking a thousand
 * addresses of each span. */
static double lost_part(const struct address_span *spans, size_t count)
{
	struct address_slots slots;
	double lost = 0, all = 0;

	address_slots_choose(spans, count, 64, &slots);
	for (size_t i = 0; i < count; i++) {
		unsigned int wrong = 0;

		for (unsigned int j = 0; j < 1000; j++)
			wrong += owner_of(&slots, spans[i].start +
							  (spans[i].size_bytes - 1) / 999 * j) != i;
		lost += wrong / 1000.0 * spans[i].weight;
		all += spans[i].weight;
	}
	return lost / all;
}

Test(address_slots, has_one_slot_for_one_span)
{
	static const struct address_span span = { 0x7f1234567000, 0x2000, 1 };
	struct address_slots slots;

	address_slots_choose(&span, 1, 64, &slots);
	cr_expect_eq(slots.mask, 0);
	cr_expect_eq(owner_of(&slots, 0), 0);
	cr_expect_eq(owner_of(&slots, 0x7f1234568fff), 0);
	cr_expect_eq(owner_of(&slots, UINT64_MAX), 0);
}

Test(address_slots, has_one_slot_for_one_span_up_to_the_last_address)
{
	static const struct address_span spans[] = { { 0, UINT64_MAX, 1 },
						     { UINT64_MAX - 0xf, 0x10, 1 } };
	struct address_slots slots;

	for (size_t i = 0; i < 2; i++) {
		address_slots_choose(&spans[i], 1, 64, &slots);
		cr_expect_eq(owner_of(&slots, UINT64_MAX), 0);
	}
}

Test(address_slots, owns_nothing_where_there_is_nothing)
{
	struct address_slots slots;

	address_slots_choose(NULL, 0, 64, &slots);
	cr_expect_eq(slots.mask, 0);
	cr_expect_eq(owner_of(&slots, 0x1000), ADDRESS_SLOT_NONE);
}

Test(address_slots, finds_every_address_of_heaps_far_from_each_other)
{
	static const struct address_span spans[] = {
		{ 0x1000000000, 0x3000000, 250000 }, { 0x1400000000, 0x2ffff10, 250000 },
		{ 0x1800000000, 0x3000040, 250000 }, { 0x1c00000000, 0x3000000, 250000 },
		{ 0x556677889000, 0x4000, 20 },      { UINT64_MAX - 0xfff, 0x1000, 1 },
	};

	cr_expect_eq(lost_part(spans, 4), 0);
	cr_expect_lt(lost_part(spans, 6), 0.001);
}

/* As a runtime lays out its memory: several megabytes and holes of one to some. */
Test(address_slots, loses_little_of_heaps_that_are_neighbours)
{
	struct address_span spans[12];
	uint64_t at = 0x7f65b8c00000;

	for (size_t i = 0; i < 12; i++) {
		spans[i].start = at;
		spans[i].size_bytes = (i * 7 % 5 + 1) << 20;
		spans[i].weight = (uint32_t)(spans[i].size_bytes >> 8);
		at += spans[i].size_bytes + ((i * 3 % 4 + 1) << 20);
	}
	cr_expect_lt(lost_part(spans, 12), 0.05);
}

Test(address_slots, gives_a_slot_that_two_want_to_the_one_with_more_in_it)
{
	static const struct address_span spans[] = {
		{ 0x10000, 0x1000, 5 },
		{ 0x11000, (uint64_t)1 << 32, 1000000 },
		{ 0x1000000000000, 0x1000, 5 },
		{ 0x2000000000000, 0x1000, 5 },
	};

	cr_expect_lt(lost_part(spans, 4), 0.0001);
}

Test(address_slots, owns_only_what_there_is_whatever_is_asked)
{
	struct address_span spans[200];

	srand(7);
	for (int round = 0; round < 300; round++) {
		size_t count = 1 + (size_t)rand() % 200;
		uint64_t at = (uint64_t)rand() << (rand() % 17);
		struct address_slots slots;

		for (size_t i = 0; i < count; i++) {
			spans[i] = (struct address_span){ at, 1 + ((uint64_t)rand() << rand() % 9),
							  (uint32_t)rand() };
			at += spans[i].size_bytes + ((uint64_t)rand() << rand() % 14);
		}
		address_slots_choose(spans, count, 64, &slots);
		cr_assert(!(slots.mask & (slots.mask + 1)));
		cr_assert_lt(slots.mask, 64);
		cr_assert_lt(slots.shift, 64);
		for (uint32_t i = 0; i <= slots.mask; i++)
			cr_assert(slots.spans[i] < count || slots.spans[i] == ADDRESS_SLOT_NONE);
	}
}
