/* SPDX-License-Identifier: MIT */
/*
 * libmicrohttpd can accept connections itself, but it cannot stop that safely. In 0.9.75, with a
 * pool of threads and epoll, MHD_quiesce_daemon() and a worker both remove the listening socket
 * from the worker's epoll set. The second one gets ENOENT, and MHD_quiesce_daemon() then calls
 * abort(). So this thread accepts, and passes each connection to the library by
 * MHD_add_connection().
 *
 * Closing a listening socket resets every connection in its queue, which the clients already take
 * for connected. So first nothing more is let into the queue, and then it is emptied:
 *
 *   TCP                 a socket filter drops SYN packets; a client tries again
 *                       after a second and is refused, or finds the next server
 *   Unix socket         shutdown(SHUT_RD): connect() is refused at once
 *   shared with systemd is closed as it is: its queue stays for the next server
 */
#include "symsrv/http/acceptor.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "symsrv/util/log.h"

/* After the last connection: handshakes that have begun end in this time. */
static const int quiet_ms = 50;
/* The pause while the process has no descriptor or no memory for another connection. */
static const int shortage_ms = 100;
/* Most connections that are accepted from one socket before the next socket. */
static const unsigned int most_at_once = 64;

enum state {
	STATE_OPEN,
	STATE_DRAINING,
	STATE_STOPPED
};

struct acceptor {
	struct acceptor_settings settings;
	pthread_t thread;
	struct pollfd *polled; /* the sockets, -1 when closed; the last one wakes the thread */
	_Atomic int state;     /* enum state */
	atomic_bool is_full;
	atomic_bool is_done;
	bool is_refusing;
	bool is_short; /* out of descriptors or memory */
};

static int wake_fd(const struct acceptor *acceptor)
{
	return acceptor->polled[acceptor->settings.socket_count].fd;
}

static void acceptor_wake_thread(const struct acceptor *acceptor)
{
	const uint64_t one = 1;

	/* It fails only when the counter is full, and then the thread is woken already. */
	if (write(wake_fd(acceptor), &one, sizeof(one)) < 0)
		return;
}

static void close_socket(struct pollfd *socket)
{
	if (socket->fd >= 0)
		close(socket->fd);
	socket->fd = -1;
}

static bool is_tcp(int fd)
{
	int protocol = 0;
	socklen_t size = sizeof(protocol);

	return !getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) &&
	       protocol == IPPROTO_TCP;
}

/* A handshake that has begun still ends, because its last packet has no SYN. */
static void acceptor_refuse(struct pollfd *socket)
{
	/* Offsets are from the TCP header; the flags are its 14th byte. */
	static const uint32_t flags_offset = 13, syn = 2;
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, flags_offset),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, syn, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
	};
	const struct sock_fprog program = { sizeof(code) / sizeof(*code), code };

	if (is_tcp(socket->fd))
		setsockopt(socket->fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
	else
		shutdown(socket->fd, SHUT_RD);
}

static void refuse_all(struct acceptor *acceptor)
{
	acceptor->is_refusing = true;
	for (size_t i = 0; i < acceptor->settings.socket_count; i++)
		if (i < acceptor->settings.shared_count)
			close_socket(&acceptor->polled[i]);
		else
			acceptor_refuse(&acceptor->polled[i]);
}

static void note_shortage(struct acceptor *acceptor, int failure)
{
	if (!acceptor->is_short)
		log_message(LOG_LEVEL_WARNING, "cannot accept a connection: %s", strerror(failure));
	acceptor->is_short = true;
}

/* Returns false if no connection is waiting. */
static bool accept_one(struct acceptor *acceptor, struct pollfd *socket)
{
	const struct acceptor_settings *settings = &acceptor->settings;
	struct sockaddr_storage address = { 0 };
	socklen_t size = sizeof(address);
	int fd = accept4(socket->fd, (struct sockaddr *)&address, &size,
			 SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0) {
		acceptor->is_short = false;
		settings->take(settings->context, fd, (struct sockaddr *)&address, size);
		return true;
	}
	if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
		note_shortage(acceptor, errno);
	else if (acceptor->is_refusing && (errno == EAGAIN || errno == EINVAL) &&
		 !is_tcp(socket->fd))
		close_socket(socket); /* poll() never becomes quiet after shutdown() */
	/* accept(2) returns the error of a connection that has ended again. */
	return errno != EAGAIN && errno != EINVAL && !acceptor->is_short;
}

static void accept_some(struct acceptor *acceptor, struct pollfd *socket)
{
	const struct acceptor_settings *settings = &acceptor->settings;

	for (unsigned int i = 0; i < most_at_once && settings->has_room(settings->context); i++)
		if (!accept_one(acceptor, socket))
			return;
}

/* acceptor_wake() reads is_full after there is room: either it wakes the thread, or has_room() is
 * true here. */
static bool note_room(struct acceptor *acceptor)
{
	const struct acceptor_settings *settings = &acceptor->settings;

	acceptor->is_full = false;
	if (settings->has_room(settings->context))
		return true;
	acceptor->is_full = true;
	return settings->has_room(settings->context);
}

/* False: nothing has come for so long that the queue is empty. */
static bool acceptor_look(struct acceptor *acceptor)
{
	size_t count = acceptor->settings.socket_count;
	struct pollfd *woken = &acceptor->polled[count];
	bool may_accept = note_room(acceptor) && !acceptor->is_short;
	int timeout_ms = acceptor->is_refusing ? quiet_ms : acceptor->is_short ? shortage_ms : -1;
	bool is_open = false;
	uint64_t times;
	int ready;

	for (size_t i = 0; i < count; i++) {
		acceptor->polled[i].events = may_accept ? POLLIN : 0;
		is_open |= acceptor->polled[i].fd >= 0;
	}
	if (!is_open)
		return false;
	ready = poll(acceptor->polled, count + 1, timeout_ms);
	acceptor->is_short &= ready != 0;
	if (ready <= 0)
		return ready < 0 || !may_accept || !acceptor->is_refusing;
	if (woken->revents && read(woken->fd, &times, sizeof(times)) < 0)
		return true;
	for (size_t i = 0; i < count; i++)
		if (acceptor->polled[i].fd >= 0 && acceptor->polled[i].revents && may_accept)
			accept_some(acceptor, &acceptor->polled[i]);
	return true;
}

static void *acceptor_run(void *context)
{
	struct acceptor *acceptor = context;
	int state;

	while ((state = acceptor->state) != STATE_STOPPED) {
		if (state == STATE_DRAINING && !acceptor->is_refusing)
			refuse_all(acceptor);
		if (!acceptor_look(acceptor))
			break;
	}
	for (size_t i = 0; i < acceptor->settings.socket_count; i++)
		close_socket(&acceptor->polled[i]);
	acceptor->is_done = true;
	return NULL;
}

void acceptor_destroy(struct acceptor *acceptor)
{
	if (!acceptor)
		return;
	for (size_t i = 0; i <= acceptor->settings.socket_count; i++)
		close_socket(&acceptor->polled[i]);
	free(acceptor->polled);
	free(acceptor);
}

static struct acceptor *acceptor_create_empty(const struct acceptor_settings *settings)
{
	struct acceptor *acceptor = calloc(1, sizeof(*acceptor));

	if (acceptor)
		acceptor->polled = calloc(settings->socket_count + 1, sizeof(*acceptor->polled));
	if (!acceptor || !acceptor->polled) {
		for (size_t i = 0; i < settings->socket_count; i++)
			close(settings->sockets[i]);
		free(acceptor);
		return NULL;
	}
	acceptor->settings = *settings;
	for (size_t i = 0; i < settings->socket_count; i++)
		acceptor->polled[i].fd = settings->sockets[i];
	acceptor->polled[settings->socket_count] =
		(struct pollfd){ .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .events = POLLIN };
	return acceptor;
}

int acceptor_start(const struct acceptor_settings *settings, struct acceptor **ret)
{
	struct acceptor *acceptor = acceptor_create_empty(settings);
	int failure = acceptor ? 0 : ENOMEM;

	if (!failure && wake_fd(acceptor) < 0)
		failure = errno;
	*ret = failure ? NULL : acceptor;
	if (!failure)
		failure = pthread_create(&acceptor->thread, NULL, acceptor_run, acceptor);
	if (failure) {
		*ret = NULL;
		acceptor_destroy(acceptor);
	}
	return -failure;
}

void acceptor_stop(struct acceptor *acceptor)
{
	if (!acceptor)
		return;
	acceptor->state = STATE_STOPPED;
	acceptor_wake_thread(acceptor);
	pthread_join(acceptor->thread, NULL);
}

void acceptor_wake(struct acceptor *acceptor)
{
	if (acceptor && acceptor->is_full)
		acceptor_wake_thread(acceptor);
}

void acceptor_drain(struct acceptor *acceptor)
{
	acceptor->state = STATE_DRAINING;
	acceptor_wake_thread(acceptor);
}

bool acceptor_is_done(const struct acceptor *acceptor)
{
	return acceptor->is_done;
}
