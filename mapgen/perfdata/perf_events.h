/* SPDX-License-Identifier: MIT */
/*
 * Which events a perf.data has: the attribute of each, its name, and the ids by which records say
 * of which event they are. In a file this stands in tables, in what perf writes into a pipe in
 * records.
 *
 *   file   attributes: {struct perf_event_attr, u64 offset and u64 size of its ids}, each as long
 *          as the header says; feature 12: u32 count, u32 size of an attribute, then for each
 *          event the attribute, u32 number of ids, u32 length and bytes of its name, u64 ids
 *          feature 4: u32 length and bytes of the kernel's release
 *          feature 7: u32 processors, u32 of these online
 *   pipe   HEADER_ATTR (64): the attribute, as long as it says itself, then u64 ids;
 *          EVENT_UPDATE (78): u64 kind (2: name), u64 id, then the name;
 *          HEADER_FEATURE (80): u64 number of the feature, then its bytes
 *
 * tools/perf/Documentation/perf.data-file-format.txt, tools/perf/util/header.c.
 */
#ifndef MAPGEN_PERFDATA_PERF_EVENTS_H
#define MAPGEN_PERFDATA_PERF_EVENTS_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/address_table.h"
#include "libsym/libsym.h"
#include "mapgen/perfdata/perf_data.h"
#include "mapgen/perfdata/perf_sample.h"

struct recorded_event {
	struct perf_event_attr attr;
	char *name;
	size_t id_count; /* one for each thread and processor */
};

struct perf_events {
	struct recorded_event **items; /* pointers, because the events do not move */
	size_t count, capacity;
	struct address_table by_id;
	bool has_switches;    /* SWITCH records */
	char *kernel_release; /* feature 4; NULL: missing */
	uint32_t online_cpus; /* feature 7; 0: missing */
};

void perf_events_deinit(struct perf_events *events);

/* Reads the tables of a file; a pipe has none. Errors: FORMAT, LIMIT, IO, NO_MEMORY. */
struct sym_error *perf_events_read(struct perf_events *events, int fd)
	__attribute__((warn_unused_result));

/* Reads a record of a pipe; skips a malformed one. Errors: NO_MEMORY, LIMIT. */
struct sym_error *perf_events_take(struct perf_events *events, const struct perf_record *record)
	__attribute__((warn_unused_result));

/* Number of the event of a record; false when there is no event. */
bool perf_events_find(const struct perf_events *events, const struct perf_record *record,
		      size_t *ret);

/* Thread and time of a record that is no sample; zero where the data do not have them. */
void perf_events_read_id(const struct perf_events *events, const struct perf_record *record,
			 struct perf_sample *ret);

#endif
