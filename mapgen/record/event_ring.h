/* SPDX-License-Identifier: MIT */
/*
 * One ring buffer of perf_event_open(): records that the kernel writes on one processor, in the
 * order in which they are written.
 *
 * include/uapi/linux/perf_event.h, struct perf_event_mmap_page: data_head is the kernel's,
 * data_tail ours; what lies between them is ours to read.
 */
#ifndef MAPGEN_RECORD_EVENT_RING_H
#define MAPGEN_RECORD_EVENT_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_ring {
	struct perf_event_mmap_page *page; /* NULL: not open */
	size_t data_bytes;                 /* a power of two */
	uint64_t read_to;                  /* position of the next record */
	uint64_t end;                      /* data_head as last seen */
	uint8_t *copy;                     /* of a record that wraps around */
};

/* Maps 1 + `pages` pages (a power of two) of an event. Negative errno on failure. */
int event_ring_open(struct event_ring *ring, int fd, size_t pages);
void event_ring_close(struct event_ring *ring);

/* Looks how far the kernel has written. A reader that follows a busy ring to its end never gets to
 * the others. */
void event_ring_begin(struct event_ring *ring);

/* The next record, whole; NULL when there is none up to where the kernel was at
 * event_ring_begin(). Lives until the next call. */
const struct perf_event_header *event_ring_next(struct event_ring *ring);

/* Gives what was read back to the kernel. */
void event_ring_release(struct event_ring *ring);

#endif
