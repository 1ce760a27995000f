/* SPDX-License-Identifier: MIT */
/* The events of runtimes in `record`: one session for each process. */
#ifndef MAPGEN_COMMAND_RECORD_EVENTS_H
#define MAPGEN_COMMAND_RECORD_EVENTS_H

#include <jansson.h>

#include "mapgen/cli/options.h"
#include "mapgen/record/recording_file.h"
#include "mapgen/record/runtime_session.h"

struct record_events {
	const struct options *options;
	struct recorder *recorder;
	struct runtime_session **sessions; /* one a process that has events */
	char **members;                    /* of the archive, one a session */
	struct recorded_stream *streams;   /* filled by record_events_streams() */
	size_t count, capacity;
	char *events_text;          /* --events with what --stop-on needs */
	struct stop_condition stop; /* STOP_NEVER: none */
	size_t missing_count;       /* processes without events; a line was printed for each */
	int32_t expected_pid;       /* a program that was started; 0: none */
	double next_try;            /* when to look whether its runtime is ready */
};

/* False when out of memory. */
bool record_events_init(struct record_events *events, const struct options *options,
			struct recorder *recorder);
void record_events_deinit(struct record_events *events);

/* Are events asked for, by themselves or to stop on one? */
bool record_events_wanted(const struct options *options);

/* False, with a message, when an option about events is malformed. */
bool record_events_check(const struct options *options);

/* Starts the session of a process. It is no error if it cannot have one: a line says why. */
struct sym_error *record_events_add(struct record_events *events, int32_t pid)
	__attribute__((warn_unused_result));
/* The runtime of this program is not there yet: its session starts as soon as it is. */
void record_events_expect(struct record_events *events, int32_t pid);

struct sym_error *record_events_step(struct record_events *events)
	__attribute__((warn_unused_result));
/* When the event happened that --stop-on asks for, on CLOCK_MONOTONIC; 0: not yet. */
uint64_t record_events_stopped_ns(const struct record_events *events);
struct sym_error *record_events_finish(struct record_events *events, uint64_t from_ns)
	__attribute__((warn_unused_result));

/* For the archive; valid until record_events_deinit(). NULL: there are none, or out of memory. */
const struct recorded_stream *record_events_streams(struct record_events *events);
json_t *record_events_describe(const struct record_events *events);

/* Lines about stacks and losses. */
void record_events_say(const struct record_events *events);

#endif
