/* SPDX-License-Identifier: MIT */
#include "libsym/base/epoch.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static bool call_membarrier(int command)
{
	return !syscall(SYS_membarrier, command, 0, 0);
}

void epoch_enable_slots(struct epoch *epoch)
{
	if (!atomic_load_explicit(&epoch->has_slots, memory_order_relaxed) &&
	    call_membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))
		atomic_store(&epoch->has_slots, true);
}

struct epoch_slot *epoch_claim_slot(struct epoch *epoch, uintptr_t self)
{
	struct epoch_slot *slot = epoch_first_slot(epoch, self);
	uintptr_t owner = 0;

	if (!atomic_load(&epoch->has_slots))
		return NULL;
	/* Only a few slots are tried, so that threads without a slot do not search for long. */
	for (size_t i = 0; i < 4; i++, owner = 0) {
		if (atomic_compare_exchange_strong(&slot->owner, &owner, self) || owner == self)
			return slot;
		slot = &epoch->slots[(size_t)(slot - epoch->slots + 1) % EPOCH_SLOTS];
	}
	return NULL;
}

/* Makes every thread of the process execute a full memory barrier (membarrier(2)). */
static void epoch_stop_threads(void)
{
	/* A child of fork() may have to register again. */
	if (call_membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) ||
	    (call_membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
	     call_membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)))
		return;
	/* The kernel allowed membarrier() earlier and forbids it now. A processor delays a store by
	 * far less than this. */
	nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
}

static void epoch_wait_for_slots(struct epoch *epoch)
{
	epoch_stop_threads();
	for (size_t i = 0; i < EPOCH_SLOTS; i++) {
		_Atomic(uintptr_t) *sequence = &epoch->slots[i].sequence;
		uintptr_t seen = atomic_load_explicit(sequence, memory_order_acquire);

		while (seen & 1 && atomic_load_explicit(sequence, memory_order_acquire) == seen)
			sched_yield();
	}
}

/* Readers that arrive now are counted in the other phase, so the loop ends. It runs twice because a
 * reader may have read the phase just before it changed. */
static void epoch_wait_for_counts(struct epoch *epoch)
{
	for (int i = 0; i < 2; i++) {
		unsigned int phase = atomic_fetch_add(&epoch->phase, 1) & 1;

		while (atomic_load(&epoch->counts[phase]))
			sched_yield();
	}
}

void epoch_wait(struct epoch *epoch)
{
	if (atomic_load(&epoch->has_slots))
		epoch_wait_for_slots(epoch);
	epoch_wait_for_counts(epoch);
}
