/* SPDX-License-Identifier: MIT */
/* Which look-ups wait for others when objects are opened. */
#include <criterion/criterion.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "symsrv/lookup/lookup.h"
#include "symsrv/util/clock.h"

static char directory[] = "/tmp/symsrv-inquiry-XXXXXX";
static struct holdings holdings;
static sem_t ended, gate, entered;

static const struct key large_key = { .kind = KEY_DEBUGINFO, .id = { 0xab }, .id_bytes = 1 };
static const struct key small_key = { .kind = KEY_DEBUGINFO, .id = { 0xcd }, .id_bytes = 1 };

static void put(const char *key, size_t size_bytes)
{
	struct store_record record = { .key = (char *)key };
	struct store_incoming *incoming;
	char *bytes AUTO_FREE = calloc(1, size_bytes);

	cr_assert_not_null(bytes);
	cr_assert_eq(store_begin(holdings.store, &incoming), 0);
	cr_assert_eq(store_append(incoming, bytes, size_bytes), 0);
	cr_assert_eq(store_publish(incoming, &record), 0);
}

static void begin(void)
{
	cr_assert_not_null(mkdtemp(directory));
	cr_assert_eq(store_open(directory, 1 << 30, &holdings.store), 0);
	put("debuginfo/ab", 17 << 20);
	put("debuginfo/cd", 1000);
	/* After a start no checksum has been compared. */
	store_close(holdings.store);
	cr_assert_eq(store_open(directory, 1 << 30, &holdings.store), 0);
	holdings.now_ms = clock_now_ms;
	holdings.index = file_index_create(true);
	holdings.objects = object_table_create(64);
	holdings.negative = negative_cache_create();
	cr_assert_eq(workers_create(1, &holdings.workers), 0);
	cr_assert_eq(workers_create(1, &holdings.checkers), 0);
	sem_init(&ended, 0, 0);
	sem_init(&gate, 0, 0);
	sem_init(&entered, 0, 0);
}

static void end(void)
{
	char command[128];

	workers_destroy(holdings.checkers);
	workers_destroy(holdings.workers);
	lru_table_destroy(holdings.objects);
	negative_cache_destroy(holdings.negative);
	file_index_destroy(holdings.index);
	store_close(holdings.store);
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	cr_assert_eq(system(command), 0);
}

TestSuite(lookup, .init = begin, .fini = end);

static void on_done(struct lookup *lookup)
{
	(void)lookup;
	sem_post(&ended);
}

static struct lookup lookup_for(const struct key *key, int64_t deadline_ms)
{
	return (struct lookup){ .holdings = &holdings,
				.key = *key,
				.is_local = true,
				.deadline_ms = deadline_ms,
				.done = on_done };
}

static void hold(struct job *job)
{
	(void)job;
	sem_post(&entered);
	sem_wait(&gate);
}

Test(lookup, a_small_object_does_not_wait_for_the_checksum_of_a_large_one)
{
	struct lookup large = lookup_for(&large_key, INT64_MAX);
	struct lookup small = lookup_for(&small_key, INT64_MAX);
	struct job busy;

	workers_submit(holdings.checkers, &busy, hold);
	sem_wait(&entered);
	lookup_start(&large);
	lookup_start(&small);
	sem_wait(&ended);
	cr_expect_eq(small.outcome, LOOKUP_FOUND);
	cr_expect_eq(large.outcome, LOOKUP_PENDING);
	sem_post(&gate);
	sem_wait(&ended);
	cr_expect_eq(large.outcome, LOOKUP_FOUND);
	cr_expect_eq(large.object->size_bytes, 17u << 20);
	object_release(large.object);
	object_release(small.object);
}

Test(lookup, what_was_compared_once_is_at_hand)
{
	struct lookup large = lookup_for(&large_key, INT64_MAX);
	struct job busy;

	lookup_start(&large);
	sem_wait(&ended);
	object_release(large.object);
	lru_table_filter(holdings.objects, NULL, NULL);
	workers_submit(holdings.checkers, &busy, hold);
	sem_wait(&entered);
	large = lookup_for(&large_key, INT64_MAX);
	lookup_start(&large);
	sem_wait(&ended);
	cr_expect_eq(large.outcome, LOOKUP_FOUND);
	object_release(large.object);
	sem_post(&gate);
}

Test(lookup, whose_time_is_over_before_its_turn_is_told_so)
{
	struct lookup large = lookup_for(&large_key, clock_now_ms() - 1);

	lookup_start(&large);
	sem_wait(&ended);
	cr_expect_eq(large.outcome, LOOKUP_TRANSIENT);
}
