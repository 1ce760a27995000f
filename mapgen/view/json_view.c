/* SPDX-License-Identifier: MIT */
#include <jansson.h>

#include "libsym/error.h"
#include "mapgen/cli/json_output.h"
#include "mapgen/profile/stack_quality.h"
#include "mapgen/view/event_view.h"
#include "mapgen/view/json_parts.h"
#include "mapgen/view/view.h"
#include "mapgen/view/view_rows.h"

/* Adds the event and the totals that the rows are shares of. */
static void add_event(const struct view *view, const struct selection *selection, json_t *value)
{
	const struct profile_event *event = &view->profile->events[view->event];

	const char *unit = event->unit == PROFILE_UNIT_BYTES ? "bytes"
			   : event->is_time                  ? "ns"
							     : "events";

	json_object_update_new(value,
			       json_pack("{s:o, s:s, s:I, s:I, s:I, s:I, s:I}", "event",
					 json_output_text(event->name), "unit", unit, "samples",
					 (json_int_t)selection->total_count, "weight",
					 (json_int_t)selection->total_weight, "threads",
					 (json_int_t)selection->thread_count, "hidden_threads",
					 (json_int_t)selection->hidden_threads, "hidden_ns",
					 (json_int_t)selection->hidden_weight));
}

static struct sym_error *add_quality(const struct view *view, json_t *value)
{
	struct stack_quality quality;
	struct sym_error *error = stack_quality_measure(view->profile, view->event, &quality);

	if (error)
		return error;
	json_object_set_new(value, "quality", json_parts_quality(&quality));
	stack_quality_deinit(&quality);
	return NULL;
}

static struct sym_error *make_view(const struct view *view, json_t **ret)
{
	struct selection selection = { 0 };
	struct sym_error *error = NULL;
	json_t *value, *rows = NULL;
	bool has_event = view->event != UINT32_MAX;

	if (has_event)
		error = selection_make(view->profile, view->event, &view->selection, &selection);
	if (error)
		return error;
	value = json_pack("{s:s}", "view", view_kind_name(view->kind));
	if (has_event && view->kind != VIEW_THREADS)
		add_event(view, &selection, value);
	if (has_event || view->kind == VIEW_THREADS)
		error = view_rows_make(view, &selection, &rows);
	json_object_set_new(value, "rows", rows ? rows : json_array());
	if (!error && has_event && view->kind != VIEW_THREADS)
		error = add_quality(view, value);
	selection_deinit(&selection);
	if (error)
		json_decref(value);
	else
		*ret = value;
	return error;
}

static struct sym_error *add_view(const struct view *view, enum view_kind kind, json_t *views)
{
	struct view part = *view;
	json_t *value;
	struct sym_error *error;

	part.kind = kind;
	part.event = view_find_event(view->profile, kind);
	if (view->kind == VIEW_SUMMARY && part.event == UINT32_MAX && kind == VIEW_OFF_CPU)
		return NULL;
	error = make_view(&part, &value);
	if (!error)
		json_array_append_new(views, value);
	return error;
}

struct sym_error *json_view_write(const struct view *view, FILE *to)
{
	const struct profile *profile = view->profile;
	json_t *views, *value;
	struct sym_error *error = NULL;

	if (event_view_has_own_rows(view))
		return event_view_write_json(view, to);
	views = json_array();
	if (view->kind == VIEW_SUMMARY)
		error = add_view(view, VIEW_CPU, views);
	if (!error)
		error = add_view(view, view->kind == VIEW_SUMMARY ? VIEW_OFF_CPU : view->kind,
				 views);
	if (error) {
		json_decref(views);
		return error;
	}
	value = json_pack("{s:o, s:o, s:i, s:o, s:f, s:o, s:o}", "input",
			  json_output_text(view->input), "title", json_output_text(profile->title),
			  "pid", profile->pid, "runtime", json_output_text(profile->runtime),
			  "seconds", profile_seconds(profile), "views", views, "losses",
			  json_parts_losses(profile));
	return json_output_print_to(value, to)
		       ? NULL
		       : sym_error_create(SYM_ERROR_NO_MEMORY, "the JSON could not be made");
}
