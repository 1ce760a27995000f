/* SPDX-License-Identifier: MIT */
#include "libsym/perf/jitdump_history.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/alloc_fail.h"

/* The oracle: checks every stay. */
static const struct jitdump_stay *find_slowly(const struct jitdump_stay *stays, size_t count,
					      uint64_t address, uint64_t timestamp)
{
	const struct jitdump_stay *last = NULL, *next = NULL;

	if (!count || stays[0].timestamp > timestamp)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		if (address - stays[i].start >= stays[i].size_bytes)
			continue;
		if (stays[i].timestamp <= timestamp)
			last = &stays[i];
		else if (!next)
			next = &stays[i];
	}
	return last ? last : next;
}

static struct jitdump_history *create(const struct jitdump_stay *stays, size_t count)
{
	struct jitdump_stay *taken = calloc(count + 1, sizeof(*taken));

	cr_assert_not_null(taken);
	if (count)
		memcpy(taken, stays, count * sizeof(*taken));
	return jitdump_history_create(taken, count);
}

enum {
	MOST = 60
};

static size_t make_stays(unsigned int seed, struct jitdump_stay *stays)
{
	uint64_t timestamp = 100, span = 4 + seed % 90;
	size_t count = 1 + (size_t)rand() % MOST;

	for (size_t i = 0; i < count; i++) {
		timestamp += (uint64_t)(rand() % 3);
		stays[i] = (struct jitdump_stay){ timestamp, 1000 + (uint64_t)rand() % span,
						  1 + (uint64_t)rand() % span, (uint32_t)i };
	}
	return count;
}

Test(jitdump_history, agrees_with_a_linear_search)
{
	for (unsigned int seed = 1; seed < 400; seed++) {
		struct jitdump_stay stays[MOST];
		struct jitdump_history *history;
		size_t count;

		srand(seed);
		count = make_stays(seed, stays);
		history = create(stays, count);
		cr_assert_not_null(history);
		for (int tries = 0; tries < 300; tries++) {
			uint64_t address = 995 + (uint64_t)rand() % 200;
			uint64_t timestamp = 95 + (uint64_t)rand() % (2 * MOST + 10);
			const struct jitdump_stay *expected =
				find_slowly(stays, count, address, timestamp);
			const struct jitdump_stay *found =
				jitdump_history_find(history, address, timestamp);

			cr_assert_eq(!found, !expected);
			cr_assert(!found || found->number == expected->number,
				  "%u instead of %u, seed %u", found->number, expected->number,
				  seed);
		}
		jitdump_history_destroy(history);
	}
}

Test(jitdump_history, accepts_code_up_to_the_end_of_memory)
{
	const struct jitdump_stay stays[] = { { 1, 0, 1, 0 },
					      { 2, UINT64_MAX - 8, 8, 1 },
					      { 3, 0, UINT64_MAX, 2 } };
	struct jitdump_history *history = create(stays, 3);

	cr_assert_not_null(history);
	cr_expect_eq(jitdump_history_find(history, 0, 2)->number, 0);
	cr_expect_eq(jitdump_history_find(history, UINT64_MAX - 1, 2)->number, 1);
	cr_expect_eq(jitdump_history_find(history, UINT64_MAX - 1, 3)->number, 2);
	cr_expect_null(jitdump_history_find(history, UINT64_MAX, 3));
	jitdump_history_destroy(history);
}

Test(jitdump_history, finds_nothing_when_empty)
{
	struct jitdump_history *history = create(NULL, 0);

	cr_assert_not_null(history);
	cr_expect_null(jitdump_history_find(history, 0, UINT64_MAX));
	jitdump_history_destroy(history);
}

static bool create_and_drop(void *context)
{
	const struct jitdump_stay *stays = context;
	struct jitdump_stay *taken = malloc(2 * sizeof(*taken));
	struct jitdump_history *history;

	if (!taken)
		return false;
	memcpy(taken, stays, 2 * sizeof(*taken));
	history = jitdump_history_create(taken, 2);
	if (!history)
		return false;
	cr_expect_eq(jitdump_history_find(history, 2, 2)->number, 1);
	jitdump_history_destroy(history);
	return true;
}

Test(jitdump_history, frees_its_stays_when_out_of_memory)
{
	struct jitdump_stay stays[] = { { 1, 0, 4, 0 }, { 2, 2, 4, 1 } };

	cr_expect_gt(alloc_fail_each(create_and_drop, stays), 4);
}
