/* SPDX-License-Identifier: MIT */
#include "libsym/index_levels.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/index_join.h"
#include "libsym/index_layout.h"

_Static_assert((int)INDEX_LEVELS_MOST <= (int)INDEX_JOIN_MOST, "all levels can be joined at once");

static void free_level(struct index_level *level)
{
	if (!level)
		return;
	index_destroy(level->index);
	free(level);
}

static void free_view(struct index_view *view)
{
	for (size_t i = 0; i < view->dropped_count; i++)
		free_level(view->dropped[i]);
	free(view);
}

void index_levels_collect(struct index_levels *levels)
{
	while (levels->retired) {
		struct index_view *next = levels->retired->next_retired;

		free_view(levels->retired);
		levels->retired = next;
	}
}

void index_levels_deinit(struct index_levels *levels)
{
	struct index_view *view = atomic_load(&levels->view);

	index_levels_collect(levels);
	if (levels->first && levels->first != view)
		free_view(levels->first);
	for (size_t i = 0; view && i < view->count; i++)
		free_level(view->levels[i]);
	free(view);
}

struct sym_error *index_levels_begin(struct index_levels *levels, struct index *index)
{
	struct index_view *view = calloc(1, sizeof(*view));
	struct index_level *level = calloc(1, sizeof(*level));

	if (!view || !level) {
		free(view);
		free(level);
		return &sym_error_no_memory;
	}
	level->index = index;
	view->levels[0] = level;
	view->count = 1;
	view->shares_codes = true;
	levels->first = view;
	atomic_store(&levels->view, view);
	return NULL;
}

/* ---- where pieces lie -------------------------------------------------------------------- */

/* Extents that are no further apart than `gap_bytes`, as they are found. */
struct extents {
	struct index_extent *items;
	size_t count, capacity; /* more than the capacity: there was no room */
	uint64_t gap_bytes;
};

static void add_extent(struct extents *extents, uint64_t start, uint64_t size_bytes)
{
	const uint64_t mask = INDEX_EXTENT_BYTES - 1;
	uint64_t first = start & ~mask, last = (start + (size_bytes - 1)) | mask;
	struct index_extent *before;

	if (extents->count > extents->capacity)
		return;
	before = extents->count ? &extents->items[extents->count - 1] : NULL;
	if (before && (first <= before->last || first - before->last <= extents->gap_bytes)) {
		before->last = last > before->last ? last : before->last;
		return;
	}
	if (extents->count < extents->capacity)
		extents->items[extents->count] = (struct index_extent){ first, last };
	extents->count++;
}

static void list_extents(const struct index *index, struct extents *extents)
{
	const struct index_odd *odd = index->odd, *odd_end = odd + index->odd_count;

	for (size_t i = 0; i < index->region_count; i++) {
		const struct index_region *region = &index->regions[i];

		for (uint32_t piece = 0; piece < region->piece_count; piece++) {
			const struct index_leaf *leaf = &region->leaves[piece / INDEX_LEAF];
			unsigned int slot = piece % INDEX_LEAF;
			uint64_t size_bytes = leaf->sizes[slot];

			if (odd < odd_end && odd->piece == region->first_piece + piece)
				size_bytes = odd++->size_bytes;
			add_extent(extents, region->base + (uint64_t)leaf->keys[slot], size_bytes);
		}
	}
}

/* Where pieces are scattered, many are taken together: what is known of a level stays small. */
static struct index_level *make_level(struct index *index)
{
	size_t capacity = 32 + index->count / 16;
	struct index_level *level = malloc(sizeof(*level) + capacity * sizeof(level->extents[0]));
	struct extents extents = { .capacity = capacity, .gap_bytes = 1 };

	if (!level)
		return NULL;
	level->index = index;
	extents.items = level->extents;
	do {
		extents.count = 0;
		list_extents(index, &extents);
		extents.gap_bytes =
			extents.gap_bytes == 1 ? INDEX_EXTENT_BYTES : 4 * extents.gap_bytes;
	} while (extents.count > capacity);
	level->extent_count = extents.count;
	return level;
}

/* ---- adding ------------------------------------------------------------------------------- */

/*
 * Gives values the codes that they have in `model`, and those that it does not know the next ones;
 * so the last level knows the codes of all. False: there are too many, and everything is as it was.
 */
static bool share_codes(struct index *index, const struct index *model)
{
	struct index shared = { .value_count = model->value_count };
	uint8_t codes[INDEX_VALUES] = { 0 };

	memcpy(shared.values, model->values, sizeof(shared.values));
	for (unsigned int i = 0; i < index->value_count; i++) {
		unsigned int code = index_code_of(&shared, index->values[i]);

		if (code == INDEX_VALUES)
			return false;
		codes[i] = (uint8_t)code;
	}
	for (size_t i = 0; i < index->leaf_count; i++)
		for (unsigned int slot = 0; slot < INDEX_LEAF; slot++)
			index->leaves[i].codes[slot] = codes[index->leaves[i].codes[slot]];
	memcpy(index->values, shared.values, sizeof(shared.values));
	index->value_count = shared.value_count;
	return true;
}

/* Indexes of one class have about as many pieces: within a factor of the fan. */
static unsigned int class_of(size_t count)
{
	return (63 - (unsigned int)__builtin_clzll(count | 1)) / INDEX_LEVELS_FAN_BITS;
}

/*
 * How many levels of `view` stay as they are when one of `count` pieces comes on top; it is
 * joined with the others. So there are less than the fan of one class, smaller ones on top of
 * larger ones, and a piece is moved once for each class that it comes through.
 */
static size_t levels_to_keep(const struct index_view *view, size_t count)
{
	size_t kept = view->count;

	for (;;) {
		size_t same = 0;

		while (kept &&
		       class_of(index_count(view->levels[kept - 1]->index)) < class_of(count))
			count += index_count(view->levels[--kept]->index);
		while (same < kept && class_of(index_count(view->levels[kept - 1 - same]->index)) ==
					      class_of(count))
			same++;
		if (same < INDEX_LEVELS_FAN - 1)
			return kept;
		for (size_t i = 0; i < same; i++)
			count += index_count(view->levels[--kept]->index);
	}
}

/* Of the levels of `view` from `kept` on and what is added. *joined_ret is a new one. */
static struct sym_error *join(const struct index_view *view, size_t kept, struct index *added,
			      struct index **joined_ret)
{
	const struct index *indexes[INDEX_LEVELS_MOST];
	size_t count = 0;

	for (size_t i = kept; i < view->count; i++)
		indexes[count++] = view->levels[i]->index;
	indexes[count++] = added;
	return index_join(indexes, count, joined_ret);
}

/* The view that follows `old`, with `level` over the first `kept` of it; what it does without is
 * dropped. */
static void exchange_view(struct index_levels *levels, struct index_view *view, size_t kept,
			  struct index_level *level)
{
	struct index_view *old = atomic_load(&levels->view);

	memcpy(view->levels, old->levels, kept * sizeof(*view->levels));
	view->levels[kept] = level;
	view->count = kept + 1;
	for (size_t i = kept; i < old->count; i++)
		old->dropped[old->dropped_count++] = old->levels[i];
	if (old != levels->first) {
		old->next_retired = levels->retired;
		levels->retired = old;
	}
	atomic_store(&levels->view, view);
}

struct sym_error *index_levels_add(struct index_levels *levels, struct index *added)
{
	struct index_view *old = atomic_load(&levels->view);
	struct index_view *view AUTO_FREE = calloc(1, sizeof(*view));
	struct index *joined AUTO_INDEX = NULL;
	size_t kept = levels_to_keep(old, index_count(added));
	struct index_level *level;

	if (!view)
		return &sym_error_no_memory;
	view->shares_codes =
		share_codes(added, old->levels[old->count - 1]->index) && old->shares_codes;
	if (kept < old->count) {
		struct sym_error *error = join(old, kept, added, &joined);

		if (error)
			return error;
	}
	level = make_level(joined ? joined : added);
	if (!level)
		return &sym_error_no_memory;
	if (STEAL(joined))
		index_destroy(added);
	exchange_view(levels, STEAL(view), kept, level);
	return NULL;
}

/* ---- looking up ------------------------------------------------------------------------------ */

bool index_view_look_up(const struct index_view *view, uint64_t position, struct index_entry *ret)
{
	bool found = false;

	for (size_t i = view->count; i-- > 0;) {
		struct index_entry entry;

		if (index_look_up(view->levels[i]->index, position, &entry) == INDEX_NONE ||
		    (found && !entry.symbol_size_bytes))
			continue;
		*ret = entry;
		found = true;
		if (entry.symbol_size_bytes)
			break;
	}
	return found;
}
