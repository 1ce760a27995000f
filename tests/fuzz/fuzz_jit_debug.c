/* SPDX-License-Identifier: MIT */
/*
 * The debug information of methods in the memory of a runtime, which is what the input says, and
 * which may change while it is read. A method is seen at most once, and only without a failure.
 *
 *   u8 form (bit 0: .NET 11), u8 change | 4 x {u16 place, u16 size} of methods | memory
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/clr/jit_debug.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	METHODS = 4,
	HEAD_BYTES = 2 + METHODS * 4,
	MOST_MEMORY_BYTES = 16 * REMOTE_PAGE_BYTES,
};

static const uint64_t memory_address = 0x10000;

static struct memory {
	uint8_t bytes[MOST_MEMORY_BYTES];
	size_t size_bytes; /* whole pages */
	uint8_t change;    /* added to a byte before each read */
	size_t read_count;
} memory;

static ssize_t read_memory(void *context, const struct iovec *rooms, const struct iovec *pieces,
			   size_t count)
{
	size_t total = 0;

	(void)context;
	if (memory.size_bytes)
		memory.bytes[memory.read_count++ * 257 % memory.size_bytes] += memory.change;
	for (size_t i = 0; i < count; i++) {
		uint64_t at = (uint64_t)(uintptr_t)pieces[i].iov_base - memory_address;

		if (at >= memory.size_bytes || pieces[i].iov_len > memory.size_bytes - at)
			return total ? (ssize_t)total : -EFAULT;
		memcpy(rooms[i].iov_base, memory.bytes + at, pieces[i].iov_len);
		total += pieces[i].iov_len;
	}
	return (ssize_t)total;
}

static struct sym_error *no_words(void *context, int errno_value)
{
	(void)context;
	return sym_error_create(SYM_ERROR_IO, "%s", strerror(errno_value));
}

/* Small offsets, so that small inputs suffice. */
static struct layout make_layout(void)
{
	return (struct layout){
		.token_remainder_bits = 10,
		.method_desc_alignment_bytes = 8,
		.stub_kind_last = 15,
		.code_header = { .method_desc = 8, .unwind_count = 16, .unwind_infos = 20 },
		.runtime_function = { .size_bytes = 8, .begin = 0, .last = 4 },
		.method_desc = { .size_bytes = 8,
				 .flags3_and_token = 0,
				 .chunk_index = 2,
				 .slot = 4,
				 .flags = 6,
				 .read_bytes = 8 },
		.chunk = { .size_bytes = 16, .flags_and_token_range = 8, .read_bytes = 16 },
		.module = { .assembly = 0, .flags = 8, .pe_assembly = 16 },
		.pe_image_layout = { .base = 0, .size_bytes = 8, .flags = 12 },
	};
}

struct seen {
	const struct jit_debug_body *bodies;
	unsigned int times[METHODS];
	size_t entries;
};

static void take(void *context, struct jit_debug_body *body, const struct debug_info *info)
{
	struct seen *seen = context;
	struct il_map map = il_map_begin(info->bounds, info->bounds_bytes, info->form);
	struct il_map_entry entry;
	uint32_t last = 0;

	if (seen->times[body - seen->bodies]++ || body->failure || !body->rid)
		abort();
	while (il_map_next(&map, &entry)) {
		if (entry.native_offset < last)
			abort();
		last = entry.native_offset;
		seen->entries++;
	}
}

/* One reader for each form serves all inputs: a new one costs more than the reading. */
static struct jit_debug *get_reader(bool is_fat)
{
	static const struct remote_memory_ops ops = { .read = read_memory, .error = no_words };
	static struct jit_debug *readers[2];
	const struct layout layout = make_layout();
	const struct layout_debug debug_layout = { 0, is_fat ? DEBUG_INFO_JIT_FAT
							     : DEBUG_INFO_JIT_PACKED };
	struct remote_memory *remote;

	if (!readers[is_fat]) {
		sym_error_destroy(remote_memory_create(&ops, NULL, &remote));
		sym_error_destroy(
			jit_debug_create(remote, &layout, &debug_layout, &readers[is_fat]));
	}
	return readers[is_fat];
}

static void ask(struct jit_debug *debug, const uint8_t *head)
{
	struct jit_debug_body bodies[METHODS] = { 0 };
	struct seen seen = { .bodies = bodies };
	struct sym_error *error;

	for (size_t i = 0; i < METHODS; i++) {
		uint16_t numbers[2];

		memcpy(numbers, head + 2 + 4 * i, sizeof(numbers));
		bodies[i].start_address = memory_address + numbers[0];
		bodies[i].size_bytes = numbers[1];
	}
	error = jit_debug_read(debug, bodies, METHODS, take, &seen);
	for (size_t i = 0; !error && i < METHODS; i++)
		if (!seen.times[i] != (bodies[i].failure != NULL))
			abort();
	sym_error_destroy(error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t given;

	if (size < HEAD_BYTES)
		return 0;
	given = size - HEAD_BYTES < MOST_MEMORY_BYTES ? size - HEAD_BYTES : MOST_MEMORY_BYTES;
	memset(&memory, 0, sizeof(memory));
	memcpy(memory.bytes, data + HEAD_BYTES, given);
	memory.size_bytes = (given + REMOTE_PAGE_BYTES - 1) / REMOTE_PAGE_BYTES * REMOTE_PAGE_BYTES;
	memory.change = data[1];
	ask(get_reader(data[0] & 1), data);
	return 0;
}
