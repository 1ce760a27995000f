/* SPDX-License-Identifier: MIT */
/*
 * The latest of many intervals at given places.
 * Each interval has a mark; the highest mark wins.
 * Queries for a place or a range may come between insertions. Both take logarithmic time.
 */
#ifndef LIBSYM_PERF_LATEST_INTERVAL_H
#define LIBSYM_PERF_LATEST_INTERVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero before latest_interval_init(). */
struct latest_interval {
	uint64_t *places; /* ascending, each once */
	size_t count;
	uint64_t *marks; /* a segment tree: the children of node i are 2i and 2i + 1; places are the
			    nodes from count on */
	uint64_t *highest; /* highest mark of a node and its descendants */
};

/* `places`: from malloc(), in any order; ownership is taken in any case. False: out of memory. */
bool latest_interval_init(struct latest_interval *last, uint64_t *places, size_t count);
void latest_interval_deinit(struct latest_interval *last);

/* Inserts a range. A range of size 0 is its start. */
void latest_interval_put(struct latest_interval *last, uint64_t start, uint64_t size_bytes,
			 uint64_t mark);

/* The highest mark of the places in a range; 0: none. */
uint64_t latest_interval_highest(const struct latest_interval *last, uint64_t start,
				 uint64_t size_bytes);

static inline void guard_last_at(struct latest_interval *last)
{
	latest_interval_deinit(last);
}

#define AUTO_LAST_AT __attribute__((cleanup(guard_last_at)))

#endif
