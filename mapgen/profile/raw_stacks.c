/* SPDX-License-Identifier: MIT */
#include "mapgen/profile/raw_stacks.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/grow.h"
#include "libsym/error.h"

enum {
	MOST_STACKS = 1 << 26,
	MOST_ADDRESSES = 1 << 17, /* more than any record has */
};

void raw_stacks_deinit(struct raw_stacks *stacks)
{
	HASH_DESTROY(stacks->table, free);
	free(stacks->items);
	*stacks = (struct raw_stacks){ 0 };
}

struct sym_error *raw_stacks_add(struct raw_stacks *stacks, uint32_t process, uint16_t end,
				 const uint64_t *addresses, size_t count, uint32_t *ret)
{
	const XXH128_hash_t hash = XXH3_128bits_withSeed(addresses, count * sizeof(*addresses),
							 (uint64_t)end << 32 | process);
	struct raw_stack *stack;
	bool is_new;

	if (count > MOST_ADDRESSES || stacks->count == MOST_STACKS)
		return sym_error_create(SYM_ERROR_LIMIT, "more than %d different call chains",
					MOST_STACKS);
	if (!grow_items((void **)&stacks->items, &stacks->capacity, stacks->count,
			sizeof(struct raw_stack *)))
		return &sym_error_no_memory;
	stack = hash_find_or_add(&stacks->table, &hash, sizeof(hash),
				 offsetof(struct raw_stack, hash),
				 sizeof(*stack) + count * sizeof(*addresses), &is_new);
	if (!stack)
		return &sym_error_no_memory;
	if (is_new) {
		stack->number = (uint32_t)stacks->count;
		stack->count = (uint32_t)count;
		stack->process = process;
		stack->end = end;
		stack->epoch = stack->stack = UINT32_MAX;
		if (count)
			memcpy(stack->addresses, addresses, count * sizeof(*addresses));
		stacks->items[stacks->count++] = stack;
	}
	*ret = stack->number;
	return NULL;
}
