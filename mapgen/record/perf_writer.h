/* SPDX-License-Identifier: MIT */
/*
 * Writes a perf.data file that stock perf reads: records as they come, then the tables that say
 * which events they are of.
 *
 *   104 header | records | one {offset, size} a feature | features | ids | attributes with
 *   {offset, size} of their ids
 *
 * tools/perf/Documentation/perf.data-file-format.txt. Samples have their whole call chain, the
 * kernel's part first, then the user's behind PERF_CONTEXT_USER.
 */
#ifndef MAPGEN_RECORD_PERF_WRITER_H
#define MAPGEN_RECORD_PERF_WRITER_H

#include <stdint.h>
#include <stdio.h>

#include "mapgen/perfdata/perf_sample.h"
#include "mapgen/record/event_set.h"
#include "mapgen/record/perf_ring.h"

struct perf_writer {
	FILE *file; /* borrowed */
	uint64_t data_bytes;
	uint64_t first_time_ns, last_time_ns; /* of samples; 0: none */
	uint64_t sample_count;
	const char *const *probe_names; /* borrowed; NULL: there are none */
	size_t probe_count;
	struct perf_ring *ring; /* borrowed; NULL: everything is kept */
	uint64_t ring_from_ns;  /* at the end: what is older is left out */
	bool keeps_stacks;      /* registers and stack bytes go into the file too */
	bool has_failed;        /* a write did; errno is in `failure` */
	int failure;
};

/* The file is open for writing, and empty. */
void perf_writer_begin(struct perf_writer *writer, FILE *file, bool keeps_stacks);

/* The id that samples of a probe have in the file: the kernel's are of events of many probes. */
uint64_t perf_writer_probe_id(uint32_t probe);

/* A record as the kernel made it. */
void perf_writer_put(struct perf_writer *writer, const void *record, size_t size_bytes);

/* A record of the kernel about a probe's event: lost samples, throttling. It gets an id that the
 * file has: stock perf reads no further than a record with another one. */
void perf_writer_put_of_probe(struct perf_writer *writer, const struct perf_event_header *record);

/* The record of a sample with the user's part of its chain; `frames` are addresses, innermost
 * first. For perf_writer_put(); lives until the next call. */
const struct perf_event_header *perf_writer_make_sample(struct perf_writer *writer,
							const struct perf_event_attr *attr,
							const struct perf_event_header *header,
							const struct perf_sample *sample,
							const uint64_t *frames, size_t frame_count);

/* Between two rounds over all rings: what follows is not older than what came one round before. */
void perf_writer_end_round(struct perf_writer *writer);

/* Records that the kernel would have made, of what was there before. */
void perf_writer_put_comm(struct perf_writer *writer, int32_t pid, int32_t tid, const char *comm);
void perf_writer_put_mapping(struct perf_writer *writer, int32_t pid,
			     const struct sym_mapping *mapping);

/* Writes the tables and the header. False when a write failed; writer->failure says why. */
bool perf_writer_finish(struct perf_writer *writer, const struct event_set *events,
			const char *command_line);

#endif
