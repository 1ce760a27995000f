/* SPDX-License-Identifier: MIT */
#include "libsym/clr/rundown_follow.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/clr/rundown_events.h"
#include "libsym/limits.h"

/*
 * A full buffer is seen by an event that comes when there is room again, which may be never: so
 * much at once may be all that there was room for. Events take more of the buffer than of the
 * stream, and one thread may have none while another has much (of 16 MB).
 */
static const size_t much_bytes = (size_t)2 << 20;
/* What is waiting when nothing was waiting before. */
static const size_t little_bytes = 4096;
/* The same where it is received as it comes: the runtime tells in turns, of 100 ms (10.0.12). */
static const size_t little_of_turn_bytes = (size_t)1 << 20;
/* So much is received before it is taken, and no more. */
static const size_t most_pending_bytes = (size_t)64 << 20;

struct rundown_follow {
	struct diagnostics_place place;
	int fd;
	uint64_t session;
	struct nettrace_stream *stream;
	uint64_t gaps;      /* in the stream, as of the last call */
	bool is_behind;     /* as of the last time: more of the same may come */
	bool was_behind;    /* since the last call: something may be missing */
	bool receives;      /* since the last call: the runtime has not waited for room */
	bool rests;         /* until the next call nothing is received */
	struct buf pending; /* a block that is not whole yet */
	struct rundown_gathering gathering;
};

static bool take_event(void *context, const struct nettrace_event *event)
{
	struct rundown_follow *follow = context;

	return rundown_take_event(&follow->gathering, event);
}

void rundown_follow_close(struct rundown_follow *follow)
{
	if (follow && follow->fd >= 0)
		rundown_session_stop(&follow->place, follow->session);
	rundown_follow_abandon(follow);
}

void rundown_follow_abandon(struct rundown_follow *follow)
{
	if (!follow)
		return;
	if (follow->fd >= 0)
		close(follow->fd);
	nettrace_stream_destroy(follow->stream);
	buf_deinit(&follow->pending);
	free(follow);
}

struct sym_error *rundown_follow_open(const struct diagnostics_place *place,
				      struct rundown_follow **ret)
{
	struct rundown_follow *follow AUTO_RUNDOWN_FOLLOW = calloc(1, sizeof(*follow));
	const struct nettrace_sink sink = { .context = follow, .event = take_event };
	struct sym_error *error;

	if (!follow)
		return &sym_error_no_memory;
	follow->fd = -1;
	follow->place = *place;
	buf_init(&follow->pending, LIMIT_RUNDOWN_BYTES);
	error = nettrace_stream_create(&sink, &follow->stream);
	if (!error)
		error = rundown_session_follow(place, &follow->fd, &follow->session);
	if (!error)
		*ret = STEAL(follow);
	return error;
}

/* Keeps what is left of the bytes for the next time. */
static void drop(struct buf *buf, size_t used)
{
	if (used)
		memmove(buf->data, buf->data + used, buf->size_bytes - used);
	buf_truncate(buf, buf->size_bytes - used);
}

/* So much has arrived at once. */
static void note_received(struct rundown_follow *follow, size_t bytes)
{
	size_t little = follow->receives ? little_of_turn_bytes : little_bytes;

	follow->was_behind |= (follow->is_behind && bytes) || bytes >= much_bytes;
	follow->is_behind = bytes >= much_bytes || (follow->is_behind && bytes >= little);
}

/* Is something missing, as far as can be told now? */
static bool has_gap(struct rundown_follow *follow)
{
	uint64_t gaps = nettrace_stream_gaps(follow->stream);
	bool ret = follow->was_behind || gaps != follow->gaps;

	follow->gaps = gaps;
	follow->was_behind = false;
	return ret;
}

int rundown_follow_fd(const struct rundown_follow *follow)
{
	return follow->rests ? -1 : follow->fd;
}

void rundown_follow_receive(struct rundown_follow *follow)
{
	size_t before_bytes = follow->pending.size_bytes;
	bool ended = false;
	struct sym_error *error = rundown_session_receive_now(follow->fd, &follow->pending, &ended);

	follow->receives = true;
	note_received(follow, follow->pending.size_bytes - before_bytes);
	follow->rests = error || ended || follow->pending.size_bytes >= most_pending_bytes;
	/* It comes again with the next call, if it does. */
	sym_error_destroy(error);
}

struct sym_error *rundown_follow_take(struct rundown_follow *follow, struct rundown *ret)
{
	struct rundown rundown = { 0 };
	bool ended = false;
	size_t used = 0, before_bytes = follow->pending.size_bytes;
	struct sym_error *error =
		follow->receives ? rundown_session_receive_now(follow->fd, &follow->pending, &ended)
				 : rundown_session_receive(follow->fd, &follow->pending, &ended);

	if (error)
		return error;
	note_received(follow, follow->pending.size_bytes - before_bytes);
	follow->receives = follow->rests = false;
	rundown_gathering_init(&follow->gathering, &rundown);
	follow->gathering.changes = true;
	error = nettrace_stream_feed(follow->stream, follow->pending.data,
				     follow->pending.size_bytes, &used);
	if (!error)
		drop(&follow->pending, used);
	if (!error && ended && !rundown.method_count)
		error = sym_error_create(SYM_ERROR_IO, "the runtime has ended the tracing session");
	if (!error)
		error = rundown_place_texts(&follow->gathering);
	rundown_gathering_deinit(&follow->gathering);
	if (error) {
		rundown_deinit(&rundown);
		return error;
	}
	rundown.has_gap = has_gap(follow);
	*ret = rundown;
	return NULL;
}
