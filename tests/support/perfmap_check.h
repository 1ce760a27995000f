/* SPDX-License-Identifier: MIT */
/* Invariants of perf maps that hold for any input; abort() where one does not. */
#ifndef TESTS_SUPPORT_PERFMAP_CHECK_H
#define TESTS_SUPPORT_PERFMAP_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/index.h"

/* The frozen index of a perf map text; to be ended with index_destroy(). NULL when a limit was met.
 */
struct index *perfmap_check_load(const char *text, size_t size_bytes);

/* Sorted, disjoint, and every look-up at an edge of a piece finds it or its neighbour. */
void perfmap_check_index(const struct index *index);

/* Both of the above, and: written by perfmap_write_line() and read again, the pieces are the same.
 */
void perfmap_check_round_trip(const char *text, size_t size_bytes);

#endif
