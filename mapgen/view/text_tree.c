/* SPDX-License-Identifier: MIT */
/*
 * The tree of calls, from where threads began. Stacks in the order of their frames' names have a
 * subtree in one piece, so no tree is built: a level splits its piece by the frame at its depth.
 */
#include <stdlib.h>
#include <string.h>

#include "libsym/base/buf.h"
#include "libsym/base/cleanup.h"
#include "libsym/error.h"
#include "mapgen/view/frame_groups.h"
#include "mapgen/view/frame_text.h"
#include "mapgen/view/text_parts.h"
#include "mapgen/view/units.h"

enum {
	MOST_DEPTH = 512,
	MOST_CHILDREN = 1 << 20,
	SMALLEST_SHARE = 200, /* parts of the whole: 0.5 % */
	NAME_LIMIT = 1 << 20,
	OTHER_COLUMNS = 24, /* share and kind */
};

struct branch {
	uint32_t frame;
	size_t first, count; /* of the items */
	uint64_t weight;
};

struct tree {
	const struct view *view;
	FILE *to;
	struct selected *items;
	uint32_t *groups; /* frame_groups.h */
	uint64_t total;
	size_t left_rows, hidden_rows;
	struct buf name;
};

static int compare_items(const void *left, const void *right, void *context)
{
	const struct selected *a = left, *b = right;
	const uint32_t *groups = context;
	uint32_t count = a->frame_count < b->frame_count ? a->frame_count : b->frame_count;

	for (uint32_t i = 0; i < count; i++)
		if (groups[a->frames[i]] != groups[b->frames[i]])
			return groups[a->frames[i]] < groups[b->frames[i]] ? -1 : 1;
	return (a->frame_count > b->frame_count) - (a->frame_count < b->frame_count);
}

static int compare_branches(const void *left, const void *right)
{
	const struct branch *a = left, *b = right;

	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	return (a->first > b->first) - (a->first < b->first);
}

/* Splits a piece by the frame at the depth; what ends above it has none. */
static struct branch *split(const struct tree *tree, size_t first, size_t count, uint32_t depth,
			    size_t *count_ret)
{
	struct branch *branches = calloc(count + 1, sizeof(*branches));
	size_t found = 0;

	*count_ret = 0;
	if (!branches)
		return NULL;
	for (size_t i = first; i < first + count; i++) {
		const struct selected *item = &tree->items[i];
		struct branch *last = found ? &branches[found - 1] : NULL;

		if (item->frame_count <= depth)
			continue;
		if (!last || last->frame != tree->groups[item->frames[depth]])
			branches[found++] =
				(struct branch){ tree->groups[item->frames[depth]], i, 0, 0 };
		branches[found - 1].count++;
		branches[found - 1].weight += item->weight;
	}
	if (found)
		qsort(branches, found, sizeof(*branches), compare_branches);
	*count_ret = found;
	return branches;
}

static void write_row(struct tree *tree, const struct branch *branch, uint32_t indent)
{
	const struct profile_frame *frame =
		frame_table_at(tree->view->profile->frames, branch->frame);
	size_t width = tree->view->width ?: 80, other = OTHER_COLUMNS + 2 * (size_t)indent;
	const char *name = view_frame_text_fit(tree->view, frame, width > other ? width - other : 0,
					       &tree->name);
	char share[UNITS_ROOM];

	fprintf(tree->to, "%8s  %*s%s  %s\n", units_percent(branch->weight, tree->total, share),
		(int)(2 * indent), "", name ? name : "", frame_text_kind(frame));
}

/* A frame with one caller's whole weight needs no deeper indent: stacks are deep. */
static struct sym_error *write_level(struct tree *tree, const struct branch *above, uint32_t depth,
				     uint32_t indent)
{
	struct branch *branches AUTO_FREE = NULL;
	struct sym_error *error = NULL;
	size_t count;

	branches = split(tree, above->first, above->count, depth, &count);
	if (!branches)
		return &sym_error_no_memory;
	for (size_t i = 0; !error && i < count; i++) {
		bool is_only = count == 1 && branches[i].weight == above->weight;

		if (branches[i].weight < tree->total / SMALLEST_SHARE || !tree->left_rows) {
			tree->hidden_rows++;
			continue;
		}
		tree->left_rows--;
		write_row(tree, &branches[i], indent);
		if (depth + 1 < MOST_DEPTH)
			error = write_level(tree, &branches[i], depth + 1, indent + !is_only);
	}
	return error;
}

struct sym_error *text_parts_write_tree(const struct view *view, const struct selection *selection,
					FILE *to)
{
	struct tree tree = {
		.view = view,
		.to = to,
		.items = selection->items,
		.total = selection->total_weight,
		.left_rows = view->top ? view->top : SIZE_MAX,
	};
	const struct branch all = { FRAME_NONE, 0, selection->count, selection->total_weight };
	struct sym_error *error;
	char room[UNITS_ROOM];

	tree.groups = frame_groups_make(view->profile->frames);
	if (!tree.groups)
		return &sym_error_no_memory;
	buf_init(&tree.name, NAME_LIMIT);
	if (selection->count)
		qsort_r(selection->items, selection->count, sizeof(*selection->items),
			compare_items, tree.groups);
	fprintf(to, "%8s  %s\n", "TOTAL", "FUNCTION, AND WHAT IT CALLS");
	error = write_level(&tree, &all, 0, 0);
	if (tree.hidden_rows)
		fprintf(to, "  ...  (%s branches below 0.5 %% or beyond --top)\n",
			units_count(tree.hidden_rows, room));
	buf_deinit(&tree.name);
	free(tree.groups);
	return error;
}
