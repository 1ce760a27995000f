/* SPDX-License-Identifier: MIT */
/*
 * Symbols by position: a builder collects them, then freezes them into an index that never changes.
 * An index is sorted and disjoint, keeps its names in one pool, and can be read by any number of
 * threads.
 *
 * Overlaps are resolved when the index is frozen: of two symbols that share bytes, the one added
 * later gets them. The remains of the earlier one (front, back, or both) stay pieces with its name.
 * Each piece records where the whole symbol started. A symbol of size 0 covers only its own start,
 * and only if no other symbol does.
 *
 * The caller decides what a position is (address, rva, vaddr).
 */
#ifndef LIBSYM_INDEX_INDEX_H
#define LIBSYM_INDEX_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/budget_api.h"
#include "libsym/error.h"

struct index_builder;

struct sym_error *index_builder_create(struct index_builder **ret);

/* For symbols without names, which the caller identifies by a number. */
struct sym_error *index_builder_create_numbered(struct index_builder **ret);
void index_builder_destroy(struct index_builder *builder);

/* Announces how much will be added, approximately, so that memory is allocated at once. Only
 * advice. Call before the first add. */
void index_builder_reserve(struct index_builder *builder, size_t symbols, size_t name_bytes);

/*
 * Charges everything added from now on to `account`, until the index is destroyed. `path` is what
 * it is for; it must outlive the builder. If the budget is exceeded, index_freeze() fails with
 * LIMIT.
 */
void index_builder_charge(struct index_builder *builder, struct budget_account *account,
			  const char *path);

/*
 * Adds [start, start + size_bytes) with a copy of the name. `value` is any 32-bit value of the
 * caller. Fails if start + size_bytes overflows or a limit of limits.h is reached. A failure is
 * sticky; index_freeze() returns it.
 */
void index_builder_add(struct index_builder *builder, uint64_t start, uint64_t size_bytes,
		       const char *name, size_t name_bytes, uint32_t value);

/* For a builder of numbers; `number` is any 32-bit value. */
void index_builder_add_number(struct index_builder *builder, uint64_t start, uint64_t size_bytes,
			      uint32_t number, uint32_t value);

struct index;

/* Adds all pieces of an index of numbers. Each keeps the start and the size of its whole symbol. */
void index_builder_add_pieces(struct index_builder *builder, const struct index *index);

/* If true, nothing more can be added; index_freeze() returns the error. */
bool index_builder_has_failed(const struct index_builder *builder);

/* Returns true if nothing was added and nothing has failed. */
bool index_builder_is_empty(const struct index_builder *builder);

/* Consumes the content of the builder, which still has to be destroyed. */
struct sym_error *index_freeze(struct index_builder *builder, struct index **ret);
void index_destroy(struct index *index);

struct index_entry {
	uint64_t start; /* of this piece */
	uint64_t size_bytes;
	uint64_t symbol_start; /* of the whole symbol as it was added; <= start */
	uint64_t symbol_size_bytes;
	/* NUL terminated, valid as long as the index; "" in an index of numbers */
	const char *name;
	uint32_t number; /* of index_builder_add_number(), or the offset of the name */
	uint32_t value;
};

size_t index_count(const struct index *index);

/* The i-th piece in ascending order; i < index_count(). */
void index_at(const struct index *index, size_t i, struct index_entry *ret);

#define INDEX_NONE SIZE_MAX

/* Number of the piece that covers `position`, which fills `ret`; INDEX_NONE if there is none, then
 * nothing is written. */
size_t index_look_up(const struct index *index, uint64_t position, struct index_entry *ret);

DEFINE_GUARD(index_builder, struct index_builder *, index_builder_destroy)
DEFINE_GUARD(index, struct index *, index_destroy)
#define AUTO_INDEX_BUILDER GUARDED(index_builder)
#define AUTO_INDEX         GUARDED(index)

#endif
