/* SPDX-License-Identifier: MIT */
/* Who waits for whom when objects are opened. */
#include <criterion/criterion.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "symsrv/clock.h"
#include "symsrv/inquiry.h"

static char directory[] = "/tmp/symsrv-inquiry-XXXXXX";
static struct holdings holdings;
static sem_t ended, gate, entered;

static const struct key large_key = { .kind = KEY_DEBUGINFO, .id = { 0xab }, .id_bytes = 1 };
static const struct key small_key = { .kind = KEY_DEBUGINFO, .id = { 0xcd }, .id_bytes = 1 };

static void put(const char *key, size_t size_bytes)
{
	struct store_record record = { .key = (char *)key };
	struct store_arrival *arrival;
	char *bytes AUTO_FREE = calloc(1, size_bytes);

	cr_assert_not_null(bytes);
	cr_assert_eq(store_begin(holdings.store, &arrival), 0);
	cr_assert_eq(store_append(arrival, bytes, size_bytes), 0);
	cr_assert_eq(store_publish(arrival, &record), 0);
}

static void begin(void)
{
	cr_assert_not_null(mkdtemp(directory));
	cr_assert_eq(store_open(directory, 1 << 30, &holdings.store), 0);
	put("debuginfo/ab", 17 << 20);
	put("debuginfo/cd", 1000);
	/* Nothing is checked after a start. */
	store_close(holdings.store);
	cr_assert_eq(store_open(directory, 1 << 30, &holdings.store), 0);
	holdings.index = file_index_create(true);
	holdings.objects = object_table_create(64);
	holdings.negative = negative_create();
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
	object_table_destroy(holdings.objects);
	negative_destroy(holdings.negative);
	file_index_destroy(holdings.index);
	store_close(holdings.store);
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	cr_assert_eq(system(command), 0);
}

TestSuite(inquiry, .init = begin, .fini = end);

static void on_done(struct inquiry *inquiry)
{
	(void)inquiry;
	sem_post(&ended);
}

static struct inquiry inquiry_for(const struct key *key, int64_t deadline_ms)
{
	return (struct inquiry){ .holdings = &holdings,
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

Test(inquiry, a_small_object_does_not_wait_for_the_checksum_of_a_large_one)
{
	struct inquiry large = inquiry_for(&large_key, INT64_MAX);
	struct inquiry small = inquiry_for(&small_key, INT64_MAX);
	struct job busy;

	workers_submit(holdings.checkers, &busy, hold);
	sem_wait(&entered);
	inquiry_start(&large);
	inquiry_start(&small);
	sem_wait(&ended);
	cr_expect_eq(small.outcome, INQUIRY_FOUND);
	cr_expect_eq(large.outcome, INQUIRY_PENDING);
	sem_post(&gate);
	sem_wait(&ended);
	cr_expect_eq(large.outcome, INQUIRY_FOUND);
	cr_expect_eq(large.object->size_bytes, 17u << 20);
	object_release(large.object);
	object_release(small.object);
}

Test(inquiry, what_was_compared_once_is_at_hand)
{
	struct inquiry large = inquiry_for(&large_key, INT64_MAX);
	struct job busy;

	inquiry_start(&large);
	sem_wait(&ended);
	object_release(large.object);
	object_table_clear(holdings.objects);
	workers_submit(holdings.checkers, &busy, hold);
	sem_wait(&entered);
	large = inquiry_for(&large_key, INT64_MAX);
	inquiry_start(&large);
	sem_wait(&ended);
	cr_expect_eq(large.outcome, INQUIRY_FOUND);
	object_release(large.object);
	sem_post(&gate);
}

Test(inquiry, whose_time_is_over_before_its_turn_is_told_so)
{
	struct inquiry large = inquiry_for(&large_key, clock_now_ms() - 1);

	inquiry_start(&large);
	sem_wait(&ended);
	cr_expect_eq(large.outcome, INQUIRY_TRANSIENT);
}
