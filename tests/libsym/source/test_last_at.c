/* SPDX-License-Identifier: MIT */
#include "libsym/source/last_at.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static struct last_at over(const uint64_t *places, size_t count)
{
	struct last_at last;
	uint64_t *given = malloc((count + 1) * sizeof(*given));

	cr_assert_not_null(given);
	if (count)
		memcpy(given, places, count * sizeof(*given));
	cr_assert(last_at_init(&last, given, count));
	return last;
}

Test(last_at, finds_what_came_last)
{
	static const uint64_t places[] = { 30, 10, 20, 10 };
	struct last_at last AUTO_LAST_AT = over(places, 4);

	cr_expect_eq(last.count, 3);
	cr_expect_eq(last_at_find(&last, 10), 0);
	last_at_put(&last, 10, 11, 1);
	last_at_put(&last, 20, 11, 2);
	cr_expect_eq(last_at_find(&last, 10), 1);
	cr_expect_eq(last_at_find(&last, 20), 2);
	cr_expect_eq(last_at_find(&last, 30), 2);
	last_at_put(&last, 10, 0, 3);
	cr_expect_eq(last_at_find(&last, 10), 3, "its start at least");
	cr_expect_eq(last_at_find(&last, 11), 0, "no place of those given");
}

Test(last_at, does_not_leave_the_numbers_that_there_are)
{
	static const uint64_t places[] = { 0, UINT64_MAX - 1, UINT64_MAX };
	struct last_at last AUTO_LAST_AT = over(places, 3);

	last_at_put(&last, UINT64_MAX - 1, 1, 1);
	cr_expect_eq(last_at_find(&last, UINT64_MAX), 0);
	last_at_put(&last, UINT64_MAX, 1, 2);
	cr_expect_eq(last_at_find(&last, UINT64_MAX), 2);
	cr_expect_eq(last_at_find(&last, UINT64_MAX - 1), 1);
	last_at_put(&last, 0, UINT64_MAX, 3);
	cr_expect_eq(last_at_find(&last, 0), 3);
	cr_expect_eq(last_at_find(&last, UINT64_MAX - 1), 3);
	cr_expect_eq(last_at_find(&last, UINT64_MAX), 2);
}

Test(last_at, has_nothing_over_no_places)
{
	struct last_at last AUTO_LAST_AT = over(NULL, 0);

	last_at_put(&last, 0, 100, 1);
	cr_expect_eq(last_at_find(&last, 0), 0);
	cr_expect_eq(last_at_highest(&last, 0, 100), 0);
}

/* As one would look for it: over all that was put, from the last one on. */
Test(last_at, says_what_a_search_from_behind_says)
{
	for (size_t count = 1; count < 40; count++) {
		uint64_t places[40], starts[100], sizes[100];
		struct last_at last;

		srand((unsigned int)count);
		for (size_t i = 0; i < count; i++)
			places[i] = (uint64_t)(rand() % 200);
		last = over(places, count);
		for (size_t put = 0; put < 100; put++) {
			starts[put] = (uint64_t)(rand() % 200);
			sizes[put] = (uint64_t)(1 + rand() % 60);
			last_at_put(&last, starts[put], sizes[put], put + 1);
			for (size_t i = 0; i < count; i++) {
				size_t want = put + 1;

				while (want && places[i] - starts[want - 1] >= sizes[want - 1])
					want--;
				cr_assert_eq(last_at_find(&last, places[i]), want);
			}
		}
		last_at_deinit(&last);
	}
}

Test(last_at, says_the_highest_mark_of_all_places_in_a_range)
{
	for (size_t count = 1; count < 40; count++) {
		uint64_t places[40], marks[40] = { 0 };
		struct last_at last;

		srand((unsigned int)count);
		for (size_t i = 0; i < count; i++)
			places[i] = (uint64_t)(rand() % 200);
		last = over(places, count);
		for (size_t put = 0; put < 200; put++) {
			uint64_t start = (uint64_t)(rand() % 200),
				 size = (uint64_t)(1 + rand() % 60);
			uint64_t mark = (uint64_t)(rand() % 1000), highest = 0;

			last_at_put(&last, start, size, mark);
			for (size_t i = 0; i < count; i++)
				if (places[i] - start < size && marks[i] < mark)
					marks[i] = mark;
			start = (uint64_t)(rand() % 200);
			size = (uint64_t)(1 + rand() % 60);
			for (size_t i = 0; i < count; i++)
				if (places[i] - start < size && marks[i] > highest)
					highest = marks[i];
			cr_assert_eq(last_at_highest(&last, start, size), highest);
		}
		last_at_deinit(&last);
	}
}
