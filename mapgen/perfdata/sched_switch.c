/* SPDX-License-Identifier: MIT */
#include "mapgen/perfdata/sched_switch.h"

#include <string.h>

#include "libsym/base/reader.h"

enum {
	THREAD_OFFSET = 4,
	PREVIOUS_OFFSET = 24,
	STATE_OFFSET = 32,
	NEXT_OFFSET = 56,
	/* All states in which a thread waits are below; that of a preempted one is 0 or higher. */
	WAITING_STATES = 0xff,
};

bool sched_switch_is_event(const struct perf_events *events, const struct recorded_event *event)
{
	return event->attr.type == PERF_TYPE_TRACEPOINT &&
	       event->attr.sample_type & PERF_SAMPLE_RAW && !event->attr.freq &&
	       event->attr.sample_period == 1 && event->id_count >= events->online_cpus &&
	       !strcmp(event->name, "sched:sched_switch");
}

bool sched_switch_read(const struct perf_sample *sample, struct sched_switch *ret)
{
	struct reader reader = reader_over(sample->raw ? sample->raw : (const uint8_t *)"",
					   sample->raw ? sample->raw_bytes : 0);
	uint32_t thread, previous;

	reader_seek(&reader, THREAD_OFFSET);
	thread = reader_u32(&reader);
	reader_seek(&reader, PREVIOUS_OFFSET);
	previous = reader_u32(&reader);
	reader_seek(&reader, STATE_OFFSET);
	ret->is_preempted = !(reader_u64(&reader) & WAITING_STATES);
	reader_seek(&reader, NEXT_OFFSET);
	ret->next_tid = (int32_t)reader_u32(&reader);
	return reader_ok(&reader) && thread == previous &&
	       (previous == sample->tid || sample->tid == SCHED_SWITCH_ENDED);
}
