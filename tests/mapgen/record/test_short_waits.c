/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "mapgen/record/short_waits.h"
#include "tests/support/alloc_fail.h"

enum {
	SHORTEST_NS = 1000
};

struct sample {
	struct perf_event_header header;
	uint64_t number;
};

struct taken {
	uint64_t numbers[16];
	size_t count;
};

static struct sym_error *take(void *context, const struct perf_event_header *header)
{
	struct taken *taken = context;

	cr_assert_eq(header->size, sizeof(struct sample));
	taken->numbers[taken->count++] = ((const struct sample *)header)->number;
	return NULL;
}

static struct short_waits *create(struct taken *taken)
{
	struct short_waits *held;

	*taken = (struct taken){ .count = 0 };
	cr_assert_null(short_waits_create(SHORTEST_NS, take, taken, &held));
	return held;
}

static void begin(struct short_waits *held, uint32_t tid, uint64_t time_ns, uint64_t number)
{
	struct sample sample = { { .size = sizeof(sample) }, number };

	cr_assert_null(short_waits_begin(held, tid, time_ns, &sample.header));
	memset(&sample, 0xff, sizeof(sample)); /* the ring is written to again */
}

Test(short_waits, takes_waits_that_are_long_enough)
{
	struct taken taken;
	struct short_waits *held = create(&taken);

	begin(held, 1, 100, 10);
	begin(held, 2, 200, 20);
	cr_assert_null(short_waits_end(held, 1, 100 + SHORTEST_NS));
	cr_assert_null(short_waits_end(held, 2, 200 + SHORTEST_NS - 1));
	cr_assert_eq(taken.count, 1);
	cr_assert_eq(taken.numbers[0], 10);
	cr_assert_eq(short_waits_count(held), 1);
	short_waits_destroy(held);
}

Test(short_waits, takes_ends_of_waits_in_their_order)
{
	struct taken taken;
	struct short_waits *held = create(&taken);

	/* Both begins are known before both ends: rings are read one after the other. */
	begin(held, 1, 1000, 1);
	begin(held, 1, 5000, 2);
	cr_assert_null(short_waits_end(held, 1, 1500));
	cr_assert_eq(taken.count, 0);
	cr_assert_null(short_waits_end(held, 1, 9000));
	cr_assert_eq(taken.count, 1);
	cr_assert_eq(taken.numbers[0], 2);
	short_waits_destroy(held);
}

Test(short_waits, bounds_a_wait_whose_end_was_lost_by_the_next_one)
{
	struct taken taken;
	struct short_waits *held = create(&taken);

	begin(held, 1, 1000, 1);
	begin(held, 1, 1200, 2);
	begin(held, 1, 9000, 3);
	cr_assert_null(short_waits_end(held, 1, 9100));
	cr_assert_eq(taken.count, 1);
	cr_assert_eq(taken.numbers[0], 2);
	cr_assert_eq(short_waits_count(held), 2);
	short_waits_destroy(held);
}

Test(short_waits, knows_the_end_of_the_recording)
{
	struct taken taken;
	struct short_waits *held = create(&taken);

	begin(held, 1, 1000, 1);
	begin(held, 2, 4500, 2);
	cr_assert_null(short_waits_finish(held, 5000));
	cr_assert_eq(taken.count, 1);
	cr_assert_eq(taken.numbers[0], 1);
	cr_assert_eq(short_waits_count(held), 1);
	short_waits_destroy(held);
}

Test(short_waits, passes_an_end_without_a_beginning)
{
	struct taken taken;
	struct short_waits *held = create(&taken);

	cr_assert_null(short_waits_end(held, 1, 5000));
	begin(held, 1, 6000, 1);
	/* This end is earlier than the beginning: it belongs to another wait. */
	cr_assert_null(short_waits_end(held, 1, 5500));
	cr_assert_eq(taken.count, 0);
	short_waits_destroy(held);
}

static bool hold_two(void *context)
{
	struct sample sample = { { .size = sizeof(sample) }, 1 };
	struct short_waits *held = NULL;
	struct taken taken = { .count = 0 };
	struct sym_error *error = short_waits_create(SHORTEST_NS, take, &taken, &held);
	bool succeeded;

	(void)context;
	for (uint32_t tid = 1; !error && tid < 3; tid++)
		error = short_waits_begin(held, tid, tid, &sample.header);
	succeeded = !error;
	if (error)
		cr_assert_eq(sym_error_code(error), SYM_ERROR_NO_MEMORY);
	sym_error_destroy(error);
	short_waits_destroy(held);
	return succeeded;
}

Test(short_waits, fails_cleanly_without_memory)
{
	cr_assert_gt(alloc_fail_each(hold_two, NULL), 4);
}
