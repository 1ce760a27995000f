/* SPDX-License-Identifier: MIT */
/*
 * Turns events into entries of the views. Begin and end of an interval are matched by thread, or by
 * a field of the event: the method of a compilation, the activity of a request.
 *
 * Bytes of types come from one of two events. An allocation tick comes each 100 KB of a heap, and
 * has the type that was allocated just then. AllocationSampled (.NET 10 on) takes each byte with
 * p = 1/102400, so an object of n bytes is seen with 1 - (1 - p)^n, and stands for n over that:
 * docs/design/features/RandomizedAllocationSampling.md of dotnet/runtime.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/grow.h"
#include "libsym/error.h"
#include "mapgen/events/event_measures.h"
#include "mapgen/profile/event_counters.h"
#include "mapgen/profile/event_reading.h"

enum {
	MOST_PENDING = 1 << 18,
	MOST_TIER = 8,
};

/* ---- what has begun -------------------------------------------------------------------------- */

static struct pending *find_pending(const struct event_reading *reading,
				    const struct pending_key *key)
{
	struct pending *pending;

	HASH_FIND(hh, reading->pending, key, sizeof(*key), pending);
	return pending;
}

static void end_pending(struct event_reading *reading, struct pending *pending)
{
	HASH_DEL(reading->pending, pending);
	free(pending->text);
	free(pending);
}

void event_reading_end_pending(struct event_reading *reading)
{
	struct pending *pending, *next;

	reading->report->unfinished += HASH_COUNT(reading->pending) + reading->pending_left_out;
	HASH_ITER(hh, reading->pending, pending, next)
	end_pending(reading, pending);
}

static struct pending_key thread_key(enum pending_what what, const struct runtime_event *event,
				     uint64_t id)
{
	return (struct pending_key){ .what = what, .tid = (uint64_t)event->tid, .id = { id } };
}

/* *ret NULL: too many have begun. One that has begun before and not ended is replaced. */
static struct sym_error *begin_pending(struct event_reading *reading, const struct pending_key *key,
				       const struct runtime_event *event, uint32_t stack,
				       struct pending **ret)
{
	struct pending *pending = find_pending(reading, key);

	*ret = NULL;
	if (pending) {
		reading->report->unfinished++;
		end_pending(reading, pending);
	}
	if (HASH_COUNT(reading->pending) >= MOST_PENDING) {
		reading->pending_left_out++;
		return NULL;
	}
	*ret = pending = hash_find_or_add(&reading->pending, key, sizeof(*key),
					  offsetof(struct pending, key), sizeof(*pending), NULL);
	if (!pending)
		return &sym_error_no_memory;
	pending->time_ns = event->time_ns;
	pending->stack = stack;
	return NULL;
}

static uint64_t since(const struct pending *pending, const struct runtime_event *event)
{
	return event->time_ns > pending->time_ns ? event->time_ns - pending->time_ns : 0;
}

static const char *text_of(struct buf *buf, const struct runtime_event *event, const char *field)
{
	buf_clear(buf);
	event_text(event, field, buf);
	return buf_string(buf) ?: "";
}

static bool is_wanted(const struct event_reading *reading, uint64_t time_ns)
{
	return time_ns >= event_reading_window_begin(reading) &&
	       time_ns < event_reading_window_end(reading);
}

/* ---- allocations ----------------------------------------------------------------------------- */

static struct sym_error *take_tick(struct event_reading *reading, const struct runtime_event *event,
				   uint32_t stack)
{
	reading->report->counts_area_ends |= !event_has(event, "ObjectSize");
	return event_reading_add(reading, PROFILE_ALLOCATION_TICKS, event, stack,
				 text_of(&reading->text, event, "TypeName"),
				 event_measures_tick_bytes(event));
}

static struct sym_error *take_sampled(struct event_reading *reading,
				      const struct runtime_event *event, uint32_t stack)
{
	return event_reading_add(reading, PROFILE_ALLOCATION_SAMPLES, event, stack,
				 text_of(&reading->text, event, "TypeName"),
				 (uint64_t)llround(event_measures_sampled_bytes(event)));
}

/* ---- exceptions ------------------------------------------------------------------------------ */

static struct sym_error *take_exception(struct event_reading *reading,
					const struct runtime_event *event, uint32_t stack)
{
	const char *type = text_of(&reading->text, event, "ExceptionType");
	const char *message = text_of(&reading->detail, event, "ExceptionMessage");
	struct event_row *row;
	struct sym_error *error =
		event_rows_find(&reading->report->exceptions, type, message, &row);

	if (!error && row)
		event_row_add(row, 0);
	return error ? error
		     : event_reading_add(reading, PROFILE_EXCEPTIONS, event, stack, type, 1);
}

/* ---- locks and waits ------------------------------------------------------------------------- */

/*
 * Up to .NET 10 a thread of the system. From .NET 11 on all locks are those of
 * src/libraries/System.Private.CoreLib/src/System/Threading/Lock.cs, which know the number of a
 * managed thread only.
 */
static uint64_t owner_of(struct event_reading *reading, const struct runtime_event *event)
{
	static const char name[] = ".NET ";
	enum {
		FIRST_WITH_MANAGED_OWNERS = 11
	};
	const char *runtime = reading->opts->runtime ?: reading->profile->runtime;
	uint64_t owner = event_number(event, "LockOwnerThreadID");

	if (runtime && !strncmp(runtime, name, strlen(name)) &&
	    strtoul(runtime + strlen(name), NULL, 10) >= FIRST_WITH_MANAGED_OWNERS) {
		return owner ? owner | EVENT_REPORT_MANAGED_OWNER : 0;
	}
	return owner && owner <= INT32_MAX
		       ? (uint64_t)event_reading_host_tid(
				 reading, event_reading_pid(reading, event), (int32_t)owner)
		       : 0;
}

static struct sym_error *begin_lock(struct event_reading *reading,
				    const struct runtime_event *event, uint32_t stack)
{
	const struct pending_key key = thread_key(PENDING_LOCK, event, 0);
	struct pending *pending;
	struct sym_error *error = begin_pending(reading, &key, event, stack, &pending);
	uint64_t lock = event_number(event, "LockID");

	if (error || !pending)
		return error;
	pending->number = owner_of(reading, event);
	pending->other = event_number(event, "AssociatedObjectID");
	if (lock && asprintf(&pending->text, "lock 0x%" PRIx64, lock) < 0)
		return &sym_error_no_memory;
	return NULL;
}

/* Which stacks the owner had then is known when all samples are read. */
static struct sym_error *keep_lock_wait(struct event_reading *reading,
					const struct pending *pending, uint64_t waited_ns,
					const struct event_row *lock)
{
	struct event_report *report = reading->report;

	if (!reading->profile->keeps_spans)
		return NULL;
	if (!grow_items((void **)&report->lock_waits, &report->lock_wait_capacity,
			report->lock_wait_count, sizeof(*report->lock_waits)))
		return &sym_error_no_memory;
	report->lock_waits[report->lock_wait_count++] = (struct lock_wait){
		.begin_ns = pending->time_ns,
		.end_ns = pending->time_ns + waited_ns,
		.tid = pending->key.tid,
		.owner_tid = pending->number & EVENT_REPORT_MANAGED_OWNER ? 0 : pending->number,
		.lock = lock
	};
	return NULL;
}

static struct sym_error *end_lock(struct event_reading *reading, const struct runtime_event *event)
{
	const struct pending_key key = thread_key(PENDING_LOCK, event, 0);
	struct pending *pending = find_pending(reading, &key);
	uint64_t waited_ns = (uint64_t)event_real(event, "DurationNs");
	struct event_row *row;
	struct sym_error *error;
	const char *name;

	if (!pending) {
		reading->report->unfinished++;
		return NULL;
	}
	if (!waited_ns)
		waited_ns = since(pending, event);
	name = pending->text ? pending->text : "(which lock is not said)";
	error = event_rows_find(&reading->report->locks, name, "", &row);
	if (!error && row) {
		event_row_add(row, waited_ns);
		row->extra[0] = pending->number ? pending->number : row->extra[0];
		row->extra[1] = pending->other;
		error = keep_lock_wait(reading, pending, waited_ns, row);
	}
	if (!error)
		error = event_reading_add(reading, PROFILE_CONTENTION, event, pending->stack, name,
					  waited_ns);
	end_pending(reading, pending);
	return error;
}

static struct sym_error *begin_wait(struct event_reading *reading,
				    const struct runtime_event *event, uint32_t stack)
{
	const struct pending_key key = thread_key(PENDING_WAIT, event, 0);
	struct pending *pending;
	struct sym_error *error = begin_pending(reading, &key, event, stack, &pending);

	if (!error && pending)
		pending->number = event_number(event, "WaitSource");
	return error;
}

static struct sym_error *end_wait(struct event_reading *reading, const struct runtime_event *event)
{
	const struct pending_key key = thread_key(PENDING_WAIT, event, 0);
	struct pending *pending = find_pending(reading, &key);
	struct sym_error *error;

	if (!pending) {
		reading->report->unfinished++;
		return NULL;
	}
	error = event_reading_add(reading, PROFILE_WAITS, event, pending->stack,
				  pending->number == 1 ? "Monitor.Wait" : "wait handle",
				  since(pending, event));
	end_pending(reading, pending);
	return error;
}

/* ---- thread pool ----------------------------------------------------------------------------- */

static struct sym_error *take_pool(struct event_reading *reading, const struct runtime_event *event,
				   uint32_t stack)
{
	struct event_report *report = reading->report;
	struct pool_change *change;

	if (event->kind->meaning == EVENT_POOL_THREADS) {
		uint32_t workers = (uint32_t)event_number(event, "ActiveWorkerThreadCount");

		if (workers > report->most_workers)
			report->most_workers = workers;
		return NULL;
	}
	if (!grow_items((void **)&report->pool, &report->pool_capacity, report->pool_count,
			sizeof(*report->pool)))
		return &sym_error_no_memory;
	change = &report->pool[report->pool_count++];
	*change = (struct pool_change){
		.time_ns = event->time_ns,
		.workers = (uint32_t)event_number(event, "NewWorkerThreadCount"),
		.reason = (uint32_t)event_number(event, "Reason"),
		.throughput = event_real(event, "AverageThroughput"),
	};
	return event_reading_add(reading, PROFILE_POOL, event, stack,
				 event_report_pool_reason(change->reason), 1);
}

/* ---- compilation ----------------------------------------------------------------------------- */

static const char *tier_of(uint64_t flags)
{
	static const char *const tiers[MOST_TIER] = { "unknown",
						      "not optimized",
						      "optimized",
						      "tier 0",
						      "tier 1",
						      "tier 1 (OSR)",
						      "tier 0 (instrumented)",
						      "tier 1 (instrumented)" };

	return tiers[flags >> 7 & (MOST_TIER - 1)];
}

static struct sym_error *begin_jit(struct event_reading *reading, const struct runtime_event *event,
				   uint32_t stack)
{
	const struct pending_key key =
		thread_key(PENDING_JIT, event, event_number(event, "MethodID"));
	struct pending *pending;
	struct sym_error *error = begin_pending(reading, &key, event, stack, &pending);

	if (!error && pending)
		pending->number = event_number(event, "MethodILSize");
	return error;
}

static struct sym_error *end_jit(struct event_reading *reading, const struct runtime_event *event)
{
	const struct pending_key key =
		thread_key(PENDING_JIT, event, event_number(event, "MethodID"));
	struct pending *pending = find_pending(reading, &key);
	uint64_t flags = event_number(event, "MethodFlags");
	struct event_row *row;
	struct sym_error *error;

	/* Precompiled code is loaded without having been compiled. */
	if (!pending)
		return NULL;
	buf_clear(&reading->text);
	event_method_name(event, &reading->text);
	error = event_rows_find(&reading->report->methods, buf_string(&reading->text) ?: "",
				tier_of(flags), &row);
	if (!error && row) {
		event_row_add(row, since(pending, event));
		row->extra[0] += pending->number;
		row->extra[1] += event_number(event, "MethodSize");
	}
	if (!error)
		error = event_reading_add(reading, PROFILE_JIT, event, pending->stack,
					  buf_string(&reading->text) ?: "", since(pending, event));
	end_pending(reading, pending);
	return error;
}

/* ---- activities ------------------------------------------------------------------------------ */

static bool ends_with(const char *text, const char *ending)
{
	size_t length = strlen(text), ending_length = strlen(ending);

	return length > ending_length && !strcmp(text + length - ending_length, ending);
}

static struct pending_key activity_key(const struct runtime_event *event)
{
	struct pending_key key = { .what = PENDING_ACTIVITY };

	memcpy(key.id, event->activity, sizeof(key.id));
	return key;
}

/* "GET /orders" of ASP.NET, "GET api.example/orders" of HttpClient; empty of others. */
static void append_request(const struct runtime_event *event, struct buf *text)
{
	buf_clear(text);
	if (event_has(event, "path")) {
		event_text(event, "method", text);
		buf_append_char(text, ' ');
		event_text(event, "path", text);
	} else if (event_has(event, "pathAndQuery")) {
		event_text(event, "host", text);
		event_text(event, "pathAndQuery", text);
	}
}

static struct sym_error *add_activity(struct event_reading *reading, const struct event_kind *kind,
				      size_t name_bytes, const char *request, uint64_t ns)
{
	struct event_row *row;
	struct sym_error *error;

	buf_clear(&reading->text);
	buf_printf(&reading->text, "%s/%.*s", kind->provider, (int)name_bytes, kind->name);
	error = event_rows_find(&reading->report->activities, buf_string(&reading->text) ?: "",
				request, &row);
	if (!error && row)
		event_row_add(row, ns);
	return error;
}

static struct sym_error *begin_activity(struct event_reading *reading,
					const struct runtime_event *event, uint32_t stack)
{
	const struct pending_key key = activity_key(event);
	struct pending *pending = find_pending(reading, &key);
	struct sym_error *error;

	append_request(event, &reading->text);
	if (pending && pending->is_end && pending->time_ns >= event->time_ns) {
		char *request AUTO_FREE = strdup(buf_string(&reading->text) ?: "");
		uint64_t ns = pending->time_ns - event->time_ns;

		end_pending(reading, pending);
		return request ? add_activity(reading, event->kind,
					      strlen(event->kind->name) - strlen("Start"), request,
					      ns)
			       : &sym_error_no_memory;
	}
	error = begin_pending(reading, &key, event, stack, &pending);
	if (error || !pending)
		return error;
	pending->text = strdup(buf_string(&reading->text) ?: "");
	return pending->text ? NULL : &sym_error_no_memory;
}

/* A request may end in another thread, whose events may come before those of the first thread. */
static struct sym_error *end_activity(struct event_reading *reading,
				      const struct runtime_event *event, uint32_t stack)
{
	const struct pending_key key = activity_key(event);
	struct pending *pending = find_pending(reading, &key);
	struct sym_error *error;

	if (!pending || pending->is_end) {
		error = begin_pending(reading, &key, event, stack, &pending);
		if (!error && pending)
			pending->is_end = true;
		return error;
	}
	error = add_activity(reading, event->kind, strlen(event->kind->name) - strlen("Stop"),
			     pending->text, since(pending, event));
	end_pending(reading, pending);
	return error;
}

static struct sym_error *take_activity(struct event_reading *reading,
				       const struct runtime_event *event, uint32_t stack)
{
	if (!event->activity || !event->kind->is_known || event->kind->tracepoint)
		return NULL;
	if (ends_with(event->kind->name, "Start"))
		return begin_activity(reading, event, stack);
	return ends_with(event->kind->name, "Stop") ? end_activity(reading, event, stack) : NULL;
}

/* ---- all events ------------------------------------------------------------------------------ */

static struct sym_error *keep_line(struct event_reading *reading, const struct runtime_event *event,
				   uint32_t stack)
{
	struct event_report *report = reading->report;
	const struct event_kind *kind = event->kind;
	struct event_line *line;
	struct sym_error *error;

	buf_clear(&reading->text);
	buf_printf(&reading->text, "%s/%s", kind->provider, kind->name);
	if (regexec(reading->opts->line_regex, buf_string(&reading->text) ?: "", 0, NULL, 0))
		return NULL;
	if (report->texts.failure == BUF_TOO_BIG) {
		report->lines_left_out++;
		return NULL;
	}
	if (!grow_items((void **)&report->lines, &report->line_capacity, report->line_count,
			sizeof(*report->lines)))
		return &sym_error_no_memory;
	line = &report->lines[report->line_count];
	*line = (struct event_line){ .time_ns = event->time_ns,
				     .stack = stack,
				     .fields_offset = report->texts.size_bytes };
	error = event_reading_thread(reading, event, &line->thread);
	buf_append_string(&report->texts, kind->provider);
	buf_append_char(&report->texts, '\0');
	buf_append_string(&report->texts, kind->name);
	buf_append_char(&report->texts, '\0');
	event_print(event, &report->texts);
	buf_append_char(&report->texts, '\0');
	if (event->activity)
		event_activity_text(event->activity, &report->texts);
	buf_append_char(&report->texts, '\0');
	if (report->texts.failure == BUF_TOO_BIG)
		report->lines_left_out++;
	else
		report->line_count++;
	return error ? error : report->texts.failure == BUF_NO_MEMORY ? &sym_error_no_memory : NULL;
}

static struct sym_error *count_kind(struct event_reading *reading,
				    const struct runtime_event *event, uint32_t stack)
{
	const struct event_kind *kind = event->kind;
	struct event_row *row;
	struct sym_error *error =
		event_rows_find(&reading->report->kinds, kind->provider, kind->name, &row);

	if (error || !row)
		return error;
	event_row_add(row, 0);
	row->extra[0] += stack != reading->empty_stack;
	if (reading->opts->line_regex)
		error = keep_line(reading, event, stack);
	if (error || kind->meaning == EVENT_METHOD_LISTED || kind->meaning == EVENT_MODULE ||
	    strstr(kind->provider, "Rundown"))
		return error;
	buf_clear(&reading->text);
	buf_printf(&reading->text, "%s/%s", kind->provider, kind->name);
	return event_reading_add(reading, PROFILE_RUNTIME_EVENTS, event, stack,
				 buf_string(&reading->text) ?: "", 1);
}

static struct sym_error *take_sample(struct event_reading *reading,
				     const struct runtime_event *event, uint32_t stack)
{
	/* 1: outside of managed code, 2: in it */
	bool is_managed = event_number(event, "Type") == 2;

	return event_reading_add(reading, is_managed ? PROFILE_CPU : PROFILE_COUNTED, event, stack,
				 NULL, 1);
}

struct sym_error *event_reading_take(struct event_reading *reading,
				     const struct runtime_event *event, uint32_t stack)
{
	struct sym_error *error;

	if (!is_wanted(reading, event->time_ns))
		return NULL;
	error = count_kind(reading, event, stack);
	if (error)
		return error;
	switch (event->kind->meaning) {
	case EVENT_ALLOCATION_TICK:
		return take_tick(reading, event, stack);
	case EVENT_ALLOCATION_SAMPLED:
		return take_sampled(reading, event, stack);
	case EVENT_EXCEPTION:
		return take_exception(reading, event, stack);
	case EVENT_CONTENTION_START:
		return begin_lock(reading, event, stack);
	case EVENT_CONTENTION_STOP:
		return end_lock(reading, event);
	case EVENT_WAIT_START:
		return begin_wait(reading, event, stack);
	case EVENT_WAIT_STOP:
		return end_wait(reading, event);
	case EVENT_POOL_ADJUSTMENT:
	case EVENT_POOL_THREADS:
		return take_pool(reading, event, stack);
	case EVENT_JIT_START:
		return begin_jit(reading, event, stack);
	case EVENT_METHOD_LOAD:
		return end_jit(reading, event);
	case EVENT_COUNTERS:
		return event_counters_take_counter(reading->report, event);
	case EVENT_METER_VALUE:
		return event_counters_take_meter(reading->report, event);
	case EVENT_METER_LIMIT:
		reading->report->meter_limits++;
		return NULL;
	case EVENT_METER_ERROR:
		reading->report->meter_errors++;
		return NULL;
	case EVENT_THREAD_SAMPLE:
		return take_sample(reading, event, stack);
	case EVENT_CPU_SAMPLE:
		return event_reading_add(reading, PROFILE_CPU, event, stack, NULL, 1);
	case EVENT_OTHER:
		return take_activity(reading, event, stack);
	default:
		return NULL;
	}
}
