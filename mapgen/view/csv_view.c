/* SPDX-License-Identifier: MIT */
#include <jansson.h>

#include "libsym/error.h"
#include "mapgen/view/csv_rows.h"
#include "mapgen/view/event_view.h"
#include "mapgen/view/view.h"
#include "mapgen/view/view_rows.h"

struct sym_error *csv_view_write(const struct view *view, FILE *to)
{
	struct view part = *view;
	struct selection selection = { 0 };
	struct sym_error *error = NULL;
	json_t *rows;

	if (event_view_has_own_rows(view))
		return event_view_write_csv(view, to);
	if (part.kind == VIEW_SUMMARY)
		part.kind = VIEW_CPU;
	if (part.event == UINT32_MAX && part.kind != VIEW_THREADS)
		return NULL;
	if (part.event != UINT32_MAX)
		error = selection_make(view->profile, part.event, &view->selection, &selection);
	if (!error)
		error = view_rows_make(&part, &selection, &rows);
	selection_deinit(&selection);
	if (error)
		return error;
	csv_rows_write(rows, to);
	json_decref(rows);
	return NULL;
}
