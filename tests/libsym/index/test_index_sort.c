/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/index/index_sort.h"

struct place {
	uint64_t position;
	uint32_t number;
};

static int compare_places(const void *left, const void *right)
{
	const struct place *a = left, *b = right;

	if (a->position != b->position)
		return a->position < b->position ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

/* qsort() by position and number is the oracle. */
static void expect_sorted(struct place *places, size_t count)
{
	uint32_t *numbers = index_sort(&places->position, sizeof(*places), count);
	struct place *sorted = reallocarray(NULL, count, sizeof(*sorted));

	cr_assert_not_null(numbers);
	cr_assert_not_null(sorted);
	for (size_t i = 0; i < count; i++)
		places[i].number = (uint32_t)i;
	memcpy(sorted, places, count * sizeof(*sorted));
	cr_assert(index_sort_items(sorted, sizeof(*sorted), count));
	qsort(places, count, sizeof(*places), compare_places);
	for (size_t i = 0; i < count; i++) {
		cr_assert_eq(numbers[i], places[i].number, "%zu of %zu", i, count);
		cr_assert_eq(sorted[i].position, places[i].position, "%zu of %zu", i, count);
		cr_assert_eq(sorted[i].number, places[i].number, "%zu of %zu", i, count);
	}
	free(numbers);
	free(sorted);
}

static uint64_t any(void)
{
	return (uint64_t)random() << 42 ^ (uint64_t)random() << 21 ^ (uint64_t)random();
}

Test(index_sort, agrees_with_qsort_on_positions_of_any_width)
{
	static const size_t counts[] = { 1, 2, 3, 100, 20000 };
	static struct place places[20000];

	srandom(1);
	for (unsigned int width = 1; width <= 64; width++) {
		for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
			for (size_t j = 0; j < counts[i]; j++)
				places[j].position = any() >> (64 - width);
			expect_sorted(places, counts[i]);
		}
	}
}

/* Few bits differ, far from each other. */
Test(index_sort, agrees_with_qsort_if_high_and_low_bits_differ)
{
	static struct place places[20000];

	srandom(2);
	for (size_t i = 0; i < 20000; i++)
		places[i].position = any() & 0xf00000000000000f;
	expect_sorted(places, 20000);
}

Test(index_sort, keeps_the_order_of_equal_positions)
{
	static struct place places[3000];

	for (size_t i = 0; i < 3000; i++)
		places[i].position = 0x7f0000000000;
	expect_sorted(places, 3000);
}

Test(index_sort, keeps_what_is_in_order)
{
	static struct place places[3000];

	for (size_t i = 0; i < 3000; i++)
		places[i].position = i / 2 * 0x1000;
	expect_sorted(places, 3000);
	for (size_t i = 0; i < 3000; i++)
		places[i].position = i + 1 < 3000 ? i : 0;
	expect_sorted(places, 3000);
}

Test(index_sort, accepts_no_positions)
{
	uint64_t position = 0;
	uint32_t *numbers = index_sort(&position, sizeof(position), 0);

	cr_expect_not_null(numbers);
	free(numbers);
}
