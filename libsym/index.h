/* SPDX-License-Identifier: MIT */
/*
 * Symbols by position: collected by a builder, then frozen into an index that
 * never changes, is sorted and disjoint, keeps its names in one pool, and may
 * be read by any number of threads.
 *
 * Overlaps are settled when the index is frozen: of two symbols that share
 * bytes, the one that was added later owns them. What remains of the earlier
 * one (its front, its back, or both) stays a symbol of its own name; each
 * remaining piece remembers where the whole symbol began.
 * A symbol of size 0 covers its own start address only, and only while nothing else does.
 *
 * What a position means (address, rva, vaddr) is the caller's business.
 */
#ifndef LIBSYM_INDEX_H
#define LIBSYM_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/numbered_range.h"
#include "libsym/error.h"

struct index_builder;

struct sym_error *index_builder_create(struct index_builder **ret);

/* The same of symbols without names: what the caller knows each by is a number. */
struct sym_error *index_builder_create_numbered(struct index_builder **ret);
void index_builder_destroy(struct index_builder *builder);

/*
 * Says how much will be added, about: memory is then had at once and not in
 * growing steps. Only before the first index_builder_add(); no promise.
 */
void index_builder_reserve(struct index_builder *builder, size_t symbols, size_t name_bytes);

/*
 * Adds [start, start + size_bytes). The name is copied; `value` (any 32 bits of
 * the caller's) is kept with it. Fails (sticky; index_freeze() reports it) when
 * start + size_bytes overflows or a limit of limits.h is met.
 */
void index_builder_add(struct index_builder *builder, uint64_t start, uint64_t size_bytes,
		       const char *name, size_t name_bytes, uint32_t value);

/* The same for a builder of numbers, any 32 bits. */
void index_builder_add_number(struct index_builder *builder, uint64_t start, uint64_t size_bytes,
			      uint32_t number, uint32_t value);

/* The same of several, in their order. */
void index_builder_add_numbers(struct index_builder *builder, const struct numbered_range *symbols,
			       size_t count);

/* Nothing was added, and there was room for all that was to be. */
bool index_builder_is_empty(const struct index_builder *builder);

/* Consumes the builder's content (the builder is to be destroyed all the same). */
struct index;
struct sym_error *index_freeze(struct index_builder *builder, struct index **ret);
void index_destroy(struct index *index);

struct index_entry {
	uint64_t start; /* of this disjoint piece */
	uint64_t size_bytes;
	uint64_t symbol_start; /* of the whole symbol as it was added; <= start */
	uint64_t symbol_size_bytes;
	const char *name; /* NUL terminated, lives as long as the index; empty for numbers */
	uint32_t number;  /* of index_builder_add_number(), or where the name is */
	uint32_t value;
};

size_t index_count(const struct index *index);

/* The i-th disjoint piece in ascending order; i < index_count(). */
void index_at(const struct index *index, size_t i, struct index_entry *ret);

#define INDEX_NONE SIZE_MAX

/* Number of the piece that covers `position`, or INDEX_NONE. */
size_t index_find(const struct index *index, uint64_t position);

/* The same, and what is known of that piece; nothing is written when there is none. */
size_t index_look_up(const struct index *index, uint64_t position, struct index_entry *ret);

/* Numbers of pieces for many positions; look-ups are interleaved to hide memory latency. */
void index_find_batch(const struct index *index, const uint64_t *positions, size_t count,
		      size_t *ret);

/* Fetches what looking these up is going to need; so each of many can be looked up by itself. */
void index_warm(const struct index *index, const uint64_t *positions, size_t count);

DEFINE_GUARD(index_builder, struct index_builder *, index_builder_destroy)
DEFINE_GUARD(index, struct index *, index_destroy)
#define AUTO_INDEX_BUILDER GUARDED(index_builder)
#define AUTO_INDEX         GUARDED(index)

#endif
