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

enum {
	PERFMAP_CHECK_LINES = 7,
	PERFMAP_CHECK_NUMBER = 4096 /* of the first byte of a text */
};

/* Usual lines are taken, at most `at_once` at a time, which is not above PERFMAP_CHECK_LINES, and
 * the rest read one after another: that is what reading all of them one after another gives. How
 * many were usual. */
uint64_t perfmap_check_usual(const char *text, size_t size_bytes, size_t at_once);

/* Sorted, disjoint, and every look-up at an edge of a piece finds it or its neighbour. */
void perfmap_check_index(const struct index *index);

/* All of the above, and: written by perfmap_write_line() and read again, the pieces are the same.
 */
void perfmap_check_round_trip(const char *text, size_t size_bytes);

#endif
