/* SPDX-License-Identifier: MIT */
/*
 * A client is cut off by one of these rules:
 *
 *     a client that sends its request slowly          its deadline
 *     a client that takes its answer slowly           its deadline
 *     a client that has taken all that was sent,      is_stalled(): two looks see the same count
 *       while the rest of its answer cannot come        of bytes within one answer
 *     a client that waits for its next request,       connections_make_room(): the one that has
 *       while there is little room                      waited longest first
 *
 * server.c sets the deadline of the headers, request.c and request_intake.c that of the body,
 * request_answer.c that of the answer: by its size and the slowest permitted rate. server_tick()
 * enforces them.
 */
#include "symsrv/http/connections.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "libsym/base/cleanup.h"

/* Long enough for a slow disk. */
static const int64_t look_interval_ms = 10000;

struct connections {
	pthread_mutex_t lock;
	LIST_HEAD(, connection) list;
	int64_t next_look_ms;
	unsigned int leaving_count; /* were shut down to make room, and still exist */
	atomic_uint count;
};

struct connections *connections_create(void)
{
	struct connections *connections = calloc(1, sizeof(*connections));

	if (connections)
		pthread_mutex_init(&connections->lock, NULL);
	return connections;
}

void connections_destroy(struct connections *connections)
{
	if (!connections)
		return;
	while (!LIST_EMPTY(&connections->list))
		connections_remove(connections, LIST_FIRST(&connections->list));
	pthread_mutex_destroy(&connections->lock);
	free(connections);
}

struct connection *connections_add(struct connections *connections, int fd, int64_t deadline_ms)
{
	struct connection *connection = calloc(1, sizeof(*connection));

	if (!connection)
		return NULL;
	connection->fd = fd;
	connection->deadline_ms = deadline_ms;
	pthread_mutex_lock(&connections->lock);
	LIST_INSERT_HEAD(&connections->list, connection, entry);
	connections->count++;
	pthread_mutex_unlock(&connections->lock);
	return connection;
}

void connections_remove(struct connections *connections, struct connection *connection)
{
	if (!connection)
		return;
	pthread_mutex_lock(&connections->lock);
	LIST_REMOVE(connection, entry);
	connections->count--;
	connections->leaving_count -= connection->is_leaving;
	pthread_mutex_unlock(&connections->lock);
	free(connection);
}

/* The bytes that went over a socket whose client has received everything; false for other sockets,
 * and when it is not TCP. */
static bool read_traffic(int fd, uint64_t *acked_ret, uint64_t *received_ret)
{
	struct tcp_info info = { 0 };
	socklen_t size = sizeof(info);
	int unsent;

	if (ioctl(fd, SIOCOUTQ, &unsent) || unsent ||
	    getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) ||
	    size < offsetof(struct tcp_info, tcpi_bytes_received) +
			    sizeof(info.tcpi_bytes_received))
		return false;
	*acked_ret = info.tcpi_bytes_acked;
	*received_ret = info.tcpi_bytes_received;
	return true;
}

/* Nothing of its answer was sent since the last look, although the client could have received it.
 */
static bool is_stalled(struct connection *connection)
{
	unsigned int phase = connection->phase;
	uint64_t acked_bytes, received_bytes;
	bool is_same;

	if (!(phase & 1) || !read_traffic(connection->fd, &acked_bytes, &received_bytes)) {
		connection->seen_phase = 0;
		return false;
	}
	is_same = connection->seen_phase == phase && connection->seen_acked_bytes == acked_bytes;
	connection->seen_phase = phase;
	connection->seen_acked_bytes = acked_bytes;
	return is_same;
}

unsigned int connections_enforce(struct connections *connections, int64_t now_ms)
{
	struct connection *connection;
	bool is_look = now_ms >= connections->next_look_ms;
	unsigned int count = 0;

	if (is_look)
		connections->next_look_ms = now_ms + look_interval_ms;
	/* Under the lock no socket of the list can be closed, so its number cannot belong to
	 * another one. */
	pthread_mutex_lock(&connections->lock);
	for (connection = LIST_FIRST(&connections->list); connection;
	     connection = LIST_NEXT(connection, entry)) {
		int64_t deadline_ms = connection->deadline_ms;

		if ((!is_look || !is_stalled(connection)) && (!deadline_ms || now_ms < deadline_ms))
			continue;
		shutdown(connection->fd, SHUT_RDWR);
		connection->deadline_ms = 0;
		count++;
	}
	pthread_mutex_unlock(&connections->lock);
	return count;
}

/* ---- making room ---- */

struct idle {
	struct connection *connection;
	int64_t since_ms;
};

static int by_time(const void *left, const void *right)
{
	const struct idle *a = left;
	const struct idle *b = right;

	return (a->since_ms > b->since_ms) - (a->since_ms < b->since_ms);
}

static size_t find_idle(const struct connections *connections, struct idle *room, size_t most)
{
	struct connection *connection = LIST_FIRST(&connections->list);
	size_t count = 0;

	for (; connection && count < most; connection = LIST_NEXT(connection, entry)) {
		int64_t since_ms = connection->idle_since_ms;

		if (since_ms && !connection->is_leaving)
			room[count++] = (struct idle){ connection, since_ms };
	}
	return count;
}

/*
 * Only the reading side is shut: what has arrived is still read and answered, and then the
 * connection ends.
 */
static bool connections_dismiss(struct connections *connections, struct connection *connection)
{
	uint64_t acked_bytes, received_bytes;

	if (!read_traffic(connection->fd, &acked_bytes, &received_bytes) ||
	    received_bytes != connection->taken_bytes || shutdown(connection->fd, SHUT_RD))
		return false;
	connection->is_leaving = true;
	connections->leaving_count++;
	return true;
}

/* Lock held. */
static unsigned int dismiss_oldest(struct connections *connections, unsigned int wanted)
{
	struct idle *idle AUTO_FREE = calloc(connections->count, sizeof(*idle));
	size_t count = idle ? find_idle(connections, idle, connections->count) : 0;
	unsigned int done = 0;

	if (count)
		qsort(idle, count, sizeof(*idle), by_time);
	for (size_t i = 0; i < count && done < wanted; i++)
		done += connections_dismiss(connections, idle[i].connection);
	return done;
}

unsigned int connections_make_room(struct connections *connections, unsigned int most)
{
	unsigned int staying, done = 0;

	pthread_mutex_lock(&connections->lock);
	staying = connections->count - connections->leaving_count;
	if (staying > most)
		done = dismiss_oldest(connections, staying - most);
	pthread_mutex_unlock(&connections->lock);
	return done;
}

static bool is_unread(const struct connection *connection)
{
	uint64_t acked_bytes, received_bytes;
	int waiting_bytes = 0;

	if (connection->phase & 1)
		return false;
	if (read_traffic(connection->fd, &acked_bytes, &received_bytes))
		return received_bytes != connection->taken_bytes;
	return !ioctl(connection->fd, FIONREAD, &waiting_bytes) && waiting_bytes;
}

unsigned int connections_unread(struct connections *connections)
{
	struct connection *connection;
	unsigned int count = 0;

	pthread_mutex_lock(&connections->lock);
	for (connection = LIST_FIRST(&connections->list); connection;
	     connection = LIST_NEXT(connection, entry))
		count += is_unread(connection);
	pthread_mutex_unlock(&connections->lock);
	return count;
}

unsigned int connections_count(struct connections *connections)
{
	return connections->count;
}
