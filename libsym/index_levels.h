/* SPDX-License-Identifier: MIT */
/*
 * An index of numbers that grows while others look up in it. What is new becomes a small index over
 * the large one; small ones are joined as they get many. Readers see a view: a list of indexes
 * that never changes. Whoever adds puts a new view in its place, and the old one is ended when
 * he says that nobody looks at it any more. The first view stays, for those who say nothing.
 */
#ifndef LIBSYM_INDEX_LEVELS_H
#define LIBSYM_INDEX_LEVELS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "libsym/index.h"

enum {
	INDEX_LEVELS_FAN_BITS = 3,
	INDEX_LEVELS_FAN = 1 << INDEX_LEVELS_FAN_BITS,
	/* Less than the fan of each class up to that of LIMIT_INDEX_SYMBOLS, and the one that
	 * comes. */
	INDEX_LEVELS_MOST = (28 / INDEX_LEVELS_FAN_BITS + 1) * (INDEX_LEVELS_FAN - 1) + 1,
	INDEX_EXTENT_BYTES = 4096
};

/* Whole units of INDEX_EXTENT_BYTES; `last` is the last position in them. */
struct index_extent {
	uint64_t first, last;
};

struct index_level {
	struct index *index;
	/* Ascending, apart, all its pieces lie in them; none for the lowest level, under which
	 * there is nothing. */
	size_t extent_count;
	struct index_extent extents[];
};

/* Of two levels that know a position the later one holds, but for a piece without a size: that
 * holds only where no level knows one with a size. */
struct index_view {
	size_t count;
	struct index_level *levels[INDEX_LEVELS_MOST];
	bool shares_codes; /* in all levels a value has the same code: see index_layout.h */
	/* Once there is a newer view: those that it does without, to be ended with this one. */
	size_t dropped_count;
	struct index_level *dropped[INDEX_LEVELS_MOST];
	struct index_view *next_retired;
};

struct index_levels {
	_Atomic(struct index_view *) view;
	struct index_view *first; /* NULL before index_levels_begin() */
	struct index_view *retired;
};

/* With one level. Takes `index` over, on success only. For zero. */
struct sym_error *index_levels_begin(struct index_levels *levels, struct index *index)
	__attribute__((warn_unused_result));
void index_levels_deinit(struct index_levels *levels);

/* Puts an index over those that there are, and takes it over, on success only. For one thread at a
 * time. */
struct sym_error *index_levels_add(struct index_levels *levels, struct index *added)
	__attribute__((warn_unused_result));

/* The same, in the place of all that there are. */
struct sym_error *index_levels_replace(struct index_levels *levels, struct index *index)
	__attribute__((warn_unused_result));

/* Is there something that only those may still look at who began before the last
 * index_levels_add() or _replace()? */
static inline bool index_levels_has_garbage(const struct index_levels *levels)
{
	return levels->retired != NULL;
}

/* There are none of those (who look at the first view do not count). */
void index_levels_collect(struct index_levels *levels);

static inline const struct index_view *index_levels_view(const struct index_levels *levels)
{
	return atomic_load(&((struct index_levels *)levels)->view);
}

/* The only index of the first view. */
static inline const struct index *index_levels_first(const struct index_levels *levels)
{
	return levels->first->levels[0]->index;
}

/* False when no level knows the position; nothing is written then. */
bool index_view_look_up(const struct index_view *view, uint64_t position, struct index_entry *ret);

#endif
