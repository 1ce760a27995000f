/* SPDX-License-Identifier: MIT */
/*
 * The names of perf maps. A name is known by a number of 32 bits, and most of a large map stay
 * in its file: what is kept is where they are, in blocks of about 4 KiB, and a digest of each
 * block. The first name that is asked for brings its block, which stays then; when one block in
 * PERFMAP_NAMES_FEW has been brought, many neighbours come with it. A file that has other bytes
 * there by now (it was cut, or written anew in its place) has lost those names: they are never
 * others.
 *
 * Kept from the start are the names that are read first, as far as a number of bytes of text
 * goes, so that of most processes everything is; and those which do not end with their line.
 *
 * One thread adds. Others may ask meanwhile for numbers that they were told (by an atomic
 * store) after the text was ended. What they get lives as long as these names.
 */
#ifndef LIBSYM_SOURCE_PERFMAP_NAMES_H
#define LIBSYM_SOURCE_PERFMAP_NAMES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PERFMAP_NAMES_OFFSET_BITS = 12, /* of a number: where in its block; the others: which */
	PERFMAP_NAMES_BLOCK_BYTES = 1 << PERFMAP_NAMES_OFFSET_BITS, /* in which names begin */
	PERFMAP_NAMES_BLOCKS = 1 << (32 - PERFMAP_NAMES_OFFSET_BITS),
	PERFMAP_NAMES_KEPT_BYTES = 4 << 20, /* for most uses */
	PERFMAP_NAMES_FEW = 8
};

/* Where the text of a block is; nowhere (`fd` is -1) for what is only kept. */
struct perfmap_names_place {
	uint64_t digest;
	uint64_t offset;
	uint32_t size_bytes;
	int fd;
};

typedef _Atomic(char *) perfmap_names_text;

/* Memory of blocks; the first one has room. */
struct perfmap_names_room {
	struct perfmap_names_room *next;
	size_t used_bytes, capacity_bytes;
	char bytes[];
};

struct perfmap_names {
	/* Of each block; NULL: in the file. Who has an old table asks for what is in a new one. */
	_Atomic(perfmap_names_text *) texts;
	struct perfmap_names_place *places;
	uint32_t block_count, capacity;
	_Atomic(uint32_t) ended_count; /* as far as others may look */
	pthread_mutex_t lock;          /* of the tables, and of what follows */
	struct perfmap_names_room *rooms;
	uint32_t brought_count;
	bool tier_in_name;
	size_t kept_bytes, most_kept_bytes, expected_bytes;
	/* The text that is being added, and the open block of it. */
	const char *text;
	uint64_t text_offset;
	int fd;
	const char *begin, *end; /* of the block; both NULL while there is none */
	uint32_t block;
	/* A block of names that have no other place. */
	char *own;
	size_t own_bytes, own_capacity;
	uint32_t own_block;
};

/* `tier_in_name`: names are as they are written; else they end where perfmap_split_tier() says. */
struct perfmap_names *perfmap_names_create(bool tier_in_name, size_t most_kept_bytes);
void perfmap_names_destroy(struct perfmap_names *names);

/* So much text is going to be added, about: what is kept of it gets its memory at once. */
void perfmap_names_expect(struct perfmap_names *names, uint64_t size_bytes);

static inline bool perfmap_names_are_full(const struct perfmap_names *names)
{
	return names->block_count == PERFMAP_NAMES_BLOCKS;
}

/* What is added next lies in `text`, which is at `offset` of the file. The descriptor stays the
 * caller's and must stay open, the text until _end(). */
void perfmap_names_begin(struct perfmap_names *names, int fd, uint64_t offset, const char *text);
/* False when there is no memory. */
bool perfmap_names_end(struct perfmap_names *names);

enum perfmap_names_outcome {
	PERFMAP_NAMES_ADDED,
	PERFMAP_NAMES_FULL, /* no more numbers */
	PERFMAP_NAMES_NO_MEMORY
};

/* For perfmap_names_add(): where a name does not simply go on in its block. */
enum perfmap_names_outcome perfmap_names_add_apart(struct perfmap_names *names, const char *name,
						   size_t name_bytes, size_t whole_bytes,
						   uint32_t *number_ret);

/* Is a name without its tier, or cannot be taken for one with a tier? */
static inline bool perfmap_names_ends_plainly(const char *name, size_t name_bytes,
					      size_t whole_bytes)
{
	return name[whole_bytes] == '\n' && (name_bytes < whole_bytes || *name != '[');
}

/* The `name_bytes` of a line's name (in the text) that are left of `whole_bytes` when its tier is
 * split off. The byte behind those is in the text too. */
static inline enum perfmap_names_outcome perfmap_names_add(struct perfmap_names *names,
							   const char *name, size_t name_bytes,
							   size_t whole_bytes, uint32_t *number_ret)
{
	uintptr_t offset = (uintptr_t)name - (uintptr_t)names->begin;

	if (__builtin_expect(offset >= PERFMAP_NAMES_BLOCK_BYTES ||
				     !perfmap_names_ends_plainly(name, name_bytes, whole_bytes),
			     0))
		return perfmap_names_add_apart(names, name, name_bytes, whole_bytes, number_ret);
	names->end = name + whole_bytes + 1;
	*number_ret = names->block << PERFMAP_NAMES_OFFSET_BITS | (uint32_t)offset;
	return PERFMAP_NAMES_ADDED;
}

/* Brings the block; for perfmap_names_at(). */
const char *perfmap_names_bring(const struct perfmap_names *names, uint32_t number);

/* Begins to bring what perfmap_names_here() reads. */
static inline void perfmap_names_approach(const struct perfmap_names *names, uint32_t number)
{
	perfmap_names_text *texts = atomic_load_explicit(&names->texts, memory_order_acquire);

	__builtin_prefetch((const void *)&texts[number >> PERFMAP_NAMES_OFFSET_BITS]);
}

/* NUL terminated; NULL when it is in the file. */
static inline __attribute__((always_inline)) const char *
perfmap_names_here(const struct perfmap_names *names, uint32_t number)
{
	perfmap_names_text *texts = atomic_load_explicit(&names->texts, memory_order_acquire);
	const char *text = atomic_load_explicit(&texts[number >> PERFMAP_NAMES_OFFSET_BITS],
						memory_order_acquire);

	return text ? text + number % PERFMAP_NAMES_BLOCK_BYTES : NULL;
}

/* The same; NULL when it cannot be had any more. */
static inline __attribute__((always_inline)) const char *
perfmap_names_at(const struct perfmap_names *names, uint32_t number)
{
	const char *name = perfmap_names_here(names, number);

	return __builtin_expect(name != NULL, 1) ? name : perfmap_names_bring(names, number);
}

/* Why a name cannot be had. */
extern const char perfmap_names_lost[];

#endif
