/* SPDX-License-Identifier: MIT */
/* Invariants of perf maps that hold for any input; abort() if one is violated. */
#ifndef TESTS_SUPPORT_PERFMAP_CHECK_H
#define TESTS_SUPPORT_PERFMAP_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/index/index.h"

/* The frozen index of a perf map, to be destroyed with index_destroy(). NULL if a limit was
 * reached. */
struct index *perfmap_check_load(const char *text, size_t size_bytes);

/* Number of the piece that covers the position, or INDEX_NONE. */
static inline size_t index_find(const struct index *index, uint64_t position)
{
	struct index_entry entry;

	return index_look_up(index, position, &entry);
}

/* Sorted, disjoint, and every look-up at an edge of a piece finds it or its neighbour. */
void perfmap_check_index(const struct index *index);

/* All of the above; and the pieces are equal after perfmap_write_line() and reading again. */
void perfmap_check_round_trip(const char *text, size_t size_bytes);

#endif
