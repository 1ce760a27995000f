/* SPDX-License-Identifier: MIT */
#include "symsrv/connections.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* A disk may be slow. */
static const int64_t look_interval_ms = 10000;

struct connections {
	pthread_mutex_t lock;
	struct connection *first;
	int64_t next_look_ms;
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
	while (connections->first)
		connections_remove(connections, connections->first);
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
	connection->next = connections->first;
	connection->link = &connections->first;
	if (connection->next)
		connection->next->link = &connection->next;
	connections->first = connection;
	connections->count++;
	pthread_mutex_unlock(&connections->lock);
	return connection;
}

void connections_remove(struct connections *connections, struct connection *connection)
{
	if (!connection)
		return;
	pthread_mutex_lock(&connections->lock);
	*connection->link = connection->next;
	if (connection->next)
		connection->next->link = connection->link;
	connections->count--;
	pthread_mutex_unlock(&connections->lock);
	free(connection);
}

/* Of a socket whose client has everything that was sent; false for another, or no TCP. */
static bool read_acked(int fd, uint64_t *bytes_ret)
{
	struct tcp_info info = { 0 };
	socklen_t size = sizeof(info);
	int unsent;

	if (ioctl(fd, SIOCOUTQ, &unsent) || unsent ||
	    getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) ||
	    size < offsetof(struct tcp_info, tcpi_bytes_acked) + sizeof(info.tcpi_bytes_acked))
		return false;
	*bytes_ret = info.tcpi_bytes_acked;
	return true;
}

/* Nothing of its answer was sent since the last look, and the client could have taken it. */
static bool is_stalled(struct connection *connection)
{
	unsigned int phase = connection->phase;
	uint64_t acked_bytes;
	bool is_same;

	if (!(phase & 1) || !read_acked(connection->fd, &acked_bytes)) {
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
	/* Under the lock no socket of the list can be closed, so no other one can have its number.
	 */
	pthread_mutex_lock(&connections->lock);
	for (connection = connections->first; connection; connection = connection->next) {
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

unsigned int connections_count(struct connections *connections)
{
	return connections->count;
}
