/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "mapgen/events/event_kind.h"
#include "mapgen/events/event_table.h"
#include "mapgen/events/stop_condition.h"
#include "tests/support/nettrace_builder.h"

static struct stop_condition read_condition(const char *text)
{
	struct stop_condition condition;

	cr_assert_null(stop_condition_read(text, &condition));
	return condition;
}

/* One event of the runtime, by its id and the meaning that the stream gives it. */
static bool take(struct stop_condition *condition, uint32_t id, enum event_meaning meaning,
		 uint64_t time_ns, const struct buf *payload)
{
	struct event_table table;
	const struct native_event *native;
	struct event_kind kind = { .meaning = meaning, .pointer_bytes = 8 };
	struct runtime_event event = { .time_ns = time_ns,
				       .kind = &kind,
				       .payload = (const uint8_t *)payload->data,
				       .payload_bytes = payload->size_bytes };
	bool ret;

	cr_assert_null(event_table_init(&table));
	native = event_table_find(&table, "Microsoft-Windows-DotNETRuntime", id, 1);
	cr_assert(native);
	kind.fields = &native->fields;
	ret = stop_condition_take(condition, &event);
	event_table_deinit(&table);
	return ret;
}

static bool suspend(struct stop_condition *condition, uint32_t reason, uint64_t time_ns)
{
	struct buf payload;
	bool ret;

	buf_init(&payload, 64);
	put_u32(&payload, reason);
	put_u32(&payload, 1);
	put_u16(&payload, 0);
	ret = take(condition, 9, EVENT_GC_SUSPEND_BEGIN, time_ns, &payload);
	buf_deinit(&payload);
	return ret;
}

static bool restart(struct stop_condition *condition, uint64_t time_ns)
{
	struct buf payload;
	bool ret;

	buf_init(&payload, 64);
	put_u16(&payload, 0);
	ret = take(condition, 3, EVENT_GC_RESTART_END, time_ns, &payload);
	buf_deinit(&payload);
	return ret;
}

Test(stop_condition, is_true_after_a_pause_that_is_longer)
{
	struct stop_condition condition = read_condition("gc-pause>200ms");

	cr_expect_str_eq(stop_condition_group(&condition), "gc");
	cr_expect_not(suspend(&condition, 1, 1000000000));
	cr_expect_not(restart(&condition, 1200000000));
	cr_expect_not(suspend(&condition, 6, 2000000000));
	cr_expect(restart(&condition, 2200000001));
	cr_expect_eq(condition.happened_ns, 2200000001);
}

/* A debugger, or code that is compiled again: no collection. */
Test(stop_condition, does_not_count_other_reasons_to_stop_threads)
{
	struct stop_condition condition = read_condition("gc-pause>1ms");

	cr_expect_not(suspend(&condition, 5, 1000000000));
	cr_expect_not(restart(&condition, 9000000000));
	/* The recording began in the middle. */
	cr_expect_not(restart(&condition, 9500000000));
}

static bool throw(const char *text, const char *type)
{
	struct stop_condition condition = read_condition(text);
	struct buf payload;
	bool ret;

	buf_init(&payload, 4096);
	put_utf16(&payload, type);
	put_utf16(&payload, "no such order");
	put_u64(&payload, 0);
	put_u32(&payload, 0x80131500);
	put_u16(&payload, 16);
	put_u16(&payload, 0);
	ret = take(&condition, 80, EVENT_EXCEPTION, 7, &payload);
	buf_deinit(&payload);
	return ret;
}

Test(stop_condition, knows_an_exception_with_or_without_its_namespace)
{
	cr_expect(throw("exception=OrderException", "OrderException"));
	cr_expect(throw("exception=OrderException", "Contoso.Store.OrderException"));
	cr_expect(throw("exception=Store.OrderException", "Contoso.Store.OrderException"));
	cr_expect(throw("exception=Inner", "Contoso.Store+Inner"));
	cr_expect_not(throw("exception=OrderException", "ReorderException"));
	cr_expect_not(throw("exception=OrderException", "BadOrderException"));
	cr_expect_not(throw("exception=Contoso.OrderException", "OrderException"));
}

Test(stop_condition, is_true_when_the_pool_starves)
{
	struct stop_condition condition = read_condition("pool-starvation");
	struct buf payload;

	for (uint32_t reason = 0; reason <= 8; reason++) {
		buf_init(&payload, 64);
		put_u64(&payload, 0);
		put_u32(&payload, 12);
		put_u32(&payload, reason);
		put_u16(&payload, 0);
		cr_expect_eq(take(&condition, 55, EVENT_POOL_ADJUSTMENT, 7, &payload), reason == 6,
			     "reason %u", reason);
		condition.happened_ns = 0;
		buf_deinit(&payload);
	}
}

Test(stop_condition, rejects_what_is_malformed)
{
	static const char *const bad[] = { "",
					   "gc-pause",
					   "gc-pause>",
					   "gc-pause>0ms",
					   "gc-pause>-1ms",
					   "gc-pause>5min",
					   "exception=",
					   "starvation" };
	struct stop_condition condition;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		cr_expect_not_null(stop_condition_read(bad[i], &condition), "%s", bad[i]);
	cr_assert_null(stop_condition_read("gc-pause>1.5s", &condition));
	cr_expect_eq(condition.longest_pause_ns, 1500000000);
	cr_assert_null(stop_condition_read("gc-pause>200", &condition));
	cr_expect_eq(condition.longest_pause_ns, 200000000);
}
