/* SPDX-License-Identifier: MIT */
/*
 * Epoch reclamation: a writer replaces data that other threads read without a lock, waits until no
 * reader can still hold the old data, and then frees it.
 *
 * Readers are counted under the phase in which they began. A read section may lie in another one.
 */
#ifndef LIBSYM_BASE_EPOCH_H
#define LIBSYM_BASE_EPOCH_H

#include <stdatomic.h>
#include <stdint.h>

/* A zeroed struct epoch is ready for use. */
struct epoch {
	_Atomic(unsigned int) phase;
	_Atomic(uint32_t) counts[2];
};

/* Begins a read section. Returns its phase, for epoch_leave(). */
static inline unsigned int epoch_enter(struct epoch *epoch)
{
	unsigned int phase = atomic_load(&epoch->phase) & 1;

	atomic_fetch_add(&epoch->counts[phase], 1);
	return phase;
}

static inline void epoch_leave(struct epoch *epoch, unsigned int phase)
{
	atomic_fetch_sub(&epoch->counts[phase], 1);
}

/* Waits for all readers that began before the call. Data replaced before the call is then visible
 * to all later readers. Only one thread may wait at a time, and it must not be reading. */
void epoch_wait(struct epoch *epoch);

#endif
