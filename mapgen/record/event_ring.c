/* SPDX-License-Identifier: MIT */
#include "mapgen/record/event_ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	MAX_RECORD_BYTES = 1 << 16
};

int event_ring_open(struct event_ring *ring, int fd, size_t pages)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	void *page;

	*ring = (struct event_ring){ .data_bytes = pages * page_bytes };
	ring->copy = malloc(MAX_RECORD_BYTES);
	if (!ring->copy)
		return -ENOMEM;
	page = mmap(NULL, (pages + 1) * page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED) {
		int error = -errno;

		free(ring->copy);
		*ring = (struct event_ring){ 0 };
		return error;
	}
	ring->page = page;
	return 0;
}

void event_ring_close(struct event_ring *ring)
{
	if (ring->page)
		munmap(ring->page, ring->data_bytes + (size_t)sysconf(_SC_PAGESIZE));
	free(ring->copy);
	*ring = (struct event_ring){ 0 };
}

static const uint8_t *data_of(const struct event_ring *ring)
{
	return (const uint8_t *)ring->page + (size_t)sysconf(_SC_PAGESIZE);
}

/* Bytes at a position, in one piece; the end of the buffer goes on at its beginning. */
static const void *bytes_at(struct event_ring *ring, uint64_t position, size_t size_bytes)
{
	size_t offset = (size_t)(position & (ring->data_bytes - 1));
	size_t first = ring->data_bytes - offset;

	if (first >= size_bytes)
		return data_of(ring) + offset;
	memcpy(ring->copy, data_of(ring) + offset, first);
	memcpy(ring->copy + first, data_of(ring), size_bytes - first);
	return ring->copy;
}

const struct perf_event_header *event_ring_next(struct event_ring *ring)
{
	const struct perf_event_header *header;
	uint64_t left;
	uint16_t size_bytes;

	left = ring->end - ring->read_to;
	if (left < sizeof(*header))
		return NULL;
	header = bytes_at(ring, ring->read_to, sizeof(*header));
	size_bytes = header->size;
	if (size_bytes < sizeof(*header) || size_bytes > left)
		return NULL;
	header = bytes_at(ring, ring->read_to, size_bytes);
	ring->read_to += size_bytes;
	return header;
}

void event_ring_begin(struct event_ring *ring)
{
	ring->end = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
}

void event_ring_release(struct event_ring *ring)
{
	__atomic_store_n(&ring->page->data_tail, ring->read_to, __ATOMIC_RELEASE);
}
