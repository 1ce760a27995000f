/* SPDX-License-Identifier: MIT */
/*
 * The causes and places of waits: the rows of the off-CPU view. The place is the innermost function
 * that does not belong to .NET, with its caller. The cause is that of wait_cause.h.
 */
#ifndef MAPGEN_VIEW_WAITS_H
#define MAPGEN_VIEW_WAITS_H

#include "mapgen/view/selection.h"

struct wait_row {
	uint32_t where, caller; /* frames; FRAME_NONE: none */
	const char *cause;      /* static; "" when not known */
	uint64_t count, weight, longest;
};

struct waits {
	struct wait_row *rows; /* longest first */
	size_t count, capacity;
};

/* Errors: NO_MEMORY. */
struct sym_error *waits_make(const struct selection *selection, struct waits *ret)
	__attribute__((warn_unused_result));
void waits_deinit(struct waits *waits);

#endif
