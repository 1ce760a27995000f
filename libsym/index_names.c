/* SPDX-License-Identifier: MIT */
#include "libsym/index_names.h"

#include <stdlib.h>

#include "libsym/base/huge_memory.h"
#include "libsym/limits.h"

enum {
	SMALLEST_CHUNK_BYTES = 1 << 10
};

struct index_names *index_names_create(void)
{
	struct index_names *names = calloc(1, sizeof(*names));

	for (unsigned int i = 0; names && i <= INDEX_NAMES_CHUNKS; i++)
		atomic_init(&names->first[i], UINT64_MAX);
	return names;
}

void index_names_destroy(struct index_names *names)
{
	if (!names)
		return;
	for (unsigned int i = 0; i < names->count; i++)
		free(names->chunks[i].data);
	free(names);
}

void index_names_reserve(struct index_names *names, size_t bytes)
{
	names->reserved_bytes = bytes < LIMIT_INDEX_NAME_BYTES ? bytes : LIMIT_INDEX_NAME_BYTES;
}

/* As much as there is already, so that the chunks are few. */
static size_t capacity_of(const struct index_names *names, size_t bytes, size_t total_bytes)
{
	size_t capacity = total_bytes < SMALLEST_CHUNK_BYTES ? SMALLEST_CHUNK_BYTES : total_bytes;

	if (capacity < names->reserved_bytes)
		capacity = names->reserved_bytes;
	if (capacity > LIMIT_INDEX_NAME_BYTES - total_bytes)
		capacity = LIMIT_INDEX_NAME_BYTES - total_bytes;
	return capacity < bytes ? bytes : capacity;
}

enum index_names_outcome index_names_grow(struct index_names *names, size_t bytes)
{
	struct index_names_chunk *chunk = &names->chunks[names->count];
	uint64_t total = 0;
	size_t capacity;

	if (names->count)
		total = atomic_load(&names->first[names->count - 1]) + chunk[-1].used_bytes;
	if (total + bytes > LIMIT_INDEX_NAME_BYTES || names->count == INDEX_NAMES_CHUNKS)
		return INDEX_NAMES_FULL;
	capacity = capacity_of(names, bytes, total);
	chunk->data = huge_memory_allocate(capacity);
	if (!chunk->data && capacity > bytes) {
		capacity = bytes;
		chunk->data = huge_memory_allocate(capacity);
	}
	if (!chunk->data)
		return INDEX_NAMES_NO_MEMORY;
	chunk->used_bytes = 0;
	chunk->capacity_bytes = capacity;
	names->reserved_bytes = 0;
	/* Whoever has an offset of this chunk has got it after this. */
	atomic_store_explicit(&names->first[names->count], total, memory_order_release);
	names->count++;
	return INDEX_NAMES_ADDED;
}

void index_names_trim(struct index_names *names)
{
	struct index_names_chunk *chunk = names->count ? &names->chunks[names->count - 1] : NULL;
	char *data;

	if (!chunk || chunk->used_bytes == chunk->capacity_bytes)
		return;
	data = realloc(chunk->data, chunk->used_bytes ? chunk->used_bytes : 1);
	if (!data)
		return;
	chunk->data = data;
	chunk->capacity_bytes = chunk->used_bytes ? chunk->used_bytes : 1;
}
