/* SPDX-License-Identifier: MIT */
#include "libsym/index/string_pool.h"

#include <stdlib.h>

#include "libsym/base/huge_memory.h"
#include "libsym/limits.h"

enum {
	SMALLEST_CHUNK_BYTES = 1 << 10
};

struct string_pool *string_pool_create(void)
{
	struct string_pool *names = calloc(1, sizeof(*names));

	for (unsigned int i = 0; names && i <= STRING_POOL_CHUNKS; i++)
		atomic_init(&names->first[i], UINT64_MAX);
	return names;
}

void string_pool_destroy(struct string_pool *names)
{
	if (!names)
		return;
	for (unsigned int i = 0; i < names->count; i++)
		free(names->chunks[i].data);
	free(names);
}

void string_pool_reserve(struct string_pool *names, size_t bytes)
{
	names->reserved_bytes = bytes < LIMIT_INDEX_NAME_BYTES ? bytes : LIMIT_INDEX_NAME_BYTES;
}

/* The next chunk doubles the total size, so there are few chunks. */
static size_t capacity_of(const struct string_pool *names, size_t bytes, size_t total_bytes)
{
	size_t capacity = total_bytes < SMALLEST_CHUNK_BYTES ? SMALLEST_CHUNK_BYTES : total_bytes;

	if (capacity < names->reserved_bytes)
		capacity = names->reserved_bytes;
	if (capacity > LIMIT_INDEX_NAME_BYTES - total_bytes)
		capacity = LIMIT_INDEX_NAME_BYTES - total_bytes;
	return capacity < bytes ? bytes : capacity;
}

struct sym_error *string_pool_grow(struct string_pool *names, size_t bytes)
{
	struct string_pool_chunk *chunk = &names->chunks[names->count];
	uint64_t total = 0;
	size_t capacity;

	if (names->count)
		total = atomic_load(&names->first[names->count - 1]) + chunk[-1].used_bytes;
	if (total + bytes > LIMIT_INDEX_NAME_BYTES || names->count == STRING_POOL_CHUNKS)
		return sym_error_create(SYM_ERROR_LIMIT, "more than %zu bytes of names",
					LIMIT_INDEX_NAME_BYTES);
	capacity = capacity_of(names, bytes, total);
	chunk->data = huge_memory_allocate(capacity);
	if (!chunk->data && capacity > bytes) {
		capacity = bytes;
		chunk->data = huge_memory_allocate(capacity);
	}
	if (!chunk->data)
		return &sym_error_no_memory;
	chunk->used_bytes = 0;
	chunk->capacity_bytes = capacity;
	names->reserved_bytes = 0;
	/* Publishes the chunk before any offset in it. */
	atomic_store_explicit(&names->first[names->count], total, memory_order_release);
	names->count++;
	return NULL;
}

void string_pool_trim(struct string_pool *names)
{
	struct string_pool_chunk *chunk = names->count ? &names->chunks[names->count - 1] : NULL;
	char *data;

	if (!chunk || chunk->used_bytes == chunk->capacity_bytes)
		return;
	data = realloc(chunk->data, chunk->used_bytes ? chunk->used_bytes : 1);
	if (!data)
		return;
	chunk->data = data;
	chunk->capacity_bytes = chunk->used_bytes ? chunk->used_bytes : 1;
}
