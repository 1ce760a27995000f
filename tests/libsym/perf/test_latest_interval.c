/* SPDX-License-Identifier: MIT */
#include "libsym/perf/latest_interval.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static struct latest_interval over(const uint64_t *places, size_t count)
{
	struct latest_interval last;
	uint64_t *given = malloc((count + 1) * sizeof(*given));

	cr_assert_not_null(given);
	if (count)
		memcpy(given, places, count * sizeof(*given));
	cr_assert(latest_interval_init(&last, given, count));
	return last;
}

Test(latest_interval, finds_the_last_mark)
{
	static const uint64_t places[] = { 30, 10, 20, 10 };
	struct latest_interval last AUTO_LAST_AT = over(places, 4);

	cr_expect_eq(last.count, 3);
	cr_expect_eq(latest_interval_highest(&last, 10, 1), 0);
	latest_interval_put(&last, 10, 11, 1);
	latest_interval_put(&last, 20, 11, 2);
	cr_expect_eq(latest_interval_highest(&last, 10, 1), 1);
	cr_expect_eq(latest_interval_highest(&last, 20, 1), 2);
	cr_expect_eq(latest_interval_highest(&last, 30, 1), 2);
	latest_interval_put(&last, 10, 0, 3);
	cr_expect_eq(latest_interval_highest(&last, 10, 1), 3, "its start at least");
	cr_expect_eq(latest_interval_highest(&last, 11, 1), 0, "no place of those given");
}

Test(latest_interval, stays_inside_the_range_of_numbers)
{
	static const uint64_t places[] = { 0, UINT64_MAX - 1, UINT64_MAX };
	struct latest_interval last AUTO_LAST_AT = over(places, 3);

	latest_interval_put(&last, UINT64_MAX - 1, 1, 1);
	cr_expect_eq(latest_interval_highest(&last, UINT64_MAX, 1), 0);
	latest_interval_put(&last, UINT64_MAX, 1, 2);
	cr_expect_eq(latest_interval_highest(&last, UINT64_MAX, 1), 2);
	cr_expect_eq(latest_interval_highest(&last, UINT64_MAX - 1, 1), 1);
	latest_interval_put(&last, 0, UINT64_MAX, 3);
	cr_expect_eq(latest_interval_highest(&last, 0, 1), 3);
	cr_expect_eq(latest_interval_highest(&last, UINT64_MAX - 1, 1), 3);
	cr_expect_eq(latest_interval_highest(&last, UINT64_MAX, 1), 2);
}

Test(latest_interval, finds_nothing_without_places)
{
	struct latest_interval last AUTO_LAST_AT = over(NULL, 0);

	latest_interval_put(&last, 0, 100, 1);
	cr_expect_eq(latest_interval_highest(&last, 0, 1), 0);
	cr_expect_eq(latest_interval_highest(&last, 0, 100), 0);
}

/* The oracle: checks all intervals from the last one on. */
Test(latest_interval, agrees_with_a_search_from_the_end)
{
	for (size_t count = 1; count < 40; count++) {
		uint64_t places[40], starts[100], sizes[100];
		struct latest_interval last;

		srand((unsigned int)count);
		for (size_t i = 0; i < count; i++)
			places[i] = (uint64_t)(rand() % 200);
		last = over(places, count);
		for (size_t put = 0; put < 100; put++) {
			starts[put] = (uint64_t)(rand() % 200);
			sizes[put] = (uint64_t)(1 + rand() % 60);
			latest_interval_put(&last, starts[put], sizes[put], put + 1);
			for (size_t i = 0; i < count; i++) {
				size_t want = put + 1;

				while (want && places[i] - starts[want - 1] >= sizes[want - 1])
					want--;
				cr_assert_eq(latest_interval_highest(&last, places[i], 1), want);
			}
		}
		latest_interval_deinit(&last);
	}
}

Test(latest_interval, finds_the_highest_mark_in_a_range)
{
	for (size_t count = 1; count < 40; count++) {
		uint64_t places[40], marks[40] = { 0 };
		struct latest_interval last;

		srand((unsigned int)count);
		for (size_t i = 0; i < count; i++)
			places[i] = (uint64_t)(rand() % 200);
		last = over(places, count);
		for (size_t put = 0; put < 200; put++) {
			uint64_t start = (uint64_t)(rand() % 200),
				 size = (uint64_t)(1 + rand() % 60);
			uint64_t mark = (uint64_t)(rand() % 1000), highest = 0;

			latest_interval_put(&last, start, size, mark);
			for (size_t i = 0; i < count; i++)
				if (places[i] - start < size && marks[i] < mark)
					marks[i] = mark;
			start = (uint64_t)(rand() % 200);
			size = (uint64_t)(1 + rand() % 60);
			for (size_t i = 0; i < count; i++)
				if (places[i] - start < size && marks[i] > highest)
					highest = marks[i];
			cr_assert_eq(latest_interval_highest(&last, start, size), highest);
		}
		latest_interval_deinit(&last);
	}
}
