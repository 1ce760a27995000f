/* SPDX-License-Identifier: MIT */
/*
 * A stream is read twice. The first pass collects what the second one needs from all of it: the
 * methods, which a session lists at its end, and the times of events that have a probe. The second
 * pass gives each event its stack and its meaning (event_takes.c). Events of collections are kept
 * until all are there, and then put into the order of time: threads are not in order.
 */
#include "mapgen/profile/event_profile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/grow.h"
#include "libsym/base/path.h"
#include "libsym/error.h"
#include "mapgen/events/event_stream.h"
#include "mapgen/profile/event_methods.h"
#include "mapgen/profile/event_reading.h"

enum {
	MANAGED_FRAMES = 100, /* at which EventPipe cuts a stack */
	MOST_GC_BYTES = 1 << 28,
	MOST_TEXT_BYTES = 1 << 20,
	MOST_LINE_BYTES = 1 << 28,
	NO_STACK = UINT32_MAX,
};

/* ---- stacks ---------------------------------------------------------------------------------- */

static struct sym_error *name_address(struct event_reading *reading, int32_t pid, uint64_t time_ns,
				      uint64_t address, uint32_t *ret)
{
	static const struct profile_frame unknown = {
		.name = FRAME_NAME_UNKNOWN,
		.image = "",
		.tier = "",
		.reason = "the recording has no method at this address",
	};
	struct sym_error *error = reading->names.frame(
		reading->names.context, reading->profile->frames, pid, time_ns, address, ret);

	if (!error && *ret == FRAME_NONE)
		error = frame_table_add(reading->profile->frames, &unknown, ret);
	return error;
}

/* A chain is named once, and once more where a name has changed since. */
static struct sym_error *name_stack(struct event_reading *reading, uint32_t number, int32_t pid,
				    uint64_t time_ns, uint32_t *ret)
{
	struct raw_stack *raw = reading->raw.items[number];
	uint32_t epoch = reading->names.epoch(reading->names.context, pid, time_ns);
	struct sym_error *error = NULL;

	*ret = raw->stack;
	if (raw->epoch == epoch && raw->stack != NO_STACK)
		return NULL;
	/* All but the innermost are return addresses: the call is before them. */
	for (uint32_t i = 0; !error && i < raw->count; i++)
		error = name_address(reading, pid, time_ns, raw->addresses[i] - (i > 0),
				     &reading->frames[raw->count - 1 - i]);
	if (!error)
		error = frame_table_add_stack(reading->profile->frames, reading->frames, raw->count,
					      (enum stack_end)raw->end, ret);
	raw->epoch = epoch;
	raw->stack = *ret;
	return error;
}

static struct sym_error *managed_stack(struct event_reading *reading,
				       const struct runtime_event *event, int32_t pid,
				       uint32_t *ret)
{
	size_t count = event->address_count < EVENT_READING_MOST_CHAIN ? event->address_count
								       : EVENT_READING_MOST_CHAIN;
	uint16_t end = count >= MANAGED_FRAMES ? SYM_UNWIND_FULL : STACK_END_WHOLE;
	uint32_t number;
	struct sym_error *error;

	for (size_t i = 0; i < count; i++) {
		uint32_t half;

		if (event->kind->pointer_bytes == 8) {
			memcpy(&reading->chain[i], event->addresses + i * 8, 8);
		} else {
			memcpy(&half, event->addresses + i * 4, 4);
			reading->chain[i] = half;
		}
	}
	error = raw_stacks_add(&reading->raw, (uint32_t)pid, end, reading->chain, count, &number);
	return error ? error : name_stack(reading, number, pid, event->time_ns, ret);
}

static struct sym_error *stack_of(struct event_reading *reading, const struct runtime_event *event,
				  uint32_t *ret)
{
	*ret = EVENT_MATCH_NONE;
	if (reading->opts->match && event->kind->tracepoint)
		*ret = event_match_next(reading->opts->match, event->tid, event->kind->tracepoint);
	if (*ret != EVENT_MATCH_NONE)
		return NULL;
	*ret = reading->empty_stack;
	return event->address_count
		       ? managed_stack(reading, event, event_reading_pid(reading, event), ret)
		       : NULL;
}

/* ---- collections ----------------------------------------------------------------------------- */

static bool is_of_gc(enum event_meaning meaning)
{
	return meaning >= EVENT_GC_START && meaning <= EVENT_GC_HEAP_HISTORY;
}

static struct sym_error *keep_gc_event(struct event_reading *reading,
				       const struct runtime_event *event, uint32_t stack)
{
	struct gc_event *kept;

	/* A stream of version 6 may have several processes; the log is of one. */
	if (!reading->gc_pid)
		reading->gc_pid = event->pid;
	if (event->pid != reading->gc_pid) {
		reading->report->other_processes++;
		return NULL;
	}
	if (!grow_items((void **)&reading->gc, &reading->gc_capacity, reading->gc_count,
			sizeof(*reading->gc)))
		return &sym_error_no_memory;
	kept = &reading->gc[reading->gc_count];
	*kept = (struct gc_event){ .event = *event,
				   .payload_offset = reading->gc_payloads.size_bytes,
				   .number = reading->gc_count,
				   .stack = stack };
	if (!buf_append(&reading->gc_payloads, event->payload, event->payload_bytes))
		return sym_error_create(SYM_ERROR_LIMIT, "too many events of collections");
	reading->gc_count++;
	return NULL;
}

static int compare_gc(const void *left, const void *right)
{
	const struct gc_event *a = left, *b = right;

	if (a->event.time_ns != b->event.time_ns)
		return a->event.time_ns < b->event.time_ns ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

static struct sym_error *add_collection(struct event_reading *reading,
					const struct gc_collection *collection)
{
	const struct runtime_event event = { .time_ns = collection->start_ns,
					     .pid = reading->gc_pid,
					     .tid = collection->tid };
	char leaf[100];

	snprintf(leaf, sizeof(leaf), "generation %u, %s, %s", collection->generation,
		 gc_kind_text(collection->kind), gc_reason_text(collection->reason));
	return event_reading_add(reading, PROFILE_GC, &event,
				 collection->stack == UINT32_MAX ? reading->empty_stack
								 : collection->stack,
				 leaf, collection->pause_ns);
}

static struct sym_error *finish_collections(struct event_reading *reading)
{
	struct gc_log *log = &reading->report->gc;
	size_t before = log->count;
	struct sym_error *error = NULL;

	gc_log_begin(log, reading->opts->pid ?: reading->gc_pid);
	if (reading->gc_count)
		qsort(reading->gc, reading->gc_count, sizeof(*reading->gc), compare_gc);
	for (size_t i = 0; !error && i < reading->gc_count; i++) {
		struct gc_event *kept = &reading->gc[i];

		kept->event.payload =
			(const uint8_t *)reading->gc_payloads.data + kept->payload_offset;
		error = gc_log_take(log, &kept->event,
				    kept->stack == reading->empty_stack ? UINT32_MAX : kept->stack);
	}
	for (size_t i = before; !error && i < log->count; i++)
		error = add_collection(reading, &log->items[i]);
	return error;
}

/* ---- the first pass -------------------------------------------------------------------------- */

struct first_pass {
	struct event_reading *reading;
	struct event_methods *methods; /* NULL: they are named by others */
};

static int32_t host_tid(const struct event_reading *reading, const struct runtime_event *event)
{
	return event_reading_host_tid(reading, event_reading_pid(reading, event), event->tid);
}

/* The last file of the command line of a .NET process, without its directory and ".dll". */
static struct sym_error *take_process(struct profile *profile, const struct runtime_event *event,
				      struct buf *text)
{
	const char *line, *name, *end;

	if (profile->title || strcmp(event->kind->name, "ProcessInfo") != 0)
		return NULL;
	buf_clear(text);
	event_text(event, "CommandLine", text);
	line = buf_string(text) ?: "";
	end = strstr(line, ".dll");
	if (!end)
		end = line + strcspn(line, " ");
	name = end;
	while (name > line && name[-1] != '/' && name[-1] != '\\' && name[-1] != ' ')
		name--;
	if (end == name)
		return NULL;
	profile->title = strndup(name, (size_t)(end - name));
	return profile->title ? NULL : &sym_error_no_memory;
}

/* "8.0.31" of the class library: the runtime's own number has another build in it. */
static struct sym_error *take_runtime(struct profile *profile, const struct runtime_event *event)
{
	uint64_t major = event_number(event, "BclMajorVersion");

	if (profile->runtime || major < 5 ||
	    strncmp(event->kind->name, "RuntimeInformation", 18) != 0)
		return NULL;
	if (asprintf(&profile->runtime, ".NET %u.%u.%u", (unsigned int)major,
		     (unsigned int)event_number(event, "BclMinorVersion"),
		     (unsigned int)event_number(event, "BclBuildNumber")) >= 0)
		return NULL;
	profile->runtime = NULL;
	return &sym_error_no_memory;
}

static struct sym_error *take_first(void *context, const struct runtime_event *event)
{
	struct first_pass *pass = context;
	struct event_reading *reading = pass->reading;
	struct event_match *match = reading->opts->match;
	struct sym_error *error = NULL;

	if (!strstr(event->kind->provider, "Rundown")) {
		if (!reading->first_ns || event->time_ns < reading->first_ns)
			reading->first_ns = event->time_ns;
		if (event->time_ns > reading->last_ns)
			reading->last_ns = event->time_ns;
	}
	if (match && event->kind->tracepoint)
		error = event_match_note_event(match, host_tid(reading, event),
					       event->kind->tracepoint, event->time_ns);
	if (!error && pass->methods)
		error = event_methods_take(pass->methods, event);
	if (!error)
		error = take_process(reading->profile, event, &reading->text);
	return error ? error : take_runtime(reading->profile, event);
}

static struct sym_error *read_stream(int fd, const struct event_stream_sink *sink,
				     struct event_reading *reading, bool is_last)
{
	struct event_report *report = reading->report;
	struct event_stream *stream = NULL;
	struct event_stream_counts counts;
	char *cut = NULL;
	struct sym_error *error = NULL;

	if (lseek(fd, 0, SEEK_SET))
		return sym_error_create(SYM_ERROR_IO, "%s", strerror(errno));
	error = event_stream_create(sink, &stream);
	if (!error)
		error = event_stream_read_file(stream, fd, &cut);
	reading->is_whole = stream && event_stream_ended(stream);
	if (!error && !reading->begin_ns)
		reading->begin_ns = reading->profile->begin_ns ?: reading->first_ns;
	if (!error && is_last) {
		counts = event_stream_counts(stream);
		report->events += counts.events;
		report->gaps += counts.gaps;
		report->unknown_kinds += counts.unknown_kinds;
		report->missing_stacks += counts.missing_stacks;
		if (!report->cut)
			report->cut = STEAL(cut);
		/* The kinds of events live as long as the stream. */
		error = finish_collections(reading);
	}
	free(cut);
	event_stream_destroy(stream);
	return error;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static struct sym_error *take_second(void *context, const struct runtime_event *event)
{
	struct event_reading *reading = context;
	struct runtime_event placed = *event;
	struct sym_error *error;
	uint32_t stack;

	placed.tid = host_tid(reading, event);
	error = stack_of(reading, &placed, &stack);
	if (!error)
		error = event_reading_take(reading, &placed, stack);
	if (!error && is_of_gc(event->kind->meaning))
		error = keep_gc_event(reading, &placed, stack);
	return error;
}

static struct sym_error *begin(struct event_reading *reading)
{
	struct profile *profile = reading->profile;

	if (!profile->report) {
		profile->report = calloc(1, sizeof(*profile->report));
		if (!profile->report)
			return &sym_error_no_memory;
		buf_init(&profile->report->texts, MOST_LINE_BYTES);
	}
	reading->report = profile->report;
	for (size_t i = 0; i < PROFILE_EVENT_KINDS; i++) {
		reading->events[i] = UINT32_MAX;
		/* Another process of the same recording. */
		if (i != PROFILE_CPU && i != PROFILE_COUNTED)
			reading->events[i] =
				profile_find_event(profile, (enum profile_event_kind)i);
	}
	reading->chain = calloc(EVENT_READING_MOST_CHAIN, sizeof(*reading->chain));
	reading->frames = calloc(EVENT_READING_MOST_CHAIN + 1, sizeof(*reading->frames));
	buf_init(&reading->gc_payloads, MOST_GC_BYTES);
	buf_init(&reading->text, MOST_TEXT_BYTES);
	buf_init(&reading->detail, MOST_TEXT_BYTES);
	if (!reading->chain || !reading->frames)
		return &sym_error_no_memory;
	return frame_table_add_stack(profile->frames, NULL, 0, STACK_END_NO_STACK,
				     &reading->empty_stack);
}

static void end(struct event_reading *reading)
{
	if (reading->report)
		event_reading_end_pending(reading);
	free(reading->chain);
	free(reading->frames);
	free(reading->gc);
	buf_deinit(&reading->gc_payloads);
	buf_deinit(&reading->text);
	buf_deinit(&reading->detail);
	raw_stacks_deinit(&reading->raw);
}

static void set_times(struct event_reading *reading)
{
	struct profile *profile = reading->profile;
	uint64_t end_ns = event_reading_window_end(reading);

	if (profile->begin_ns || !reading->begin_ns)
		return;
	profile->begin_ns = event_reading_window_begin(reading);
	profile->end_ns = end_ns < reading->last_ns ? end_ns : reading->last_ns;
}

static struct sym_error *read_passes(struct event_reading *reading, int fd)
{
	const struct event_profile_opts *opts = reading->opts;
	struct event_methods *methods = NULL;
	struct first_pass pass = { .reading = reading };
	const struct event_stream_sink first = { &pass, take_first },
				       second = { reading, take_second };
	struct sym_error *error = begin(reading);

	if (!error && !opts->names)
		error = event_methods_create(&methods);
	pass.methods = methods;
	if (!error)
		error = read_stream(fd, &first, reading, false);
	if (opts->match && !error)
		event_match_resolve(opts->match, reading->is_whole ? reading->last_ns : UINT64_MAX);
	if (!error && methods)
		error = event_methods_finish(methods, &reading->names);
	else if (opts->names)
		reading->names = *opts->names;
	if (!error)
		error = read_stream(fd, &second, reading, true);
	if (!error)
		set_times(reading);
	event_methods_destroy(methods);
	return error;
}

struct sym_error *event_profile_read(struct profile *profile, int fd,
				     const struct event_profile_opts *opts)
{
	struct event_reading reading = { .profile = profile, .opts = opts };
	struct sym_error *error = read_passes(&reading, fd);

	end(&reading);
	return error;
}
