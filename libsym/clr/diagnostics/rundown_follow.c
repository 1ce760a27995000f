/* SPDX-License-Identifier: MIT */
/*
 * How a continuing session is received.
 *
 *   runtime  -->  socket  -->  receiver thread  -->  pending  -->  rundown_follow_take()
 *
 * The runtime blocks at its end, and drops events, if the socket is not read. So a thread reads it
 * at all times.
 * At most_pending_bytes it ends the session, so that the runtime does not wait; the caller then
 * starts another one.
 * The caller parses `pending` at its next refresh. has_gap() reports that events may be missing;
 * then the caller requests a rundown.
 */
#include "libsym/clr/diagnostics/rundown_follow.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/clr/diagnostics/rundown_events.h"
#include "libsym/limits.h"

/*
 * Dropped events show only when a later event has a gap in its sequence numbers, which may never
 * come.
 * So this much at once counts as a full buffer. Events need more room in the buffer (16 MB) than in
 * the stream, and one thread may have no room while another has much.
 */
static const size_t much_bytes = (size_t)2 << 20;
/* The runtime sends every 100 ms (10.0.12). At least this much may be one such batch. */
static const size_t little_of_turn_bytes = (size_t)1 << 20;
/* At most this much is received before it is taken. */
static const size_t most_pending_bytes = (size_t)64 << 20;
/* The runtime sends small pieces. Let them gather for this long. */
static const int gather_ms = 10;
static const size_t stack_bytes = (size_t)256 << 10;

struct rundown_follow {
	struct diagnostics_place place;
	int fd;
	uint64_t session;
	struct nettrace_stream *stream;
	uint64_t gaps; /* in the stream, as of the last call */
	struct rundown_gathering gathering;
	pthread_t receiver;
	bool has_receiver;
	pid_t owner; /* process of the thread and session: not a child after fork() */
	int stop_fd; /* readable when the receiver should end */
	/* Shared by the receiver and the caller: */
	pthread_mutex_t lock;
	bool is_behind;     /* as of the last time: more of the same batch may come */
	bool was_behind;    /* since the last call: something may be missing */
	struct buf pending; /* received and not taken, from the start of a block on */
};

static bool take_event(void *context, const struct nettrace_event *event)
{
	struct rundown_follow *follow = context;

	return rundown_take_event(&follow->gathering, event);
}

static void stop_receiver(struct rundown_follow *follow)
{
	const uint64_t one = 1;

	if (!follow->has_receiver || follow->owner != getpid())
		return;
	while (write(follow->stop_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		continue;
	pthread_join(follow->receiver, NULL);
	follow->has_receiver = false;
}

void rundown_follow_close(struct rundown_follow *follow)
{
	if (follow && follow->fd >= 0 && follow->owner == getpid())
		rundown_session_stop(&follow->place, follow->session);
	rundown_follow_abandon(follow);
}

void rundown_follow_abandon(struct rundown_follow *follow)
{
	if (!follow)
		return;
	stop_receiver(follow);
	if (follow->fd >= 0)
		close(follow->fd);
	if (follow->stop_fd >= 0)
		close(follow->stop_fd);
	nettrace_stream_destroy(follow->stream);
	buf_deinit(&follow->pending);
	pthread_mutex_destroy(&follow->lock);
	free(follow);
}

/* Records that this much arrived at once. */
static void note_received(struct rundown_follow *follow, size_t bytes)
{
	follow->was_behind |= (follow->is_behind && bytes) || bytes >= much_bytes;
	follow->is_behind =
		bytes >= much_bytes || (follow->is_behind && bytes >= little_of_turn_bytes);
}

/* True when events are missing, as far as is known now. */
static bool has_gap(struct rundown_follow *follow)
{
	uint64_t gaps = nettrace_stream_gaps(follow->stream);
	bool ret = follow->was_behind || gaps != follow->gaps;

	follow->gaps = gaps;
	follow->was_behind = false;
	return ret;
}

/* Moves what has arrived to `pending`. With the lock. */
static struct sym_error *receive_pending(struct rundown_follow *follow, bool *ended_ret)
{
	size_t before_bytes = follow->pending.size_bytes;
	struct sym_error *error = rundown_session_receive(follow->fd, &follow->pending, ended_ret);

	note_received(follow, follow->pending.size_bytes - before_bytes);
	return error;
}

/* False when no more will come. */
static bool rundown_follow_receive(struct rundown_follow *follow)
{
	bool ended, is_enough;
	struct sym_error *error;

	pthread_mutex_lock(&follow->lock);
	error = receive_pending(follow, &ended);
	is_enough = error || follow->pending.size_bytes >= most_pending_bytes;
	pthread_mutex_unlock(&follow->lock);
	sym_error_destroy(error);
	/*
	 * It is not taken: the runtime must not wait for that. The caller finds the end of the
	 * stream after it.
	 */
	if (is_enough)
		shutdown(follow->fd, SHUT_RDWR);
	return !ended && !is_enough;
}

/*
 * Receives as it comes. Unreceived data fill the runtime's buffer, and then it drops events. At its
 * end the runtime waits until everything is received, if necessary for ever (8.0.31, 9.0.20).
 */
static void *receive_all(void *context)
{
	struct rundown_follow *follow = context;
	struct pollfd wanted[] = { { .fd = follow->stop_fd, .events = POLLIN },
				   { .fd = follow->fd, .events = POLLIN } };
	bool goes_on = true;

	while (goes_on && !wanted[0].revents) {
		if (poll(wanted, 2, -1) < 0 && errno != EINTR)
			break;
		if (wanted[0].revents || !wanted[1].revents)
			continue;
		goes_on = rundown_follow_receive(follow);
		poll(wanted, 1, gather_ms);
	}
	return NULL;
}

/* Signals are for the caller's threads. */
static struct sym_error *start_receiver(struct rundown_follow *follow)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	int failure;

	follow->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (follow->stop_fd < 0)
		return sym_error_from_errno(errno, NULL, "cannot receive events");
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, stack_bytes);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failure = pthread_create(&follow->receiver, &attributes, receive_all, follow);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	follow->has_receiver = !failure;
	return failure ? sym_error_from_errno(failure, NULL, "cannot start a thread") : NULL;
}

struct sym_error *rundown_follow_open(const struct diagnostics_place *place,
				      struct rundown_follow **ret)
{
	struct rundown_follow *follow AUTO_RUNDOWN_FOLLOW = calloc(1, sizeof(*follow));
	const struct nettrace_sink sink = { .context = follow, .event = take_event };
	struct sym_error *error;

	if (!follow)
		return &sym_error_no_memory;
	follow->fd = follow->stop_fd = -1;
	follow->owner = getpid();
	follow->place = *place;
	pthread_mutex_init(&follow->lock, NULL);
	buf_init(&follow->pending, LIMIT_RUNDOWN_BYTES);
	buf_charge(&follow->pending, place->account);
	error = nettrace_stream_create(&sink, &follow->stream);
	if (!error)
		error = rundown_session_follow(place, &follow->fd, &follow->session);
	if (!error)
		error = start_receiver(follow);
	if (!error)
		*ret = STEAL(follow);
	return error;
}

/* With the lock. */
static struct sym_error *rundown_follow_parse_pending(struct rundown_follow *follow,
						      struct rundown *rundown)
{
	bool ended;
	size_t used = 0;
	struct sym_error *error = receive_pending(follow, &ended);

	if (error)
		return error;
	rundown_gathering_init(&follow->gathering, rundown);
	follow->gathering.changes = true;
	error = nettrace_stream_feed(follow->stream, follow->pending.data,
				     follow->pending.size_bytes, &used);
	if (!error)
		buf_drop(&follow->pending, used);
	if (!error && ended && !rundown->method_count)
		error = sym_error_create(SYM_ERROR_IO, "the runtime has ended the tracing session");
	if (!error)
		error = rundown_gathering_finish(&follow->gathering);
	rundown_gathering_deinit(&follow->gathering);
	if (!error)
		rundown->has_gap = has_gap(follow);
	return error;
}

struct sym_error *rundown_follow_take(struct rundown_follow *follow, struct rundown *ret)
{
	struct rundown rundown = { 0 };
	struct sym_error *error;

	pthread_mutex_lock(&follow->lock);
	error = rundown_follow_parse_pending(follow, &rundown);
	pthread_mutex_unlock(&follow->lock);
	if (error)
		rundown_deinit(&rundown);
	else
		*ret = rundown;
	return error;
}
