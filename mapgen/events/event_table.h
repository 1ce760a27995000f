/* SPDX-License-Identifier: MIT */
/*
 * The events of the runtime itself: native_events.txt, which the compiler puts into the program.
 * Streams of runtimes have neither names nor fields of them.
 */
#ifndef MAPGEN_EVENTS_EVENT_TABLE_H
#define MAPGEN_EVENTS_EVENT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/error.h"
#include "libsym/format/nettrace/nettrace_fields.h"

struct native_event {
	const char *provider;
	uint32_t id, version;
	const char *name; /* of the tracepoint: "GCStart_V2" */
	struct nettrace_fields fields;
};

struct event_table {
	char *text;                 /* names and providers point into it */
	struct native_event *items; /* by provider, id and version */
	size_t count, capacity;
};

/* Errors: NO_MEMORY; FORMAT for a table that is wrong, which a test excludes. */
struct sym_error *event_table_init(struct event_table *table) __attribute__((warn_unused_result));
void event_table_deinit(struct event_table *table);

/*
 * The event with this version, or the newest one before it: a version only adds fields. NULL: no
 * event has this id.
 */
const struct native_event *event_table_find(const struct event_table *table, const char *provider,
					    uint32_t id, uint32_t version);

#endif
