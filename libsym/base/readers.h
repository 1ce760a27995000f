/* SPDX-License-Identifier: MIT */
/*
 * Who reads something that another thread exchanges and then ends: readers say when they begin and
 * when they are done, and whoever exchanges waits for those who may still see what was there.
 *
 * Each thread says so in a place of its own, by ordinary stores: none waits for another, and none
 * for its own memory. That this is seen in time is the business of the one who waits, who has the
 * kernel stop all others at a point (membarrier). Threads that find no place, and all where the
 * kernel cannot do that, are counted instead.
 */
#ifndef LIBSYM_BASE_READERS_H
#define LIBSYM_BASE_READERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	READER_PLACES = 64 /* a power of two */
};

struct reader_place {
	_Alignas(64) _Atomic(uintptr_t) owner; /* a thread, as reader_self(); 0: nobody yet */
	_Atomic(uintptr_t) turns;              /* odd while its owner reads; only he writes it */
};

/* All zero to begin with. */
struct readers {
	_Atomic(bool) have_places;
	_Atomic(unsigned int) epoch;
	_Atomic(uint32_t) counts[2];
	struct reader_place places[READER_PLACES];
};

/* One reading. */
struct reading {
	struct reader_place *place; /* NULL: counted, under `epoch` */
	uintptr_t turn;
	unsigned int epoch;
};

/* Lets readers that begin from now on have places, if the kernel can do its part. */
void readers_give_places(struct readers *readers);

/*
 * Returns when whoever began before the call is done; what was exchanged before the call is seen by
 * all who begin later. For one thread at a time, and never for one that reads.
 */
void readers_wait(struct readers *readers);

/* For reading_begin(): a place that becomes the thread's, or NULL. */
struct reader_place *readers_find_place(struct readers *readers, uintptr_t self);

/* The same for as long as the thread lives, and another than that of any other thread that does. */
static inline uintptr_t reader_self(void)
{
	return (uintptr_t)__builtin_thread_pointer();
}

/* Threads lie pages apart. */
static inline struct reader_place *readers_first_place(struct readers *readers, uintptr_t self)
{
	return &readers->places[(self >> 12 ^ self >> 18) % READER_PLACES];
}

static inline __attribute__((always_inline)) struct reading reading_begin(struct readers *readers)
{
	struct reading reading = { 0 };
	uintptr_t self = reader_self();
	struct reader_place *place = readers_first_place(readers, self);

	if (__builtin_expect(atomic_load_explicit(&place->owner, memory_order_relaxed) != self, 0))
		place = readers_find_place(readers, self);
	if (place)
		reading.turn = atomic_load_explicit(&place->turns, memory_order_relaxed);
	/* A thread that reads already: it was called back, or it is a signal. */
	if (__builtin_expect(!place || reading.turn & 1, 0)) {
		reading.epoch = atomic_load(&readers->epoch) & 1;
		atomic_fetch_add(&readers->counts[reading.epoch], 1);
		return reading;
	}
	reading.place = place;
	atomic_store_explicit(&place->turns, reading.turn + 1, memory_order_relaxed);
	/* The processor may still do it later than what follows: readers_wait() sees to that. */
	atomic_signal_fence(memory_order_seq_cst);
	return reading;
}

static inline __attribute__((always_inline)) void reading_end(struct readers *readers,
							      const struct reading *reading)
{
	if (reading->place)
		atomic_store_explicit(&reading->place->turns, reading->turn + 2,
				      memory_order_release);
	else
		atomic_fetch_sub(&readers->counts[reading->epoch], 1);
}

#endif
