/* SPDX-License-Identifier: MIT */
#include "mapgen/events/event_measures.h"

#include <math.h>

#include "mapgen/events/event_values.h"

enum {
	/* src/coreclr/vm/threadsuspend.h, ThreadSuspend::SUSPEND_REASON */
	SUSPEND_FOR_GC = 1,
	SUSPEND_FOR_GC_PREP = 6,
};

static const double sampled_share = 1.0 / 102400;

uint64_t event_measures_tick_bytes(const struct runtime_event *event)
{
	return event_number(event, "AllocationAmount64") ?: event_number(event, "AllocationAmount");
}

double event_measures_sampled_bytes(const struct runtime_event *event)
{
	double size = (double)event_number(event, "ObjectSize");
	double seen = -expm1(size * log1p(-sampled_share));

	return seen > 0 ? size / seen : 0;
}

bool event_measures_suspends_for_gc(const struct runtime_event *event)
{
	uint64_t reason = event_number(event, "Reason");

	return event->kind->meaning == EVENT_GC_SUSPEND_BEGIN &&
	       (reason == SUSPEND_FOR_GC || reason == SUSPEND_FOR_GC_PREP);
}

uint64_t event_measures_pause(struct event_pause *pause, const struct runtime_event *event)
{
	uint64_t begin_ns = pause->begin_ns;

	if (event->kind->meaning == EVENT_GC_SUSPEND_BEGIN) {
		pause->begin_ns = event_measures_suspends_for_gc(event) ? event->time_ns : 0;
		return 0;
	}
	if (event->kind->meaning != EVENT_GC_RESTART_END || !begin_ns)
		return 0;
	pause->begin_ns = 0;
	return event->time_ns > begin_ns ? event->time_ns - begin_ns : 0;
}
