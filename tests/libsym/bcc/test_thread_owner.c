/* SPDX-License-Identifier: MIT */
/* How long the process of a thread that has ended is known, by the test's clock. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "libsym/bcc/thread_owner.h"
#include "tests/support/waiting.h"

static const uint64_t second_ns = 1000000000;

static void *note_id(void *id)
{
	*(pid_t *)id = gettid();
	cr_assert_eq(thread_owner(gettid(), 1000 * second_ns), getpid());
	return NULL;
}

/* The id of a thread that has ended, known at second 1000. */
static pid_t end_thread(void)
{
	pthread_t thread;
	char path[64];
	pid_t id = 0;

	cr_assert_eq(pthread_create(&thread, NULL, note_id, &id), 0);
	pthread_join(thread, NULL);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)id);
	for (int turn = 0; !access(path, F_OK) && wait_turn(turn); turn++)
		;
	return id;
}

Test(thread_owner, is_known_for_a_minute_after_the_end_of_a_thread)
{
	pid_t id = end_thread();

	cr_expect_eq(thread_owner(id, 1060 * second_ns), getpid());
	cr_expect_eq(thread_owner(id, 1060 * second_ns + 1), id);
}

Test(thread_owner, is_the_id_itself_of_an_unknown_thread)
{
	cr_expect_eq(thread_owner(INT32_MAX, second_ns), INT32_MAX);
}
