/* SPDX-License-Identifier: MIT */
/*
 * A process's memory made up by a test: regions that hold what the test puts
 * there, everything else unreadable. Ends a test's reading on demand.
 */
#ifndef TESTS_SUPPORT_FAKE_MEMORY_H
#define TESTS_SUPPORT_FAKE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/clr/remote_memory.h"

#define FAKE_MAX_REGIONS 64

struct fake_memory {
	struct fake_region {
		uint64_t address;
		size_t size_bytes;
		uint8_t *bytes;
	} regions[FAKE_MAX_REGIONS];
	size_t region_count;
	int fail_with; /* errno of every read when not 0 */
	size_t calls;
	size_t most_pieces; /* seen in one call */
	/* Unless NULL, called before each read: a process does not stand still. */
	void (*before_read)(struct fake_memory *fake, void *context);
	void *context;
};

/* A region of zeros, at whole pages. */
void fake_memory_add(struct fake_memory *fake, uint64_t address, size_t size_bytes);
void fake_memory_deinit(struct fake_memory *fake);

/* The bytes at an address; the test fails when they are in no region. */
void *fake_memory_at(struct fake_memory *fake, uint64_t address, size_t size_bytes);
void fake_memory_put(struct fake_memory *fake, uint64_t address, const void *bytes,
		     size_t size_bytes);
void fake_memory_put_u16(struct fake_memory *fake, uint64_t address, uint16_t value);
void fake_memory_put_u32(struct fake_memory *fake, uint64_t address, uint32_t value);
void fake_memory_put_u64(struct fake_memory *fake, uint64_t address, uint64_t value);

/* A reader over it; the test fails when there is none. */
struct remote_memory *fake_memory_open(struct fake_memory *fake);

#endif
