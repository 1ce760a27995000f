/* SPDX-License-Identifier: MIT */
/* Values that programs publish: EventCounters and instruments of Meters. */
#ifndef MAPGEN_PROFILE_EVENT_COUNTERS_H
#define MAPGEN_PROFILE_EVENT_COUNTERS_H

#include "mapgen/events/runtime_event.h"
#include "mapgen/profile/event_report.h"

/* An EVENT_COUNTERS. Errors: NO_MEMORY. */
struct sym_error *event_counters_take_counter(struct event_report *report,
					      const struct runtime_event *event)
	__attribute__((warn_unused_result));

/* An EVENT_METER_VALUE. Errors: NO_MEMORY. */
struct sym_error *event_counters_take_meter(struct event_report *report,
					    const struct runtime_event *event)
	__attribute__((warn_unused_result));

#endif
