/* SPDX-License-Identifier: MIT */
/*
 * Finds the event that a sample of a probe belongs to. The runtime calls its tracepoint right after
 * it has written the event, in the same thread:
 *
 *   event      time 100   event      time 200
 *   hit        time 103   hit        time 202
 *
 * So a hit belongs to the latest event of its thread and name that is not later than it. Where an
 * event or a hit is lost, its partner stays alone, and the others keep theirs. Both sides are
 * noted first, then matched, then asked for in the order in which the events were noted.
 *
 * At its end the runtime first closes the stream and then turns its events off. A hit in between
 * has no event, and nothing is lost.
 */
#ifndef MAPGEN_EVENTS_EVENT_MATCH_H
#define MAPGEN_EVENTS_EVENT_MATCH_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/error.h"

#define EVENT_MATCH_NONE UINT32_MAX

struct event_match_counts {
	uint64_t matched, events_alone, hits_alone;
};

struct event_match;

struct sym_error *event_match_create(struct event_match **ret) __attribute__((warn_unused_result));
void event_match_destroy(struct event_match *match);

/* `stack` is the caller's. Thread ids are of one PID namespace. Errors: NO_MEMORY. */
struct sym_error *event_match_note_hit(struct event_match *match, int32_t tid,
				       const char *tracepoint, uint64_t time_ns, uint32_t stack)
	__attribute__((warn_unused_result));
/* Events of a thread in the order of the stream; after all hits. */
struct sym_error *event_match_note_event(struct event_match *match, int32_t tid,
					 const char *tracepoint, uint64_t time_ns)
	__attribute__((warn_unused_result));

/* `end_ns`: of the stream; UINT64_MAX: it was cut, so its last events are lost. */
void event_match_resolve(struct event_match *match, uint64_t end_ns);

/* The stack of the next event of a thread and name; EVENT_MATCH_NONE: it has no hit. */
uint32_t event_match_next(struct event_match *match, int32_t tid, const char *tracepoint);

struct event_match_counts event_match_counts(const struct event_match *match);

#endif
