/* SPDX-License-Identifier: MIT */
/*
 * A string pool: names of one index, or of several that follow one another. Bytes are only appended
 * and never move, so a name stays valid. A 32-bit offset identifies a name. Several threads may
 * read while one appends.
 */
#ifndef LIBSYM_INDEX_STRING_POOL_H
#define LIBSYM_INDEX_STRING_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/error.h"

enum {
	/* Each is twice as large as the previous one: more than 2^32 bytes in total. */
	STRING_POOL_CHUNKS = 24
};

struct string_pool {
	struct string_pool_chunk {
		char *data;
		size_t used_bytes, capacity_bytes;
	} chunks[STRING_POOL_CHUNKS];
	/* Offset of the first byte of each chunk; UINT64_MAX: no such chunk. */
	_Atomic(uint64_t) first[STRING_POOL_CHUNKS + 1];
	unsigned int count;
	size_t reserved_bytes; /* minimum size of the next chunk */
};

struct string_pool *string_pool_create(void);
void string_pool_destroy(struct string_pool *names);

/* Sets the minimum size of the next chunk. */
void string_pool_reserve(struct string_pool *names, size_t bytes);

/* Adds a chunk; for string_pool_add(). */
struct sym_error *string_pool_grow(struct string_pool *names, size_t bytes)
	__attribute__((warn_unused_result));

/* Appends a copy and a NUL. Errors: LIMIT, NO_MEMORY. */
static inline struct sym_error *string_pool_add(struct string_pool *names, const char *name,
						size_t name_bytes, uint32_t *offset_ret)
{
	struct string_pool_chunk *chunk = names->count ? &names->chunks[names->count - 1] : NULL;
	char *room;

	if (!chunk || chunk->capacity_bytes - chunk->used_bytes <= name_bytes) {
		struct sym_error *error = string_pool_grow(names, name_bytes + 1);

		if (error)
			return error;
		chunk = &names->chunks[names->count - 1];
	}
	room = chunk->data + chunk->used_bytes;
	__builtin_memcpy(room, name, name_bytes);
	room[name_bytes] = '\0';
	*offset_ret = (uint32_t)(atomic_load_explicit(&names->first[names->count - 1],
						      memory_order_relaxed) +
				 chunk->used_bytes);
	chunk->used_bytes += name_bytes + 1;
	return NULL;
}

static inline const char *string_pool_at(const struct string_pool *names, uint32_t offset)
{
	unsigned int chunk = 0;

	/* The usual case: one chunk. */
	if (__builtin_expect(offset < atomic_load_explicit(&names->first[1], memory_order_relaxed),
			     1))
		return names->chunks[0].data + offset;
	while (offset >= atomic_load_explicit(&names->first[chunk + 1], memory_order_relaxed))
		chunk++;
	return names->chunks[chunk].data +
	       (offset - atomic_load_explicit(&names->first[chunk], memory_order_relaxed));
}

/* Frees unused memory. Only while no thread holds a name. */
void string_pool_trim(struct string_pool *names);

#endif
