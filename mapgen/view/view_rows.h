/* SPDX-License-Identifier: MIT */
/* The rows of a view as flat JSON objects: JSON has them as they are, CSV their values. */
#ifndef MAPGEN_VIEW_VIEW_ROWS_H
#define MAPGEN_VIEW_VIEW_ROWS_H

#include <jansson.h>

#include "mapgen/view/view.h"

/* An array; at most view->top of them. Errors: those of selection_make(). */
struct sym_error *view_rows_make(const struct view *view, const struct selection *selection,
				 json_t **ret) __attribute__((warn_unused_result));

/* The name of a frame, or null for FRAME_NONE. */
json_t *view_rows_name(const struct view *view, uint32_t frame, enum frame_names names);

#endif
