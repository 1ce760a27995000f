/* SPDX-License-Identifier: MIT */
#include "libsym/symbols/name_pool.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/huge_memory.h"

enum {
	FIRST_BLOCK_BYTES = 4096,
	LARGEST_BLOCK_BYTES = 4 << 20,
};

struct name_block {
	struct name_block *next;
	char bytes[];
};

void name_pool_deinit(struct name_pool *pool)
{
	while (pool->blocks) {
		struct name_block *next = pool->blocks->next;

		free(pool->blocks);
		pool->blocks = next;
	}
	*pool = (struct name_pool){ 0 };
}

void name_pool_absorb(struct name_pool *pool, struct name_pool *other)
{
	struct name_block *last = other->blocks;

	if (!last)
		return;
	while (last->next)
		last = last->next;
	if (pool->blocks) {
		/* After our newest block, which continues to be filled. */
		last->next = pool->blocks->next;
		pool->blocks->next = other->blocks;
	} else {
		*pool = *other;
	}
	*other = (struct name_pool){ 0 };
}

static bool add_block(struct name_pool *pool, size_t least_bytes)
{
	size_t bytes = pool->block_bytes ? pool->block_bytes * 2 : FIRST_BLOCK_BYTES;
	struct name_block *block;

	if (bytes > LARGEST_BLOCK_BYTES)
		bytes = LARGEST_BLOCK_BYTES;
	if (bytes < least_bytes)
		bytes = least_bytes;
	if (bytes > SIZE_MAX - sizeof(*block))
		return false;
	block = huge_memory_allocate(sizeof(*block) + bytes);
	if (!block)
		return false;
	block->next = pool->blocks;
	pool->blocks = block;
	pool->block_bytes = bytes;
	pool->used_bytes = 0;
	return true;
}

const char *name_pool_add(struct name_pool *pool, const char *name, size_t name_bytes)
{
	char *room;

	if (name_bytes >= SIZE_MAX / 2)
		return NULL;
	if ((!pool->blocks || name_bytes + 1 > pool->block_bytes - pool->used_bytes) &&
	    !add_block(pool, name_bytes + 1))
		return NULL;
	room = pool->blocks->bytes + pool->used_bytes;
	memcpy(room, name, name_bytes);
	room[name_bytes] = '\0';
	pool->used_bytes += name_bytes + 1;
	return room;
}
