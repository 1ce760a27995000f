/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

#include "mapgen/view/lock_owners.h"

enum {
	FIRST = 11,
	SECOND = 12,
	THIRD = 13,
};

static struct profile *profile;
static const struct event_row *lock;

static void set_up(void)
{
	struct event_row *row;

	cr_assert(eq(ptr, profile_create(&profile), NULL));
	profile->keeps_spans = true;
	profile->report = calloc(1, sizeof(*profile->report));
	cr_assert(ne(ptr, profile->report, NULL));
	cr_assert(eq(ptr, event_rows_find(&profile->report->locks, "lock 0x1", "", &row), NULL));
	lock = row;
}

static void tear_down(void)
{
	profile_destroy(profile);
}

/* Main calls the function, which calls Sleep. */
static uint32_t make_stack(const char *function)
{
	const char *const names[] = {
		"void [app] Program::Main()", function,
		"void [System.Private.CoreLib] System.Threading.Thread::Sleep()"
	};
	uint32_t frames[3], stack;

	for (int i = 0; i < 3; i++) {
		const struct profile_frame frame = { .name = names[i],
						     .image = "",
						     .tier = "",
						     .reason = "",
						     .kind = FRAME_KIND_JITTED,
						     .is_named = true };

		cr_assert(eq(ptr, frame_table_add(profile->frames, &frame, &frames[i]), NULL));
	}
	cr_assert(eq(ptr,
		     frame_table_add_stack(profile->frames, frames, 3, STACK_END_WHOLE, &stack),
		     NULL));
	return stack;
}

static void add_span(int32_t tid, uint64_t begin_ns, uint64_t end_ns, const char *function)
{
	struct profile_span span = { begin_ns, end_ns, 0, make_stack(function) };

	cr_assert(eq(ptr, thread_table_find(&profile->threads, 10, tid, &span.thread), NULL));
	cr_assert(eq(ptr, profile_add_span(profile, &span), NULL));
}

/* One wait a row. */
static void set_waits(const struct lock_wait *waits, size_t count)
{
	struct event_report *report = profile->report;

	report->lock_waits = calloc(count, sizeof(*waits));
	cr_assert(ne(ptr, report->lock_waits, NULL));
	for (size_t i = 0; i < count; i++) {
		report->lock_waits[i] = waits[i];
		report->lock_waits[i].lock = lock;
	}
	report->lock_wait_count = count;
}

static void expect_place(const char *function, double share)
{
	struct lock_owners owners;
	const struct owner_place *place;
	double found_share;

	cr_assert(eq(ptr, lock_owners_make(profile, &owners), NULL));
	place = lock_owners_find(&owners, lock, &found_share);
	if (!function) {
		cr_expect(eq(ptr, (void *)place, NULL));
	} else {
		cr_assert(ne(ptr, (void *)place, NULL));
		cr_expect(eq(str, (char *)frame_table_at(profile->frames, place->where)->name,
			     (char *)function));
		cr_expect(epsilon_eq(dbl, found_share, share, 0.001));
	}
	lock_owners_deinit(&owners);
}

TestSuite(lock_owners, .init = set_up, .fini = tear_down);

Test(lock_owners, are_where_their_samples_and_waits_are_meanwhile)
{
	add_span(FIRST, 0, 100, "void [app] Program::Before()");
	add_span(FIRST, 100, 180, "void [app] Program::Hold()");
	add_span(FIRST, 180, 400, "void [app] Program::Write()");
	set_waits((struct lock_wait[]){ { 100, 200, SECOND, FIRST, NULL } }, 1);
	expect_place("void [app] Program::Hold()", 0.8);
}

/* FIRST has let it go, and waits for it itself: that is not where the owner is. */
Test(lock_owners, change_when_a_wait_ends)
{
	add_span(FIRST, 0, 50, "void [app] Program::Hold()");
	add_span(FIRST, 50, 1000, "void [app] Program::WaitForLock()");
	add_span(SECOND, 50, 500, "void [app] Program::Hold()");
	set_waits((struct lock_wait[]){ { 10, 50, SECOND, FIRST, NULL },
					{ 20, 500, THIRD, FIRST, NULL } },
		  2);
	expect_place("void [app] Program::Hold()", 1);
}

Test(lock_owners, are_not_known_without_samples_of_them)
{
	add_span(SECOND, 0, 50, "void [app] Program::Other()");
	set_waits((struct lock_wait[]){ { 10, 50, SECOND, FIRST, NULL } }, 1);
	expect_place(NULL, 0);
}

Test(lock_owners, are_unknown_where_no_event_says_who_they_are)
{
	add_span(SECOND, 0, 50, "void [app] Program::Other()");
	set_waits((struct lock_wait[]){ { 10, 50, THIRD, 0, NULL } }, 1);
	expect_place(NULL, 0);
}
