/* SPDX-License-Identifier: MIT */
/* The times of each thread: on a processor, and away from it. */
#ifndef MAPGEN_VIEW_THREAD_TIMES_H
#define MAPGEN_VIEW_THREAD_TIMES_H

#include "mapgen/view/view.h"

struct thread_time {
	uint32_t thread;
	uint64_t cpu_ns, samples; /* of the CPU view's event; 0 ns when it counts no time */
	uint64_t off_cpu_ns, waits;
	uint64_t preempted_ns, preemptions;
};

struct thread_times {
	struct thread_time *items; /* most samples first */
	size_t count;
};

/* Computes the times of the threads that the view selects. Errors: those of selection_make(). */
struct sym_error *thread_times_make(const struct view *view, struct thread_times *ret)
	__attribute__((warn_unused_result));
void thread_times_deinit(struct thread_times *times);

#endif
