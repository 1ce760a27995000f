/* SPDX-License-Identifier: MIT */
#include "symsrv/connections.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>

struct connections {
	pthread_mutex_t lock;
	struct connection *first;
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

unsigned int connections_enforce(struct connections *connections, int64_t now_ms)
{
	struct connection *connection;
	unsigned int count = 0;

	/* Under the lock no socket of the list can be closed, so no other one can have its number.
	 */
	pthread_mutex_lock(&connections->lock);
	for (connection = connections->first; connection; connection = connection->next) {
		int64_t deadline_ms = connection->deadline_ms;

		if (!deadline_ms || now_ms < deadline_ms)
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
