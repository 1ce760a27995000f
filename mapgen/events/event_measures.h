/* SPDX-License-Identifier: MIT */
/* Amounts in single events: bytes that were allocated, time that a collection stopped. */
#ifndef MAPGEN_EVENTS_EVENT_MEASURES_H
#define MAPGEN_EVENTS_EVENT_MEASURES_H

#include <stdbool.h>

#include "mapgen/events/runtime_event.h"

/* Bytes since the last tick, of an EVENT_ALLOCATION_TICK. */
uint64_t event_measures_tick_bytes(const struct runtime_event *event);

/*
 * Bytes that an EVENT_ALLOCATION_SAMPLED stands for. Each byte is drawn with the same small chance,
 * so large objects are seen more often.
 */
double event_measures_sampled_bytes(const struct runtime_event *event);

/* Whether a suspension begins that is for a collection: the runtime stops threads for other reasons
 * too. */
bool event_measures_suspends_for_gc(const struct runtime_event *event);

/* A suspension under way. */
struct event_pause {
	uint64_t begin_ns; /* 0: none, or not for a collection */
};

/* Nanoseconds of the pause for a collection that ends with this event; else 0. */
uint64_t event_measures_pause(struct event_pause *pause, const struct runtime_event *event);

#endif
