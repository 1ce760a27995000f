/* SPDX-License-Identifier: MIT */
/*
 * Threads read data that another thread replaces, waits for them, and overwrites: no reader may see
 * overwritten data. Tested with threads that come and go, and with nested reads. A plain program,
 * so that ThreadSanitizer can watch it.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "libsym/base/epoch.h"
#include "tests/races/race.h"

enum {
	THREADS = 68,
	READINGS = 300, /* of one thread before another takes its turn */
	THINGS = 32,
	WORDS = 8,
	FAR = 1 << 24
};

/* The data: all words good, or all overwritten. */
struct thing {
	uint64_t words[WORDS];
};

static const uint64_t good = 0x600d, spoilt = 0xbad;

static struct {
	struct epoch readers;
	struct thing things[THINGS];
	_Atomic(struct thing *) now;
	_Atomic(uint32_t) far[FAR];
	bool may_sleep;
	_Atomic(bool) done;
	_Atomic(uint64_t) seen, wrong;
} world;

/* Reads long enough for the writer to replace and overwrite the data if it does not wait: asleep,
 * or while the stores of dawdle() are still pending. */
static void look(uint32_t *state)
{
	const struct thing *thing = atomic_load_explicit(&world.now, memory_order_acquire);

	if (world.may_sleep && noise(state) % 2)
		usleep(50);
	/* Keeps the compiler from dropping iterations. */
	for (int i = 0; i < 100; i++)
		__asm__ volatile("" : "+r"(thing));
	for (size_t i = 0; i < WORDS; i++)
		if (thing->words[i] != good)
			atomic_fetch_add(&world.wrong, 1);
}

/* These stores take long, and later stores wait for them. */
static void dawdle(uint32_t *state)
{
	for (int i = 0; i < 16; i++)
		atomic_store_explicit(&world.far[noise(state) % FAR], *state, memory_order_relaxed);
}

static void *read_some(void *context)
{
	uint32_t state = (uint32_t)(uintptr_t)context;

	for (int i = 0; i < READINGS && !atomic_load(&world.done); i++) {
		unsigned int outer;

		dawdle(&state);
		outer = epoch_enter(&world.readers);
		look(&state);
		if (noise(&state) % 4 == 0) {
			unsigned int inner = epoch_enter(&world.readers);

			look(&state);
			epoch_leave(&world.readers, inner);
			look(&state);
		}
		epoch_leave(&world.readers, outer);
		atomic_fetch_add_explicit(&world.seen, 1, memory_order_relaxed);
	}
	return NULL;
}

/* One thread after another. */
static void *read_on(void *context)
{
	while (!atomic_load(&world.done)) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, read_some, context))
			abort();
		pthread_join(thread, NULL);
	}
	return NULL;
}

static void fill(struct thing *thing, uint64_t word)
{
	for (size_t i = 0; i < WORDS; i++)
		thing->words[i] = word;
}

static void exchange(size_t times)
{
	for (size_t i = 0; i < times; i++) {
		struct thing *fresh = &world.things[(i + 1) % THINGS], *old;

		fill(fresh, good);
		old = atomic_exchange(&world.now, fresh);
		epoch_wait(&world.readers);
		fill(old, spoilt);
	}
}

/* Returns false if a reader saw overwritten data, or if no reader saw anything. */
static bool run(const char *what, size_t thread_count, size_t exchanges)
{
	pthread_t threads[THREADS];

	fill(&world.things[0], good);
	atomic_store(&world.now, &world.things[0]);
	world.may_sleep = thread_count > 1;
	atomic_store(&world.done, false);
	atomic_store(&world.seen, 0);
	for (uintptr_t i = 0; i < thread_count; i++)
		if (pthread_create(&threads[i], NULL, read_on, (void *)(i + 1)))
			abort();
	while (atomic_load(&world.seen) < thread_count)
		continue;
	exchange(exchanges);
	atomic_store(&world.done, true);
	for (size_t i = 0; i < thread_count; i++)
		pthread_join(threads[i], NULL);
	printf("race_readers, %s: %" PRIu64 " readings\n", what, atomic_load(&world.seen));
	return !atomic_load(&world.wrong);
}

int main(void)
{
	bool all_good = run("many", THREADS, 300) & run("one alone", 1, 400000);

	printf("%s race_readers: %" PRIu64 " spoilt\n", all_good ? "ok" : "not ok",
	       atomic_load(&world.wrong));
	return !all_good;
}
