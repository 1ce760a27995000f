/* SPDX-License-Identifier: MIT */
#include "libsym/base/readers.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static bool membarrier(int command)
{
	return !syscall(SYS_membarrier, command, 0, 0);
}

void readers_give_places(struct readers *readers)
{
	if (!atomic_load_explicit(&readers->have_places, memory_order_relaxed) &&
	    membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))
		atomic_store(&readers->have_places, true);
}

struct reader_place *readers_find_place(struct readers *readers, uintptr_t self)
{
	struct reader_place *place = readers_first_place(readers, self);
	uintptr_t owner = 0;

	if (!atomic_load(&readers->have_places))
		return NULL;
	/* Few, so that those who find none do not look long. */
	for (size_t i = 0; i < 4; i++, owner = 0) {
		if (atomic_compare_exchange_strong(&place->owner, &owner, self) || owner == self)
			return place;
		place = &readers->places[(size_t)(place - readers->places + 1) % READER_PLACES];
	}
	return NULL;
}

/*
 * When it returns, each thread has been at a point before which all that it had begun is seen, and
 * after which it sees all that was there before the call.
 */
static void stop_all(void)
{
	/* A child of fork() may have to register anew. */
	if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) ||
	    (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
	     membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)))
		return;
	/* It could be done before and is forbidden now. No processor keeps a store to itself for
	 * more than a small part of this. */
	nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
}

static void wait_for_places(struct readers *readers)
{
	stop_all();
	for (size_t i = 0; i < READER_PLACES; i++) {
		_Atomic(uintptr_t) *turns = &readers->places[i].turns;
		uintptr_t seen = atomic_load_explicit(turns, memory_order_acquire);

		while (seen & 1 && atomic_load_explicit(turns, memory_order_acquire) == seen)
			sched_yield();
	}
}

/* Those who come in count under the other number, so it ends; twice, because one of them may have
 * chosen its number before it was changed. */
static void wait_for_counts(struct readers *readers)
{
	for (int i = 0; i < 2; i++) {
		unsigned int epoch = atomic_fetch_add(&readers->epoch, 1) & 1;

		while (atomic_load(&readers->counts[epoch]))
			sched_yield();
	}
}

void readers_wait(struct readers *readers)
{
	if (atomic_load(&readers->have_places))
		wait_for_places(readers);
	wait_for_counts(readers);
}
