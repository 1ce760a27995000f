/* SPDX-License-Identifier: MIT */
/*
 * Rows of a table: what is added up for each function, thread, process or image. A function that
 * calls itself is counted once a stack.
 */
#ifndef MAPGEN_VIEW_TOTALS_H
#define MAPGEN_VIEW_TOTALS_H

#include "mapgen/view/selection.h"

enum totals_by {
	TOTALS_BY_FUNCTION = 0,
	TOTALS_BY_THREAD,
	TOTALS_BY_PROCESS,
	TOTALS_BY_IMAGE,
	TOTALS_BY_TREE, /* not a table: tree_text.h */
	TOTALS_BY_LINE, /* by function, where no line is known */
};

struct total_row {
	const char *key; /* what is the same in it; belongs to the profile */
	const char *image;
	uint32_t frame;  /* by function or line: the one with most of it; else FRAME_NONE */
	uint32_t thread; /* by thread or process: the first; else UINT32_MAX */
	uint64_t self_count, self_weight;
	uint64_t total_count, total_weight;
	uint64_t longest;
	uint64_t frame_weight; /* of `frame` alone */
};

struct totals {
	struct total_row *rows; /* largest first */
	size_t count, capacity;
	uint64_t total_count, total_weight;
};

/* Errors: NO_MEMORY. */
struct sym_error *totals_make(const struct selection *selection, enum totals_by by,
			      struct totals *ret) __attribute__((warn_unused_result));
void totals_deinit(struct totals *totals);

#endif
