/* SPDX-License-Identifier: MIT */
#include "tests/support/fake_memory.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void fake_memory_add(struct fake_memory *fake, uint64_t address, size_t size_bytes)
{
	uint8_t *bytes = calloc(1, size_bytes);

	cr_assert(bytes && fake->region_count < FAKE_MAX_REGIONS);
	fake->regions[fake->region_count++] = (struct fake_region){ address, size_bytes, bytes };
}

void fake_memory_deinit(struct fake_memory *fake)
{
	for (size_t i = 0; i < fake->region_count; i++)
		free(fake->regions[i].bytes);
	fake->region_count = 0;
}

/* The region byte at `address`, and how many bytes follow; NULL if no region contains it. */
static uint8_t *find(struct fake_memory *fake, uint64_t address, size_t *left_ret)
{
	for (size_t i = 0; i < fake->region_count; i++) {
		struct fake_region *region = &fake->regions[i];

		if (address >= region->address && address - region->address < region->size_bytes) {
			*left_ret = region->size_bytes - (size_t)(address - region->address);
			return region->bytes + (address - region->address);
		}
	}
	return NULL;
}

void *fake_memory_at(struct fake_memory *fake, uint64_t address, size_t size_bytes)
{
	size_t left = 0;
	uint8_t *bytes = find(fake, address, &left);

	cr_assert(bytes && left >= size_bytes);
	return bytes;
}

void fake_memory_put(struct fake_memory *fake, uint64_t address, const void *bytes,
		     size_t size_bytes)
{
	memcpy(fake_memory_at(fake, address, size_bytes), bytes, size_bytes);
}

void fake_memory_put_u16(struct fake_memory *fake, uint64_t address, uint16_t value)
{
	fake_memory_put(fake, address, &value, sizeof(value));
}

void fake_memory_put_u32(struct fake_memory *fake, uint64_t address, uint32_t value)
{
	fake_memory_put(fake, address, &value, sizeof(value));
}

void fake_memory_put_u64(struct fake_memory *fake, uint64_t address, uint64_t value)
{
	fake_memory_put(fake, address, &value, sizeof(value));
}

static ssize_t fake_read(void *context, const struct iovec *rooms, const struct iovec *pieces,
			 size_t count)
{
	struct fake_memory *fake = context;
	size_t total = 0;

	fake->calls++;
	if (fake->before_read)
		fake->before_read(fake, fake->context);
	if (count > fake->most_pieces)
		fake->most_pieces = count;
	if (fake->fail_with)
		return -fake->fail_with;
	for (size_t i = 0; i < count; i++) {
		for (size_t done = 0; done < pieces[i].iov_len;) {
			size_t left = 0, chunk = pieces[i].iov_len - done;
			uint8_t *from =
				find(fake, (uint64_t)(uintptr_t)pieces[i].iov_base + done, &left);

			if (!from)
				return total ? (ssize_t)total : -EFAULT;
			if (chunk > left)
				chunk = left;
			memcpy((uint8_t *)rooms[i].iov_base + done, from, chunk);
			done += chunk;
			total += chunk;
		}
	}
	return (ssize_t)total;
}

static struct sym_error *fake_error(void *context, int errno_value)
{
	(void)context;
	return sym_error_create(SYM_ERROR_IO, "fake memory: %s", strerror(errno_value));
}

struct remote_memory *fake_memory_open(struct fake_memory *fake)
{
	static const struct remote_memory_ops ops = { .read = fake_read, .error = fake_error };
	struct remote_memory *memory = NULL;

	cr_assert_null(remote_memory_create(&ops, fake, &memory));
	return memory;
}
