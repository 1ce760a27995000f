/* SPDX-License-Identifier: MIT */
/*
 * Views for people. The first line says what was looked at, the last ones what is missing:
 *
 *   CPU of Store.Web (PID 4711, .NET 10.0.12), 10.0 s, 24 threads: 10.2 s of CPU in 1,012 samples
 *     SELF  TOTAL  FUNCTION                KIND
 *   18.2 %  23.8 %  Store.TopByTag         tier 1
 *     ...  (214 more; --top=0 shows all)
 *   2 of 1,012 stacks end early: ...
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/buf.h"
#include "libsym/base/utf8.h"
#include "libsym/error.h"
#include "mapgen/view/event_view.h"
#include "mapgen/view/frame_text.h"
#include "mapgen/view/text_parts.h"
#include "mapgen/view/units.h"
#include "mapgen/view/view.h"
#include "mapgen/view/waits.h"

enum {
	NAME_LIMIT = 1 << 20,
	NARROWEST_NAME = 24,
	WIDE_COLUMNS = 100,
	LINE_COLUMNS = 20,
};

/* ---- tables of functions, threads, processes and images -------------------------------------- */

static bool shows_frames(const struct view *view)
{
	return view->by == TOTALS_BY_FUNCTION || view->by == TOTALS_BY_LINE;
}

static void row_name(const struct view *view, const struct total_row *row, size_t width,
		     struct buf *name)
{
	const struct thread_table *threads = &view->profile->threads;

	buf_clear(name);
	if (shows_frames(view)) {
		view_frame_text_fit(view, frame_table_at(view->profile->frames, row->frame), width,
				    name);
	} else if (view->by == TOTALS_BY_IMAGE) {
		buf_append_string(name, *row->image ? row->image : "(memory of no file)");
	} else {
		const struct profile_thread *thread = &threads->threads[row->thread];

		buf_append_string(name, *row->key ? row->key : "(no name)");
		if (view->by == TOTALS_BY_THREAD && thread->tid)
			buf_printf(name, " (%d)", thread->tid);
		else if (thread->pid)
			buf_printf(name, " (%d)", thread->pid);
	}
}

static const char *row_kind(const struct view *view, const struct total_row *row)
{
	if (!shows_frames(view))
		return "";
	return frame_text_kind(frame_table_at(view->profile->frames, row->frame));
}

/* Columns for the longest name that is shown. */
static size_t name_width(const struct view *view, const struct totals *totals, size_t other)
{
	size_t longest = NARROWEST_NAME, width = view->width ?: 80;
	size_t room = width > other + NARROWEST_NAME ? width - other : NARROWEST_NAME;
	size_t columns;
	struct buf name;

	buf_init(&name, NAME_LIMIT);
	for (size_t i = 0; i < view_shown_rows(view, totals->count); i++) {
		row_name(view, &totals->rows[i], room, &name);
		columns = utf8_count(buf_string(&name) ?: "");
		if (columns > longest)
			longest = columns;
	}
	buf_deinit(&name);
	return longest < room ? longest : room;
}

/* A narrow terminal has no room for lines, unless they were asked for. */
static bool shows_lines(const struct view *view, const struct totals *totals)
{
	if (!shows_frames(view) ||
	    (view->by != TOTALS_BY_LINE && view->width && view->width < WIDE_COLUMNS))
		return false;
	for (size_t i = 0; i < view_shown_rows(view, totals->count); i++)
		if (frame_table_at(view->profile->frames, totals->rows[i].frame)->line)
			return true;
	return false;
}

static void put_kind(const struct view *view, const struct total_row *row, bool has_lines, FILE *to)
{
	const char *kind = row_kind(view, row);
	struct buf place;

	buf_init(&place, NAME_LIMIT);
	if (has_lines)
		frame_text_place(&place, frame_table_at(view->profile->frames, row->frame));
	if (place.size_bytes)
		fprintf(to, "  %-12s  %s\n", kind, buf_string(&place));
	else
		fprintf(to, "%s%s\n", *kind ? "  " : "", kind);
	buf_deinit(&place);
}

/* Foreign text, but source_link.h accepts nothing that a terminal would obey. */
static void put_url(const struct view *view, const struct total_row *row, FILE *to)
{
	const struct profile_frame *frame = frame_table_at(view->profile->frames, row->frame);

	if (frame->line && *frame->url)
		fprintf(to, "%20s%s#L%u\n", "", frame->url, frame->line);
}

static void write_rows(const struct view *view, const struct totals *totals, FILE *to)
{
	static const char *const titles[] = { "FUNCTION", "THREAD", "PROCESS",
					      "IMAGE",    "",       "FUNCTION" };
	bool has_self = shows_frames(view) || view->by == TOTALS_BY_IMAGE;
	bool has_lines = shows_lines(view, totals);
	size_t width = name_width(view, totals,
				  (has_self ? 18 + 14 : 18) + (has_lines ? LINE_COLUMNS : 0));
	char self[UNITS_ROOM], total[UNITS_ROOM];
	struct buf name;

	buf_init(&name, NAME_LIMIT);
	if (has_self)
		fprintf(to, "%8s %8s  %-*s%s%s\n", "SELF", "TOTAL", (int)width, titles[view->by],
			shows_frames(view) ? "  KIND" : "", has_lines ? "          LINE" : "");
	else
		fprintf(to, "%8s %8s  %s\n", "TOTAL", "COUNT", titles[view->by]);
	for (size_t i = 0; i < view_shown_rows(view, totals->count); i++) {
		const struct total_row *row = &totals->rows[i];

		row_name(view, row, width, &name);
		units_percent(row->self_weight, totals->total_weight, self);
		if (has_self)
			units_percent(row->total_weight, totals->total_weight, total);
		else
			units_count(row->total_count, total);
		fprintf(to, "%8s %8s  ", self, total);
		text_parts_put_name(view, buf_string(&name), has_self ? width : 0, to);
		put_kind(view, row, has_lines, to);
		if (view->urls && shows_frames(view))
			put_url(view, row, to);
	}
	buf_deinit(&name);
	text_parts_put_left_out(totals->count - view_shown_rows(view, totals->count), "rows", to);
}

static struct sym_error *write_table(const struct view *view, const struct selection *selection,
				     FILE *to)
{
	struct totals totals;
	struct sym_error *error;

	if (view->by == TOTALS_BY_TREE)
		return text_parts_write_tree(view, selection, to);
	error = totals_make(selection, view->by, &totals);
	if (error)
		return error;
	write_rows(view, &totals, to);
	totals_deinit(&totals);
	return NULL;
}

/* ---- waits ----------------------------------------------------------------------------------- */

static void append_where(const struct view *view, const struct wait_row *row, struct buf *text)
{
	const struct frame_table *frames = view->profile->frames;
	struct buf one;

	buf_clear(text);
	if (row->where == FRAME_NONE) {
		buf_append_string(text, "(no stack)");
		return;
	}
	buf_init(&one, NAME_LIMIT);
	buf_append_string(
		text, view_frame_text_fit(view, frame_table_at(frames, row->where), 0, &one) ?: "");
	if (row->caller != FRAME_NONE) {
		buf_append_string(text, " <- ");
		buf_append_string(text, view_frame_text_fit(
						view, frame_table_at(frames, row->caller), 0, &one)
						?: "");
	}
	buf_deinit(&one);
}

static void write_wait_rows(const struct view *view, const struct waits *waits, FILE *to)
{
	char time[UNITS_ROOM], count[UNITS_ROOM], longest[UNITS_ROOM];
	size_t width = (view->width > 60 ? view->width : 80) - 45;
	struct buf text;

	buf_init(&text, NAME_LIMIT);
	fprintf(to, "%8s %8s %8s  %-*s  %s\n", "TIME", "COUNT", "MAX", (int)width, "WHERE",
		"WAITS FOR");
	for (size_t i = 0; i < view_shown_rows(view, waits->count); i++) {
		const struct wait_row *row = &waits->rows[i];

		append_where(view, row, &text);
		fprintf(to, "%8s %8s %8s  ", units_time(row->weight, time),
			units_count(row->count, count), units_time(row->longest, longest));
		text_parts_put_name(view, buf_string(&text), width, to);
		fprintf(to, "  %s\n", row->cause);
	}
	buf_deinit(&text);
	text_parts_put_left_out(waits->count - view_shown_rows(view, waits->count), "rows", to);
}

static struct sym_error *write_waits(const struct view *view, const struct selection *selection,
				     FILE *to)
{
	struct waits waits;
	struct sym_error *error = waits_make(selection, &waits);

	if (error)
		return error;
	write_wait_rows(view, &waits, to);
	waits_deinit(&waits);
	return NULL;
}

/* ---- views ----------------------------------------------------------------------------------- */

static struct sym_error *write_one(const struct view *view, FILE *to)
{
	struct selection selection;
	struct sym_error *error;

	if (view->event == UINT32_MAX) {
		text_parts_say_missing(view, to);
		return NULL;
	}
	error = selection_make(view->profile, view->event, &view->selection, &selection);
	if (error)
		return error;
	text_parts_write_title(view, &selection, to);
	if (view->kind == VIEW_OFF_CPU && !view->has_by)
		error = write_waits(view, &selection, to);
	else
		error = write_table(view, &selection, to);
	if (!error && event_view_is_one(view->kind))
		event_view_write_losses(view, to);
	if (!error)
		text_parts_write_losses(view, &selection, to);
	selection_deinit(&selection);
	return error;
}

/* One line for each view of events that has something, and how to see it. */
static struct sym_error *write_event_lines(const struct view *view, FILE *to)
{
	struct view part = *view;
	struct sym_error *error = NULL;

	if (view->profile->report && view_find_event(view->profile, VIEW_CPU) == UINT32_MAX) {
		text_parts_put_whose(view->profile, to);
		fputc('\n', to);
	}
	for (int kind = VIEW_GC; !error && kind < VIEW_KINDS; kind++) {
		part.kind = (enum view_kind)kind;
		part.event = view_find_event(view->profile, part.kind);
		if (event_view_has_rows(&part))
			error = event_view_write_headline(&part, to);
	}
	return error;
}

static struct sym_error *write_summary(const struct view *view, FILE *to)
{
	struct view part = *view;
	struct sym_error *error = NULL;

	part.kind = VIEW_CPU;
	part.event = view_find_event(view->profile, VIEW_CPU);
	part.top = view->top && view->top < 5 ? view->top : 5;
	if (part.event != UINT32_MAX || !view->profile->report)
		error = write_one(&part, to);
	part.kind = VIEW_OFF_CPU;
	part.event = view_find_event(view->profile, VIEW_OFF_CPU);
	if (!error && part.event != UINT32_MAX) {
		fputc('\n', to);
		error = write_one(&part, to);
	}
	if (!error)
		error = write_event_lines(view, to);
	if (!error)
		text_parts_write_next(view, to);
	return error;
}

struct sym_error *text_view_write(const struct view *view, FILE *to)
{
	if (event_view_has_own_rows(view))
		return event_view_write_text(view, to);
	switch (view->kind) {
	case VIEW_SUMMARY:
		return write_summary(view, to);
	case VIEW_THREADS:
		return text_parts_write_threads(view, to);
	default:
		return write_one(view, to);
	}
}
