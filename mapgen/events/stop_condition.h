/* SPDX-License-Identifier: MIT */
/* The condition of --stop-on: the event after which a recording ends. */
#ifndef MAPGEN_EVENTS_STOP_CONDITION_H
#define MAPGEN_EVENTS_STOP_CONDITION_H

#include <stdbool.h>
#include <stdint.h>

#include "mapgen/events/event_measures.h"
#include "mapgen/events/runtime_event.h"

enum stop_kind {
	STOP_NEVER,
	STOP_ON_PAUSE,     /* gc-pause>200ms: a collection stopped all threads for longer */
	STOP_ON_EXCEPTION, /* exception=TYPE: the whole name, or what stands behind its last dots */
	STOP_ON_STARVATION, /* pool-starvation: the pool adds a thread because work waits */
};

struct stop_condition {
	enum stop_kind kind;
	uint64_t longest_pause_ns;
	const char *type; /* borrowed */
	struct event_pause pause;
	uint64_t happened_ns; /* when the condition was true; 0: not yet */
};

/* NULL when the text is well formed; else what is wrong, static. `text` is borrowed. */
const char *stop_condition_read(const char *text, struct stop_condition *ret);

/* The group of --events that the condition needs. */
const char *stop_condition_group(const struct stop_condition *condition);

/* An event in the order of its thread. True once the condition is true. */
bool stop_condition_take(struct stop_condition *condition, const struct runtime_event *event);

#endif
