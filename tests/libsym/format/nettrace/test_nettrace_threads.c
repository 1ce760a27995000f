/* SPDX-License-Identifier: MIT */
#include "libsym/format/nettrace/nettrace_threads.h"

#include <criterion/criterion.h>
#include <string.h>

/* How many gaps an event of the thread adds. */
static uint64_t event(struct nettrace_threads *threads, uint64_t id, uint32_t number)
{
	uint64_t before = threads->gaps;

	cr_assert(nettrace_threads_event(threads, id, number));
	return threads->gaps - before;
}

/* How many gaps a sequence point adds. It declares `count` pairs and has `bytes` bytes. */
static uint64_t point(struct nettrace_threads *threads, const uint32_t (*pairs)[2], uint32_t count,
		      size_t bytes, bool *ok_ret)
{
	uint8_t block[256] = { 0 };
	uint64_t before = threads->gaps;
	struct reader reader;

	memcpy(block + 8, &count, 4);
	for (uint32_t i = 0; i < count; i++) {
		memcpy(block + 12 + 12 * i, &pairs[i][0], 4);
		memcpy(block + 20 + 12 * i, &pairs[i][1], 4);
	}
	reader = reader_over(block, bytes);
	cr_assert(nettrace_threads_point(threads, &reader));
	*ok_ret = reader_ok(&reader);
	return threads->gaps - before;
}

static uint64_t whole_point(struct nettrace_threads *threads, const uint32_t (*pairs)[2],
			    uint32_t count)
{
	bool ok;
	uint64_t gaps = point(threads, pairs, count, 12 + 12 * (size_t)count, &ok);

	cr_assert(ok);
	return gaps;
}

Test(nettrace_threads, count_each_thread_from_one)
{
	struct nettrace_threads threads = { 0 };

	for (uint32_t number = 1; number < 4; number++)
		for (uint64_t id = 3000; id > 0; id--)
			cr_assert_eq(event(&threads, id * 7919 % 3001, number), 0);
	cr_assert_eq(event(&threads, 1, 5), 1);
	cr_assert_eq(event(&threads, 1, 6), 0, "what is missing is missing once");
	cr_assert_eq(event(&threads, 2, 4), 0);
	cr_assert_eq(event(&threads, 4000, 2), 1, "its first one");
	nettrace_threads_deinit(&threads);
}

Test(nettrace_threads, wrap_around_after_the_last_number)
{
	struct nettrace_threads threads = { 0 };

	cr_assert_eq(event(&threads, 1, UINT32_MAX), 1);
	cr_assert_eq(event(&threads, 1, 0), 0);
	nettrace_threads_deinit(&threads);
}

Test(nettrace_threads, find_missing_last_events_at_a_sequence_point)
{
	static const uint32_t same[][2] = { { 2, 1 }, { 1, 2 } },
			      more[][2] = { { 1, 4 }, { 2, 1 } },
			      unseen[][2] = { { 1, 4 }, { 2, 1 }, { 3, 9 }, { 4, 0 } };
	struct nettrace_threads threads = { 0 };

	event(&threads, 1, 1);
	event(&threads, 1, 2);
	event(&threads, 2, 1);
	cr_assert_eq(whole_point(&threads, same, 2), 0);
	cr_assert_eq(whole_point(&threads, more, 2), 1);
	cr_assert_eq(event(&threads, 1, 5), 0);
	cr_assert_eq(whole_point(&threads, unseen, 4), 1, "a thread of whom nothing came");
	cr_assert_eq(event(&threads, 3, 10), 0);
	cr_assert_eq(event(&threads, 4, 1), 0);
	cr_assert_eq(event(&threads, 1, 6), 0, "a point does not take back what has come");
	nettrace_threads_deinit(&threads);
}

Test(nettrace_threads, drop_threads_that_a_sequence_point_omits)
{
	static const uint32_t one[][2] = { { 2, 1 } };
	struct nettrace_threads threads = { 0 };

	event(&threads, 1, 1);
	event(&threads, 2, 1);
	cr_assert_eq(whole_point(&threads, one, 1), 0);
	cr_assert_eq(event(&threads, 1, 1), 0, "another thread of this number");
	nettrace_threads_deinit(&threads);
}

Test(nettrace_threads, forget_threads_above_the_limit)
{
	struct nettrace_threads threads = { 0 };
	uint8_t block[12] = { 0 };
	struct reader reader;

	memset(block + 8, 0x7f, 4);
	for (uint64_t id = 0; id < 1 << 17; id++)
		cr_assert_eq(event(&threads, id, 1), 0);
	cr_assert_eq(event(&threads, (1 << 17) - 1, 2), 0);
	cr_assert_eq(event(&threads, 1, 2), 1, "what is not known any more is missing");
	reader = reader_over(block, sizeof(block));
	cr_assert(nettrace_threads_point(&threads, &reader));
	cr_assert_not(reader_ok(&reader));
	nettrace_threads_deinit(&threads);
}

Test(nettrace_threads, reject_a_truncated_sequence_point)
{
	static const uint32_t pairs[][2] = { { 1, 1 }, { 2, 1 } };

	for (size_t bytes = 0; bytes < 36; bytes++) {
		struct nettrace_threads threads = { 0 };
		bool ok;

		point(&threads, pairs, 2, bytes, &ok);
		cr_assert_not(ok, "%zu bytes", bytes);
		nettrace_threads_deinit(&threads);
	}
}
