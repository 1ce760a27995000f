/* SPDX-License-Identifier: MIT */
/*
 * Rows that events are added up in, found by two texts: a type and a message, a method and its
 * tier, a provider and a counter.
 */
#ifndef MAPGEN_EVENTS_EVENT_ROWS_H
#define MAPGEN_EVENTS_EVENT_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/base/hash.h"
#include "libsym/error.h"

struct event_row {
	UT_hash_handle hh;
	const char *name, *detail;
	uint64_t count, weight, longest;
	uint64_t extra[2]; /* as the table's owner says */
	double last, least, most, sum;
	char *note; /* a unit, a message; heap, NULL: none */
	char key[];
};

struct event_rows {
	struct event_row *table;
	size_t count;
};

void event_rows_deinit(struct event_rows *rows);

/* The row, which is empty if it is new; *ret NULL where the table is full. Errors: NO_MEMORY. */
struct sym_error *event_rows_find(struct event_rows *rows, const char *name, const char *detail,
				  struct event_row **ret) __attribute__((warn_unused_result));

/* NULL: there is no such row. */
const struct event_row *event_rows_look_up(const struct event_rows *rows, const char *name,
					   const char *detail);

/* Counts one event. */
void event_row_add(struct event_row *row, uint64_t weight);

/* All rows, largest weight first, then count, then name; heap. NULL for want of memory. */
const struct event_row **event_rows_sorted(const struct event_rows *rows);

#endif
