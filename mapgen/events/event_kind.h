/* SPDX-License-Identifier: MIT */
/*
 * A kind of event: its names, its fields, and its meaning to the views. Found once for each kind of
 * a stream.
 */
#ifndef MAPGEN_EVENTS_EVENT_KIND_H
#define MAPGEN_EVENTS_EVENT_KIND_H

#include "libsym/format/nettrace/nettrace.h"

/* Events that views know. */
enum event_meaning {
	EVENT_OTHER,
	EVENT_GC_START,
	EVENT_GC_END,
	EVENT_GC_SUSPEND_BEGIN,
	EVENT_GC_SUSPEND_END,
	EVENT_GC_RESTART_END,
	EVENT_GC_TRIGGERED,
	EVENT_GC_HEAP_STATS,
	EVENT_GC_HEAP_HISTORY, /* of one heap */
	EVENT_ALLOCATION_TICK,
	EVENT_ALLOCATION_SAMPLED,
	EVENT_EXCEPTION,
	EVENT_CONTENTION_START,
	EVENT_CONTENTION_STOP,
	EVENT_WAIT_START,
	EVENT_WAIT_STOP,
	EVENT_POOL_ADJUSTMENT,
	EVENT_POOL_THREADS, /* a worker starts, stops or waits */
	EVENT_JIT_START,
	EVENT_METHOD_LOAD, /* verbose: with names */
	EVENT_METHOD_UNLOAD,
	EVENT_METHOD_LISTED, /* by a rundown */
	EVENT_MODULE,        /* loaded or listed */
	EVENT_THREAD_SAMPLE,
	EVENT_CPU_SAMPLE, /* of one-collect, as the next two */
	EVENT_FILE_MAPPED,
	EVENT_SYMBOL,
	EVENT_COUNTERS,
	EVENT_METER_VALUE,
	EVENT_METER_LIMIT, /* time series or histograms are left out */
	EVENT_METER_ERROR,
};

struct event_kind {
	const char *provider;
	char *name;             /* "GCStart", "HandleStart"; "Event 4711" where nothing says it */
	const char *tracepoint; /* of the runtime's own: "GCStart_V2"; else NULL */
	uint32_t id, version, level;
	uint64_t keywords;
	uint8_t opcode;
	enum event_meaning meaning;
	bool is_known; /* its fields are described */
	uint32_t pointer_bytes;
	const struct nettrace_fields *fields;
};

#endif
