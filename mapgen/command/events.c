/* SPDX-License-Identifier: MIT */
/*
 * The command events: what a runtime does, one line an event, as it comes.
 *
 *   21:17:44.123456   4719  .NET TP Worker   ExceptionThrown  ExceptionType="OrderException" ...
 *       Store.Find                                   Store.Web.dll
 *
 * The runtime sends every 0.1 s. Lines are in the order in which the runtime sends them: that of
 * time within each thread.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libsym/base/buf.h"
#include "libsym/base/cleanup.h"
#include "libsym/error.h"
#include "mapgen/cli/command.h"
#include "mapgen/cli/message.h"
#include "mapgen/cli/monotonic.h"
#include "mapgen/cli/process_name.h"
#include "mapgen/cli/target.h"
#include "mapgen/events/event_choice.h"
#include "mapgen/events/event_stream.h"
#include "mapgen/events/event_values.h"
#include "mapgen/record/runtime_session.h"
#include "mapgen/record/thread_id.h"
#include "mapgen/view/frame_text.h"

enum {
	PENDING_LIMIT = 1 << 27, /* of one block */
	LINE_LIMIT = 1 << 22,
	MOST_ADDRESSES = 1024,
	STEP_MS = 200,
};

DEFINE_GUARD(live, struct sym_live *, sym_live_close)
DEFINE_GUARD(session, struct sym_event_session *, sym_event_session_close)
DEFINE_GUARD(stream, struct event_stream *, event_stream_destroy)

static volatile sig_atomic_t is_interrupted;

static void note_signal(int number)
{
	(void)number;
	is_interrupted = 1;
}

struct watching {
	const struct options *options;
	const struct sym_process_info *process;
	struct sym_live *live;
	struct sym_result *result;
	struct event_stream *stream;
	struct buf pending, line;
	int64_t since_1970_ns; /* what CLOCK_MONOTONIC lacks */
	uint64_t printed;
};

/* ---- one event -------------------------------------------------------------------------------
 */

static void append_head(struct watching *watching, const struct runtime_event *event)
{
	int64_t ns = (int64_t)event->time_ns + watching->since_1970_ns;
	time_t seconds = (time_t)(ns / 1000000000);
	struct thread_id thread = { 0 };
	struct tm when;
	char text[16];

	localtime_r(&seconds, &when);
	strftime(text, sizeof(text), "%H:%M:%S", &when);
	/* In a container threads have other ids than here. */
	if (watching->process->pid == watching->process->namespace_pid)
		(void)thread_id_read(watching->process->pid, event->tid, &thread);
	buf_printf(&watching->line, "%s.%06d %7" PRId32 "  %-15s  %s", text,
		   (int)(ns % 1000000000 / 1000), event->tid, thread.comm, event->kind->name);
}

/* Managed frames are all that a runtime sends. */
static void append_frame(struct watching *watching, const struct sym_answer *answer)
{
	const struct profile_frame frame = { .name = answer->name ?: FRAME_NAME_UNKNOWN,
					     .image = "",
					     .kind = FRAME_KIND_JITTED,
					     .is_named = answer->name };

	buf_append_string(&watching->line, "    ");
	frame_text_append(&watching->line, &frame, FRAME_NAMES_CSHARP);
	buf_append_string(&watching->line, "\n");
}

static struct sym_error *append_stack(struct watching *watching, const struct runtime_event *event)
{
	uint64_t addresses[MOST_ADDRESSES];
	size_t count =
		event->address_count < MOST_ADDRESSES ? event->address_count : MOST_ADDRESSES;
	struct sym_error *error;

	memcpy(addresses, event->addresses, count * sizeof(*addresses));
	/* All but the innermost are return addresses. */
	for (size_t i = 1; i < count; i++)
		addresses[i]--;
	error = sym_live_resolve(watching->live, addresses, NULL, count, watching->result);
	for (size_t i = 0; !error && i < count; i++)
		append_frame(watching, sym_result_at(watching->result, i));
	return error;
}

static struct sym_error *print_event(void *context, const struct runtime_event *event)
{
	struct watching *watching = context;
	struct sym_error *error = NULL;
	char *text AUTO_FREE = NULL;

	buf_clear(&watching->line);
	append_head(watching, event);
	buf_append_string(&watching->line, "  ");
	event_print(event, &watching->line);
	text = message_printable(buf_string(&watching->line) ?: "");
	if (!text)
		return &sym_error_no_memory;
	buf_clear(&watching->line);
	if (watching->live && event->address_count)
		error = append_stack(watching, event);
	if (error)
		return error;
	printf("%s\n%s", text, buf_string(&watching->line) ?: "");
	watching->printed++;
	return NULL;
}

/* ---- all of them -----------------------------------------------------------------------------
 */

static struct sym_error *take_bytes(struct watching *watching, struct sym_event_session *session,
				    bool *ended_ret)
{
	size_t count;
	struct sym_error *error = event_stream_read_session(watching->stream, session,
							    &watching->pending, &count, ended_ret);

	fflush(stdout);
	return error;
}

static struct sym_error *watch_events(struct watching *watching, struct sym_event_session *session)
{
	double limit = watching->options->for_seconds, begin = monotonic_seconds();
	struct pollfd wanted = { .fd = sym_event_session_fd(session), .events = POLLIN };
	struct sym_error *error = NULL;
	bool has_ended = false;

	while (!error && !has_ended && !is_interrupted && !ferror(stdout) &&
	       (!limit || monotonic_seconds() - begin < limit)) {
		if (poll(&wanted, 1, STEP_MS) > 0)
			error = take_bytes(watching, session, &has_ended);
	}
	return error;
}

static struct sym_error *open_session(const struct watching *watching,
				      struct sym_snapshot *snapshot, struct sym_event_session **ret)
{
	struct sym_event_session_opts opts = { .size = sizeof(opts) };
	struct event_choice choice;
	struct sym_error *error = event_choice_for(
		watching->process, watching->options->events ?: EVENT_CHOICE_DEFAULT, &choice);

	if (error)
		return error;
	opts.providers = choice.providers;
	opts.provider_count = choice.provider_count;
	opts.flags = watching->options->stacks == EVENT_STACKS_MANAGED ? SYM_EVENT_STACKS : 0;
	error = sym_event_session_open(snapshot, &opts, ret);
	event_choice_deinit(&choice);
	return error;
}

static struct sym_error *open_names(struct watching *watching)
{
	const struct sym_snapshot_opts snapshot = { .size = sizeof(snapshot),
						    .budget = watching->options->budget };
	const struct sym_live_opts opts = { .size = sizeof(opts),
					    .flags = SYM_LIVE_SAME_PROCESS,
					    .wait_ms = TARGET_WAIT_MS,
					    .snapshot = &snapshot };
	struct sym_error *error;

	if (watching->options->stacks != EVENT_STACKS_MANAGED)
		return NULL;
	error = sym_result_create(&watching->result);
	return error ? error : sym_live_open(watching->process->pid, &opts, &watching->live);
}

static struct sym_error *run(struct watching *watching, struct sym_snapshot *snapshot)
{
	const struct event_stream_sink sink = { .context = watching, .event = print_event };
	struct sym_event_session *session GUARDED(session) = NULL;
	struct event_stream_counts counts;
	struct sym_error *error = open_names(watching);

	if (!error)
		error = event_stream_create(&sink, &watching->stream);
	if (!error)
		error = open_session(watching, snapshot, &session);
	if (!error)
		error = watch_events(watching, session);
	if (error)
		return error;
	counts = event_stream_counts(watching->stream);
	if (counts.gaps)
		message("the runtime has left out events %" PRIu64 " times: too many a second",
			counts.gaps);
	return NULL;
}

static void deinit(struct watching *watching)
{
	event_stream_destroy(watching->stream);
	sym_live_close(watching->live);
	sym_result_destroy(watching->result);
	buf_deinit(&watching->pending);
	buf_deinit(&watching->line);
}

static int64_t clock_distance_ns(void)
{
	struct timespec real, monotonic;

	clock_gettime(CLOCK_REALTIME, &real);
	clock_gettime(CLOCK_MONOTONIC, &monotonic);
	return ((int64_t)real.tv_sec - monotonic.tv_sec) * 1000000000 +
	       (real.tv_nsec - monotonic.tv_nsec);
}

static int check_options(const struct options *options)
{
	const char *problem = options->events ? event_choice_problem(options->events) : NULL;

	if (problem)
		message("--events %s", problem);
	if (problem || !options_have_one_pid(options, "events"))
		return EXIT_USAGE;
	return EXIT_DONE;
}

int events_run(const struct options *options)
{
	struct watching watching = { .options = options, .since_1970_ns = clock_distance_ns() };
	struct sym_snapshot *snapshot GUARDED(snapshot) = NULL;
	const struct sigaction action = { .sa_handler = note_signal };
	struct sym_error *error;
	int status = check_options(options);

	if (status)
		return status;
	snapshot = target_open_dotnet(options, NULL);
	if (!snapshot)
		return EXIT_FAILED;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	watching.process = sym_snapshot_process(snapshot);
	buf_init(&watching.pending, PENDING_LIMIT);
	buf_init(&watching.line, LINE_LIMIT);
	error = run(&watching, snapshot);
	deinit(&watching);
	return message_error(error) ? EXIT_DONE : EXIT_FAILED;
}
