/* SPDX-License-Identifier: MIT */
/* Memory of a process, made up by a test: regions with given bytes; everything else is unreadable.
 * Reads can be made to fail. */
#ifndef TESTS_SUPPORT_FAKE_MEMORY_H
#define TESTS_SUPPORT_FAKE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/process/remote_memory.h"

#define FAKE_MAX_REGIONS 64

struct fake_memory {
	struct fake_region {
		uint64_t address;
		size_t size_bytes;
		uint8_t *bytes;
	} regions[FAKE_MAX_REGIONS];
	size_t region_count;
	int fail_with; /* errno of every read, unless 0 */
	size_t calls;
	size_t most_pieces; /* maximum seen in one call */
	/* Called before each read, unless NULL: a process changes while it is read. */
	void (*before_read)(struct fake_memory *fake, void *context);
	void *context;
};

/* Adds a region of zeros, in whole pages. */
void fake_memory_add(struct fake_memory *fake, uint64_t address, size_t size_bytes);
void fake_memory_deinit(struct fake_memory *fake);

/* The bytes at an address. Fails the test if no region contains them. */
void *fake_memory_at(struct fake_memory *fake, uint64_t address, size_t size_bytes);
void fake_memory_put(struct fake_memory *fake, uint64_t address, const void *bytes,
		     size_t size_bytes);
void fake_memory_put_u16(struct fake_memory *fake, uint64_t address, uint16_t value);
void fake_memory_put_u32(struct fake_memory *fake, uint64_t address, uint32_t value);
void fake_memory_put_u64(struct fake_memory *fake, uint64_t address, uint64_t value);

/* A reader over it. Fails the test on error. */
struct remote_memory *fake_memory_open(struct fake_memory *fake);

#endif
