/* SPDX-License-Identifier: MIT */
/*
 * The names of perf maps. A name is known by a number of 32 bits, and most of a large map stay
 * in its file: what is kept is where they are, in blocks of about 4 KiB, and a digest of each
 * block. The first name that is asked for brings its block, which stays then; when one block in
 * PERFMAP_NAMES_FEW has been brought, many neighbours come with it. A file that has other bytes
 * there by now (it was cut, or written anew in its place) has lost those names: they are never
 * others.
 *
 * A number is a place: text is brought to where its number says, in memory that is only addresses
 * before. So nothing has to be read to know where a name is, but a byte that tells whether its
 * block has been brought.
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

#include "libsym/base/numbered_range.h"

enum {
	PERFMAP_NAMES_BLOCK_BITS = 12,
	PERFMAP_NAMES_BLOCK_BYTES = 1 << PERFMAP_NAMES_BLOCK_BITS, /* in which names begin */
	PERFMAP_NAMES_BLOCKS = 1 << (32 - PERFMAP_NAMES_BLOCK_BITS),
	PERFMAP_NAMES_KEPT_BYTES = 4 << 20, /* for most uses */
	PERFMAP_NAMES_FEW = 8,
	/* Of a block; a line has two numbers, and a space behind each. */
	PERFMAP_NAMES_MOST = PERFMAP_NAMES_BLOCK_BYTES / 4
};

/* Where the text of a block is, from its first name to the end of its last one. */
struct perfmap_names_place {
	uint64_t digest;
	uint64_t offset; /* in the file */
	int fd;
	uint32_t begin_bytes : PERFMAP_NAMES_BLOCK_BITS;     /* in the block */
	uint32_t size_bytes : 32 - PERFMAP_NAMES_BLOCK_BITS; /* 0: it has none in a file */
};

struct perfmap_names {
	char *text;             /* of number 0 */
	_Atomic(uint8_t) *here; /* of each block: can its names be read? */
	struct perfmap_names_place *places;
	uint32_t place_capacity;
	_Atomic(uint32_t) ended_blocks; /* as far as others may look at places */
	pthread_mutex_t lock;           /* of the places, and of who brings */
	uint32_t brought_count;
	bool tier_in_name;
	bool is_full;
	/* Of the text: that may be at all, may be written by now, has numbers. */
	uint64_t reserved_bytes, open_bytes, used_bytes;
	size_t kept_bytes, most_kept_bytes;
	uint64_t expected_bytes;
	/* The text that is being added. */
	const char *added;
	size_t added_bytes;
	uint64_t added_offset;
	int fd;
	bool keeps_all;
	bool has_numbers; /* from `added_number` on */
	uint32_t added_number;
	/* The open block of it, and what has been added of that; NULL while there is none. */
	const char *block;
	uint32_t block_number;
	const char *begin, *end;
	/* Of one that is going to be kept: behind which bytes its names end, from its beginning. */
	bool keeps;
	uint32_t name_count;
	uint32_t name_ends[PERFMAP_NAMES_MOST];
	/* Where names go that have no other place. */
	uint32_t own_number, own_left_bytes;
};

/* `tier_in_name`: names are as they are written; else they end where perfmap_split_tier() says. */
struct perfmap_names *perfmap_names_create(bool tier_in_name, size_t most_kept_bytes);
void perfmap_names_destroy(struct perfmap_names *names);

/* So much text is going to be added, about: what is kept of it gets its memory at once. */
void perfmap_names_expect(struct perfmap_names *names, uint64_t size_bytes);

static inline bool perfmap_names_are_full(const struct perfmap_names *names)
{
	return names->is_full;
}

/* What is added next lies in `text`, which is at `offset` of the file, or going to be: then all its
 * names are to be kept. The descriptor stays the caller's and must stay open, the text until
 * _end(). */
void perfmap_names_begin(struct perfmap_names *names, int fd, uint64_t offset, const char *text,
			 size_t size_bytes, bool keeps_all);
void perfmap_names_end(struct perfmap_names *names);

enum perfmap_names_outcome {
	PERFMAP_NAMES_ADDED,
	PERFMAP_NAMES_FULL, /* no more numbers */
	PERFMAP_NAMES_NO_MEMORY
};

/* The number of the first byte of the text that is being added, which has any: what a name with
 * which it begins has. */
enum perfmap_names_outcome perfmap_names_number(struct perfmap_names *names, uint32_t *number_ret);

/* Usual lines of that text (perfmap_usual.h), in their order. */
void perfmap_names_add_lines(struct perfmap_names *names, const struct numbered_range *ranges,
			     const uint32_t *ends, size_t count);

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
	uintptr_t offset = (uintptr_t)name - (uintptr_t)names->block;

	if (__builtin_expect(offset >= PERFMAP_NAMES_BLOCK_BYTES ||
				     !perfmap_names_ends_plainly(name, name_bytes, whole_bytes),
			     0))
		return perfmap_names_add_apart(names, name, name_bytes, whole_bytes, number_ret);
	names->end = name + whole_bytes + 1;
	if (names->keeps)
		names->name_ends[names->name_count++] = (uint32_t)(offset + name_bytes);
	*number_ret = names->block_number + (uint32_t)offset;
	return PERFMAP_NAMES_ADDED;
}

/* Brings the block; for perfmap_names_at(). */
const char *perfmap_names_bring(const struct perfmap_names *names, uint32_t number);

/* NUL terminated; NULL when it is in the file. */
static inline __attribute__((always_inline)) const char *
perfmap_names_here(const struct perfmap_names *names, uint32_t number)
{
	uint8_t here = atomic_load_explicit(&names->here[number >> PERFMAP_NAMES_BLOCK_BITS],
					    memory_order_acquire);

	return here ? names->text + number : NULL;
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
