/* SPDX-License-Identifier: MIT */
/*
 * How many stacks of events a second are taken: so many in each window of 268 ms, which are windows
 * of the clock. What is beyond is counted.
 */
#ifndef MAPGEN_RECORD_EVENT_BUDGET_H
#define MAPGEN_RECORD_EVENT_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

enum {
	EVENT_BUDGET_PER_SECOND = 10000,
	EVENT_BUDGET_WINDOW_SHIFT = 28, /* 2 to this power nanoseconds are a window */
};

struct event_budget {
	uint32_t per_second;
	uint64_t window, count; /* the last window, and what was taken in it */
	uint64_t exceeded;      /* stacks beyond the budget */
};

/* Stacks in one window. */
static inline uint64_t event_budget_most(uint32_t per_second)
{
	return ((uint64_t)per_second << EVENT_BUDGET_WINDOW_SHIFT) / 1000000000;
}

/* False: this one is beyond the budget. Times are about ascending: one of an earlier window counts
 * as of the last one. */
static inline bool event_budget_take(struct event_budget *budget, uint64_t time_ns)
{
	uint64_t window = time_ns >> EVENT_BUDGET_WINDOW_SHIFT;

	if (window > budget->window) {
		budget->window = window;
		budget->count = 0;
	}
	if (budget->count++ < event_budget_most(budget->per_second))
		return true;
	budget->exceeded++;
	return false;
}

#endif
