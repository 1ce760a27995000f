/* SPDX-License-Identifier: MIT */
/*
 * One event of a .NET runtime, as all of mapgen sees it, from a session that is running or from a
 * recording.
 *
 *   mapgen/record/      receives the stream of a session, keeps its bytes as they are (the member
 *                       events.nettrace, recording_file.h), and takes a native stack at each probe
 *   event_stream.h      bytes of a stream to struct runtime_event, in the order of each thread
 *   event_match.h       a sample of a probe to the event that it belongs to
 *   event_table.h       names and fields of the runtime's own events: its streams do not have them
 *   mapgen/profile/     stacks of events to frames
 *
 * Times are nanoseconds of CLOCK_MONOTONIC, as those of samples are.
 */
#ifndef MAPGEN_EVENTS_RUNTIME_EVENT_H
#define MAPGEN_EVENTS_RUNTIME_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/buf.h"
#include "libsym/format/nettrace/nettrace.h"

struct event_kind;

struct runtime_event {
	uint64_t time_ns;
	int32_t pid, tid;              /* as the PID namespace of the process counts */
	const struct event_kind *kind; /* lives as long as the stream */
	const uint8_t *payload;
	size_t payload_bytes;
	/* The managed stack that the runtime has sent: addresses, innermost first, not aligned. All
	 * but the first are return addresses. */
	const uint8_t *addresses;
	size_t address_count;
	const uint8_t *activity, *related_activity; /* 16 bytes each; NULL: none */
};

#endif
