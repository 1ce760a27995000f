/* SPDX-License-Identifier: MIT */
/*
 * Epoch reclamation: a writer replaces data that other threads read without a lock, waits until no
 * reader can still hold the old data, and then frees it.
 *
 * Each reader thread has a slot of its own and marks it with ordinary stores, so readers wait
 * neither for each other nor for memory. epoch_wait() makes these stores visible with
 * membarrier(2). Threads without a slot are counted instead. So are all threads if the kernel has
 * no membarrier().
 */
#ifndef LIBSYM_BASE_EPOCH_H
#define LIBSYM_BASE_EPOCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	EPOCH_SLOTS = 64 /* a power of two */
};

struct epoch_slot {
	_Alignas(64) _Atomic(uintptr_t) owner; /* epoch_self() of a thread; 0: free */
	/* odd while the owner reads; only the owner writes it */
	_Atomic(uintptr_t) sequence;
};

/* A zeroed struct epoch is ready for use. */
struct epoch {
	_Atomic(bool) has_slots;
	_Atomic(unsigned int) phase;
	_Atomic(uint32_t) counts[2];
	struct epoch_slot slots[EPOCH_SLOTS];
};

/* One read section. */
struct epoch_guard {
	struct epoch_slot *slot; /* NULL: counted under `phase` */
	uintptr_t sequence;
	unsigned int phase;
};

/* Lets later readers use slots, if the kernel supports membarrier(). */
void epoch_enable_slots(struct epoch *epoch);

/* Waits for all readers that began before the call. Data replaced before the call is then visible
 * to all later readers. Only one thread may wait at a time, and it must not be reading. */
void epoch_wait(struct epoch *epoch);

/* For epoch_enter(): a slot for this thread from now on, or NULL. */
struct epoch_slot *epoch_claim_slot(struct epoch *epoch, uintptr_t self);

/* Identifies the calling thread; unique among living threads. */
static inline uintptr_t epoch_self(void)
{
	return (uintptr_t)__builtin_thread_pointer();
}

/* Thread control blocks are pages apart. */
static inline struct epoch_slot *epoch_first_slot(struct epoch *epoch, uintptr_t self)
{
	return &epoch->slots[(self >> 12 ^ self >> 18) % EPOCH_SLOTS];
}

static inline __attribute__((always_inline)) struct epoch_guard epoch_enter(struct epoch *epoch)
{
	struct epoch_guard guard = { 0 };
	uintptr_t self = epoch_self();
	struct epoch_slot *slot = epoch_first_slot(epoch, self);

	if (__builtin_expect(atomic_load_explicit(&slot->owner, memory_order_relaxed) != self, 0))
		slot = epoch_claim_slot(epoch, self);
	if (slot)
		guard.sequence = atomic_load_explicit(&slot->sequence, memory_order_relaxed);
	/* The thread reads already: this is a callback or a signal handler. */
	if (__builtin_expect(!slot || guard.sequence & 1, 0)) {
		guard.phase = atomic_load(&epoch->phase) & 1;
		atomic_fetch_add(&epoch->counts[guard.phase], 1);
		return guard;
	}
	guard.slot = slot;
	atomic_store_explicit(&slot->sequence, guard.sequence + 1, memory_order_relaxed);
	/* The processor may delay this store past the reads that follow; epoch_wait() accounts for
	 * that. */
	atomic_signal_fence(memory_order_seq_cst);
	return guard;
}

static inline __attribute__((always_inline)) void epoch_leave(struct epoch *epoch,
							      const struct epoch_guard *guard)
{
	if (guard->slot)
		atomic_store_explicit(&guard->slot->sequence, guard->sequence + 2,
				      memory_order_release);
	else
		atomic_fetch_sub(&epoch->counts[guard->phase], 1);
}

#endif
