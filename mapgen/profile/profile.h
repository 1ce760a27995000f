/* SPDX-License-Identifier: MIT */
/*
 * A profile: what was seen how often and for how long, of which thread, in which stack. Every
 * input becomes one (profile_open.h), every view is written from one. What is the same is added up,
 * so it grows with the different stacks, not with the samples.
 *
 *   event    what was measured; weights of two events are never added up
 *   thread   of a process; thread_table.h
 *   stack    frames, outermost first; frame_table.h
 *   entry    event, thread, stack: how often, how much, the longest one
 */
#ifndef MAPGEN_PROFILE_PROFILE_H
#define MAPGEN_PROFILE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/address_table.h"
#include "libsym/libsym.h"
#include "mapgen/profile/frame_table.h"
#include "mapgen/profile/thread_table.h"

enum profile_event_kind {
	PROFILE_CPU,       /* samples of time on a processor */
	PROFILE_COUNTED,   /* any other event that was sampled */
	PROFILE_OFF_CPU,   /* a thread waited: from the switch away to the switch back */
	PROFILE_PREEMPTED, /* a thread could have run, and another one did */
	/* From events of the runtime (event_profile.h); the innermost frame says what it is of. */
	PROFILE_GC,                 /* pauses; stack of what started the collection */
	PROFILE_ALLOCATION_TICKS,   /* bytes of a type */
	PROFILE_ALLOCATION_SAMPLES, /* bytes of a type, from .NET 10 on */
	PROFILE_EXCEPTIONS,
	PROFILE_CONTENTION, /* time until a lock was had */
	PROFILE_WAITS,
	PROFILE_POOL, /* changes of the number of workers */
	PROFILE_JIT,
	PROFILE_RUNTIME_EVENTS, /* all events, by name */
	PROFILE_EVENT_KINDS,
};

/* The unit of weights. */
enum profile_unit {
	PROFILE_UNIT_COUNT = 0, /* what the event counts */
	PROFILE_UNIT_NS,
	PROFILE_UNIT_BYTES,
};

struct profile_event {
	char *name;
	enum profile_event_kind kind;
	enum profile_unit unit;
	bool is_time;           /* the unit is PROFILE_UNIT_NS */
	uint64_t count, weight; /* of all its entries */
};

struct profile_entry {
	uint32_t event, thread, stack;
	uint64_t count, weight;
	uint64_t longest; /* weight of the largest single one */
};

/* One sample, where they are kept one by one. */
struct profile_sample {
	uint64_t time_ns, weight;
	uint32_t event, thread, stack;
};

/* Where a thread was for some time: a CPU sample, or a wait. */
struct profile_span {
	uint64_t begin_ns, end_ns;
	uint32_t thread, stack;
};

/* Counts of what is missing in a profile. */
struct profile_losses {
	uint64_t lost_records, lost_samples, throttled;
	uint64_t unknown_processes; /* samples of processes that ended before they were looked at */
	uint64_t waits_without_stack;
	uint64_t waits_without_end;   /* how long they were is not known */
	bool by_sched_switch;         /* waits are from samples of sched:sched_switch */
	uint64_t unreadable_switches; /* of these with other fields, or threads of a container */
	uint64_t bad_name_lines;
	uint64_t bad_records;
	/* Waits that had begun before the recording: their stacks are not known. */
	uint64_t early_waits, early_wait_ns;
	char *cut; /* why the data end early; NULL: they do not */
	/* Places in managed code of a plain perf.data, when lines are wanted; and why one of them
	 * has none. NULL: no reason. */
	uint64_t places_without_line;
	char *line_reason;
};

struct profile {
	struct frame_table *frames;
	struct thread_table threads;
	struct profile_event *events;
	size_t event_count;
	struct profile_entry *entries;
	size_t entry_count, entry_capacity;
	struct address_table by_key;
	bool keeps_samples;
	struct profile_sample *samples; /* in the order of time */
	size_t sample_count, sample_capacity;
	bool keeps_spans;
	struct profile_span *spans; /* each thread's in the order of time */
	size_t span_count, span_capacity;
	uint64_t begin_ns, end_ns; /* of what was recorded, CLOCK of the input; 0: no times */
	char *title;               /* whose it is; NULL when not known */
	char *runtime;             /* ".NET 10.0.12"; NULL when not known */
	int32_t pid;               /* 0: several, or not known */
	struct profile_losses losses;
	struct event_report *report; /* of the runtime's events; NULL: there are none */
};

struct sym_error *profile_create(struct profile **ret) __attribute__((warn_unused_result));
void profile_destroy(struct profile *profile);

/* Number of a new event; the name is copied. */
struct sym_error *profile_add_event(struct profile *profile, const char *name,
				    enum profile_event_kind kind, enum profile_unit unit,
				    uint32_t *ret) __attribute__((warn_unused_result));

/* Adds to the entry of event, thread and stack. `count` of them have `weight` together. */
struct sym_error *profile_add(struct profile *profile, uint32_t event, uint32_t thread,
			      uint32_t stack, uint64_t count, uint64_t weight)
	__attribute__((warn_unused_result));

/* Adds one sample to the entry of its event, thread and stack, and keeps it if samples are kept. */
struct sym_error *profile_add_sample(struct profile *profile, const struct profile_sample *sample)
	__attribute__((warn_unused_result));

/* Keeps the span if spans are kept. Errors: NO_MEMORY. */
struct sym_error *profile_add_span(struct profile *profile, const struct profile_span *span)
	__attribute__((warn_unused_result));

/* The event that a view of this kind shows: the one with most samples. UINT32_MAX: there is none.
 */
uint32_t profile_find_event(const struct profile *profile, enum profile_event_kind kind);

double profile_seconds(const struct profile *profile);

/* Is it that of a thread of the .NET thread pool which waits for work? */
bool profile_is_parked(const struct profile *profile, uint32_t stack);

#endif
