/* SPDX-License-Identifier: MIT */
/*
 * The one file that `record` writes and `report` reads: NAME.trace.zip.
 *
 *   perf.data.txt     with --perfview: the CPU samples as perf script prints them
 *   perf.data         samples with whole call chains, switches; stock perf reads it
 *   events.nettrace   what the runtime has sent, unchanged; with several processes also
 *                     events-PID.nettrace. recording.json lists them (below)
 *   names/symbols     every symbol in which a frame was seen, with times (name_table.h)
 *   names/stacks      stacks that end early or have guessed frames, a line each:
 *                     time (ns)  tid  end (enum sym_unwind_end)  address of the last frame, then
 * the numbers of the guessed frames; tabs between recording.json    format number, version, host,
 * clocks, options, processes, losses
 *
 * recording.json has one entry for each stream of a runtime's events (all numbers of the host):
 *
 *   "event_streams": [ { "member": "events.nettrace", "pid": 4711, "runtime": ".NET 10.0.12",
 *                        "providers": [ { "name", "keywords", "level", "arguments" } ],
 *                        "stacks": "native" | "managed" | "none", "stacks_reason": "..." or null,
 *                        "thinned_stacks": 0, "thinned_in_kernel": 0, "unprobed_events": 0,
 *                        "managed_stacks_beyond_budget": 0, "unread_bytes": 0,
 *                        "ended": "..." or null } ]
 *
 * Native stacks of events are samples of perf.data: one event of perf for each probe, with the name
 * RECORDING_PROBE_PREFIX and the name of the runtime's tracepoint ("dotnet:GCStart_V2"), one sample
 * each time, by CLOCK_MONOTONIC, in the thread that has sent the event. mapgen/events/event_match.h
 * finds the event of each sample. Threads of a stream have the ids of the process's PID namespace;
 * the T lines of names/symbols lead to those of the host. names/symbols also has the names of the
 * addresses of managed stacks, which are in the stream.
 *
 * The format number counts changes that an older reader cannot understand.
 */
#ifndef MAPGEN_RECORD_RECORDING_FILE_H
#define MAPGEN_RECORD_RECORDING_FILE_H

#include <jansson.h>
#include <stdio.h>

#include "libsym/base/buf.h"
#include "libsym/libsym.h"

enum {
	RECORDING_FORMAT = 1
};

#define RECORDING_PERF_DATA "perf.data"
#define RECORDING_SYMBOLS   "names/symbols"
#define RECORDING_STACKS    "names/stacks"
#define RECORDING_PERFVIEW  "perf.data.txt" /* PerfView looks for .data.txt */
#define RECORDING_ABOUT     "recording.json"
#define RECORDING_EVENTS    "events.nettrace" /* of the first process */

#define RECORDING_PROBE_PREFIX "dotnet:"

/* The event stream of one runtime. */
struct recorded_stream {
	const char *member; /* as in recording.json */
	FILE *file;
};

/* The parts of a recording; all borrowed. */
struct recording_parts {
	FILE *perf_data;
	const struct buf *symbols;
	const struct buf *stacks;
	FILE *perfview_text; /* NULL: none */
	const json_t *about;
	const struct recorded_stream *streams; /* NULL: there are none */
	size_t stream_count;
};

/* Writes the whole archive. Errors: IO, NO_MEMORY. */
struct sym_error *recording_file_write(FILE *file, const struct recording_parts *parts)
	__attribute__((warn_unused_result));

#endif
