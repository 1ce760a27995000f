/* SPDX-License-Identifier: MIT */
#include "mapgen/view/view_rows.h"

#include "libsym/base/buf.h"
#include "libsym/error.h"
#include "mapgen/cli/json_output.h"
#include "mapgen/view/frame_text.h"
#include "mapgen/view/thread_times.h"
#include "mapgen/view/waits.h"

enum {
	NAME_LIMIT = 1 << 20,
};

json_t *view_rows_name(const struct view *view, uint32_t frame, enum frame_names names)
{
	struct buf text;

	if (frame == FRAME_NONE)
		return json_null();
	buf_init(&text, NAME_LIMIT);
	frame_text_append(&text, frame_table_at(view->profile->frames, frame), names);
	return json_output_take(&text);
}

static json_t *number_or_null(uint32_t number)
{
	return number ? json_integer(number) : json_null();
}

static json_t *frame_row(const struct view *view, const struct total_row *row)
{
	const struct profile_frame *frame = frame_table_at(view->profile->frames, row->frame);
	const enum sym_line_quality il_quality =
		frame->has_il_offset ? frame->quality : SYM_LINE_NONE;
	json_t *value = json_pack(
		"{s:o, s:o, s:o, s:s, s:o, s:b, s:o, s:o, s:o, s:o, s:s, s:o, s:s}", "name",
		view_rows_name(view, row->frame, FRAME_NAMES_SHORT), "full_name",
		json_output_text(frame->name), "image", json_output_text(frame->image), "kind",
		frame_kind_text(frame->kind), "tier", json_output_text(frame->tier), "named",
		(int)frame->is_named, "file", json_output_text(frame->line ? frame->file : NULL),
		"url", json_output_text(frame->line && *frame->url ? frame->url : NULL), "line",
		number_or_null(frame->line), "column", number_or_null(frame->column), "quality",
		sym_line_quality_text(frame->line ? frame->quality : SYM_LINE_NONE), "il_offset",
		frame->has_il_offset ? json_integer(frame->il_offset) : json_null(), "il_quality",
		sym_line_quality_text(il_quality));

	if (frame->is_inlined)
		json_object_set_new(value, "inlined", json_true());
	return value;
}

static json_t *thread_row(const struct view *view, const struct total_row *row, bool by_thread)
{
	const struct thread_table *threads = &view->profile->threads;
	const struct profile_thread *thread = &threads->threads[row->thread];
	json_t *value = json_pack("{s:o, s:i}", "process",
				  json_output_text(threads->processes[thread->process].name), "pid",
				  thread->pid);

	if (by_thread) {
		json_object_set_new(value, "thread", json_output_text(thread->name));
		json_object_set_new(value, "tid", json_integer(thread->tid));
	}
	return value;
}

static json_t *total_row(const struct view *view, const struct total_row *row)
{
	json_t *value;

	if (view->by == TOTALS_BY_FUNCTION || view->by == TOTALS_BY_LINE)
		value = frame_row(view, row);
	else if (view->by == TOTALS_BY_IMAGE)
		value = json_pack("{s:o}", "image", json_output_text(row->image));
	else
		value = thread_row(view, row, view->by == TOTALS_BY_THREAD);
	json_object_set_new(value, "self_samples", json_integer((json_int_t)row->self_count));
	json_object_set_new(value, "self_weight", json_integer((json_int_t)row->self_weight));
	json_object_set_new(value, "total_samples", json_integer((json_int_t)row->total_count));
	json_object_set_new(value, "total_weight", json_integer((json_int_t)row->total_weight));
	json_object_set_new(value, "longest", json_integer((json_int_t)row->longest));
	return value;
}

static struct sym_error *make_totals(const struct view *view, const struct selection *selection,
				     json_t *rows)
{
	struct totals totals;
	struct sym_error *error = totals_make(selection, view->by, &totals);

	if (error)
		return error;
	for (size_t i = 0; i < view_shown_rows(view, totals.count); i++)
		json_array_append_new(rows, total_row(view, &totals.rows[i]));
	totals_deinit(&totals);
	return NULL;
}

static struct sym_error *make_waits(const struct view *view, const struct selection *selection,
				    json_t *rows)
{
	struct waits waits;
	struct sym_error *error = waits_make(selection, &waits);

	if (error)
		return error;
	for (size_t i = 0; i < view_shown_rows(view, waits.count); i++) {
		const struct wait_row *row = &waits.rows[i];

		json_array_append_new(
			rows,
			json_pack("{s:o, s:o, s:s, s:I, s:I, s:I}", "where",
				  view_rows_name(view, row->where, FRAME_NAMES_SHORT), "caller",
				  view_rows_name(view, row->caller, FRAME_NAMES_SHORT), "waits_for",
				  row->cause, "waits", (json_int_t)row->count, "time_ns",
				  (json_int_t)row->weight, "longest_ns", (json_int_t)row->longest));
	}
	waits_deinit(&waits);
	return NULL;
}

static struct sym_error *make_threads(const struct view *view, json_t *rows)
{
	const struct thread_table *threads = &view->profile->threads;
	struct thread_times times;
	struct sym_error *error = thread_times_make(view, &times);

	if (error)
		return error;
	for (size_t i = 0; i < view_shown_rows(view, times.count); i++) {
		const struct thread_time *time = &times.items[i];
		const struct profile_thread *thread = &threads->threads[time->thread];

		json_array_append_new(
			rows,
			json_pack("{s:o, s:i, s:o, s:i, s:I, s:I, s:I, s:I, s:I, s:I}", "thread",
				  json_output_text(thread->name), "tid", thread->tid, "process",
				  json_output_text(threads->processes[thread->process].name), "pid",
				  thread->pid, "cpu_ns", (json_int_t)time->cpu_ns, "samples",
				  (json_int_t)time->samples, "off_cpu_ns",
				  (json_int_t)time->off_cpu_ns, "waits", (json_int_t)time->waits,
				  "preempted_ns", (json_int_t)time->preempted_ns, "preemptions",
				  (json_int_t)time->preemptions));
	}
	thread_times_deinit(&times);
	return NULL;
}

struct sym_error *view_rows_make(const struct view *view, const struct selection *selection,
				 json_t **ret)
{
	json_t *rows = json_array();
	struct sym_error *error;

	if (!rows)
		return &sym_error_no_memory;
	if (view->kind == VIEW_THREADS)
		error = make_threads(view, rows);
	else if (view->kind == VIEW_OFF_CPU && !view->has_by)
		error = make_waits(view, selection, rows);
	else
		error = make_totals(view, selection, rows);
	if (error)
		json_decref(rows);
	else
		*ret = rows;
	return error;
}
