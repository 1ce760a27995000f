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

/* A view without a level yet, and a level for it. */
static struct sym_error *make_lowest(struct index *index, struct index_view **view_ret,
				     struct index_level **level_ret)
{
	struct index_view *view = calloc(1, sizeof(*view));
	struct index_level *level = calloc(1, sizeof(*level));

	if (!view || !level) {
		free(view);
		free(level);
		return &sym_error_no_memory;
	}
	level->index = index;
	view->shares_codes = true;
	*view_ret = view;
	*level_ret = level;
	return NULL;
}

struct sym_error *index_levels_begin(struct index_levels *levels, struct index *index)
{
	struct index_view *view;
	struct index_level *level;
	struct sym_error *error = make_lowest(index, &view, &level);

	if (error)
		return error;
	view->levels[view->count++] = level;
	levels->first = view;
	atomic_store(&levels->view, view);
	return NULL;
}

enum {
	/* Up to so many pieces each may have an extent of its own. */
	FULL_LEVEL = 8192
};

/* ---- where pieces lie -------------------------------------------------------------------- */

/* Extents that are no further apart than `gap_bytes`, in ascending order. */
struct extents {
	struct index_extent *items;
	size_t count, capacity; /* more than the capacity: there was no room */
	uint64_t gap_bytes;
};

static void add_extent(struct extents *extents, const struct index_extent *extent)
{
	struct index_extent *last;

	if (extents->count > extents->capacity)
		return;
	last = extents->count ? &extents->items[extents->count - 1] : NULL;
	if (last &&
	    (extent->first <= last->last || extent->first - last->last <= extents->gap_bytes)) {
		last->last = extent->last > last->last ? extent->last : last->last;
		return;
	}
	if (extents->count < extents->capacity)
		extents->items[extents->count] = *extent;
	extents->count++;
}

static void add_region(struct extents *extents, const struct index_region *region,
		       const struct index_odd **odd, const struct index_odd *odd_end)
{
	const uint64_t mask = INDEX_EXTENT_BYTES - 1;
	struct index_extent extent = { region->base & ~mask, region->base };

	for (uint32_t piece = 0; piece < region->piece_count; piece++) {
		const struct index_leaf *leaf = &region->leaves[piece / INDEX_LEAF];
		unsigned int slot = piece % INDEX_LEAF;
		uint64_t start = region->base + (uint64_t)leaf->keys[slot];
		uint64_t size_bytes = leaf->sizes[slot];

		if (size_bytes == INDEX_ODD && *odd < odd_end)
			size_bytes = (*odd)++->size_bytes;
		if ((start & ~mask) > extent.last && (start & ~mask) - extent.last > 1) {
			add_extent(extents, &extent);
			extent.first = start & ~mask;
		}
		extent.last = (start + (size_bytes - 1)) | mask;
	}
	add_extent(extents, &extent);
}

static void list_extents(const struct index *index, struct extents *extents)
{
	const struct index_odd *odd = index->odd, *odd_end = odd + index->odd_count;

	for (size_t i = 0; i < index->region_count; i++)
		add_region(extents, &index->regions[i], &odd, odd_end);
}

/* What is known of a level stays small beside it. */
static struct index_level *allocate_level(struct index *index, struct extents *extents)
{
	size_t few = index->count < FULL_LEVEL ? index->count : FULL_LEVEL;
	size_t capacity = few + index->count / 16;
	struct index_level *level =
		calloc(1, sizeof(*level) + capacity * sizeof(level->extents[0]));

	if (!level)
		return NULL;
	level->index = index;
	*extents =
		(struct extents){ .items = level->extents, .capacity = capacity, .gap_bytes = 1 };
	return level;
}

/* Where pieces are scattered, many are taken together. */
static bool has_room(struct extents *extents)
{
	if (extents->count <= extents->capacity)
		return true;
	extents->count = 0;
	extents->gap_bytes = extents->gap_bytes == 1 ? INDEX_EXTENT_BYTES : 4 * extents->gap_bytes;
	return false;
}

/* Gives back what was not needed. NULL for want of memory; then all of it is given back. */
static struct index_level *end_level(struct index_level *level, const struct extents *extents)
{
	size_t size_bytes = sizeof(*level) + extents->count * sizeof(level->extents[0]);
	struct index_level *smaller;

	level->extent_count = extents->count;
	smaller = realloc(level, size_bytes);
	if (!smaller)
		free(level);
	return smaller;
}

static struct index_level *make_level(struct index *index)
{
	struct extents extents;
	struct index_level *level = allocate_level(index, &extents);

	if (!level)
		return NULL;
	do {
		list_extents(index, &extents);
	} while (!has_room(&extents));
	return end_level(level, &extents);
}

static int compare_extents(const void *left, const void *right)
{
	const struct index_extent *a = left, *b = right;

	return a->first < b->first ? -1 : a->first > b->first;
}

/* The extents of some levels, ascending; ended with free(). NULL for want of memory. */
static struct index_extent *sort_extents(struct index_level *const *levels, size_t level_count,
					 size_t *count_ret)
{
	size_t count = 0;
	struct index_extent *sorted;

	for (size_t i = 0; i < level_count; i++)
		count += levels[i]->extent_count;
	sorted = reallocarray(NULL, count + 1, sizeof(*sorted));
	if (!sorted)
		return NULL;
	*count_ret = count;
	count = 0;
	for (size_t i = 0; i < level_count; i++) {
		memcpy(sorted + count, levels[i]->extents,
		       levels[i]->extent_count * sizeof(*sorted));
		count += levels[i]->extent_count;
	}
	qsort(sorted, count, sizeof(*sorted), compare_extents);
	return sorted;
}

/* Of an index that was joined of those of the levels. The lowest one has no extents. */
static struct index_level *make_joined(struct index *joined, struct index_level *const *levels,
				       size_t level_count, bool is_lowest)
{
	struct extents extents;
	struct index_level *level = allocate_level(joined, &extents);
	struct index_extent *sorted AUTO_FREE = NULL;
	size_t count = 0;

	if (!level || is_lowest)
		return level ? end_level(level, &extents) : NULL;
	sorted = sort_extents(levels, level_count, &count);
	if (!sorted) {
		free(level);
		return NULL;
	}
	do {
		for (size_t i = 0; i < count; i++)
			add_extent(&extents, &sorted[i]);
	} while (!has_room(&extents));
	return end_level(level, &extents);
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

/* Of the levels of `view` from `kept` on and what is added. *ret is a new one. */
static struct sym_error *join(const struct index_view *view, size_t kept, struct index_level *added,
			      struct index_level **ret)
{
	struct index_level *levels[INDEX_LEVELS_MOST];
	const struct index *indexes[INDEX_LEVELS_MOST];
	struct index *joined AUTO_INDEX = NULL;
	size_t count = 0;
	struct sym_error *error;

	for (size_t i = kept; i < view->count; i++)
		levels[count++] = view->levels[i];
	levels[count++] = added;
	for (size_t i = 0; i < count; i++)
		indexes[i] = levels[i]->index;
	error = index_join(indexes, count, &joined);
	if (error)
		return error;
	*ret = make_joined(joined, levels, count, !kept);
	if (!*ret)
		return &sym_error_no_memory;
	joined = NULL; /* the level's now */
	return NULL;
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
	for (size_t i = kept; i < old->count; i++) {
		struct index_level *dropped = old->levels[i];
		/* The only level of the first view stays as long as that does. */
		struct index_view *owner =
			dropped == levels->first->levels[0] ? levels->first : old;

		owner->dropped[owner->dropped_count++] = dropped;
	}
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
	struct index_level *level = make_level(added), *joined = NULL;
	size_t kept = levels_to_keep(old, index_count(added));
	struct sym_error *error = view && level ? NULL : &sym_error_no_memory;

	if (!error) {
		view->shares_codes =
			share_codes(added, old->levels[old->count - 1]->index) && old->shares_codes;
		if (kept < old->count)
			error = join(old, kept, level, &joined);
	}
	if (error) {
		free(level);
		return error;
	}
	if (joined)
		free_level(level);
	exchange_view(levels, STEAL(view), kept, joined ? joined : level);
	return NULL;
}

struct sym_error *index_levels_replace(struct index_levels *levels, struct index *index)
{
	struct index_view *view;
	struct index_level *level;
	struct sym_error *error = make_lowest(index, &view, &level);

	if (!error)
		exchange_view(levels, view, 0, level);
	return error;
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
