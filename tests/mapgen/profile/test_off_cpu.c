/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "mapgen/profile/off_cpu.h"

static struct off_cpu off_cpu;

static void deinit(void)
{
	off_cpu_deinit(&off_cpu);
}

static struct away_time come_back(uint32_t thread, uint64_t time_ns, bool *was_away)
{
	struct away_time away;

	cr_assert(off_cpu_in(&off_cpu, thread, time_ns, 50, &away, was_away) == NULL);
	return away;
}

Test(off_cpu, gives_the_time_between_out_and_in_with_the_stack_of_the_switch, .fini = deinit)
{
	bool was_away;
	struct away_time away;

	cr_assert(off_cpu_sample(&off_cpu, 1000, 3) == NULL);
	cr_assert(off_cpu_out(&off_cpu, 1000, 100, true) == NULL);
	away = come_back(1000, 250, &was_away);
	cr_expect(was_away && away.is_preempted && !away.is_early);
	cr_expect(eq(u64, away.end_ns - away.begin_ns, 150));
	cr_expect(eq(u32, away.stack, 3));
}

Test(off_cpu, calls_a_wait_early_that_had_begun_before_the_recording, .fini = deinit)
{
	bool was_away;
	struct away_time away = come_back(0, 250, &was_away);

	cr_expect(was_away && away.is_early);
	cr_expect(eq(u64, away.begin_ns, 50));
}

Test(off_cpu, takes_no_wait_for_early_of_a_thread_that_was_made_meanwhile, .fini = deinit)
{
	bool was_away;

	cr_assert(off_cpu_note_life(&off_cpu, 0, false) == NULL);
	come_back(0, 250, &was_away);
	cr_expect(not(was_away));
}

Test(off_cpu, ends_with_the_thread, .fini = deinit)
{
	struct away_time away;

	cr_assert(off_cpu_note_life(&off_cpu, 0, true) == NULL);
	cr_assert(off_cpu_out(&off_cpu, 0, 100, false) == NULL);
	cr_expect(not(off_cpu_end(&off_cpu, 0, 500, &away)));
	cr_assert(off_cpu_out(&off_cpu, 1, 100, false) == NULL);
	cr_expect(off_cpu_end(&off_cpu, 1, 500, &away));
	cr_expect(eq(u64, away.end_ns, 500));
}

Test(off_cpu, drops_a_wait_whose_return_was_lost, .fini = deinit)
{
	bool was_away;

	cr_assert(off_cpu_out(&off_cpu, 0, 100, false) == NULL);
	cr_assert(off_cpu_note_running(&off_cpu, 0) == NULL);
	come_back(0, 250, &was_away);
	cr_expect(not(was_away), "it ran in between");
	cr_assert(off_cpu_out(&off_cpu, 0, 300, false) == NULL);
	cr_assert(off_cpu_out(&off_cpu, 0, 400, false) == NULL);
	cr_expect(eq(u64, come_back(0, 450, &was_away).begin_ns, 400));
	cr_expect(eq(u64, off_cpu.lost_returns, 2));
}

Test(off_cpu, calls_no_wait_early_of_a_thread_that_ran_before, .fini = deinit)
{
	bool was_away;

	cr_assert(off_cpu_note_running(&off_cpu, 0) == NULL);
	cr_expect(eq(u64, off_cpu.lost_returns, 0));
	come_back(0, 250, &was_away);
	cr_expect(not(was_away));
}
