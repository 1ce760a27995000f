/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/error.h"
#include "mapgen/view/flame_tree.h"
#include "mapgen/view/stack_lines.h"
#include "mapgen/view/view.h"

enum {
	NS_PER_US = 1000,
};

struct sym_error *folded_view_write(const struct view *view, FILE *to)
{
	struct stack_lines lines = { 0 };
	struct sym_error *error = stack_lines_make(view, &lines);
	const struct profile_event *event =
		view->event == UINT32_MAX ? NULL : &view->profile->events[view->event];
	bool is_us = event && flame_tree_is_time(event);
	bool is_bytes = event && event->unit == PROFILE_UNIT_BYTES;

	for (size_t i = 0; !error && i < lines.count; i++) {
		const struct stack_line *line = &lines.items[i];
		uint64_t value = is_us      ? line->weight / NS_PER_US
				 : is_bytes ? line->weight
					    : line->count;

		if (value)
			fprintf(to, "%s %" PRIu64 "\n", line->text, value);
	}
	stack_lines_deinit(&lines);
	return error;
}
