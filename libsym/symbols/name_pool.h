/* SPDX-License-Identifier: MIT */
/* Names in blocks of memory. A name never moves, so it is valid as long as the pool. */
#ifndef LIBSYM_SYMBOLS_NAME_POOL_H
#define LIBSYM_SYMBOLS_NAME_POOL_H

#include <stddef.h>

struct name_block;

struct name_pool {
	struct name_block *blocks;
	size_t used_bytes; /* in the newest block */
	size_t block_bytes;
};

void name_pool_deinit(struct name_pool *pool);
/* Moves all names of `other` to `pool`; `other` is then empty. */
void name_pool_absorb(struct name_pool *pool, struct name_pool *other);
/* A NUL-terminated copy; NULL if out of memory. */
const char *name_pool_add(struct name_pool *pool, const char *name, size_t name_bytes);

#endif
