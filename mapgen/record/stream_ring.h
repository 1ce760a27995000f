/* SPDX-License-Identifier: MIT */
/*
 * The last seconds of a nettrace stream that is kept in a file. What is older is cut out of the
 * file in pieces from one sequence point to the next: stacks are valid up to there. What describes
 * events stays.
 */
#ifndef MAPGEN_RECORD_STREAM_RING_H
#define MAPGEN_RECORD_STREAM_RING_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "libsym/libsym.h"

struct stream_range {
	uint64_t begin, end; /* in the file */
	uint64_t segment;    /* 0: it stays */
	uint64_t last_ns;    /* of its newest event */
};

struct stream_ring {
	struct stream_range *ranges; /* ascending, disjoint */
	size_t count, capacity;
	uint64_t segment; /* the current one, from 1 on */
	uint64_t at;      /* end of what was taken */
};

void stream_ring_init(struct stream_ring *ring);
void stream_ring_deinit(struct stream_ring *ring);

/* Whole objects of the stream, which stand at ring->at in the file. `last_ns`: the time of the
 * newest event in them. Errors: NO_MEMORY. */
struct sym_error *stream_ring_take(struct stream_ring *ring, const uint8_t *bytes,
				   size_t size_bytes, uint64_t last_ns)
	__attribute__((warn_unused_result));

/* Frees the room of what has only events before `from_ns`. */
void stream_ring_drop(struct stream_ring *ring, uint64_t from_ns, int fd);

/* Writes what is left as a stream of its own. Errors: IO, NO_MEMORY. */
struct sym_error *stream_ring_write(const struct stream_ring *ring, int fd, FILE *to)
	__attribute__((warn_unused_result));

#endif
