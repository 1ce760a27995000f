/* SPDX-License-Identifier: MIT */
/*
 *   1. the snapshot says which runtime it is, and where its code is mapped
 *   2. event_choice.h says which providers and which tracepoints that makes
 *   3. probes are placed (recorder_add_probes()), before the first event is sent
 *   4. the session starts: without managed stacks where probes take native ones. Events of managed
 *      code have no probe; with them the session has managed stacks
 */
#include "mapgen/record/runtime_session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/error.h"
#include "mapgen/cli/capabilities.h"
#include "mapgen/cli/message.h"
#include "mapgen/cli/temporary_file.h"
#include "mapgen/events/event_choice.h"
#include "mapgen/events/event_kind.h"
#include "mapgen/events/event_stream.h"
#include "mapgen/record/event_budget.h"
#include "mapgen/record/stream_receiver.h"
#include "mapgen/record/stream_ring.h"

enum {
	READ_BYTES = 1 << 20,
	MOST_PENDING_BYTES = 1 << 27, /* of one block */
	FIRST_WITH_PROBES = 8,        /* 3.1.2 has the code and does not call it */
	FINISH_IDLE_MS = 3000, /* a runtime that sends nothing for so long is not waited for */
	FINISH_ROUNDS = 20,
};

struct runtime_session {
	int32_t pid;
	struct recorder *recorder;
	char *runtime; /* ".NET 10.0.12" */
	struct event_choice choice;
	struct sym_event_session *session;
	struct stream_receiver *receiver;
	FILE *file;
	uint64_t received_bytes;     /* after the receiver has ended */
	struct event_stream *stream; /* NULL: it cannot be read any more; its bytes are kept */
	struct buf pending;          /* the begin of a block */
	uint64_t read_bytes;         /* of the file */
	struct stop_condition stop;
	struct stream_ring ring;
	uint64_t ring_ns;           /* 0: all is kept */
	uint64_t last_ns;           /* time of the newest event */
	uint64_t gaps;              /* of a stream that was closed */
	struct event_budget budget; /* of managed stacks, which the runtime cannot leave out */
	bool has_native_stacks, has_managed_stacks;
	bool is_probed[EVENT_CHOICE_PROBES];
	bool lacks_probes; /* for some of the events */
	char *reason;      /* why stacks are not native; NULL: they are, or were not asked for */
	char *end_reason;
};

void runtime_session_close(struct runtime_session *session)
{
	struct sym_error *error = NULL;
	uint64_t bytes;

	if (!session)
		return;
	if (session->receiver)
		stream_receiver_stop(session->receiver, &error, &bytes);
	sym_error_destroy(error);
	sym_event_session_close(session->session);
	event_stream_destroy(session->stream);
	buf_deinit(&session->pending);
	stream_ring_deinit(&session->ring);
	if (session->file)
		fclose(session->file);
	event_choice_deinit(&session->choice);
	free(session->runtime);
	free(session->reason);
	free(session->end_reason);
	free(session);
}

DEFINE_GUARD(runtime_session, struct runtime_session *, runtime_session_close)
DEFINE_GUARD(snapshot, struct sym_snapshot *, sym_snapshot_close)

int32_t runtime_session_pid(const struct runtime_session *session)
{
	return session->pid;
}

FILE *runtime_session_file(const struct runtime_session *session)
{
	return session->file;
}

const char *runtime_session_end_reason(const struct runtime_session *session)
{
	return session->end_reason;
}

const char *runtime_session_stacks(const struct runtime_session *session, const char **reason_ret)
{
	*reason_ret = session->reason;
	if (session->has_native_stacks)
		return "native";
	return session->has_managed_stacks ? "managed" : "none";
}

/* ---- probes ------------------------------------------------------------------------------------
 */

/* The path of the runtime's code that leads to the mapped file itself, whatever has become of its
 * name. */
static char *path_of_code(const struct sym_snapshot *snapshot, uint32_t image_index)
{
	const struct sym_process_info *info = sym_snapshot_process(snapshot);

	for (size_t i = 0; i < sym_snapshot_mapping_count(snapshot); i++) {
		const struct sym_mapping *mapping = sym_snapshot_mapping_at(snapshot, i);

		if (mapping->image_index != image_index || !mapping->inode ||
		    !(mapping->protection & SYM_EXECUTE))
			continue;
		return message_format("/proc/%d/map_files/%llx-%llx", info->pid,
				      (unsigned long long)mapping->start_address,
				      (unsigned long long)mapping->end_address);
	}
	return NULL;
}

static struct sym_error *place_probes(struct runtime_session *session,
				      struct sym_snapshot *snapshot)
{
	const struct event_choice *choice = &session->choice;
	uint32_t index = sym_snapshot_process(snapshot)->runtime_image_index;
	struct sym_image *image = sym_snapshot_image_at(snapshot, index);
	int major = (int)strtol(sym_snapshot_process(snapshot)->runtime_version, NULL, 10);
	uint64_t offsets[EVENT_CHOICE_PROBES];
	char *path AUTO_FREE = NULL;
	struct sym_error *error;

	if (!choice->probe_count)
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"managed code sends these events, and it has no probes");
	if (major < FIRST_WITH_PROBES)
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"the runtime has probes from .NET %d on",
					FIRST_WITH_PROBES);
	if (!image)
		return sym_error_create(SYM_ERROR_NOT_FOUND, "the runtime's image is not known");
	error = sym_image_find_event_stubs(image, choice->probes, choice->probe_count, offsets);
	if (error)
		return error;
	/* An event without a probe needs a managed stack. A session has managed stacks for all
	 * events or for none. */
	for (size_t i = 0; i < choice->probe_count; i++) {
		session->is_probed[i] = offsets[i] != UINT64_MAX;
		session->lacks_probes |= !session->is_probed[i];
	}
	path = path_of_code(snapshot, index);
	if (!path)
		return sym_error_create(SYM_ERROR_NOT_FOUND,
					"the runtime's code is not mapped from a file");
	return recorder_add_probes(session->recorder, session->pid, path, choice->probes, offsets,
				   choice->probe_count);
}

/* Without probes the reason is kept, and the runtime walks the stacks. */
static struct sym_error *choose_stacks(struct runtime_session *session,
				       struct sym_snapshot *snapshot, enum event_stacks stacks)
{
	struct sym_error *error = NULL;

	session->has_managed_stacks = stacks == EVENT_STACKS_MANAGED;
	if (stacks == EVENT_STACKS_MANAGED || stacks == EVENT_STACKS_NONE)
		return NULL;
	error = place_probes(session, snapshot);
	session->has_native_stacks = !error;
	session->has_managed_stacks = error || session->choice.has_sources || session->lacks_probes;
	if (!error || sym_error_code(error) == SYM_ERROR_NO_MEMORY)
		return error;
	session->reason = strdup(sym_error_message(error));
	sym_error_destroy(error);
	return session->reason ? NULL : &sym_error_no_memory;
}

/* ---- reading what has come --------------------------------------------------------------------
 */

/* Has the place where the runtime fires the event a probe? */
static bool is_probed(const struct runtime_session *session, const struct runtime_event *event)
{
	const char *name = event->kind->tracepoint;

	for (size_t i = 0; name && session->has_native_stacks && i < session->choice.probe_count;
	     i++)
		if (!strcmp(session->choice.probes[i], name))
			return session->is_probed[i];
	return false;
}

/* Names are those of this moment: code may be gone or compiled again at the end. */
static struct sym_error *take_event(void *context, const struct runtime_event *event)
{
	struct runtime_session *session = context;

	if (event->time_ns > session->last_ns)
		session->last_ns = event->time_ns;
	stop_condition_take(&session->stop, event);
	if (is_probed(session, event))
		recorder_note_probed_event(session->recorder);
	if (!event->address_count)
		return NULL;
	(void)event_budget_take(&session->budget, event->time_ns);
	return recorder_name_stack(session->recorder, session->pid, event->addresses,
				   event->address_count, event->time_ns);
}

/* Stops parsing after damage. Later bytes are kept unread. Takes ownership of `error`. */
static struct sym_error *stop_reading(struct runtime_session *session, struct sym_error *error)
{
	if (sym_error_code(error) == SYM_ERROR_NO_MEMORY)
		return error;
	if (!session->end_reason)
		session->end_reason = strdup(sym_error_message(error));
	sym_error_destroy(error);
	session->gaps += event_stream_counts(session->stream).gaps;
	event_stream_destroy(session->stream);
	session->stream = NULL;
	buf_clear(&session->pending);
	return NULL;
}

static struct sym_error *feed(struct runtime_session *session)
{
	size_t used = 0;
	struct sym_error *error = event_stream_feed(session->stream, session->pending.data,
						    session->pending.size_bytes, &used);

	if (!error && session->ring_ns)
		error = stream_ring_take(&session->ring, (const uint8_t *)session->pending.data,
					 used, session->last_ns);
	if (!error) {
		buf_drop(&session->pending, used);
		return NULL;
	}
	return stop_reading(session, error);
}

static uint64_t received_bytes(const struct runtime_session *session)
{
	return session->receiver ? stream_receiver_bytes(session->receiver)
				 : session->received_bytes;
}

struct sym_error *runtime_session_step(struct runtime_session *session)
{
	uint64_t end = received_bytes(session);
	struct sym_error *error = NULL;

	while (!error && session->stream && session->read_bytes < end) {
		size_t wanted = end - session->read_bytes < READ_BYTES
					? (size_t)(end - session->read_bytes)
					: READ_BYTES;
		char *room = buf_reserve(&session->pending, wanted);
		ssize_t count = room ? pread(fileno(session->file), room, wanted,
					     (off_t)session->read_bytes)
				     : 0;

		/* A block that is larger than any runtime makes. */
		if (!room)
			return stop_reading(session, sym_error_from_buf(&session->pending,
									"a block of events"));
		if (count <= 0)
			return sym_error_create(SYM_ERROR_IO, "cannot read the events: %s",
						strerror(errno));
		session->pending.size_bytes += (size_t)count;
		session->read_bytes += (uint64_t)count;
		error = feed(session);
	}
	if (!error && session->ring_ns && session->last_ns > session->ring_ns)
		stream_ring_drop(&session->ring, session->last_ns - session->ring_ns,
				 fileno(session->file));
	return error;
}

uint64_t runtime_session_stopped_ns(const struct runtime_session *session)
{
	return session->stop.happened_ns;
}

/* ---- its life ----------------------------------------------------------------------------------
 */

/* "NativeAOT without event support" is the usual reason there. */
static struct sym_error *explain_session(struct sym_error *error,
					 const struct sym_process_info *info)
{
	struct sym_error *said;

	if (sym_error_code(error) != SYM_ERROR_NOT_FOUND ||
	    strcmp(info->runtime_shape ?: "", "nativeaot") != 0)
		return error;
	said = sym_error_create(SYM_ERROR_NOT_FOUND,
				"process %d has no diagnostics socket: a NativeAOT program has one "
				"if it was built with EventSourceSupport=true",
				info->pid);
	sym_error_destroy(error);
	return said;
}

/* Before the thread that receives events starts. */
static struct sym_error *drop_capabilities(const struct runtime_session *session)
{
	int failure = recorder_has_raw_uprobes(session->recorder)
			      ? 0
			      : capabilities_drop(capabilities_of_raw_uprobes());

	return failure ? sym_error_create(SYM_ERROR_IO, "cannot give up capabilities: %s",
					  strerror(-failure))
		       : NULL;
}

static struct sym_error *begin(struct runtime_session *session, struct sym_snapshot *snapshot,
			       const struct runtime_session_opts *opts)
{
	const struct sym_process_info *info = sym_snapshot_process(snapshot);
	struct sym_event_session_opts wanted = { .size = sizeof(wanted) };
	struct sym_error *error = event_choice_for(info, opts->events, &session->choice);

	if (error)
		return error;
	session->runtime = message_format(".NET %s", info->runtime_version);
	if (!session->runtime)
		return &sym_error_no_memory;
	error = choose_stacks(session, snapshot, opts->stacks);
	if (!error)
		error = drop_capabilities(session);
	if (error)
		return error;
	wanted.providers = session->choice.providers;
	wanted.provider_count = session->choice.provider_count;
	wanted.flags = session->has_managed_stacks ? SYM_EVENT_STACKS : 0;
	error = sym_event_session_open(snapshot, &wanted, &session->session);
	if (error)
		return explain_session(error, info);
	/* .NET 8 and older cannot leave them out. */
	if (opts->stacks != EVENT_STACKS_NONE)
		session->has_managed_stacks = sym_event_session_has_stacks(session->session) != 0;
	return stream_receiver_start(session->session, fileno(session->file), &session->receiver);
}

struct sym_error *runtime_session_open(int32_t pid, const struct runtime_session_opts *opts,
				       struct runtime_session **ret)
{
	struct runtime_session *session GUARDED(runtime_session) = calloc(1, sizeof(*session));
	const struct event_stream_sink sink = { .context = session, .event = take_event };
	const struct sym_snapshot_opts how = { .size = sizeof(how), .budget = opts->budget };
	struct sym_snapshot *snapshot GUARDED(snapshot) = NULL;
	struct sym_error *error;

	if (!session)
		return &sym_error_no_memory;
	session->pid = pid;
	session->recorder = opts->recorder;
	session->stop = opts->stop;
	session->ring_ns = opts->ring_ns;
	session->budget.per_second = EVENT_BUDGET_PER_SECOND;
	stream_ring_init(&session->ring);
	buf_init(&session->pending, MOST_PENDING_BYTES);
	error = temporary_file_stream(&session->file);
	if (!error)
		error = event_stream_create(&sink, &session->stream);
	if (!error)
		error = sym_snapshot_open(pid, &how, &snapshot);
	if (!error)
		error = begin(session, snapshot, opts);
	if (!error)
		*ret = STEAL(session);
	return error;
}

/* ---- the end -----------------------------------------------------------------------------------
 */

static struct sym_error *note_end(struct runtime_session *session, const char *text)
{
	if (session->end_reason)
		return NULL;
	session->end_reason = strdup(text);
	return session->end_reason ? NULL : &sym_error_no_memory;
}

/* Writes the part of the stream that is still in the ring to a file of its own. */
static struct sym_error *finish_ring(struct runtime_session *session, uint64_t from_ns)
{
	FILE *file;
	struct sym_error *error;

	/* A damaged stream is kept as it came. */
	if (!session->ring_ns || !session->stream)
		return NULL;
	error = temporary_file_stream(&file);
	if (error)
		return error;
	stream_ring_drop(&session->ring, from_ns, fileno(session->file));
	error = stream_ring_write(&session->ring, fileno(session->file), file);
	if (error) {
		fclose(file);
		return error;
	}
	fclose(session->file);
	session->file = file;
	return NULL;
}

/* Reads what is left, and says why it is not all there is. */
static struct sym_error *read_rest(struct runtime_session *session)
{
	struct sym_error *error = runtime_session_step(session);

	if (!error && session->stream && !event_stream_ended(session->stream))
		error = note_end(session,
				 "the stream ends in the middle: the process has ended, or "
				 "the runtime has closed it");
	return error;
}

/* A process that has ended has no program, also while its parent has not waited for it. */
static bool has_no_program(int32_t pid)
{
	char path[64], program[8];

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return readlink(path, program, sizeof(program)) < 0 && errno == ENOENT;
}

/* It does not wait for a stream that cannot be read, or that goes on for ever. */
static struct sym_error *wait_for_end(struct runtime_session *session)
{
	struct sym_error *error = NULL;

	for (int round = 0; !error && session->stream && round < FINISH_ROUNDS; round++) {
		if (stream_receiver_wait(session->receiver, FINISH_IDLE_MS))
			break;
		error = runtime_session_step(session);
	}
	return error;
}

struct sym_error *runtime_session_finish(struct runtime_session *session, uint64_t from_ns)
{
	struct sym_error *error = NULL, *failure = NULL;

	if (!stream_receiver_has_ended(session->receiver)) {
		if (!has_no_program(session->pid))
			failure = sym_event_session_stop(session->session);
		if (!failure)
			error = wait_for_end(session);
	}
	if (!error && !failure && !stream_receiver_has_ended(session->receiver))
		error = note_end(session, "the runtime did not answer at the end");
	else if (!error && failure)
		error = note_end(session, sym_error_message(failure));
	sym_error_destroy(failure);
	failure = NULL;
	stream_receiver_stop(session->receiver, &failure, &session->received_bytes);
	session->receiver = NULL;
	if (!error && failure)
		error = note_end(session, sym_error_message(failure));
	sym_error_destroy(failure);
	if (!error)
		error = read_rest(session);
	return error ? error : finish_ring(session, from_ns);
}

/* ---- what is said of it ------------------------------------------------------------------------
 */

static json_t *describe_providers(const struct event_choice *choice)
{
	json_t *list = json_array();

	for (size_t i = 0; i < choice->provider_count; i++) {
		const struct sym_event_provider *provider = &choice->providers[i];

		json_array_append_new(
			list,
			json_pack("{s:s, s:o, s:i, s:s?}", "name", provider->name, "keywords",
				  json_sprintf("0x%llx", (unsigned long long)provider->keywords),
				  "level", (int)provider->level, "arguments", provider->arguments));
	}
	return list;
}

/* Bytes that could not be read, or belong to a block that has not come whole. */
static json_int_t unread_bytes(const struct runtime_session *session)
{
	return (json_int_t)(session->received_bytes - session->read_bytes +
			    session->pending.size_bytes);
}

uint64_t runtime_session_stacks_beyond_budget(const struct runtime_session *session)
{
	return session->budget.exceeded;
}

uint64_t runtime_session_gaps(const struct runtime_session *session)
{
	return session->gaps + (session->stream ? event_stream_counts(session->stream).gaps : 0);
}

json_t *runtime_session_describe(const struct runtime_session *session, const char *member)
{
	const char *reason, *stacks = runtime_session_stacks(session, &reason);
	const struct recorder_counts *counts = recorder_counts(session->recorder);

	return json_pack("{s:s, s:i, s:s, s:o, s:s, s:s?, s:I, s:I, s:I, s:I, s:I, s:I, s:s?}",
			 "member", member, "pid", (int)session->pid, "runtime", session->runtime,
			 "providers", describe_providers(&session->choice), "stacks", stacks,
			 "stacks_reason", reason, "gaps", (json_int_t)runtime_session_gaps(session),
			 "thinned_stacks", (json_int_t)counts->thinned_stacks, "thinned_in_kernel",
			 (json_int_t)counts->thinned_in_kernel, "unprobed_events",
			 (json_int_t)counts->unprobed_events, "managed_stacks_beyond_budget",
			 (json_int_t)session->budget.exceeded, "unread_bytes",
			 unread_bytes(session), "ended", session->end_reason);
}
