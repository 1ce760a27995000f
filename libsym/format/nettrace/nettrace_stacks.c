/* SPDX-License-Identifier: MIT */
#include "libsym/format/nettrace/nettrace_stacks.h"

#include <stdlib.h>

#include "libsym/base/ascending.h"
#include "libsym/base/grow.h"

enum {
	/* One region between two sequence points. The runtime begins a new one every 10 MB. */
	MOST_BYTES = 1 << 28,
	MOST_STACK_BYTES = 1 << 16,
};

void nettrace_stacks_init(struct nettrace_stacks *stacks)
{
	*stacks = (struct nettrace_stacks){ 0 };
	buf_init(&stacks->bytes, MOST_BYTES);
}

void nettrace_stacks_deinit(struct nettrace_stacks *stacks)
{
	free(stacks->items);
	buf_deinit(&stacks->bytes);
	*stacks = (struct nettrace_stacks){ 0 };
}

void nettrace_stacks_clear(struct nettrace_stacks *stacks)
{
	stacks->count = 0;
	buf_clear(&stacks->bytes);
}

bool nettrace_stacks_read(struct nettrace_stacks *stacks, struct reader block)
{
	uint32_t number = reader_u32(&block), count = reader_u32(&block);

	/* Numbers ascend, and begin again behind a sequence point. */
	if (stacks->count && number <= stacks->items[stacks->count - 1].number)
		nettrace_stacks_clear(stacks);
	for (uint32_t i = 0; i < count && reader_left(&block); i++) {
		struct nettrace_stack stack = { .number = number + i,
						.size_bytes = reader_u32(&block),
						.offset = stacks->bytes.size_bytes };
		const uint8_t *bytes = reader_bytes(&block, stack.size_bytes);

		if (!bytes || stack.size_bytes > MOST_STACK_BYTES)
			break;
		if (!buf_append(&stacks->bytes, bytes, stack.size_bytes))
			return stacks->bytes.failure != BUF_NO_MEMORY;
		if (!grow_items((void **)&stacks->items, &stacks->capacity, stacks->count,
				sizeof(*stacks->items)))
			return false;
		stacks->items[stacks->count++] = stack;
	}
	return true;
}

const uint8_t *nettrace_stacks_find(const struct nettrace_stacks *stacks, uint32_t number,
				    size_t *size_bytes_ret)
{
	size_t before = ASCENDING_COUNT(stacks->count, i, stacks->items[i].number <= number);
	const struct nettrace_stack *stack = before ? &stacks->items[before - 1] : NULL;

	if (!stack || stack->number != number)
		return NULL;
	*size_bytes_ret = stack->size_bytes;
	/* Without stacks the runtime sends one that is empty. */
	return (const uint8_t *)(stacks->bytes.data ? stacks->bytes.data : "") + stack->offset;
}
