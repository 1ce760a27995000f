/* SPDX-License-Identifier: MIT */
/*
 * What was put last over each of some places: ranges come with marks, of which the highest holds,
 * and a place or a range is asked between them, in logarithmic time. Knows nothing of what is put.
 */
#ifndef LIBSYM_SOURCE_LAST_AT_H
#define LIBSYM_SOURCE_LAST_AT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero before last_at_init(). */
struct last_at {
	uint64_t *places; /* ascending, each once */
	size_t count;
	uint64_t *marks; /* a tree: the children of i are 2i and 2i + 1, the places from count on */
	uint64_t *highest; /* of the marks of a node and of those below it */
};

/* `places`: heap, in any order, taken over whatever comes of it. False: no memory. */
bool last_at_init(struct last_at *last, uint64_t *places, size_t count);
void last_at_deinit(struct last_at *last);

/* A range without a size is its start. */
void last_at_put(struct last_at *last, uint64_t start, uint64_t size_bytes, uint64_t mark);

/* The mark put last over a place that was given to last_at_init(); 0: none. */
uint64_t last_at_find(const struct last_at *last, uint64_t place);
/* The highest mark of the places in a range; 0: none. */
uint64_t last_at_highest(const struct last_at *last, uint64_t start, uint64_t size_bytes);

static inline void guard_last_at(struct last_at *last)
{
	last_at_deinit(last);
}

#define AUTO_LAST_AT __attribute__((cleanup(guard_last_at)))

#endif
