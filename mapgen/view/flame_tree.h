/* SPDX-License-Identifier: MIT */
/*
 * The tree of calls of a view, as flame graphs show it: nodes in preorder, children in the order of
 * their names. Knows nothing of HTML or SVG.
 *
 *   depth frame      self
 *   0     all        0
 *   1     Main       3
 *   2     Store.Get  7     Main has 10 in all
 *   1     start      2
 */
#ifndef MAPGEN_VIEW_FLAME_TREE_H
#define MAPGEN_VIEW_FLAME_TREE_H

#include "mapgen/view/view.h"

struct flame_node {
	uint32_t depth;
	uint32_t frame; /* of the frame table that was given */
	uint64_t self, total;
	uint64_t old_self, old_total; /* of the older profile of a difference */
};

struct flame_tree {
	struct flame_node *nodes; /* the first one is the root */
	size_t count, capacity;
	uint32_t deepest;
	bool is_time;  /* weights are nanoseconds */
	bool is_bytes; /* weights are bytes; neither: they are counts */
};

/* Whether a view of this event weighs nanoseconds; else it counts. */
bool flame_tree_is_time(const struct profile_event *event);

/*
 * `frames` gets the frames of the nodes, those of several trees if it is used again. `older`: NULL,
 * or the view that is compared with. `joins_small`: nodes below 0.01 % of the whole are joined.
 * Errors: NO_MEMORY, LIMIT, those of selection_make().
 */
struct sym_error *flame_tree_make(struct frame_table *frames, const struct view *view,
				  const struct view *older, bool joins_small,
				  struct flame_tree *ret) __attribute__((warn_unused_result));
void flame_tree_deinit(struct flame_tree *tree);

#endif
