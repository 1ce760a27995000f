/* SPDX-License-Identifier: MIT */
#include "mapgen/record/runtime_rates.h"

#include <stdlib.h>

#include "libsym/base/buf.h"
#include "libsym/base/cleanup.h"
#include "libsym/error.h"
#include "mapgen/events/event_choice.h"
#include "mapgen/events/event_measures.h"
#include "mapgen/events/event_stream.h"
#include "mapgen/events/event_values.h"

enum {
	PENDING_LIMIT = 1 << 27, /* of one block */
	MOST_READS = 64,         /* of a step: the runtime may be faster than we */
};

struct runtime_rates {
	struct sym_event_session *session;
	struct event_stream *stream;
	struct buf pending; /* the begin of a block */
	struct event_pause pause;
	struct runtime_amounts amounts;
	uint64_t gaps_before;
	bool has_ended;
};

DEFINE_GUARD(rates, struct runtime_rates *, runtime_rates_close)
DEFINE_GUARD(snapshot, struct sym_snapshot *, sym_snapshot_close)

static struct sym_error *take_event(void *context, const struct runtime_event *event)
{
	struct runtime_rates *rates = context;

	if (event->kind->meaning == EVENT_ALLOCATION_TICK)
		rates->amounts.allocated_bytes += event_measures_tick_bytes(event);
	else if (event->kind->meaning == EVENT_ALLOCATION_SAMPLED)
		rates->amounts.allocated_bytes += (uint64_t)event_measures_sampled_bytes(event);
	else if (event->kind->meaning == EVENT_EXCEPTION)
		rates->amounts.exceptions++;
	rates->amounts.pause_ns += event_measures_pause(&rates->pause, event);
	return NULL;
}

static struct sym_error *begin(struct runtime_rates *rates, struct sym_snapshot *snapshot)
{
	const struct sym_process_info *info = sym_snapshot_process(snapshot);
	struct sym_event_session_opts opts = { .size = sizeof(opts) };
	struct event_choice choice;
	struct sym_error *error = event_choice_for(info, "gc,alloc,exceptions", &choice);

	if (error)
		return error;
	opts.providers = choice.providers;
	opts.provider_count = choice.provider_count;
	error = sym_event_session_open(snapshot, &opts, &rates->session);
	event_choice_deinit(&choice);
	return error;
}

struct sym_error *runtime_rates_open(int32_t pid, struct sym_budget *budget,
				     struct runtime_rates **ret)
{
	const struct sym_snapshot_opts how = { .size = sizeof(how), .budget = budget };
	struct runtime_rates *rates GUARDED(rates) = calloc(1, sizeof(*rates));
	const struct event_stream_sink sink = { .context = rates, .event = take_event };
	struct sym_snapshot *snapshot GUARDED(snapshot) = NULL;
	struct sym_error *error;

	if (!rates)
		return &sym_error_no_memory;
	buf_init(&rates->pending, PENDING_LIMIT);
	error = event_stream_create(&sink, &rates->stream);
	if (!error)
		error = sym_snapshot_open(pid, &how, &snapshot);
	if (!error)
		error = begin(rates, snapshot);
	if (!error)
		*ret = STEAL(rates);
	return error;
}

void runtime_rates_close(struct runtime_rates *rates)
{
	if (!rates)
		return;
	sym_event_session_close(rates->session);
	event_stream_destroy(rates->stream);
	buf_deinit(&rates->pending);
	free(rates);
}

static struct sym_error *read_some(struct runtime_rates *rates, size_t *count_ret)
{
	struct sym_error *error = event_stream_read_session(
		rates->stream, rates->session, &rates->pending, count_ret, &rates->has_ended);

	rates->has_ended |= error != NULL;
	return error;
}

struct sym_error *runtime_rates_step(struct runtime_rates *rates)
{
	struct sym_error *error = NULL;
	size_t count = 1;

	for (int i = 0; !error && count && !rates->has_ended && i < MOST_READS; i++)
		error = read_some(rates, &count);
	return error;
}

struct runtime_amounts runtime_rates_take(struct runtime_rates *rates)
{
	struct runtime_amounts amounts = rates->amounts;
	uint64_t gaps = event_stream_counts(rates->stream).gaps;

	amounts.gaps = gaps - rates->gaps_before;
	rates->gaps_before = gaps;
	rates->amounts = (struct runtime_amounts){ 0 };
	return amounts;
}
