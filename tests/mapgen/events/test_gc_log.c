/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "mapgen/events/event_kind.h"
#include "mapgen/events/event_table.h"
#include "mapgen/events/gc_log.h"
#include "tests/support/nettrace_builder.h"

static struct event_table table;
static struct gc_log gc;
static struct buf payload;

static void begin(void)
{
	cr_assert_null(event_table_init(&table));
	gc = (struct gc_log){ 0 };
	buf_init(&payload, 1000);
}

static void end(void)
{
	event_table_deinit(&table);
	gc_log_deinit(&gc);
	buf_deinit(&payload);
}

/* Takes an event with the bytes of `payload`, and empties it. */
static void take(uint32_t id, uint32_t version, enum event_meaning meaning, int32_t tid,
		 uint64_t time_ns, uint32_t stack)
{
	const struct native_event *native =
		event_table_find(&table, "Microsoft-Windows-DotNETRuntime", id, version);
	const struct event_kind kind = { .meaning = meaning,
					 .fields = &native->fields,
					 .pointer_bytes = 8 };
	const struct runtime_event event = { .time_ns = time_ns,
					     .tid = tid,
					     .kind = &kind,
					     .payload = (const uint8_t *)payload.data,
					     .payload_bytes = payload.size_bytes };

	cr_assert_null(gc_log_take(&gc, &event, stack));
	buf_clear(&payload);
}

static void suspend(int32_t tid, uint64_t time_ns, uint32_t reason)
{
	put_u32(&payload, reason);
	put_u32(&payload, 0);
	put_u16(&payload, 0);
	take(9, 1, EVENT_GC_SUSPEND_BEGIN, tid, time_ns, UINT32_MAX);
	put_u16(&payload, 0);
	take(8, 1, EVENT_GC_SUSPEND_END, tid, time_ns + 5, UINT32_MAX);
}

static void restart(int32_t tid, uint64_t time_ns)
{
	put_u16(&payload, 0);
	take(3, 1, EVENT_GC_RESTART_END, tid, time_ns, UINT32_MAX);
}

static void start(uint32_t number, uint32_t generation, uint32_t type, int32_t tid,
		  uint64_t time_ns)
{
	put_u32(&payload, number);
	put_u32(&payload, generation);
	put_u32(&payload, 1);
	put_u32(&payload, type);
	put_u16(&payload, 0);
	put_u64(&payload, 0);
	take(1, 2, EVENT_GC_START, tid, time_ns, UINT32_MAX);
}

static void stats(uint64_t time_ns, uint64_t size, uint64_t promoted)
{
	for (int i = 0; i < 4; i++) {
		put_u64(&payload, size);
		put_u64(&payload, promoted);
	}
	put_u64(&payload, 0);
	put_u64(&payload, 0);
	for (int i = 0; i < 3; i++)
		put_u32(&payload, 0);
	put_u16(&payload, 0);
	put_u64(&payload, size);
	put_u64(&payload, promoted);
	take(4, 2, EVENT_GC_HEAP_STATS, 1, time_ns, UINT32_MAX);
}

/* One heap with one generation. */
static void history(uint64_t time_ns, uint64_t size_before)
{
	put_u16(&payload, 0);
	for (int i = 0; i < 6; i++)
		put_u64(&payload, 1);
	for (int i = 0; i < 6; i++)
		put_u32(&payload, 2);
	put_u64(&payload, 3);
	put_u32(&payload, 1);
	put_u64(&payload, size_before);
	for (int i = 0; i < 9; i++)
		put_u64(&payload, 4);
	take(204, 3, EVENT_GC_HEAP_HISTORY, 1, time_ns, UINT32_MAX);
}

Test(gc_log, measures_a_pause_from_suspension_to_restart, .init = begin, .fini = end)
{
	put_u32(&payload, 1);
	put_u16(&payload, 0);
	take(35, 0, EVENT_GC_TRIGGERED, 5, 90, 77);
	suspend(5, 100, 1);
	start(1, 2, GC_BLOCKING, 5, 110);
	stats(150, 10, 3);
	restart(5, 160);
	cr_assert_eq(gc.count, 1);
	cr_expect_eq(gc.items[0].pause_ns, 60);
	cr_expect_eq(gc.items[0].start_ns, 100);
	cr_expect_eq(gc.items[0].generation, 2);
	cr_expect_eq(gc.items[0].after_bytes, 50);
	cr_expect_eq(gc.items[0].promoted_bytes, 15);
	cr_expect_eq(gc.items[0].stack, 77);
	cr_expect_str_eq(gc_reason_text(gc.items[0].reason), "induced");
}

Test(gc_log, names_the_reasons_of_the_runtime)
{
	cr_expect_str_eq(gc_reason_text(14), "tuning of background collections (small objects)");
	cr_expect_str_eq(gc_reason_text(17), "induced, aggressive");
	cr_expect_str_eq(gc_reason_text(18), "unknown");
}

Test(gc_log, leaves_out_suspensions_for_other_reasons, .init = begin, .fini = end)
{
	suspend(5, 100, 5);
	restart(5, 160);
	cr_expect_eq(gc.count, 0);
	cr_expect_eq(gc.stray_pauses, 0);
}

Test(gc_log, adds_up_the_pauses_of_a_background_collection, .init = begin, .fini = end)
{
	suspend(5, 100, 1);
	start(1, 2, GC_BACKGROUND, 5, 110);
	restart(5, 130);
	suspend(6, 200, 1);
	start(2, 0, GC_FOREGROUND, 6, 205);
	stats(210, 1, 1);
	restart(6, 220);
	suspend(9, 300, 6);
	restart(9, 307);
	stats(400, 2, 1);
	history(410, 70);
	cr_assert_eq(gc.count, 2);
	cr_expect_eq(gc.items[0].pause_ns, 30 + 7);
	cr_expect_eq(gc.items[0].pauses, 2);
	cr_expect_eq(gc.items[0].longest_pause_ns, 30);
	cr_expect_eq(gc.items[0].after_bytes, 10);
	cr_expect_eq(gc.items[0].before_bytes, 70);
	cr_expect_eq(gc.items[1].pause_ns, 20);
	cr_expect_eq(gc.items[1].after_bytes, 5);
}

Test(gc_log, counts_a_pause_whose_collection_it_has_not_seen, .init = begin, .fini = end)
{
	suspend(5, 100, 6);
	restart(5, 130);
	cr_expect_eq(gc.count, 0);
	cr_expect_eq(gc.stray_pauses, 1);
	cr_expect_eq(gc.stray_pause_ns, 30);
}

Test(gc_log, takes_one_process_after_the_other, .init = begin, .fini = end)
{
	gc_log_begin(&gc, 10);
	suspend(5, 100, 1);
	start(1, 0, GC_BLOCKING, 5, 110);
	/* The first stream ends here. */
	gc_log_begin(&gc, 20);
	start(1, 2, GC_BLOCKING, 6, 120);
	restart(5, 160);
	cr_assert_eq(gc.count, 2);
	cr_expect_eq(gc.items[0].pid, 10);
	cr_expect_eq(gc.items[1].pid, 20);
	cr_expect_eq(gc.items[1].generation, 2);
	cr_expect_eq(gc.items[0].pause_ns + gc.items[1].pause_ns, 0);
}
