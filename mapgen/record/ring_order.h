/* SPDX-License-Identifier: MIT */
/* The records of all rings in the order of their times. */
#ifndef MAPGEN_RECORD_RING_ORDER_H
#define MAPGEN_RECORD_RING_ORDER_H

#include "mapgen/record/event_set.h"

struct ring_order {
	struct event_set *events; /* borrowed */
	struct ring_head *heads;  /* one a ring */
	size_t oldest;            /* number of the ring that the last record is from */
};

struct sym_error *ring_order_init(struct ring_order *order, struct event_set *events)
	__attribute__((warn_unused_result));
void ring_order_deinit(struct ring_order *order);

/*
 * Looks how far all rings are filled, those of CPU samples before those of switches: so the sample
 * of a wait whose end is in this round is in this round too, and comes before it.
 */
void ring_order_begin(struct ring_order *order);

/* The oldest record that is left of this round; NULL: there is none. */
const struct perf_event_header *ring_order_next(struct ring_order *order);

/* The record of the last ring_order_next() is no longer needed. */
void ring_order_release(struct ring_order *order);

#endif
