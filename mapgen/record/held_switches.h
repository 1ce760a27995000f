/* SPDX-License-Identifier: MIT */
/*
 * Samples of context switches until it is known how long the thread has waited: --off-cpu=MIN_US.
 * A wait begins with a sample and ends with the SWITCH record that says that the thread goes on.
 *
 * An end may be handed in only when all samples that were taken before it have been.
 */
#ifndef MAPGEN_RECORD_HELD_SWITCHES_H
#define MAPGEN_RECORD_HELD_SWITCHES_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include "libsym/error.h"

struct held_switches;

/* Takes a sample whose wait was long enough. */
typedef struct sym_error *held_switches_take_fn(void *context,
						const struct perf_event_header *sample);

struct sym_error *held_switches_create(uint64_t shortest_ns, held_switches_take_fn *take,
				       void *context, struct held_switches **ret)
	__attribute__((warn_unused_result));
void held_switches_destroy(struct held_switches *held);

/* A thread begins to wait. Where too much is held already, the sample is taken at once. */
struct sym_error *held_switches_begin(struct held_switches *held, uint32_t tid, uint64_t time_ns,
				      const struct perf_event_header *sample)
	__attribute__((warn_unused_result));

/* A thread goes on, or has ended. */
struct sym_error *held_switches_end(struct held_switches *held, uint32_t tid, uint64_t time_ns)
	__attribute__((warn_unused_result));

/* The recording ends: all that still wait. */
struct sym_error *held_switches_finish(struct held_switches *held, uint64_t time_ns)
	__attribute__((warn_unused_result));

/* How many waits were too short. */
uint64_t held_switches_short_count(const struct held_switches *held);

#endif
