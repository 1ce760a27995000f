/* SPDX-License-Identifier: MIT */
#include "mapgen/record/ring_order.h"

#include <stdlib.h>

#include "libsym/error.h"
#include "mapgen/perfdata/perf_sample.h"

/* The record of a ring that is next. */
struct ring_head {
	const struct perf_event_header *record; /* NULL: there is none in this round */
	uint64_t time_ns;
};

struct sym_error *ring_order_init(struct ring_order *order, struct event_set *events)
{
	*order = (struct ring_order){ .events = events,
				      .heads = calloc(events->ring_count, sizeof(*order->heads)) };
	return order->heads ? NULL : &sym_error_no_memory;
}

void ring_order_deinit(struct ring_order *order)
{
	free(order->heads);
	*order = (struct ring_order){ 0 };
}

static void advance(struct ring_order *order, size_t number)
{
	struct ring_head *head = &order->heads[number];
	struct event_ring *ring = &order->events->rings[number].ring;
	const struct perf_event_attr *attr = &order->events->attributes[EVENT_CPU];
	struct perf_sample id;

	*head = (struct ring_head){ .record = ring->page ? event_ring_next(ring) : NULL };
	if (!head->record)
		return;
	if (head->record->type == PERF_RECORD_SAMPLE) {
		perf_sample_read_time(attr, head->record, head->record->size, &head->time_ns);
	} else if (perf_sample_read_id(attr, head->record, head->record->size, &id)) {
		head->time_ns = id.time_ns;
	}
}

void ring_order_begin(struct ring_order *order)
{
	for (size_t i = 0; i < order->events->ring_count; i++)
		if (order->events->rings[i].ring.page)
			event_ring_begin(&order->events->rings[i].ring);
	for (size_t i = 0; i < order->events->ring_count; i++)
		advance(order, i);
}

const struct perf_event_header *ring_order_next(struct ring_order *order)
{
	size_t oldest = SIZE_MAX;

	for (size_t i = 0; i < order->events->ring_count; i++)
		if (order->heads[i].record &&
		    (oldest == SIZE_MAX || order->heads[i].time_ns < order->heads[oldest].time_ns))
			oldest = i;
	order->oldest = oldest;
	return oldest == SIZE_MAX ? NULL : order->heads[oldest].record;
}

void ring_order_release(struct ring_order *order)
{
	event_ring_release(&order->events->rings[order->oldest].ring);
	advance(order, order->oldest);
}
