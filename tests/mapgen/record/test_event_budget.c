/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include "mapgen/record/event_budget.h"

static const uint64_t window_ns = UINT64_C(1) << EVENT_BUDGET_WINDOW_SHIFT;

static unsigned int take(struct event_budget *budget, uint64_t time_ns, unsigned int count)
{
	unsigned int taken = 0;

	while (count--)
		taken += event_budget_take(budget, time_ns);
	return taken;
}

Test(event_budget, takes_so_many_in_a_window_and_counts_the_rest)
{
	struct event_budget budget = { .per_second = 100 };

	/* 100 a second are 26 in 268 ms. */
	cr_assert_eq(take(&budget, 5 * window_ns, 30), 26);
	cr_assert_eq(budget.exceeded, 4);
}

Test(event_budget, begins_again_with_the_next_window)
{
	struct event_budget budget = { .per_second = 100 };

	take(&budget, window_ns - 1, 30);
	cr_assert_eq(take(&budget, window_ns, 26), 26);
	cr_assert_eq(budget.exceeded, 4);
}

Test(event_budget, counts_a_late_one_as_of_the_last_window)
{
	struct event_budget budget = { .per_second = 100 };

	take(&budget, 2 * window_ns, 26);
	cr_assert_not(event_budget_take(&budget, window_ns));
	cr_assert_not(event_budget_take(&budget, 2 * window_ns));
}

Test(event_budget, takes_nothing_where_none_is_permitted)
{
	struct event_budget budget = { 0 };

	cr_assert_not(event_budget_take(&budget, window_ns));
	cr_assert_eq(budget.exceeded, 1);
}
