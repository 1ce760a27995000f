/* SPDX-License-Identifier: MIT */
/*
 * A stream of a runtime, in pieces or whole, to events with names, fields and times.
 */
#ifndef MAPGEN_EVENTS_EVENT_STREAM_H
#define MAPGEN_EVENTS_EVENT_STREAM_H

#include "mapgen/events/event_kind.h"
#include "mapgen/events/runtime_event.h"

struct event_stream_sink {
	void *context;
	/* An error ends the stream, and is that of event_stream_feed(). */
	struct sym_error *(*event)(void *context, const struct runtime_event *event);
};

/* Counts of the events that the stream had, and of those that are missing. */
struct event_stream_counts {
	uint64_t events;
	uint64_t gaps;           /* how often the runtime has dropped one or more events */
	uint64_t unknown_kinds;  /* events that the stream does not describe */
	uint64_t missing_stacks; /* events whose stack the stream does not have */
};

struct event_stream;

/* Errors: NO_MEMORY. */
struct sym_error *event_stream_create(const struct event_stream_sink *sink,
				      struct event_stream **ret)
	__attribute__((warn_unused_result));
void event_stream_destroy(struct event_stream *stream);

/*
 * Takes whole blocks of `data`; *used_ret bytes. The caller passes the rest again, with what has
 * come since. Events come in the order of the stream: that of time within a thread only.
 * Errors: FORMAT, UNSUPPORTED, NO_MEMORY, and those of the sink.
 */
struct sym_error *event_stream_feed(struct event_stream *stream, const void *data,
				    size_t size_bytes, size_t *used_ret)
	__attribute__((warn_unused_result));

/* Feeds what a session has sent: *count_ret bytes. `pending` holds what is no whole block yet.
 * *ended_ret: no more will come. */
struct sym_error *event_stream_read_session(struct event_stream *stream,
					    struct sym_event_session *session, struct buf *pending,
					    size_t *count_ret, bool *ended_ret)
	__attribute__((warn_unused_result));

/* Feeds all of a file. A stream that is cut or damaged is no error: *cut_ret says why it ends
 * (heap; NULL: it is whole). Errors: IO, NO_MEMORY, UNSUPPORTED, FORMAT for what is no stream. */
struct sym_error *event_stream_read_file(struct event_stream *stream, int fd, char **cut_ret)
	__attribute__((warn_unused_result));

struct event_stream_counts event_stream_counts(const struct event_stream *stream);
bool event_stream_ended(const struct event_stream *stream);

#endif
