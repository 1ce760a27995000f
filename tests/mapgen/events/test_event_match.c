/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include "mapgen/events/event_match.h"

static struct event_match *match;

static void begin(void)
{
	cr_assert_null(event_match_create(&match));
}

static void end(void)
{
	event_match_destroy(match);
}

static void hit(int32_t tid, const char *name, uint64_t time_ns, uint32_t stack)
{
	cr_assert_null(event_match_note_hit(match, tid, name, time_ns, stack));
}

static void event(int32_t tid, const char *name, uint64_t time_ns)
{
	cr_assert_null(event_match_note_event(match, tid, name, time_ns));
}

Test(event_match, pairs_by_thread_name_and_order, .init = begin, .fini = end)
{
	hit(7, "GCStart_V2", 203, 2);
	hit(7, "GCStart_V2", 103, 1);
	hit(8, "GCStart_V2", 104, 3);
	hit(7, "ExceptionThrown_V1", 105, 4);
	event(7, "GCStart_V2", 100);
	event(7, "GCStart_V2", 200);
	event(8, "GCStart_V2", 100);
	event(7, "ExceptionThrown_V1", 100);
	event_match_resolve(match, UINT64_MAX);
	cr_expect_eq(event_match_next(match, 7, "GCStart_V2"), 1);
	cr_expect_eq(event_match_next(match, 7, "GCStart_V2"), 2);
	cr_expect_eq(event_match_next(match, 7, "GCStart_V2"), EVENT_MATCH_NONE);
	cr_expect_eq(event_match_next(match, 8, "GCStart_V2"), 3);
	cr_expect_eq(event_match_next(match, 7, "ExceptionThrown_V1"), 4);
	cr_expect_eq(event_match_counts(match).matched, 4);
}

Test(event_match, leaves_alone_what_has_lost_its_partner, .init = begin, .fini = end)
{
	hit(7, "A", 50, 1); /* its event came before the recording */
	hit(7, "A", 202, 2);
	hit(7, "A", 302, 3);
	hit(7, "A", 303, 4); /* its event was dropped */
	event(7, "A", 100);  /* its hit was lost */
	event(7, "A", 200);
	event(7, "A", 300);
	event_match_resolve(match, UINT64_MAX);
	cr_expect_eq(event_match_next(match, 7, "A"), EVENT_MATCH_NONE);
	cr_expect_eq(event_match_next(match, 7, "A"), 2);
	cr_expect_eq(event_match_next(match, 7, "A"), 3);
	cr_expect_eq(event_match_counts(match).matched, 2);
	cr_expect_eq(event_match_counts(match).events_alone, 1);
	cr_expect_eq(event_match_counts(match).hits_alone, 2);
}

Test(event_match, takes_one_process_after_the_other, .init = begin, .fini = end)
{
	hit(7, "A", 101, 1);
	hit(9, "A", 101, 2);
	event(7, "A", 100);
	event_match_resolve(match, UINT64_MAX);
	event(9, "A", 100);
	event_match_resolve(match, UINT64_MAX);
	cr_expect_eq(event_match_next(match, 7, "A"), 1);
	cr_expect_eq(event_match_next(match, 9, "A"), 2);
	cr_expect_eq(event_match_counts(match).matched, 2);
	cr_expect_eq(event_match_counts(match).hits_alone, 0);
}

Test(event_match, misses_no_event_of_a_hit_after_the_end, .init = begin, .fini = end)
{
	hit(7, "A", 101, 1);
	hit(7, "A", 202, 2);
	hit(8, "A", 150, 3); /* its event is lost */
	hit(8, "A", 203, 4);
	event(7, "A", 100);
	event_match_resolve(match, 200);
	cr_expect_eq(event_match_counts(match).matched, 1);
	cr_expect_eq(event_match_counts(match).hits_alone, 1);
}
