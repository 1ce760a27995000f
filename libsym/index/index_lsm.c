/* SPDX-License-Identifier: MIT */
#include "libsym/index/index_lsm.h"

#include <stdlib.h>
#include <string.h>

static void free_version(struct index_version *view)
{
	for (size_t i = 0; i < view->retired_level_count; i++)
		index_destroy(view->retired_levels[i]);
	free(view);
}

void index_lsm_collect(struct index_lsm *levels)
{
	while (levels->retired) {
		struct index_version *next = levels->retired->next_retired;

		free_version(levels->retired);
		levels->retired = next;
	}
}

void index_lsm_deinit(struct index_lsm *levels)
{
	struct index_version *view = atomic_load(&levels->view);

	index_lsm_collect(levels);
	for (size_t i = 0; view && i < view->count; i++)
		index_destroy(view->levels[i]);
	free(view);
}

/* ---- adding ------------------------------------------------------------------------------- */

/* Indexes of one class have sizes within a factor of INDEX_LSM_FAN. */
static unsigned int class_of(size_t count)
{
	return (63 - (unsigned int)__builtin_clzll(count | 1)) / INDEX_LSM_FAN_BITS;
}

/*
 * How many levels stay unchanged when an index of `count` pieces is added; it is joined with the
 * others. So a class has fewer than INDEX_LSM_FAN levels, smaller levels are above larger ones, and
 * a piece is copied once per class.
 */
static size_t levels_to_keep(const struct index_version *view, size_t count)
{
	size_t kept = view->count;

	for (;;) {
		size_t same = 0;

		while (kept && class_of(index_count(view->levels[kept - 1])) < class_of(count))
			count += index_count(view->levels[--kept]);
		while (same < kept &&
		       class_of(index_count(view->levels[kept - 1 - same])) == class_of(count))
			same++;
		if (same < INDEX_LSM_FAN - 1)
			return kept;
		for (size_t i = 0; i < same; i++)
			count += index_count(view->levels[--kept]);
	}
}

/* Puts `index` on top of the first `kept` levels. Levels that the new version does not use are
 * retired. */
static struct sym_error *replace_version(struct index_lsm *levels, size_t kept, struct index *index)
{
	struct index_version *old = atomic_load(&levels->view);
	struct index_version *view = calloc(1, sizeof(*view));

	if (!view)
		return &sym_error_no_memory;
	if (old) {
		memcpy(view->levels, old->levels, kept * sizeof(*view->levels));
		for (size_t i = kept; i < old->count; i++)
			old->retired_levels[old->retired_level_count++] = old->levels[i];
		old->next_retired = levels->retired;
		levels->retired = old;
	}
	view->levels[kept] = index;
	view->count = kept + 1;
	atomic_store(&levels->view, view);
	return NULL;
}

/* Joins the levels from `kept` on with `added`. */
static struct sym_error *join_levels(const struct index_version *view, size_t kept,
				     const struct index *added, struct index **ret)
{
	struct index_builder *builder AUTO_INDEX_BUILDER = NULL;
	struct sym_error *error = index_builder_create_numbered(&builder);
	size_t count = index_count(added);

	if (error)
		return error;
	for (size_t i = kept; i < view->count; i++)
		count += index_count(view->levels[i]);
	index_builder_reserve(builder, count, 0);
	for (size_t i = kept; i < view->count; i++)
		index_builder_add_pieces(builder, view->levels[i]);
	index_builder_add_pieces(builder, added);
	return index_freeze(builder, ret);
}

struct sym_error *index_lsm_add(struct index_lsm *levels, struct index *added)
{
	const struct index_version *view = atomic_load(&levels->view);
	size_t kept = levels_to_keep(view, index_count(added));
	struct index *joined AUTO_INDEX = NULL;
	struct sym_error *error = NULL;

	if (kept < view->count)
		error = join_levels(view, kept, added, &joined);
	if (!error)
		error = replace_version(levels, kept, joined ? joined : added);
	if (error)
		return error;
	if (joined)
		index_destroy(added);
	joined = NULL; /* now owned by the version */
	return NULL;
}

struct sym_error *index_lsm_replace(struct index_lsm *levels, struct index *index)
{
	return replace_version(levels, 0, index);
}

/* ---- looking up ------------------------------------------------------------------------------ */

bool index_version_look_up(const struct index_version *view, uint64_t position,
			   struct index_entry *ret)
{
	bool found = false;

	for (size_t i = view->count; i-- > 0;) {
		struct index_entry entry;

		if (index_look_up(view->levels[i], position, &entry) == INDEX_NONE ||
		    (found && !entry.symbol_size_bytes))
			continue;
		*ret = entry;
		found = true;
		if (entry.symbol_size_bytes)
			break;
	}
	return found;
}
