/* SPDX-License-Identifier: MIT */
#include "mapgen/events/event_stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/grow.h"
#include "libsym/error.h"
#include "mapgen/events/event_table.h"

enum {
	CHUNK_BYTES = 1 << 20,
	SESSION_BYTES = 1 << 18, /* read at once */
	/* A block that is longer than this is no block: the runtime's are 100 KB. */
	MOST_BLOCK_BYTES = 1 << 28,
};

static const uint64_t ns_per_second = 1000000000;

struct event_stream {
	struct event_stream_sink sink;
	struct nettrace_stream *nettrace;
	struct event_table table;
	struct event_kind **kinds;
	size_t kind_count, kind_capacity;
	uint64_t events;
	struct sym_error *error; /* of the sink, or NO_MEMORY */
};

/* ---- kinds ----------------------------------------------------------------------------------- */

static const char runtime_provider[] = "Microsoft-Windows-DotNETRuntime";
static const char universal_providers[] = "Universal.";
static const char rundown_provider[] = "Microsoft-Windows-DotNETRuntimeRundown";

static enum event_meaning meaning_of_runtime(uint32_t id)
{
	static const struct {
		uint16_t id;
		enum event_meaning meaning;
	} meanings[] = {
		{ 1, EVENT_GC_START },
		{ 2, EVENT_GC_END },
		{ 3, EVENT_GC_RESTART_END },
		{ 4, EVENT_GC_HEAP_STATS },
		{ 8, EVENT_GC_SUSPEND_END },
		{ 9, EVENT_GC_SUSPEND_BEGIN },
		{ 10, EVENT_ALLOCATION_TICK },
		{ 35, EVENT_GC_TRIGGERED },
		{ 50, EVENT_POOL_THREADS },
		{ 51, EVENT_POOL_THREADS },
		{ 55, EVENT_POOL_ADJUSTMENT },
		{ 57, EVENT_POOL_THREADS },
		{ 80, EVENT_EXCEPTION },
		{ 81, EVENT_CONTENTION_START },
		{ 91, EVENT_CONTENTION_STOP },
		{ 143, EVENT_METHOD_LOAD },
		{ 144, EVENT_METHOD_UNLOAD },
		{ 145, EVENT_JIT_START },
		{ 152, EVENT_MODULE },
		{ 204, EVENT_GC_HEAP_HISTORY },
		{ 301, EVENT_WAIT_START },
		{ 302, EVENT_WAIT_STOP },
		{ 303, EVENT_ALLOCATION_SAMPLED },
	};

	for (size_t i = 0; i < sizeof(meanings) / sizeof(*meanings); i++)
		if (meanings[i].id == id)
			return meanings[i].meaning;
	return EVENT_OTHER;
}

/* MetricsEventSource.cs, as event_counters.c cites it. */
static enum event_meaning meaning_of_meter(const char *name)
{
	if (strstr(name, "ValuePublished"))
		return EVENT_METER_VALUE;
	if (strstr(name, "LimitReached"))
		return EVENT_METER_LIMIT;
	return strstr(name, "Error") ? EVENT_METER_ERROR : EVENT_OTHER;
}

static enum event_meaning meaning_of(const struct nettrace_kind *kind)
{
	if (!strcmp(kind->provider, runtime_provider))
		return meaning_of_runtime(kind->event_id);
	if (!strcmp(kind->provider, rundown_provider)) {
		if (kind->event_id == 143 || kind->event_id == 144)
			return EVENT_METHOD_LISTED;
		if (kind->event_id == 153 || kind->event_id == 154)
			return EVENT_MODULE;
		return EVENT_OTHER;
	}
	if (!strcmp(kind->provider, "Microsoft-DotNETCore-SampleProfiler"))
		return EVENT_THREAD_SAMPLE;
	if (!strcmp(kind->provider, "System.Diagnostics.Metrics"))
		return meaning_of_meter(kind->name);
	if (!strcmp(kind->provider, "Universal.Events"))
		return !strcmp(kind->name, "cpu") ? EVENT_CPU_SAMPLE : EVENT_OTHER;
	if (!strcmp(kind->provider, "Universal.System"))
		return !strcmp(kind->name, "ProcessMapping")  ? EVENT_FILE_MAPPED
		       : !strcmp(kind->name, "ProcessSymbol") ? EVENT_SYMBOL
							      : EVENT_OTHER;
	return !strcmp(kind->name, "EventCounters") ? EVENT_COUNTERS : EVENT_OTHER;
}

/* "GCStart_V2" to "GCStart". */
static char *without_version(const char *tracepoint)
{
	const char *end = strrchr(tracepoint, '_');

	if (end && end[1] == 'V' && end[2] >= '0' && end[2] <= '9')
		return strndup(tracepoint, (size_t)(end - tracepoint));
	return strdup(tracepoint);
}

static char *name_of(const struct nettrace_kind *described, const struct native_event *native)
{
	char *name = NULL;

	if (*described->name)
		return strdup(described->name);
	if (native)
		return without_version(native->name);
	return asprintf(&name, "Event %u", described->event_id) < 0 ? NULL : name;
}

/*
 * one-collect, which dotnet-trace collect-linux records with, describes a text as one character. It
 * is u16 bytes and the characters: src/TraceEvent/Parsers/UniversalSystemTraceEventParser.cs.
 */
static bool mend_universal_fields(struct nettrace_kind *kind)
{
	if (strncmp(kind->provider, universal_providers, strlen(universal_providers)) != 0)
		return true;
	for (size_t i = 0; i < kind->fields.count; i++) {
		struct nettrace_field *field = &kind->fields.items[i], *element;

		if (field->type != NETTRACE_CHAR8)
			continue;
		element = nettrace_fields_add(&field->inner);
		if (!element)
			return false;
		element->type = NETTRACE_CHAR8;
		field->type = NETTRACE_ARRAY;
	}
	return true;
}

static struct event_kind *make_kind(struct event_stream *stream, struct nettrace_kind *described)
{
	const struct nettrace_trace *trace = nettrace_stream_trace(stream->nettrace);
	const struct native_event *native = NULL;
	struct event_kind *kind = calloc(1, sizeof(*kind));

	if (!kind || !mend_universal_fields(described) ||
	    !grow_items((void **)&stream->kinds, &stream->kind_capacity, stream->kind_count,
			sizeof(*stream->kinds))) {
		free(kind);
		return NULL;
	}
	stream->kinds[stream->kind_count++] = kind;
	if (!described->has_fields)
		native = event_table_find(&stream->table, described->provider, described->event_id,
					  described->version);
	*kind = (struct event_kind){ .provider = described->provider,
				     .name = name_of(described, native),
				     .tracepoint = native ? native->name : NULL,
				     .id = described->event_id,
				     .version = described->version,
				     .level = described->level,
				     .keywords = described->keywords,
				     .opcode = described->opcode,
				     .meaning = meaning_of(described),
				     .is_known = described->has_fields || native,
				     .pointer_bytes = trace ? trace->pointer_bytes : 8,
				     .fields = native ? &native->fields : &described->fields };
	return kind->name ? kind : NULL;
}

/* ---- events ---------------------------------------------------------------------------------- */

static uint64_t ns_of(const struct event_stream *stream, uint64_t ticks)
{
	const struct nettrace_trace *trace = nettrace_stream_trace(stream->nettrace);
	uint64_t frequency = trace ? trace->ticks_per_second : ns_per_second;

	if (frequency == ns_per_second)
		return ticks;
	return (uint64_t)((unsigned __int128)ticks * ns_per_second / frequency);
}

static bool take_event(void *context, const struct nettrace_event *from)
{
	struct event_stream *stream = context;
	struct event_kind *kind = from->kind->owner_data;
	struct runtime_event event;

	if (!kind) {
		kind = make_kind(stream, from->kind);
		if (!kind) {
			stream->error = &sym_error_no_memory;
			return false;
		}
		from->kind->owner_data = kind;
	}
	event = (struct runtime_event){ .time_ns = ns_of(stream, from->time),
					.pid = from->pid,
					.tid = (int32_t)from->thread_id,
					.kind = kind,
					.payload = from->payload,
					.payload_bytes = from->payload_bytes,
					.addresses = from->stack,
					.address_count = from->stack_count,
					.activity = from->activity,
					.related_activity = from->related_activity };
	stream->events++;
	stream->error = stream->sink.event(stream->sink.context, &event);
	return !stream->error;
}

/* ---- streams --------------------------------------------------------------------------------- */

DEFINE_GUARD(event_stream, struct event_stream *, event_stream_destroy)

struct sym_error *event_stream_create(const struct event_stream_sink *sink,
				      struct event_stream **ret)
{
	struct event_stream *stream GUARDED(event_stream) = calloc(1, sizeof(*stream));
	const struct nettrace_sink from = { .context = stream, .event = take_event };
	struct sym_error *error;

	if (!stream)
		return &sym_error_no_memory;
	stream->sink = *sink;
	error = event_table_init(&stream->table);
	if (!error)
		error = nettrace_stream_create(&from, &stream->nettrace);
	if (!error)
		*ret = STEAL(stream);
	return error;
}

void event_stream_destroy(struct event_stream *stream)
{
	if (!stream)
		return;
	nettrace_stream_destroy(stream->nettrace);
	for (size_t i = 0; i < stream->kind_count; i++) {
		free(stream->kinds[i]->name);
		free(stream->kinds[i]);
	}
	free(stream->kinds);
	event_table_deinit(&stream->table);
	sym_error_destroy(stream->error);
	free(stream);
}

struct sym_error *event_stream_feed(struct event_stream *stream, const void *data,
				    size_t size_bytes, size_t *used_ret)
{
	struct sym_error *error =
		nettrace_stream_feed(stream->nettrace, data, size_bytes, used_ret);

	if (!stream->error)
		return error;
	sym_error_destroy(error);
	return STEAL(stream->error);
}

struct event_stream_counts event_stream_counts(const struct event_stream *stream)
{
	return (struct event_stream_counts){
		.events = stream->events,
		.gaps = nettrace_stream_gaps(stream->nettrace),
		.unknown_kinds = nettrace_stream_unknown_kinds(stream->nettrace),
		.missing_stacks = nettrace_stream_missing_stacks(stream->nettrace),
	};
}

bool event_stream_ended(const struct event_stream *stream)
{
	return nettrace_stream_ended(stream->nettrace);
}

struct sym_error *event_stream_read_session(struct event_stream *stream,
					    struct sym_event_session *session, struct buf *pending,
					    size_t *count_ret, bool *ended_ret)
{
	char *room = buf_reserve(pending, SESSION_BYTES);
	int has_ended = 0;
	size_t used = 0;
	struct sym_error *error;

	*count_ret = 0;
	if (!room)
		return sym_error_from_buf(pending, "events of the runtime");
	error = sym_event_session_read(session, room, SESSION_BYTES, count_ret, &has_ended);
	if (error)
		return error;
	*ended_ret = has_ended != 0;
	pending->size_bytes += *count_ret;
	error = event_stream_feed(stream, pending->data, pending->size_bytes, &used);
	buf_drop(pending, used);
	return error;
}

/* ---- files ----------------------------------------------------------------------------------- */

static struct sym_error *read_more(struct buf *pending, int fd, bool *ended_ret)
{
	char *room = buf_reserve(pending, CHUNK_BYTES);
	ssize_t count;

	if (!room)
		return pending->failure == BUF_TOO_BIG
			       ? sym_error_create(SYM_ERROR_FORMAT, "a block has no end")
			       : &sym_error_no_memory;
	do {
		count = read(fd, room, CHUNK_BYTES);
	} while (count < 0 && errno == EINTR);
	if (count < 0)
		return sym_error_create(SYM_ERROR_IO, "cannot be read: %s", strerror(errno));
	pending->size_bytes += (size_t)count;
	*ended_ret = !count;
	return NULL;
}

static struct sym_error *feed_file(struct event_stream *stream, int fd, struct buf *pending)
{
	struct sym_error *error = NULL;
	bool is_ended = false;
	size_t used;

	while (!error && !is_ended && !event_stream_ended(stream)) {
		error = read_more(pending, fd, &is_ended);
		if (error)
			break;
		used = 0;
		error = event_stream_feed(stream, pending->data, pending->size_bytes, &used);
		buf_drop(pending, used);
	}
	return error;
}

static struct sym_error *note_cut(const char *why, char **cut_ret)
{
	*cut_ret = strdup(why);
	return *cut_ret ? NULL : &sym_error_no_memory;
}

struct sym_error *event_stream_read_file(struct event_stream *stream, int fd, char **cut_ret)
{
	struct buf pending;
	struct sym_error *error;

	*cut_ret = NULL;
	buf_init(&pending, MOST_BLOCK_BYTES);
	error = feed_file(stream, fd, &pending);
	buf_deinit(&pending);
	/* A process that is killed at once has sent nothing, not even the head of a stream. */
	if (!error && !event_stream_ended(stream))
		return note_cut("it ends before its end mark", cut_ret);
	/* The part before the damage is good. */
	if (error && sym_error_code(error) == SYM_ERROR_FORMAT &&
	    nettrace_stream_trace(stream->nettrace)) {
		struct sym_error *failure = note_cut(sym_error_message(error), cut_ret);

		sym_error_destroy(error);
		return failure;
	}
	return error;
}
