/* SPDX-License-Identifier: MIT */
#include "mapgen/record/stream_receiver.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/error.h"

enum {
	STEP_BYTES = 1 << 20,
	GATHER_MS = 5,   /* the runtime sends small pieces */
	LAST_STEPS = 16, /* more than a socket holds */
};

struct stream_receiver {
	struct sym_event_session *session;
	int fd;
	int stop_fd; /* readable when the thread should end */
	int end_fd;  /* readable when the thread ends */
	pthread_t thread;
	_Atomic(uint64_t) bytes;
	_Atomic(bool) has_ended;
	struct sym_error *error; /* of the thread, until it is joined */
	uint8_t room[STEP_BYTES];
};

static void write_number(int fd)
{
	const uint64_t one = 1;

	while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
		continue;
}

static struct sym_error *keep(struct stream_receiver *receiver, size_t count)
{
	size_t done = 0;

	while (done < count) {
		ssize_t written = pwrite(receiver->fd, receiver->room + done, count - done,
					 (off_t)(receiver->bytes + done));

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return sym_error_create(SYM_ERROR_IO, "cannot keep events: %s",
						strerror(errno));
		done += (size_t)written;
	}
	receiver->bytes += count;
	return NULL;
}

/* False when no more will come. */
static bool receive(struct stream_receiver *receiver)
{
	int has_ended = 0;
	size_t count = 0;
	struct sym_error *error = sym_event_session_read(
		receiver->session, receiver->room, sizeof(receiver->room), &count, &has_ended);

	if (!error)
		error = keep(receiver, count);
	receiver->error = error;
	return !error && !has_ended;
}

static void *receive_all(void *context)
{
	struct stream_receiver *receiver = context;
	struct pollfd wanted[] = { { .fd = receiver->stop_fd, .events = POLLIN },
				   { .fd = sym_event_session_fd(receiver->session),
				     .events = POLLIN } };
	bool goes_on = true;

	while (goes_on && !wanted[0].revents) {
		if (poll(wanted, 2, -1) < 0 && errno != EINTR)
			break;
		if (wanted[0].revents || !wanted[1].revents)
			continue;
		goes_on = receive(receiver);
		poll(wanted, 1, GATHER_MS);
	}
	/* A runtime that does not answer at the end has sent before. */
	for (int step = 0; goes_on && step < LAST_STEPS && poll(&wanted[1], 1, 0) > 0; step++)
		goes_on = receive(receiver);
	receiver->has_ended = !goes_on;
	write_number(receiver->end_fd);
	return NULL;
}

static void destroy(struct stream_receiver *receiver)
{
	if (!receiver)
		return;
	if (receiver->stop_fd >= 0)
		close(receiver->stop_fd);
	if (receiver->end_fd >= 0)
		close(receiver->end_fd);
	free(receiver);
}

DEFINE_GUARD(receiver, struct stream_receiver *, destroy)

struct sym_error *stream_receiver_start(struct sym_event_session *session, int fd,
					struct stream_receiver **ret)
{
	struct stream_receiver *receiver GUARDED(receiver) = calloc(1, sizeof(*receiver));
	sigset_t all, before;
	int failure;

	if (!receiver)
		return &sym_error_no_memory;
	receiver->session = session;
	receiver->fd = fd;
	receiver->stop_fd = eventfd(0, EFD_CLOEXEC);
	receiver->end_fd = eventfd(0, EFD_CLOEXEC);
	if (receiver->stop_fd < 0 || receiver->end_fd < 0)
		return sym_error_create(SYM_ERROR_IO, "cannot receive events: %s", strerror(errno));
	/* Signals are for the main thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failure = pthread_create(&receiver->thread, NULL, receive_all, receiver);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failure)
		return sym_error_create(SYM_ERROR_IO, "cannot start a thread: %s",
					strerror(failure));
	pthread_setname_np(receiver->thread, "events");
	*ret = STEAL(receiver);
	return NULL;
}

uint64_t stream_receiver_bytes(const struct stream_receiver *receiver)
{
	return receiver->bytes;
}

bool stream_receiver_has_ended(const struct stream_receiver *receiver)
{
	return receiver->has_ended;
}

bool stream_receiver_wait(struct stream_receiver *receiver, int idle_ms)
{
	struct pollfd end = { .fd = receiver->end_fd, .events = POLLIN };
	uint64_t before = receiver->bytes;
	int count = poll(&end, 1, idle_ms);

	return count > 0 || (!count && receiver->bytes == before);
}

void stream_receiver_stop(struct stream_receiver *receiver, struct sym_error **error_ret,
			  uint64_t *bytes_ret)
{
	write_number(receiver->stop_fd);
	pthread_join(receiver->thread, NULL);
	*error_ret = receiver->error;
	*bytes_ret = receiver->bytes;
	destroy(receiver);
}
