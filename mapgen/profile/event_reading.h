/* SPDX-License-Identifier: MIT */
/*
 * A stream while it becomes a profile: what event_profile.c and event_takes.c share, and how both
 * add entries to the profile.
 */
#ifndef MAPGEN_PROFILE_EVENT_READING_H
#define MAPGEN_PROFILE_EVENT_READING_H

#include "libsym/base/hash.h"
#include "mapgen/events/event_kind.h"
#include "mapgen/events/event_values.h"
#include "mapgen/profile/event_profile.h"
#include "mapgen/profile/raw_stacks.h"

enum {
	EVENT_READING_MOST_CHAIN = 1 << 10, /* frames of a stack */
};

/* Kinds of intervals that have begun and not ended. */
enum pending_what {
	PENDING_LOCK,
	PENDING_WAIT,
	PENDING_JIT,
	PENDING_ACTIVITY,
};

struct pending_key {
	uint64_t what, tid, id[2];
};

struct pending {
	UT_hash_handle hh;
	struct pending_key key;
	uint64_t time_ns;
	uint32_t stack;
	uint64_t number, other; /* lock: owner, object; JIT: bytes of IL */
	bool is_end;            /* of an activity whose start has not been read yet */
	char *text;
};

/* Copied, because collections are in the order of time of all threads. */
struct gc_event {
	struct runtime_event event;
	size_t payload_offset, number;
	uint32_t stack;
};

struct event_reading {
	struct profile *profile;
	struct event_report *report;
	const struct event_profile_opts *opts;
	struct address_names names;
	struct raw_stacks raw;
	uint32_t events[PROFILE_EVENT_KINDS]; /* by kind; UINT32_MAX: none yet */
	uint32_t empty_stack;
	struct pending *pending;
	size_t pending_left_out;
	struct gc_event *gc;
	size_t gc_count, gc_capacity;
	int32_t gc_pid; /* whose they are; 0: not known yet */
	struct buf gc_payloads, text, detail;
	uint64_t begin_ns, first_ns, last_ns;
	bool is_whole; /* the stream has its end */
	uint64_t *chain;
	uint32_t *frames;
};

static inline int32_t event_reading_pid(const struct event_reading *reading,
					const struct runtime_event *event)
{
	return reading->opts->pid ? reading->opts->pid : event->pid;
}

/* A thread id of the PID namespace of the process as that of the machine. */
static inline int32_t event_reading_host_tid(const struct event_reading *reading, int32_t pid,
					     int32_t tid)
{
	const struct event_profile_opts *opts = reading->opts;

	return opts->host_tid ? opts->host_tid(opts->host_tid_context, pid, tid) : tid;
}

/* The part of the stream that is wanted. */
static inline uint64_t event_reading_window_begin(const struct event_reading *reading)
{
	return reading->begin_ns + (uint64_t)(reading->opts->from_s * 1e9);
}

static inline uint64_t event_reading_window_end(const struct event_reading *reading)
{
	double to_s = reading->opts->to_s;

	return to_s > 0 ? reading->begin_ns + (uint64_t)(to_s * 1e9) : UINT64_MAX;
}

/* The thread of an event in the profile. */
struct sym_error *event_reading_thread(struct event_reading *reading,
				       const struct runtime_event *event, uint32_t *ret)
	__attribute__((warn_unused_result));

/* Adds to a view's event: the stack, and behind it a frame that says what it is of. */
struct sym_error *event_reading_add(struct event_reading *reading, enum profile_event_kind kind,
				    const struct runtime_event *event, uint32_t stack,
				    const char *leaf, uint64_t weight)
	__attribute__((warn_unused_result));

/* Adds one event to the profile. `stack` is a stack of the profile. */
struct sym_error *event_reading_take(struct event_reading *reading,
				     const struct runtime_event *event, uint32_t stack)
	__attribute__((warn_unused_result));

void event_reading_end_pending(struct event_reading *reading);

#endif
