/* SPDX-License-Identifier: MIT */
/*
 * Decides whether a wait was too short to be kept: --off-cpu=MIN_US. A wait begins with a sample of
 * a context switch and ends with the SWITCH record that says that the thread goes on. The sample is
 * held until then.
 *
 * An end may be handed in only when all samples that were taken before it have been.
 */
#ifndef MAPGEN_RECORD_SHORT_WAITS_H
#define MAPGEN_RECORD_SHORT_WAITS_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include "libsym/error.h"

struct short_waits;

/* Takes a sample whose wait was long enough. */
typedef struct sym_error *short_waits_take_fn(void *context,
					      const struct perf_event_header *sample);

struct sym_error *short_waits_create(uint64_t shortest_ns, short_waits_take_fn *take, void *context,
				     struct short_waits **ret) __attribute__((warn_unused_result));
void short_waits_destroy(struct short_waits *held);

/* A thread begins to wait. Where too much is held already, the sample is taken at once. */
struct sym_error *short_waits_begin(struct short_waits *held, uint32_t tid, uint64_t time_ns,
				    const struct perf_event_header *sample)
	__attribute__((warn_unused_result));

/* A thread goes on, or has ended. */
struct sym_error *short_waits_end(struct short_waits *held, uint32_t tid, uint64_t time_ns)
	__attribute__((warn_unused_result));

/* The recording ends: all that still wait. */
struct sym_error *short_waits_finish(struct short_waits *held, uint64_t time_ns)
	__attribute__((warn_unused_result));

/* How many waits were too short. */
uint64_t short_waits_count(const struct short_waits *held);

#endif
