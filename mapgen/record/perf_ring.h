/* SPDX-License-Identifier: MIT */
/*
 * The last seconds of the records of a perf.data, for a recording that may run for days before
 * something happens: two files without a name, one of which is emptied when the other one has so
 * many seconds. What names need of all times (processes, threads, mappings) is kept apart.
 */
#ifndef MAPGEN_RECORD_PERF_RING_H
#define MAPGEN_RECORD_PERF_RING_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "libsym/libsym.h"

struct perf_ring {
	FILE *kept;
	FILE *segments[2];
	int active;
	uint64_t begin_ns; /* of the active segment; 0: it has no record yet */
	uint64_t span_ns;
};

/* Errors: IO. */
struct sym_error *perf_ring_init(struct perf_ring *ring, uint64_t span_ns)
	__attribute__((warn_unused_result));
void perf_ring_deinit(struct perf_ring *ring);

/* A record as perf_writer.c makes it. False when a write failed; errno says why. */
bool perf_ring_put(struct perf_ring *ring, const void *record, size_t size_bytes)
	__attribute__((warn_unused_result));

/* Appends to `file` what is kept, and what is not older than `from_ns`. False as above. */
bool perf_ring_write(struct perf_ring *ring, uint64_t from_ns, FILE *file, uint64_t *bytes_ret)
	__attribute__((warn_unused_result));

#endif
