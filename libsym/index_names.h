/* SPDX-License-Identifier: MIT */
/*
 * The names of one index, or of several that follow one another: bytes that
 * are only ever appended and never move, so a name that was handed out stays.
 * A name is known by an offset of 32 bits. Several threads may read while one
 * appends; knows nothing of symbols.
 */
#ifndef LIBSYM_INDEX_NAMES_H
#define LIBSYM_INDEX_NAMES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	/* Each is twice the one before: more than 2^32 bytes. */
	INDEX_NAMES_CHUNKS = 24
};

struct index_names {
	struct index_names_chunk {
		char *data;
		size_t used_bytes, capacity_bytes;
	} chunks[INDEX_NAMES_CHUNKS];
	/* Offset of the first byte of each chunk; UINT64_MAX for those that are not there. */
	_Atomic(uint64_t) first[INDEX_NAMES_CHUNKS + 1];
	unsigned int count;
	size_t reserved_bytes; /* of the next chunk at least */
};

struct index_names *index_names_create(void);
void index_names_destroy(struct index_names *names);

/* The next chunk has at least that much. */
void index_names_reserve(struct index_names *names, size_t bytes);

enum index_names_outcome {
	INDEX_NAMES_ADDED,
	INDEX_NAMES_FULL, /* LIMIT_INDEX_NAME_BYTES */
	INDEX_NAMES_NO_MEMORY
};

/* Makes room in a new chunk; for index_names_add(). */
enum index_names_outcome index_names_grow(struct index_names *names, size_t bytes);

/* Appends a copy and a NUL. */
static inline enum index_names_outcome index_names_add(struct index_names *names, const char *name,
						       size_t name_bytes, uint32_t *offset_ret)
{
	struct index_names_chunk *chunk = names->count ? &names->chunks[names->count - 1] : NULL;
	char *room;

	if (!chunk || chunk->capacity_bytes - chunk->used_bytes <= name_bytes) {
		enum index_names_outcome outcome = index_names_grow(names, name_bytes + 1);

		if (outcome != INDEX_NAMES_ADDED)
			return outcome;
		chunk = &names->chunks[names->count - 1];
	}
	room = chunk->data + chunk->used_bytes;
	__builtin_memcpy(room, name, name_bytes);
	room[name_bytes] = '\0';
	*offset_ret = (uint32_t)(atomic_load_explicit(&names->first[names->count - 1],
						      memory_order_relaxed) +
				 chunk->used_bytes);
	chunk->used_bytes += name_bytes + 1;
	return INDEX_NAMES_ADDED;
}

static inline const char *index_names_at(const struct index_names *names, uint32_t offset)
{
	unsigned int chunk = 0;

	/* Mostly there is one. */
	if (__builtin_expect(offset < atomic_load_explicit(&names->first[1], memory_order_relaxed),
			     1))
		return names->chunks[0].data + offset;
	while (offset >= atomic_load_explicit(&names->first[chunk + 1], memory_order_relaxed))
		chunk++;
	return names->chunks[chunk].data +
	       (offset - atomic_load_explicit(&names->first[chunk], memory_order_relaxed));
}

/* Gives back what is not used; only while nobody has a name. */
void index_names_trim(struct index_names *names);

#endif
