/* SPDX-License-Identifier: MIT */
#include "mapgen/command/record_events.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/grow.h"
#include "libsym/error.h"
#include "mapgen/cli/command.h"
#include "mapgen/cli/message.h"
#include "mapgen/cli/monotonic.h"
#include "mapgen/cli/target.h"
#include "mapgen/events/event_choice.h"

/* How often a started program is asked whether its runtime is ready. */
static const double try_seconds = 0.2;

bool record_events_wanted(const struct options *options)
{
	return options->events || options->stop_on;
}

bool record_events_init(struct record_events *events, const struct options *options,
			struct recorder *recorder)
{
	*events = (struct record_events){ .options = options, .recorder = recorder };
	if (options->stop_on)
		(void)stop_condition_read(options->stop_on, &events->stop);
	if (!options->stop_on)
		events->events_text = strdup(options->events ?: EVENT_CHOICE_DEFAULT);
	else if (!options->events)
		events->events_text = strdup(stop_condition_group(&events->stop));
	else
		events->events_text = message_format("%s,%s", options->events,
						     stop_condition_group(&events->stop));
	return events->events_text;
}

void record_events_deinit(struct record_events *events)
{
	for (size_t i = 0; i < events->count; i++) {
		runtime_session_close(events->sessions[i]);
		if (events->members)
			free(events->members[i]);
	}
	free(events->events_text);
	free(events->sessions);
	free(events->members);
	free(events->streams);
	*events = (struct record_events){ 0 };
}

bool record_events_check(const struct options *options)
{
	const char *problem = options->events ? event_choice_problem(options->events) : NULL;
	struct stop_condition stop;
	const char *other = options->stop_on ? stop_condition_read(options->stop_on, &stop) : NULL;

	if (problem)
		message("--events %s", problem);
	else if (other)
		message("--stop-on %s", other);
	else if (record_events_wanted(options) && options->whole_system)
		message("--events and --stop-on need processes, not --all");
	else if (options->stacks && !record_events_wanted(options))
		message("--stacks is about the stacks of --events");
	else
		return true;
	return false;
}

static struct sym_error *open_session(struct record_events *events, int32_t pid)
{
	const struct runtime_session_opts opts = {
		.events = events->events_text,
		.stop = events->stop,
		.ring_ns = (uint64_t)(events->options->ring_seconds * 1e9),
		.stacks = (enum event_stacks)events->options->stacks ?: EVENT_STACKS_NATIVE,
		.recorder = events->recorder,
		.budget = events->options->budget,
	};

	if (!grow_items((void **)&events->sessions, &events->capacity, events->count,
			sizeof(*events->sessions)))
		return &sym_error_no_memory;
	return runtime_session_open(pid, &opts, &events->sessions[events->count]);
}

struct sym_error *record_events_add(struct record_events *events, int32_t pid)
{
	struct sym_error *error = open_session(events, pid);

	if (!error)
		events->count++;
	if (!error || sym_error_code(error) == SYM_ERROR_NO_MEMORY)
		return error;
	message("no events of process %d: %s", pid, sym_error_message(error));
	sym_error_destroy(error);
	events->missing_count++;
	return NULL;
}

void record_events_expect(struct record_events *events, int32_t pid)
{
	events->expected_pid = pid;
}

/* A runtime makes its socket while it starts up; until then there is no session. */
static struct sym_error *try_expected(struct record_events *events)
{
	struct sym_error *error;

	if (!events->expected_pid || monotonic_seconds() < events->next_try)
		return NULL;
	events->next_try = monotonic_seconds() + try_seconds;
	error = open_session(events, events->expected_pid);
	if (!error) {
		events->expected_pid = 0;
		events->count++;
	} else if (sym_error_code(error) != SYM_ERROR_NO_MEMORY) {
		sym_error_destroy(error);
		error = NULL;
	}
	return error;
}

struct sym_error *record_events_step(struct record_events *events)
{
	struct sym_error *error = try_expected(events);

	for (size_t i = 0; !error && i < events->count; i++)
		error = runtime_session_step(events->sessions[i]);
	return error;
}

uint64_t record_events_stopped_ns(const struct record_events *events)
{
	for (size_t i = 0; i < events->count; i++)
		if (runtime_session_stopped_ns(events->sessions[i]))
			return runtime_session_stopped_ns(events->sessions[i]);
	return 0;
}

struct sym_error *record_events_finish(struct record_events *events, uint64_t from_ns)
{
	struct sym_error *error = NULL;

	for (size_t i = 0; !error && i < events->count; i++)
		error = runtime_session_finish(events->sessions[i], from_ns);
	if (!events->expected_pid)
		return error;
	message("no events of process %d: it had no .NET runtime that answers",
		events->expected_pid);
	events->missing_count++;
	return error;
}

/* ---- what is kept, and said --------------------------------------------------------------------
 */

const struct recorded_stream *record_events_streams(struct record_events *events)
{
	events->members = calloc(events->count + 1, sizeof(*events->members));
	events->streams = calloc(events->count + 1, sizeof(*events->streams));
	if (!events->members || !events->streams)
		return NULL;
	for (size_t i = 0; i < events->count; i++) {
		const struct runtime_session *session = events->sessions[i];

		events->members[i] =
			i ? message_format("events-%d.nettrace", runtime_session_pid(session))
			  : strdup(RECORDING_EVENTS);
		if (!events->members[i])
			return NULL;
		events->streams[i] = (struct recorded_stream){ events->members[i],
							       runtime_session_file(session) };
	}
	return events->streams;
}

json_t *record_events_describe(const struct record_events *events)
{
	json_t *list = json_array();

	for (size_t i = 0; i < events->count; i++)
		json_array_append_new(
			list, runtime_session_describe(events->sessions[i], events->members[i]));
	return list;
}

static void say_session(const struct runtime_session *session, bool has_several)
{
	const char *reason, *stacks = runtime_session_stacks(session, &reason);
	const char *end = runtime_session_end_reason(session);

	printf("  events");
	if (has_several)
		printf(" of process %d", runtime_session_pid(session));
	printf(" with %s stacks", strcmp(stacks, "none") != 0 ? stacks : "no");
	if (reason)
		printf(", as native ones are not possible: %s", reason);
	putchar('\n');
	if (runtime_session_stacks_beyond_budget(session))
		printf("  %" PRIu64 " managed stacks beyond %d a second: the runtime walks one for "
		       "each event, and cannot leave some out (--stacks=none leaves out all)\n",
		       runtime_session_stacks_beyond_budget(session), EVENT_BUDGET_PER_SECOND);
	if (runtime_session_gaps(session))
		printf("  the runtime has dropped events %" PRIu64 " times: there were too many a "
		       "second\n",
		       runtime_session_gaps(session));
	if (end)
		printf("  they end early: %s\n", end);
}

void record_events_say(const struct record_events *events)
{
	const struct recorder_counts *counts = recorder_counts(events->recorder);

	if (record_events_stopped_ns(events))
		printf("  stopped by --stop-on=%s\n", events->options->stop_on);
	else if (events->stop.kind != STOP_NEVER)
		printf("  --stop-on=%s did not happen\n", events->options->stop_on);
	for (size_t i = 0; i < events->count; i++)
		say_session(events->sessions[i], events->count > 1);
	if (counts->probe_samples)
		printf("  %" PRIu64 " native stacks of events; uprobes were placed in the code of "
		       "the runtime for that\n",
		       counts->probe_samples);
	if (counts->thinned_stacks)
		printf("  %" PRIu64 " events have no native stack: there were too many a second\n",
		       counts->thinned_stacks);
	if (counts->unprobed_events)
		printf("  %" PRIu64 " events have no native stack: %s\n", counts->unprobed_events,
		       recorder_has_raw_uprobes(events->recorder)
			       ? "their threads had no probes yet, as this kernel permits neither "
				 "BPF links nor events of tracefs"
			       : "they passed no probe");
	if (counts->lost_probe_samples)
		printf("  %" PRIu64
		       " native stacks of events were lost: the machine was too busy\n",
		       counts->lost_probe_samples);
}
