/* SPDX-License-Identifier: MIT */
#include "mapgen/profile/raw_stacks.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "libsym/base/grow.h"
#include "libsym/error.h"

enum {
	MOST_STACKS = 1 << 26,
	FIRST_SLOTS = 1 << 12,
	PIECE_ADDRESSES = 1 << 17, /* more than any record has */
};

/* Addresses of many stacks. */
struct piece {
	struct piece *next;
	size_t count;
	uint64_t addresses[PIECE_ADDRESSES];
};

struct raw_stacks {
	struct raw_stack *items;
	size_t count, capacity;
	uint32_t *slots; /* number + 1; 0: free */
	size_t slot_count;
	struct piece *pieces;
};

struct sym_error *raw_stacks_create(struct raw_stacks **ret)
{
	struct raw_stacks *stacks = calloc(1, sizeof(*stacks));

	if (!stacks)
		return &sym_error_no_memory;
	stacks->slots = calloc(FIRST_SLOTS, sizeof(*stacks->slots));
	if (!stacks->slots) {
		free(stacks);
		return &sym_error_no_memory;
	}
	stacks->slot_count = FIRST_SLOTS;
	*ret = stacks;
	return NULL;
}

void raw_stacks_destroy(struct raw_stacks *stacks)
{
	struct piece *piece, *next;

	if (!stacks)
		return;
	for (piece = stacks->pieces; piece; piece = next) {
		next = piece->next;
		free(piece);
	}
	free(stacks->items);
	free(stacks->slots);
	free(stacks);
}

static void put_in_slot(uint32_t *slots, size_t slot_count, uint64_t hash, uint32_t number)
{
	size_t i = hash & (slot_count - 1);

	while (slots[i])
		i = (i + 1) & (slot_count - 1);
	slots[i] = number + 1;
}

static bool widen(struct raw_stacks *stacks)
{
	size_t slot_count = stacks->slot_count * 2;
	uint32_t *slots = calloc(slot_count, sizeof(*slots));

	if (!slots)
		return false;
	for (size_t i = 0; i < stacks->count; i++)
		put_in_slot(slots, slot_count, stacks->items[i].hash, (uint32_t)i);
	free(stacks->slots);
	stacks->slots = slots;
	stacks->slot_count = slot_count;
	return true;
}

static const uint64_t *keep(struct raw_stacks *stacks, const uint64_t *addresses, size_t count)
{
	struct piece *piece = stacks->pieces;
	uint64_t *kept;

	if (!piece || count > PIECE_ADDRESSES - piece->count) {
		piece = malloc(sizeof(*piece));
		if (!piece)
			return NULL;
		piece->next = stacks->pieces;
		piece->count = 0;
		stacks->pieces = piece;
	}
	kept = piece->addresses + piece->count;
	if (count)
		memcpy(kept, addresses, count * sizeof(*addresses));
	piece->count += count;
	return kept;
}

static struct sym_error *add(struct raw_stacks *stacks, const struct raw_stack *stack,
			     uint32_t *ret)
{
	struct raw_stack *kept;
	const uint64_t *addresses;

	if (stack->count > PIECE_ADDRESSES || stacks->count == MOST_STACKS)
		return sym_error_create(SYM_ERROR_LIMIT, "more than %d different call chains",
					MOST_STACKS);
	if (stacks->count * 2 >= stacks->slot_count && !widen(stacks))
		return &sym_error_no_memory;
	if (!grow_items((void **)&stacks->items, &stacks->capacity, stacks->count,
			sizeof(*stacks->items)))
		return &sym_error_no_memory;
	addresses = keep(stacks, stack->addresses, stack->count);
	if (!addresses)
		return &sym_error_no_memory;
	kept = &stacks->items[stacks->count];
	*kept = *stack;
	kept->addresses = addresses;
	put_in_slot(stacks->slots, stacks->slot_count, stack->hash, (uint32_t)stacks->count);
	*ret = (uint32_t)stacks->count++;
	return NULL;
}

static bool is_same(const struct raw_stack *a, const struct raw_stack *b)
{
	return a->hash == b->hash && a->more_hash == b->more_hash && a->count == b->count &&
	       a->process == b->process && a->end == b->end;
}

struct sym_error *raw_stacks_add(struct raw_stacks *stacks, uint32_t process, uint16_t end,
				 const uint64_t *addresses, size_t count, uint32_t *ret)
{
	const XXH128_hash_t hash = XXH3_128bits_withSeed(addresses, count * sizeof(*addresses),
							 (uint64_t)end << 32 | process);
	const struct raw_stack stack = {
		.hash = hash.low64,
		.more_hash = hash.high64,
		.addresses = addresses,
		.count = (uint32_t)count,
		.process = process,
		.end = end,
		.epoch = UINT32_MAX,
		.stack = UINT32_MAX,
	};
	size_t i = stack.hash & (stacks->slot_count - 1);

	for (; stacks->slots[i]; i = (i + 1) & (stacks->slot_count - 1)) {
		if (!is_same(&stacks->items[stacks->slots[i] - 1], &stack))
			continue;
		*ret = stacks->slots[i] - 1;
		return NULL;
	}
	return add(stacks, &stack, ret);
}

struct raw_stack *raw_stacks_at(struct raw_stacks *stacks, uint32_t number)
{
	return &stacks->items[number];
}
