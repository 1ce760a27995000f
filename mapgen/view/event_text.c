/* SPDX-License-Identifier: MIT */
/*
 * Views of events as text, JSON and CSV, from the rows of event_view.c. A table of columns for each
 * view says which members are shown, and how.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/utf8.h"
#include "libsym/error.h"
#include "mapgen/cli/json_output.h"
#include "mapgen/cli/message.h"
#include "mapgen/profile/event_report.h"
#include "mapgen/view/csv_rows.h"
#include "mapgen/view/event_view.h"
#include "mapgen/view/json_parts.h"
#include "mapgen/view/text_parts.h"
#include "mapgen/view/type_text.h"
#include "mapgen/view/units.h"

enum {
	MOST_COLUMNS = 8,
	CELL_ROOM = 64,
	NS_PER_MS = 1000000,
	USUAL_TYPE = 32,
	WIDEST_TEXT = 60, /* where no terminal is too narrow for it */
};

enum form {
	FORM_END = 0,
	FORM_COUNT,
	FORM_BYTES,
	FORM_MS,
	FORM_SECONDS,
	FORM_NUMBER,
	FORM_PERCENT,
	FORM_TEXT,   /* of a width at most; the last one as wide as it is */
	FORM_TYPE,   /* the short name of a type */
	FORM_QUOTED, /* a message */
	FORM_HEAP,   /* "before -> after" */
	FORM_OWNER,  /* name and number of a thread */
};

struct column {
	const char *title, *key;
	enum form form;
	int width;
};

static const struct column *columns_of(enum view_kind kind)
{
	static const struct column columns[VIEW_KINDS][MOST_COLUMNS] = {
		[VIEW_GC] = { { "#", "number", FORM_COUNT, 6 },
			      { "GEN", "generation", FORM_COUNT, 4 },
			      { "KIND", "kind", FORM_TEXT, 10 },
			      { "WHY", "reason", FORM_TEXT, 16 },
			      { "PAUSE", "pause_ms", FORM_MS, 8 },
			      { "PROMOTED", "promoted_bytes", FORM_BYTES, 9 },
			      { "HEAP BEFORE -> AFTER", "before_bytes", FORM_HEAP, 20 },
			      { "STARTED BY", "started_by", FORM_TEXT, 0 } },
		[VIEW_ALLOC] = { { "BYTES", "bytes", FORM_BYTES, 8 },
				 { "SAMPLES", "count", FORM_COUNT, 9 },
				 { "ERROR", "error_percent", FORM_PERCENT, 8 },
				 { "TYPE", "type", FORM_TYPE, USUAL_TYPE },
				 { "MOST FROM", "from", FORM_TEXT, 0 } },
		[VIEW_EXCEPTIONS] = { { "COUNT", "count", FORM_COUNT, 8 },
				      { "TYPE", "type", FORM_TYPE, USUAL_TYPE },
				      { "MESSAGE", "message", FORM_QUOTED, 24 },
				      { "FROM", "from", FORM_TEXT, 0 } },
		[VIEW_CONTENTION] = { { "TIME", "waited_ms", FORM_MS, 8 },
				      { "WAITS", "waits", FORM_COUNT, 8 },
				      { "MAX", "longest_ms", FORM_MS, 8 },
				      { "LOCK", "lock", FORM_TEXT, 24 },
				      { "LAST OWNER", "last_owner_tid", FORM_OWNER, 22 },
				      { "WAITER", "from", FORM_TEXT, 28 },
				      { "OWNER WAS IN", "owner_in", FORM_TEXT, 0 } },
		[VIEW_WAITS] = { { "TIME", "waited_ms", FORM_MS, 8 },
				 { "WAITS", "waits", FORM_COUNT, 8 },
				 { "MAX", "longest_ms", FORM_MS, 8 },
				 { "WAITS FOR", "what", FORM_TEXT, 14 },
				 { "WAITER", "from", FORM_TEXT, 0 } },
		[VIEW_THREADPOOL] = { { "AT", "time_s", FORM_SECONDS, 9 },
				      { "WORKERS", "workers", FORM_COUNT, 8 },
				      { "DONE PER S", "throughput", FORM_NUMBER, 12 },
				      { "WHY", "reason", FORM_TEXT, 0 } },
		[VIEW_JIT] = { { "TIME", "time_ms", FORM_MS, 8 },
			       { "COUNT", "count", FORM_COUNT, 7 },
			       { "IL", "il_bytes", FORM_BYTES, 8 },
			       { "CODE", "code_bytes", FORM_BYTES, 8 },
			       { "TIER", "tier", FORM_TEXT, 21 },
			       { "METHOD", "method", FORM_TEXT, 0 } },
		[VIEW_EVENTS] = { { "COUNT", "count", FORM_COUNT, 10 },
				  { "STACKS", "with_stack", FORM_COUNT, 10 },
				  { "EVENT", "event", FORM_TEXT, 32 },
				  { "PROVIDER", "provider", FORM_TEXT, 0 } },
		[VIEW_COUNTERS] = { { "LAST", "last", FORM_NUMBER, 12 },
				    { "MEAN", "mean", FORM_NUMBER, 12 },
				    { "MAX", "max", FORM_NUMBER, 12 },
				    { "UNIT", "unit", FORM_TEXT, 8 },
				    { "COUNTER", "counter", FORM_TEXT, 32 },
				    { "PROVIDER", "provider", FORM_TEXT, 0 } },
	};

	return columns[kind];
}

/* ---- cells ----------------------------------------------------------------------------------- */

static double real_of(const json_t *row, const char *key)
{
	return json_number_value(json_object_get(row, key));
}

static const char *text_of(const json_t *row, const char *key)
{
	return json_string_value(json_object_get(row, key)) ?: "";
}

static void bytes_cell(const json_t *row, const char *key, char *cell)
{
	const json_t *value = json_object_get(row, key);

	if (json_is_null(value))
		snprintf(cell, CELL_ROOM, "?");
	else
		units_bytes((uint64_t)json_integer_value(value), cell);
}

static void number_cell(const json_t *row, const char *key, char *cell)
{
	const double number = real_of(row, key);

	if (json_is_null(json_object_get(row, key)))
		snprintf(cell, CELL_ROOM, "-");
	else
		snprintf(cell, CELL_ROOM, number == nearbyint(number) ? "%.0f" : "%.2f", number);
}

static void write_cell(const json_t *row, const struct column *column, char *cell)
{
	char before[CELL_ROOM], after[CELL_ROOM];

	switch (column->form) {
	case FORM_BYTES:
		bytes_cell(row, column->key, cell);
		break;
	case FORM_MS:
		units_time((uint64_t)(real_of(row, column->key) * NS_PER_MS), cell);
		break;
	case FORM_SECONDS:
		snprintf(cell, CELL_ROOM, "%.3f s", real_of(row, column->key));
		break;
	case FORM_NUMBER:
		number_cell(row, column->key, cell);
		break;
	case FORM_PERCENT:
		snprintf(cell, CELL_ROOM, "+-%.1f %%", real_of(row, column->key));
		break;
	case FORM_HEAP:
		bytes_cell(row, "before_bytes", before);
		bytes_cell(row, "after_bytes", after);
		snprintf(cell, CELL_ROOM, "%.20s -> %.20s", before, after);
		break;
	default:
		if (json_is_null(json_object_get(row, column->key)))
			snprintf(cell, CELL_ROOM, "-");
		else
			units_count((uint64_t)real_of(row, column->key), cell);
	}
}

static bool is_text(enum form form)
{
	return form == FORM_TEXT || form == FORM_TYPE || form == FORM_QUOTED || form == FORM_OWNER;
}

/* Printable; NULL for want of memory. */
static char *make_text_cell(const struct view *view, const json_t *row, const struct column *column)
{
	const char *value = text_of(row, column->key);
	struct buf text;
	char *printable;

	buf_init(&text, 1 << 20);
	if (column->form == FORM_TYPE && view->names != FRAME_NAMES_FULL)
		type_text_short(&text, value);
	else if (column->form == FORM_QUOTED && *value)
		buf_printf(&text, "\"%s\"", value);
	else if (column->form == FORM_OWNER && json_is_null(json_object_get(row, column->key)))
		buf_append_string(&text, text_of(row, "last_owner"));
	else if (column->form == FORM_OWNER)
		buf_printf(&text, "%s %.0f", text_of(row, "last_owner"), real_of(row, column->key));
	else
		buf_append_string(&text, value);
	printable = message_printable(buf_string(&text) ?: "");
	buf_deinit(&text);
	return printable;
}

/* Columns for the longest text that is shown: on a terminal as many as the table has for it. */
static size_t text_width(const struct view *view, const json_t *rows, const struct column *column)
{
	size_t most = view->width ? (size_t)column->width : WIDEST_TEXT;
	size_t width = strlen(column->title), count;

	for (size_t i = 0; i < view_shown_rows(view, json_array_size(rows)); i++) {
		char *text AUTO_FREE = make_text_cell(view, json_array_get(rows, i), column);

		count = text ? utf8_count(text) : 0;
		if (count > width)
			width = count;
	}
	return width < most ? width : most;
}

/* A message may have any length: it never gets more than its column. */
static void put_text_cell(const struct view *view, const json_t *row, const struct column *column,
			  size_t width, FILE *to)
{
	char *text AUTO_FREE = make_text_cell(view, row, column);
	struct view narrow = *view;

	if (column->form == FORM_QUOTED)
		narrow.width = width;
	if (column->width)
		text_parts_put_name(&narrow, text, width, to);
	else
		fputs(text ? text : "", to);
}

static void put_row(const struct view *view, const json_t *row, const size_t *widths, FILE *to)
{
	const struct column *columns = columns_of(view->kind);
	char cell[CELL_ROOM];

	for (size_t i = 0; i < MOST_COLUMNS && columns[i].form; i++) {
		fputs(i ? "  " : "", to);
		if (is_text(columns[i].form)) {
			put_text_cell(view, row, &columns[i], widths[i], to);
			continue;
		}
		write_cell(row, &columns[i], cell);
		fprintf(to, "%*s", columns[i].width, cell);
	}
	fputc('\n', to);
}

static void put_head(const struct view *view, const size_t *widths, FILE *to)
{
	const struct column *columns = columns_of(view->kind);

	for (size_t i = 0; i < MOST_COLUMNS && columns[i].form; i++)
		fprintf(to, is_text(columns[i].form) ? "%s%-*s" : "%s%*s", i ? "  " : "",
			(int)widths[i], columns[i].title);
	fputc('\n', to);
}

static void put_rows(const struct view *view, const json_t *rows, FILE *to)
{
	const struct column *columns = columns_of(view->kind);
	size_t left_out, widths[MOST_COLUMNS] = { 0 },
			 shown = view_shown_rows(view, json_array_size(rows));

	for (size_t i = 0; i < MOST_COLUMNS && columns[i].form; i++)
		widths[i] = is_text(columns[i].form) && columns[i].width
				    ? text_width(view, rows, &columns[i])
				    : (size_t)columns[i].width;
	put_head(view, widths, to);
	for (size_t i = 0; i < shown; i++)
		put_row(view, json_array_get(rows, i), widths, to);
	left_out = json_array_size(rows) - shown;
	text_parts_put_left_out(left_out, left_out == 1 ? "row" : "rows", to);
}

/* ---- what is said of all rows ---------------------------------------------------------------- */

static void put_gc_summary(const json_t *summary, FILE *to)
{
	char count[UNITS_ROOM], paused[UNITS_ROOM], longest[UNITS_ROOM], rate[UNITS_ROOM];

	fprintf(to, "%s, paused %s (%.1f %%), longest %s",
		units_things((uint64_t)real_of(summary, "count"), "collection", "collections",
			     count),
		units_time((uint64_t)(real_of(summary, "paused_ms") * NS_PER_MS), paused),
		real_of(summary, "paused_percent"),
		units_time((uint64_t)(real_of(summary, "longest_pause_ms") * NS_PER_MS), longest));
	if (real_of(summary, "allocated_bytes") > 0)
		fprintf(to, "; %s/s allocated",
			units_bytes((uint64_t)real_of(summary, "allocated_bytes_per_second"),
				    rate));
}

static void put_summary(const struct view *view, const json_t *summary, FILE *to)
{
	char count[UNITS_ROOM], other[UNITS_ROOM], most[UNITS_ROOM];
	const uint64_t number = (uint64_t)real_of(summary, "count");

	switch (view->kind) {
	case VIEW_GC:
		put_gc_summary(summary, to);
		break;
	case VIEW_ALLOC:
		fprintf(to, "%s (%s, +-%.1f %%)",
			units_bytes((uint64_t)real_of(summary, "bytes"), other),
			units_things((uint64_t)real_of(summary, "samples"), "sample", "samples",
				     count),
			real_of(summary, "error_percent"));
		break;
	case VIEW_CONTENTION:
	case VIEW_WAITS:
		fprintf(to, "%s, %s", units_things(number, "wait", "waits", count),
			units_time((uint64_t)(real_of(summary, "waited_ms") * NS_PER_MS), other));
		break;
	case VIEW_THREADPOOL:
		fprintf(to, "%s, %s for starvation; at most %s",
			units_things(number, "change", "changes", count),
			units_count((uint64_t)real_of(summary, "starvations"), other),
			units_things((uint64_t)real_of(summary, "most_workers"), "worker",
				     "workers", most));
		break;
	case VIEW_JIT:
		fprintf(to, "%s in %s", units_things(number, "method", "methods", count),
			units_time((uint64_t)(real_of(summary, "time_ms") * NS_PER_MS), other));
		break;
	default:
		fprintf(to, "%s", units_count(number, count));
	}
	fputc('\n', to);
}

static const char *title_of(enum view_kind kind)
{
	static const char *const titles[VIEW_KINDS] = {
		[VIEW_GC] = "GC",
		[VIEW_ALLOC] = "Allocations",
		[VIEW_EXCEPTIONS] = "Exceptions",
		[VIEW_CONTENTION] = "Lock waits",
		[VIEW_WAITS] = "Waits",
		[VIEW_THREADPOOL] = "Thread pool",
		[VIEW_JIT] = "Compilations",
		[VIEW_EVENTS] = "Events",
		[VIEW_COUNTERS] = "Counters",
	};

	return titles[kind];
}

/* Events one by one. */
static void put_lines(const json_t *summary, FILE *to)
{
	const json_t *line;
	size_t index;

	json_array_foreach(json_object_get(summary, "events"), index, line)
	{
		char *fields = message_printable(text_of(line, "fields"));
		const char *activity = text_of(line, "activity");

		fprintf(to, "%10.6f  %7" JSON_INTEGER_FORMAT "  %s/%s  %s%s%s\n",
			real_of(line, "time_s"), json_integer_value(json_object_get(line, "tid")),
			text_of(line, "provider"), text_of(line, "event"), fields ? fields : "",
			*activity ? "  activity " : "", activity);
		free(fields);
	}
}

/* Events of event sources belong to activities only while tasks pass these on. */
static void put_why_no_activities(const json_t *kinds, FILE *to)
{
	const json_t *row;
	size_t index;

	json_array_foreach(kinds, index, row)
	{
		const char *name = text_of(row, "event");
		size_t length = strlen(name);

		if (length < 5 || strcmp(name + length - 5, "Start") != 0 ||
		    !strncmp(text_of(row, "provider"), "Microsoft-Windows-DotNET", 24))
			continue;
		fputs("No activities: record System.Threading.Tasks.TplEventSource:80:4 too, for "
		      "the times of requests\n",
		      to);
		return;
	}
}

static void put_activities(const struct view *view, const json_t *summary, const json_t *kinds,
			   FILE *to)
{
	const json_t *row, *rows = json_object_get(summary, "activities");
	char time[UNITS_ROOM], longest[UNITS_ROOM], count[UNITS_ROOM];
	size_t left_out, index, shown = view_shown_rows(view, json_array_size(rows));

	if (!json_array_size(rows)) {
		put_why_no_activities(kinds, to);
		return;
	}
	fprintf(to, "\n%8s %8s %8s  %s\n", "TIME", "COUNT", "MAX", "ACTIVITY");
	json_array_foreach(rows, index, row)
	{
		char *request;

		if (index == shown)
			break;
		request = message_printable(text_of(row, "request"));
		units_time((uint64_t)(real_of(row, "time_ms") * NS_PER_MS), time);
		units_time((uint64_t)(real_of(row, "longest_ms") * NS_PER_MS), longest);
		units_count((uint64_t)real_of(row, "count"), count);
		fprintf(to, "%8s %8s %8s  %s %s\n", time, count, longest, text_of(row, "activity"),
			request ? request : "");
		free(request);
	}
	left_out = json_array_size(rows) - shown;
	text_parts_put_left_out(left_out, left_out == 1 ? "activity" : "activities", to);
}

/* ---- what is missing ------------------------------------------------------------------------- */

static void put_event_losses(const struct event_report *report, FILE *to)
{
	const uint64_t without_stack = report->match.events_alone;
	const uint64_t thinned =
		report->thinned_stacks < without_stack ? report->thinned_stacks : without_stack;
	char room[UNITS_ROOM];
	const struct {
		uint64_t count;
		const char *one, *many;
	} rows[] = {
		{ report->gaps, "time the runtime has dropped events: its buffer was full",
		  "times the runtime has dropped events: its buffer was full" },
		{ report->unknown_kinds, "event is of a kind that the stream does not describe",
		  "events are of a kind that the stream does not describe" },
		{ report->missing_stacks, "event has a stack that the stream does not have",
		  "events have a stack that the stream does not have" },
		{ report->unfinished,
		  "wait, compilation or activity had not ended, or had begun before",
		  "waits, compilations or activities had not ended, or had begun before" },
		{ report->other_processes, "event is of a collection of another process",
		  "events are of collections of another process" },
		{ thinned, "event has no native stack: there were too many a second",
		  "events have no native stack: there were too many a second" },
		{ without_stack - thinned, "event has no native stack",
		  "events have no native stack" },
		{ report->match.hits_alone,
		  "native stack has no event: the runtime did not send it",
		  "native stacks have no event: the runtime did not send it" },
		{ report->lines_left_out, "event is not listed: there are too many",
		  "events are not listed: there are too many" },
		{ report->meter_limits, "limit of Meters was reached: time series are missing",
		  "limits of Meters were reached: time series are missing" },
		{ report->meter_errors, "error of Meters: --event=Metrics.*Error lists it",
		  "errors of Meters: --event=Metrics.*Error lists them" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (rows[i].count)
			fprintf(to, "%s %s\n", units_count(rows[i].count, room),
				rows[i].count == 1 ? rows[i].one : rows[i].many);
	if (report->cut)
		fprintf(to, "The stream of events is not whole: %s\n", report->cut);
}

void event_view_write_losses(const struct view *view, FILE *to)
{
	put_event_losses(view->profile->report, to);
}

static void put_collections_without_events(const json_t *summary, FILE *to)
{
	uint64_t count = (uint64_t)real_of(summary, "without_events");
	char room[UNITS_ROOM];

	if (count)
		fprintf(to, "%s without events: by the numbers of the others\n",
			units_things(count, "collection", "collections", room));
}

static json_t *event_losses(const struct event_report *report)
{
	if (!report)
		return json_null();
	return json_pack(
		"{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "dropped",
		(json_int_t)report->gaps, "unknown_kinds", (json_int_t)report->unknown_kinds,
		"missing_stacks", (json_int_t)report->missing_stacks, "unfinished",
		(json_int_t)report->unfinished, "of_other_processes",
		(json_int_t)report->other_processes, "matched_stacks",
		(json_int_t)report->match.matched, "events_without_sample",
		(json_int_t)report->match.events_alone, "samples_without_event",
		(json_int_t)report->match.hits_alone, "meter_limits",
		(json_int_t)report->meter_limits, "meter_errors", (json_int_t)report->meter_errors,
		"data_end_early", json_output_text(report->cut));
}

/* ---- writers --------------------------------------------------------------------------------- */

static void write_table(const struct view *view, const json_t *summary, const json_t *rows,
			FILE *to)
{
	const char *estimator = json_string_value(json_object_get(summary, "estimator"));

	fprintf(to, "%s of ", title_of(view->kind));
	text_parts_put_whose(view->profile, to);
	fputs(": ", to);
	put_summary(view, summary, to);
	if (estimator)
		fprintf(to, "  estimated from %s\n", estimator);
	if (view->kind == VIEW_CONTENTION &&
	    profile_find_event(view->profile, PROFILE_OFF_CPU) == UINT32_MAX)
		fputs("  record --off-cpu shows where owners were\n", to);
	if (json_array_size(json_object_get(summary, "events"))) {
		put_lines(summary, to);
	} else {
		put_rows(view, rows, to);
		if (view->kind == VIEW_EVENTS)
			put_activities(view, summary, rows, to);
	}
	put_collections_without_events(summary, to);
	put_event_losses(view->profile->report, to);
	text_parts_put_losses(view->profile, to);
}

struct sym_error *event_view_write_text(const struct view *view, FILE *to)
{
	const bool is_any = view->kind == VIEW_EVENTS;
	json_t *summary, *rows;
	struct sym_error *error;

	if (!event_view_has_rows(view)) {
		fprintf(to,
			"%s has no events for the view %s: nothing happened, or it was not "
			"recorded (dotnet-mapgen record --events%s%s)\n",
			view->input, view_kind_name(view->kind), is_any ? "" : "=",
			is_any ? "" : view_kind_name(view->kind));
		if (view->profile->report)
			put_event_losses(view->profile->report, to);
		return NULL;
	}
	error = event_view_make(view, &summary, &rows);
	if (error)
		return error;
	write_table(view, summary, rows, to);
	json_decref(summary);
	json_decref(rows);
	return NULL;
}

struct sym_error *event_view_write_headline(const struct view *view, FILE *to)
{
	json_t *summary, *rows;
	struct sym_error *error = event_view_make(view, &summary, &rows);

	if (error)
		return error;
	fprintf(to, "%s: ", title_of(view->kind));
	put_summary(view, summary, to);
	fprintf(to, "  dotnet-mapgen report %s -i %s\n", view_kind_name(view->kind), view->input);
	json_decref(summary);
	json_decref(rows);
	return NULL;
}

static void keep_top(const struct view *view, json_t *rows)
{
	while (view->top && json_array_size(rows) > view->top)
		json_array_remove(rows, json_array_size(rows) - 1);
}

struct sym_error *event_view_write_json(const struct view *view, FILE *to)
{
	const struct profile *profile = view->profile;
	json_t *summary, *rows, *value;
	struct sym_error *error = event_view_make(view, &summary, &rows);

	if (error)
		return error;
	value = json_pack("{s:o, s:o, s:i, s:o, s:f, s:s}", "input", json_output_text(view->input),
			  "title", json_output_text(profile->title), "pid", profile->pid, "runtime",
			  json_output_text(profile->runtime), "seconds", profile_seconds(profile),
			  "view", view_kind_name(view->kind));
	json_object_update(value, summary);
	keep_top(view, rows);
	keep_top(view, json_object_get(value, "activities"));
	json_object_set_new(value, event_view_rows_name(view->kind), rows);
	json_object_set_new(value, "losses", json_parts_losses(profile));
	json_object_set_new(value, "event_losses", event_losses(profile->report));
	json_decref(summary);
	return json_output_print_to(value, to)
		       ? NULL
		       : sym_error_create(SYM_ERROR_NO_MEMORY, "the JSON could not be made");
}

struct sym_error *event_view_write_csv(const struct view *view, FILE *to)
{
	json_t *summary, *rows;
	struct sym_error *error = event_view_make(view, &summary, &rows);

	if (error)
		return error;
	keep_top(view, rows);
	if (json_array_size(json_object_get(summary, "events")))
		csv_rows_write(json_object_get(summary, "events"), to);
	else
		csv_rows_write(rows, to);
	json_decref(summary);
	json_decref(rows);
	return NULL;
}
