/* SPDX-License-Identifier: MIT */
#include "libsym/base/budget.h"

#include <criterion/criterion.h>
#include <unistd.h>

#include "libsym/base/buf.h"

static int64_t clocks_ns[BUDGET_CLOCKS];

static int64_t now_ns(enum budget_clock clock)
{
	return clocks_ns[clock];
}

static void begin(struct budget *budget)
{
	clocks_ns[BUDGET_CPU] = clocks_ns[BUDGET_WAIT] = 1000;
	budget_init(budget);
	budget->now_ns = now_ns;
}

Test(budget, has_one_account_for_other_users_and_one_for_root_and_the_caller)
{
	struct budget budget;

	begin(&budget);
	budget.effective_uid = 7;
	budget.real_uid = 8;
	cr_expect_eq(budget_account_of(&budget, 0), &budget.own);
	cr_expect_eq(budget_account_of(&budget, 7), &budget.own);
	cr_expect_eq(budget_account_of(&budget, 8), &budget.own);
	cr_expect_eq(budget_account_of(&budget, 9), &budget.others);
	cr_expect_eq(budget_account_of_file(&budget, -1), &budget.others);
	cr_expect_null(budget_account_of(NULL, 9));
	budget_deinit(&budget);
}

Test(budget, charges_memory_up_to_its_limit_and_releases_it)
{
	struct budget budget;

	begin(&budget);
	budget.others.most_bytes = 100;
	cr_expect(budget_reserve(&budget.others, 60, "first"));
	cr_expect_eq(budget_left_bytes(&budget.others), 40);
	cr_expect_not(budget_reserve(&budget.others, 41, "second"));
	cr_expect_eq(budget.others.excess, BUDGET_EXCESS_MEMORY);
	cr_expect_str_eq(budget.others.first, "second");
	cr_expect(budget_reserve(&budget.others, 40, "third"));
	cr_expect_not(budget_reserve(&budget.others, UINT64_MAX, "fourth"));
	cr_expect_str_eq(budget.others.first, "second");
	cr_expect_eq(budget.others.refused, 2);
	budget_release(&budget.others, 100);
	cr_expect_eq(budget.others.held_bytes, 0);
	cr_expect(budget_reserve(&budget.own, UINT64_MAX - 1, NULL), "no limit");
	budget_deinit(&budget);
}

Test(budget, is_unlimited_if_null)
{
	cr_expect(budget_reserve(NULL, UINT64_MAX, NULL));
	cr_expect_eq(budget_left_bytes(NULL), UINT64_MAX);
	cr_expect(budget_has_time(NULL, BUDGET_CPU, NULL));
	budget_begin(NULL, BUDGET_CPU);
	budget_end(NULL, BUDGET_CPU);
	budget_release(NULL, 1);
}

Test(budget, counts_time_in_spans_only)
{
	struct budget budget;

	begin(&budget);
	budget.others.timers[BUDGET_CPU].most_ns = 100;
	clocks_ns[BUDGET_CPU] += 1000;
	cr_expect_eq(budget_left_ns(&budget.others, BUDGET_CPU), 100);
	budget_begin(&budget.others, BUDGET_CPU);
	clocks_ns[BUDGET_CPU] += 30;
	cr_expect_eq(budget_left_ns(&budget.others, BUDGET_CPU), 70);
	budget_end(&budget.others, BUDGET_CPU);
	clocks_ns[BUDGET_CPU] += 1000;
	cr_expect_eq(budget_left_ns(&budget.others, BUDGET_CPU), 70);
	cr_expect_eq(budget_left_ns(&budget.others, BUDGET_WAIT), INT64_MAX);
	budget_deinit(&budget);
}

/* Waiting for two peers at once costs as much as waiting for one. */
Test(budget, counts_spans_that_overlap_once)
{
	struct budget budget;

	begin(&budget);
	budget.others.timers[BUDGET_WAIT].most_ns = 100;
	budget_begin(&budget.others, BUDGET_WAIT);
	clocks_ns[BUDGET_WAIT] += 10;
	budget_begin(&budget.others, BUDGET_WAIT);
	clocks_ns[BUDGET_WAIT] += 20;
	budget_end(&budget.others, BUDGET_WAIT);
	clocks_ns[BUDGET_WAIT] += 30;
	budget_end(&budget.others, BUDGET_WAIT);
	cr_expect_eq(budget_left_ns(&budget.others, BUDGET_WAIT), 40);
	budget_deinit(&budget);
}

Test(budget, resets_its_time_in_the_next_step)
{
	struct budget budget;

	begin(&budget);
	budget.others.timers[BUDGET_CPU].most_ns = 100;
	cr_expect(budget_reserve(&budget.others, 5, NULL));
	budget_begin(&budget.others, BUDGET_CPU);
	clocks_ns[BUDGET_CPU] += 100;
	cr_expect_not(budget_has_time(&budget.others, BUDGET_CPU, "a file"));
	cr_expect_eq(budget.others.excess, BUDGET_EXCESS_CPU);
	budget_begin_step(&budget);
	cr_expect_eq(budget.others.excess, 0);
	cr_expect(budget_has_time(&budget.others, BUDGET_CPU, "a file"));
	clocks_ns[BUDGET_CPU] += 1;
	budget_end(&budget.others, BUDGET_CPU);
	cr_expect_eq(budget_left_ns(&budget.others, BUDGET_CPU), 99);
	cr_expect_eq(budget.others.held_bytes, 5, "memory that is held stays counted");
	budget_deinit(&budget);
}

Test(budget, charges_a_buffer_as_it_grows)
{
	struct budget budget;
	struct buf buf;
	char *stolen;

	begin(&budget);
	budget.others.most_bytes = 1000;
	buf_init(&buf, 1 << 20);
	buf_charge(&buf, &budget.others);
	cr_expect_not_null(buf_reserve(&buf, 500));
	cr_expect_eq(budget.others.held_bytes, buf.capacity_bytes);
	cr_expect_null(buf_reserve(&buf, 1001));
	cr_expect_eq(buf.failure, BUF_TOO_BIG);
	buf_deinit(&buf);
	cr_expect_eq(budget.others.held_bytes, 0);
	cr_expect(buf_append(&buf, "abc", 3), "it can be used again");
	stolen = buf_steal(&buf, NULL);
	cr_expect_eq(budget.others.held_bytes, 0);
	free(stolen);
	budget_deinit(&budget);
}

Test(budget, remembers_silent_peers)
{
	struct budget budget;

	begin(&budget);
	cr_expect_not(budget_is_silent(&budget.others, 12, 34));
	budget_record_silent(&budget.others, 12, 34);
	cr_expect(budget_is_silent(&budget.others, 12, 34));
	cr_expect_not(budget_is_silent(&budget.others, 12, 35), "another process of that number");
	cr_expect_not(budget_is_silent(NULL, 12, 34));
	budget_record_silent(NULL, 12, 34);
	budget_deinit(&budget);
}
