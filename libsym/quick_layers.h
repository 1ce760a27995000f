/* SPDX-License-Identifier: MIT */
/*
 * Which levels of a view (index_levels.h) are to be asked for an address, by cells of memory; for
 * quick_look_up.c. Where code is laid one piece behind the other that is mostly one level, however
 * many there are.
 */
#ifndef LIBSYM_QUICK_LAYERS_H
#define LIBSYM_QUICK_LAYERS_H

#include "libsym/base/buf.h"
#include "libsym/quick_look_up.h"

/* Stretches of positions, ascending and apart. */
struct quick_stretches {
	struct index_extent *items;
	size_t count;
};

/* Where levels above the lowest have something, or near it. False when there is no memory;
 * quick_stretches_deinit() in any case. */
bool quick_stretches_init(struct quick_stretches *stretches, const struct index_view *view);
void quick_stretches_deinit(struct quick_stretches *stretches);

/* Makes the parts and the cells of those of the ranges that have `size_bytes` 0. False when there
 * is no memory or there were too many; quick_look_up_destroy() ends what was made. */
bool quick_layers_make(struct quick_look_up *quick, struct quick_range *ranges, size_t count,
		       const struct index_view *view);

#endif
