/* SPDX-License-Identifier: MIT */
/*
 * Frames that are one function to the reader: native ones of one name and one image, managed ones
 * of one name. A method that was compiled several times has several frames.
 */
#ifndef MAPGEN_VIEW_FRAME_GROUPS_H
#define MAPGEN_VIEW_FRAME_GROUPS_H

#include "mapgen/profile/frame_table.h"

/* For each frame the least frame of its function; heap. NULL for want of memory. */
uint32_t *frame_groups_make(const struct frame_table *frames);

#endif
