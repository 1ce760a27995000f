/* SPDX-License-Identifier: MIT */
/* The rows of each view of events. */
#include "mapgen/view/event_view.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/error.h"
#include "mapgen/cli/json_output.h"
#include "mapgen/profile/event_report.h"
#include "mapgen/view/event_origins.h"
#include "mapgen/view/frame_text.h"
#include "mapgen/view/lock_owners.h"
#include "mapgen/view/units.h"
#include "mapgen/view/view_rows.h"

enum {
	NAME_LIMIT = 1 << 20,
	MOST_ORIGINS = 2, /* named in a row */
	MOST_MESSAGES = 5,
};

static const double ns_per_ms = 1e6;

bool event_view_is_one(enum view_kind kind)
{
	return kind >= VIEW_GC && kind <= VIEW_COUNTERS;
}

bool event_view_has_own_rows(const struct view *view)
{
	return event_view_is_one(view->kind) && !(view->has_by && view->event != UINT32_MAX);
}

bool event_view_has_rows(const struct view *view)
{
	const struct event_report *report = view->profile->report;

	if (!report)
		return false;
	switch (view->kind) {
	case VIEW_GC:
		return report->gc.count;
	case VIEW_THREADPOOL:
		return report->pool_count || report->most_workers;
	case VIEW_EVENTS:
		return report->kinds.count;
	case VIEW_COUNTERS:
		return report->counters.count;
	default:
		return view->event != UINT32_MAX;
	}
}

/* ---- parts of rows --------------------------------------------------------------------------- */

/* Short, unless full names were asked for. */
static enum frame_names names_of(const struct view *view)
{
	return view->names == FRAME_NAMES_FULL ? FRAME_NAMES_FULL : FRAME_NAMES_SHORT;
}

static void append_name(const struct view *view, uint32_t frame, struct buf *text)
{
	frame_text_append(text, frame_table_at(view->profile->frames, frame), names_of(view));
}

/* "Endpoints.Alloc 88 %, JsonSerializer.Serialize 9 %". */
static json_t *from_json(const struct view *view, const struct event_origins *origins,
			 const struct event_subject *subject)
{
	struct buf text;

	buf_init(&text, NAME_LIMIT);
	for (size_t i = 0; i < subject->origin_count && i < MOST_ORIGINS; i++) {
		const struct event_origin *origin = &origins->items[subject->first + i];
		double share = subject->weight
				       ? 100.0 * (double)origin->weight / (double)subject->weight
				       : 0;

		if (i && share < 0.5)
			continue;
		if (text.size_bytes)
			buf_append_string(&text, ", ");
		if (origin->where == FRAME_NONE)
			buf_append_string(&text, "(no stack)");
		else
			append_name(view, origin->where, &text);
		if (subject->origin_count > 1 && share >= 0.5)
			buf_printf(&text, " %.0f %%", share);
	}
	return json_output_take(&text);
}

static json_t *seconds_json(const struct view *view, uint64_t time_ns)
{
	uint64_t begin_ns = view->profile->begin_ns;

	return json_real(time_ns > begin_ns ? (double)(time_ns - begin_ns) / 1e9 : 0);
}

static json_t *bytes_or_null(bool is_known, uint64_t bytes)
{
	return is_known ? json_integer((json_int_t)bytes) : json_null();
}

static const char *leaf_name(const struct view *view, const struct event_subject *subject)
{
	return frame_table_at(view->profile->frames, subject->leaf)->name;
}

/* ---- collections ----------------------------------------------------------------------------- */

static bool is_in_window(const struct view *view, uint64_t time_ns)
{
	const struct profile *profile = view->profile;

	return time_ns >= profile->begin_ns && (!profile->end_ns || time_ns <= profile->end_ns);
}

/* Finds the bytes that were allocated since the previous collection. */
static bool allocated_before(const struct gc_collection *collection,
			     const struct gc_collection *before, uint64_t *ret)
{
	if (!before || !before->has_after || !collection->has_before ||
	    collection->before_bytes < before->after_bytes)
		return false;
	*ret = collection->before_bytes - before->after_bytes;
	return true;
}

static json_t *collection_row(const struct view *view, const struct gc_collection *collection,
			      bool has_allocated, uint64_t allocated_bytes)
{
	const struct profile *profile = view->profile;
	size_t count = 0;
	const uint32_t *frames =
		collection->stack == UINT32_MAX
			? NULL
			: frame_table_stack(profile->frames, collection->stack, &count);
	uint32_t where = event_origins_where(profile->frames, frames, count);

	return json_pack(
		"{s:I, s:I, s:s, s:s, s:I, s:o, s:f, s:I, s:f, s:o, s:o, s:o, s:o, s:i, s:o}",
		"number", (json_int_t)collection->number, "generation",
		(json_int_t)collection->generation, "kind", gc_kind_text(collection->kind),
		"reason", gc_reason_text(collection->reason), "reason_number",
		(json_int_t)collection->reason, "start_s", seconds_json(view, collection->start_ns),
		"pause_ms", (double)collection->pause_ns / ns_per_ms, "pauses",
		(json_int_t)collection->pauses, "longest_pause_ms",
		(double)collection->longest_pause_ns / ns_per_ms, "promoted_bytes",
		bytes_or_null(collection->has_after, collection->promoted_bytes), "before_bytes",
		bytes_or_null(collection->has_before, collection->before_bytes), "after_bytes",
		bytes_or_null(collection->has_after, collection->after_bytes), "allocated_bytes",
		bytes_or_null(has_allocated, allocated_bytes), "tid", collection->tid, "started_by",
		view_rows_name(view, where, names_of(view)));
}

struct gc_sums {
	uint64_t count, generations[3], pause_ns, longest_ns, allocated_bytes;
	uint64_t without_events; /* of the processes before */
	/* The next ones are of the last process. */
	int32_t pid;
	uint64_t numbered;
	uint32_t first_number, last_number;
};

/* Counts the numbers that are missing. Collections have consecutive numbers. The collection of
 * GC.TryStartNoGCRegion() has a number and sends no event. */
static uint64_t collections_without_events(const struct gc_sums *sums)
{
	uint64_t numbers = (uint64_t)sums->last_number - sums->first_number + 1;

	return sums->numbered && numbers > sums->numbered ? numbers - sums->numbered : 0;
}

static void begin_process(struct gc_sums *sums, int32_t pid)
{
	sums->without_events += collections_without_events(sums);
	sums->pid = pid;
	sums->numbered = 0;
}

static void add_sums(struct gc_sums *sums, const struct gc_collection *collection)
{
	if (!sums->numbered || collection->number < sums->first_number)
		sums->first_number = collection->number;
	if (!sums->numbered || collection->number > sums->last_number)
		sums->last_number = collection->number;
	sums->numbered++;
	sums->count++;
	sums->generations[collection->generation < 3 ? collection->generation : 2]++;
	sums->pause_ns += collection->pause_ns;
	if (collection->longest_pause_ns > sums->longest_ns)
		sums->longest_ns = collection->longest_pause_ns;
}

static json_t *gc_summary(const struct view *view, const struct gc_sums *sums)
{
	double seconds = profile_seconds(view->profile);

	return json_pack(
		"{s:I, s:I, s:[I, I, I], s:f, s:f, s:f, s:I, s:f, s:I}", "count",
		(json_int_t)sums->count, "without_events",
		(json_int_t)(sums->without_events + collections_without_events(sums)),
		"by_generation", (json_int_t)sums->generations[0], (json_int_t)sums->generations[1],
		(json_int_t)sums->generations[2], "paused_ms", (double)sums->pause_ns / ns_per_ms,
		"paused_percent", seconds > 0 ? (double)sums->pause_ns / 1e7 / seconds : 0.0,
		"longest_pause_ms", (double)sums->longest_ns / ns_per_ms, "allocated_bytes",
		(json_int_t)sums->allocated_bytes, "allocated_bytes_per_second",
		seconds > 0 ? (double)sums->allocated_bytes / seconds : 0.0,
		"pauses_of_earlier_collections",
		(json_int_t)view->profile->report->gc.stray_pauses);
}

static struct sym_error *make_gc(const struct view *view, json_t **summary, json_t *rows)
{
	const struct gc_log *log = &view->profile->report->gc;
	const struct gc_collection *before = NULL;
	struct gc_sums sums = { 0 };
	uint32_t allocations;

	for (size_t i = 0; i < log->count; i++) {
		const struct gc_collection *collection = &log->items[i];
		uint64_t allocated = 0;
		bool has_allocated;

		if (collection->pid != sums.pid) {
			begin_process(&sums, collection->pid);
			before = NULL;
		}
		has_allocated = allocated_before(collection, before, &allocated);
		before = collection;
		if (!is_in_window(view, collection->start_ns))
			continue;
		add_sums(&sums, collection);
		sums.allocated_bytes += allocated;
		json_array_append_new(rows,
				      collection_row(view, collection, has_allocated, allocated));
	}
	/* By allocation events where there are any: before the first collection too. */
	allocations = view_find_event(view->profile, VIEW_ALLOC);
	if (allocations != UINT32_MAX)
		sums.allocated_bytes = view->profile->events[allocations].weight;
	*summary = gc_summary(view, &sums);
	return NULL;
}

/* ---- what has a subject ---------------------------------------------------------------------- */

/*
 * Two standard deviations of a count, in percent. A runtime that counts area ends gives a thread
 * 8 KiB at a time: an object of 1 KiB leaves less than 1 KiB of it unused, and so 15 % too many.
 */
static double error_percent(const struct view *view, uint64_t count)
{
	static const double area_ends_percent = 15;
	const struct event_report *report = view->profile->report;

	if (!count)
		return 0;
	return 200 / sqrt((double)count) +
	       (report && report->counts_area_ends ? area_ends_percent : 0);
}

static const char *estimator(const struct view *view, enum profile_event_kind kind)
{
	if (kind == PROFILE_ALLOCATION_SAMPLES)
		return "random samples, one each 102,400 bytes on average";
	if (view->profile->report && view->profile->report->counts_area_ends)
		return "allocation ticks, one each 100 KB of a heap: not random; unused ends of "
		       "areas of 8 KiB count too: types with objects of more than 1 KiB may have "
		       "up to twice their bytes";
	return "allocation ticks, one each 100 KB of a heap: not random";
}

static void add_type(const struct view *view, const struct event_origins *origins,
		     const struct event_subject *subject, json_t *rows)
{
	json_array_append_new(rows, json_pack("{s:o, s:I, s:I, s:f, s:o}", "type",
					      json_output_text(leaf_name(view, subject)), "bytes",
					      (json_int_t)subject->weight, "count",
					      (json_int_t)subject->count, "error_percent",
					      error_percent(view, subject->count), "from",
					      from_json(view, origins, subject)));
}

static const char *most_frequent_message(const struct event_report *report, const char *type,
					 uint64_t *distinct_ret)
{
	const struct event_row *best = NULL;

	*distinct_ret = 0;
	for (const struct event_row *row = report->exceptions.table; row; row = row->hh.next) {
		if (strcmp(row->name, type) != 0)
			continue;
		++*distinct_ret;
		if (!best || row->count > best->count)
			best = row;
	}
	return best ? best->detail : NULL;
}

static void add_exception(const struct view *view, const struct event_origins *origins,
			  const struct event_subject *subject, json_t *rows)
{
	const char *type = leaf_name(view, subject);
	uint64_t distinct;
	const char *message = most_frequent_message(view->profile->report, type, &distinct);

	json_array_append_new(rows,
			      json_pack("{s:o, s:I, s:o, s:I, s:o}", "type", json_output_text(type),
					"count", (json_int_t)subject->count, "message",
					json_output_text(message), "messages", (json_int_t)distinct,
					"from", from_json(view, origins, subject)));
}

/* The name of the thread that has had this number last; NULL when it has none. */
static const char *thread_name(const struct thread_table *table, uint64_t tid)
{
	for (size_t i = table->thread_count; i > 0; i--)
		if ((uint64_t)table->threads[i - 1].tid == tid && *table->threads[i - 1].name)
			return table->threads[i - 1].name;
	return NULL;
}

static void add_lock(const struct view *view, const struct event_origins *origins,
		     const struct event_subject *subject, json_t *rows)
{
	const struct event_row *row =
		event_rows_look_up(&view->profile->report->locks, leaf_name(view, subject), "");
	uint64_t owner = row ? row->extra[0] : 0;
	char object[32] = "", managed[40] = "";

	if (row && row->extra[1])
		snprintf(object, sizeof(object), "0x%" PRIx64, row->extra[1]);
	if (owner & EVENT_REPORT_MANAGED_OWNER) {
		snprintf(managed, sizeof(managed), "managed thread %" PRIu64,
			 owner & ~EVENT_REPORT_MANAGED_OWNER);
		owner = 0;
	}
	json_array_append_new(
		rows,
		json_pack("{s:o, s:I, s:f, s:f, s:o, s:o, s:o, s:o}", "lock",
			  json_output_text(leaf_name(view, subject)), "waits",
			  (json_int_t)subject->count, "waited_ms",
			  (double)subject->weight / ns_per_ms, "longest_ms",
			  (double)subject->longest / ns_per_ms, "object",
			  json_output_text(*object ? object : NULL), "last_owner_tid",
			  owner ? json_integer((json_int_t)owner) : json_null(), "last_owner",
			  json_output_text(*managed ? managed
						    : thread_name(&view->profile->threads, owner)),
			  "from", from_json(view, origins, subject)));
}

static void add_wait(const struct view *view, const struct event_origins *origins,
		     const struct event_subject *subject, json_t *rows)
{
	json_array_append_new(rows, json_pack("{s:o, s:I, s:f, s:f, s:o}", "what",
					      json_output_text(leaf_name(view, subject)), "waits",
					      (json_int_t)subject->count, "waited_ms",
					      (double)subject->weight / ns_per_ms, "longest_ms",
					      (double)subject->longest / ns_per_ms, "from",
					      from_json(view, origins, subject)));
}

static json_t *subject_summary(const struct view *view, const struct selection *selection)
{
	const struct profile_event *event;

	if (view->event == UINT32_MAX)
		return json_pack("{s:I}", "count", (json_int_t)0);
	event = &view->profile->events[view->event];
	if (event->unit == PROFILE_UNIT_BYTES)
		return json_pack("{s:I, s:I, s:f, s:s}", "bytes",
				 (json_int_t)selection->total_weight, "samples",
				 (json_int_t)selection->total_count, "error_percent",
				 error_percent(view, selection->total_count), "estimator",
				 estimator(view, event->kind));
	if (event->unit == PROFILE_UNIT_NS)
		return json_pack("{s:I, s:f}", "count", (json_int_t)selection->total_count,
				 "waited_ms", (double)selection->total_weight / ns_per_ms);
	return json_pack("{s:I}", "count", (json_int_t)selection->total_count);
}

typedef void add_subject_fn(const struct view *view, const struct event_origins *origins,
			    const struct event_subject *subject, json_t *rows);

static struct sym_error *make_subjects(const struct view *view, add_subject_fn *add,
				       json_t **summary, json_t *rows)
{
	struct selection selection = { 0 };
	struct event_origins origins = { 0 };
	struct sym_error *error = NULL;

	if (view->event != UINT32_MAX)
		error = selection_make(view->profile, view->event, &view->selection, &selection);
	if (!error && view->event != UINT32_MAX)
		error = event_origins_make(&selection, &origins);
	if (!error) {
		for (size_t i = 0; i < origins.subject_count; i++)
			add(view, &origins, &origins.subjects[i], rows);
		*summary = subject_summary(view, &selection);
	}
	event_origins_deinit(&origins);
	selection_deinit(&selection);
	return error;
}

/* "Store.Reserve -> Thread.Sleep 98 %": where most of the owner's time went. */
static json_t *owner_json(const struct view *view, const struct owner_place *place, double share)
{
	struct buf text;

	buf_init(&text, NAME_LIMIT);
	append_name(view, place->where, &text);
	if (place->innermost != FRAME_NONE) {
		buf_append_string(&text, " -> ");
		append_name(view, place->innermost, &text);
	}
	if (share < 0.995)
		buf_printf(&text, " %.0f %%", 100 * share);
	return json_output_take(&text);
}

static struct sym_error *make_locks(const struct view *view, json_t **summary, json_t *rows)
{
	struct lock_owners owners = { 0 };
	struct sym_error *error = make_subjects(view, add_lock, summary, rows);

	/* CPU samples alone would show only what an owner does, not what it waits for. */
	if (!error && profile_find_event(view->profile, PROFILE_OFF_CPU) != UINT32_MAX)
		error = lock_owners_make(view->profile, &owners);
	for (size_t i = 0; !error && i < json_array_size(rows); i++) {
		json_t *row = json_array_get(rows, i);
		const char *name = json_string_value(json_object_get(row, "lock"));
		double share;
		const struct owner_place *place = lock_owners_find(
			&owners, event_rows_look_up(&view->profile->report->locks, name ?: "", ""),
			&share);

		json_object_set_new(row, "owner_in",
				    place ? owner_json(view, place, share) : json_null());
	}
	lock_owners_deinit(&owners);
	return error;
}

/* ---- the others ------------------------------------------------------------------------------ */

static int compare_changes(const void *left, const void *right)
{
	const struct pool_change *a = left, *b = right;

	return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

static struct sym_error *make_pool(const struct view *view, json_t **summary, json_t *rows)
{
	const struct event_report *report = view->profile->report;
	uint64_t starvations = 0;

	/* They come in the order of time of each thread. */
	if (report->pool_count)
		qsort(report->pool, report->pool_count, sizeof(*report->pool), compare_changes);
	for (size_t i = 0; i < report->pool_count; i++) {
		const struct pool_change *change = &report->pool[i];

		starvations += change->reason == POOL_STARVATION;
		json_array_append_new(
			rows, json_pack("{s:o, s:I, s:s, s:f}", "time_s",
					seconds_json(view, change->time_ns), "workers",
					(json_int_t)change->workers, "reason",
					event_report_pool_reason(change->reason), "throughput",
					isfinite(change->throughput) ? change->throughput : 0.0));
	}
	*summary = json_pack("{s:I, s:I, s:I}", "count", (json_int_t)report->pool_count,
			     "starvations", (json_int_t)starvations, "most_workers",
			     (json_int_t)report->most_workers);
	return NULL;
}

static json_t *method_row(const struct event_row *row)
{
	return json_pack("{s:o, s:o, s:I, s:f, s:I, s:I}", "method", json_output_text(row->name),
			 "tier", json_output_text(row->detail), "count", (json_int_t)row->count,
			 "time_ms", (double)row->weight / ns_per_ms, "il_bytes",
			 (json_int_t)row->extra[0], "code_bytes", (json_int_t)row->extra[1]);
}

static json_t *kind_row(const struct event_row *row)
{
	return json_pack("{s:o, s:o, s:I, s:I}", "provider", json_output_text(row->name), "event",
			 json_output_text(row->detail), "count", (json_int_t)row->count,
			 "with_stack", (json_int_t)row->extra[0]);
}

static json_t *real_or_null(uint64_t count, double value)
{
	return count && isfinite(value) ? json_real(value) : json_null();
}

static json_t *counter_row(const struct event_row *row)
{
	const uint64_t count = row->extra[0];

	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I}", "provider",
			 json_output_text(row->name), "counter", json_output_text(row->detail),
			 "unit", json_output_text(row->note), "last",
			 real_or_null(count, row->last), "mean",
			 real_or_null(count, row->sum / (double)count), "min",
			 real_or_null(count, row->least), "max", real_or_null(count, row->most),
			 "count", (json_int_t)count);
}

static json_t *activity_row(const struct event_row *row)
{
	return json_pack("{s:o, s:o, s:I, s:f, s:f}", "activity", json_output_text(row->name),
			 "request", json_output_text(row->detail), "count", (json_int_t)row->count,
			 "time_ms", (double)row->weight / ns_per_ms, "longest_ms",
			 (double)row->longest / ns_per_ms);
}

static struct sym_error *put_sorted(const struct event_rows *table,
				    json_t *(*make)(const struct event_row *row), json_t *rows)
{
	const struct event_row **sorted = event_rows_sorted(table);

	if (!sorted)
		return &sym_error_no_memory;
	for (size_t i = 0; i < table->count; i++)
		json_array_append_new(rows, make(sorted[i]));
	free(sorted);
	return NULL;
}

static struct sym_error *make_methods(const struct view *view, json_t **summary, json_t *rows)
{
	const struct event_rows *methods = &view->profile->report->methods;
	uint64_t count = 0, time_ns = 0, code_bytes = 0;

	for (const struct event_row *row = methods->table; row; row = row->hh.next) {
		count += row->count;
		time_ns += row->weight;
		code_bytes += row->extra[1];
	}
	*summary = json_pack("{s:I, s:f, s:I}", "count", (json_int_t)count, "time_ms",
			     (double)time_ns / ns_per_ms, "code_bytes", (json_int_t)code_bytes);
	return put_sorted(methods, method_row, rows);
}

static json_t *line_json(const struct view *view, const struct event_line *line)
{
	const struct event_report *report = view->profile->report;
	const struct profile_thread *thread = &view->profile->threads.threads[line->thread];
	const char *provider = report->texts.data + line->fields_offset;
	const char *name = provider + strlen(provider) + 1;
	const char *fields = name + strlen(name) + 1;
	const char *activity = fields + strlen(fields) + 1;
	json_t *stack = json_array();
	size_t count;
	const uint32_t *frames = frame_table_stack(view->profile->frames, line->stack, &count);

	for (size_t i = count; i > 0; i--)
		json_array_append_new(stack, view_rows_name(view, frames[i - 1], names_of(view)));
	return json_pack("{s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "time_s",
			 seconds_json(view, line->time_ns), "tid", thread->tid, "thread",
			 json_output_text(thread->name), "provider", json_output_text(provider),
			 "event", json_output_text(name), "fields", json_output_text(fields),
			 "activity", json_output_text(*activity ? activity : NULL), "stack", stack);
}

static int compare_lines(const void *left, const void *right)
{
	const struct event_line *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return (a->fields_offset > b->fields_offset) - (a->fields_offset < b->fields_offset);
}

static struct sym_error *make_kinds(const struct view *view, json_t **summary, json_t *rows)
{
	const struct event_report *report = view->profile->report;
	json_t *lines = json_array(), *activities = json_array();
	struct sym_error *error;
	uint64_t count = 0;

	if (report->line_count)
		qsort(report->lines, report->line_count, sizeof(*report->lines), compare_lines);
	for (size_t i = 0; i < report->line_count; i++)
		json_array_append_new(lines, line_json(view, &report->lines[i]));
	error = put_sorted(&report->activities, activity_row, activities);
	for (const struct event_row *row = report->kinds.table; row; row = row->hh.next)
		count += row->count;
	*summary = json_pack("{s:I, s:o, s:I, s:o}", "count", (json_int_t)count, "events", lines,
			     "events_left_out", (json_int_t)report->lines_left_out, "activities",
			     activities);
	return error ? error : put_sorted(&report->kinds, kind_row, rows);
}

static struct sym_error *make_counters(const struct view *view, json_t **summary, json_t *rows)
{
	*summary = json_pack("{s:I}", "count", (json_int_t)view->profile->report->counters.count);
	return put_sorted(&view->profile->report->counters, counter_row, rows);
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Each has a function for all its rows, or one for the row of a subject. */
static const struct {
	const char *rows_name;
	struct sym_error *(*make)(const struct view *view, json_t **summary, json_t *rows);
	add_subject_fn *add;
} views[] = {
	[VIEW_GC] = { "collections", make_gc, NULL },
	[VIEW_ALLOC] = { "types", NULL, add_type },
	[VIEW_EXCEPTIONS] = { "types", NULL, add_exception },
	[VIEW_CONTENTION] = { "locks", make_locks, NULL },
	[VIEW_WAITS] = { "waits", NULL, add_wait },
	[VIEW_THREADPOOL] = { "changes", make_pool, NULL },
	[VIEW_JIT] = { "methods", make_methods, NULL },
	[VIEW_EVENTS] = { "kinds", make_kinds, NULL },
	[VIEW_COUNTERS] = { "counters", make_counters, NULL },
};

const char *event_view_rows_name(enum view_kind kind)
{
	return views[kind].rows_name;
}

struct sym_error *event_view_make(const struct view *view, json_t **summary_ret, json_t **rows_ret)
{
	json_t *rows = json_array(), *summary = NULL;
	struct sym_error *error = rows ? NULL : &sym_error_no_memory;

	if (!error && view->profile->report)
		error = views[view->kind].add
				? make_subjects(view, views[view->kind].add, &summary, rows)
				: views[view->kind].make(view, &summary, rows);
	if (!error && !summary)
		summary = json_object();
	if (error) {
		json_decref(rows);
		json_decref(summary);
		return error;
	}
	*summary_ret = summary;
	*rows_ret = rows;
	return NULL;
}
