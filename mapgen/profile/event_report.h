/* SPDX-License-Identifier: MIT */
/*
 * Sums over the events of a recording. Their stacks are entries of the profile, and not here. From
 * one pass over the events of a thread in the order of time (collections: of all threads).
 */
#ifndef MAPGEN_PROFILE_EVENT_REPORT_H
#define MAPGEN_PROFILE_EVENT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/buf.h"
#include "mapgen/events/event_match.h"
#include "mapgen/events/event_rows.h"
#include "mapgen/events/gc_log.h"

/* A change of the number of workers of the thread pool. */
struct pool_change {
	uint64_t time_ns;
	uint32_t workers, reason;
	double throughput; /* finished work items per second */
};

enum {
	POOL_STARVATION = 6 /* src/coreclr/vm/ClrEtwAll.man, ThreadAdjustmentReasonMap */
};

/* In the owner of a lock: it is the number of a managed thread. */
#define EVENT_REPORT_MANAGED_OWNER (UINT64_C(1) << 63)

/* One wait for a lock. */
struct lock_wait {
	uint64_t begin_ns, end_ns;
	uint64_t tid;       /* of the thread that waited */
	uint64_t owner_tid; /* of the thread that held it at the begin; 0: not said */
	const struct event_row *lock;
};

/* One event, for the view that lists them. */
struct event_line {
	uint64_t time_ns;
	uint32_t thread;      /* in the profile */
	uint32_t stack;       /* in the profile; STACK_NONE: none */
	size_t fields_offset; /* into the texts: all fields; behind its NUL the activity, or "" */
};

struct event_report {
	struct gc_log gc;
	struct event_rows exceptions; /* by type and message */
	struct event_rows locks;      /* weight in ns; extra: last owner, object */
	struct lock_wait *lock_waits; /* only where spans are kept */
	size_t lock_wait_count, lock_wait_capacity;
	struct event_rows methods;  /* by method and tier; weight in ns; extra: IL and code bytes */
	struct event_rows kinds;    /* by provider and event; extra: events with a stack */
	struct event_rows counters; /* by provider and counter; note: unit; extra: values */
	struct event_rows activities; /* by name of what starts and stops; weight in ns */
	struct pool_change *pool;     /* by time within each thread */
	size_t pool_count, pool_capacity;
	uint32_t most_workers;
	/* Only where they were asked for. */
	struct event_line *lines;
	size_t line_count, line_capacity;
	struct buf texts;
	uint64_t lines_left_out;
	/* Allocation ticks have no size of an object (up to .NET 5): their bytes count unused ends
	 * of the areas in which threads allocate. */
	bool counts_area_ends;
	/* Events that are missing. */
	uint64_t other_processes;            /* events of collections */
	uint64_t meter_limits, meter_errors; /* said by the runtime */
	uint64_t events, gaps, unknown_kinds, missing_stacks, unfinished;
	struct event_match_counts match;
	uint64_t thinned_stacks; /* beyond the budget of native stacks */
	char *cut;               /* why a stream ends early; NULL: it does not */
};

void event_report_destroy(struct event_report *report);

/* "starvation", ...; static. */
const char *event_report_pool_reason(uint32_t reason);

#endif
