/* SPDX-License-Identifier: MIT */
/*
 * Deadlines of connections. The idle time-out of a server is renewed by every byte, so a client
 * that sends slowly stays for ever. Here each phase of a connection has an absolute end, and a
 * connection that misses it is shut down. So is a connection whose client waits for the rest of an
 * answer that cannot come, because the file was truncated while sendfile() sent it. When there is
 * little room for others, connections that wait for their next request are shut down too. Knows
 * sockets and times, not HTTP.
 */
#ifndef SYMSRV_HTTP_CONNECTIONS_H
#define SYMSRV_HTTP_CONNECTIONS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct connection {
	int fd;
	_Atomic int64_t deadline_ms;   /* 0: none */
	atomic_uint phase;             /* odd: an answer is being sent */
	_Atomic int64_t idle_since_ms; /* 0: it is new, or a request is in progress */
	_Atomic uint64_t taken_bytes;  /* of the requests whose headers have arrived */
	bool is_leaving;
	/* At the last look while its client waited: */
	unsigned int seen_phase;
	uint64_t seen_acked_bytes;
	LIST_ENTRY(connection) entry;
};

struct connections;

struct connections *connections_create(void);
void connections_destroy(struct connections *connections);

/* NULL: out of memory; the connection then has no deadlines. */
struct connection *connections_add(struct connections *connections, int fd, int64_t deadline_ms);
/* Call this before the socket is closed. */
void connections_remove(struct connections *connections, struct connection *connection);

/* Cheap, without a lock; NULL is allowed. */
static inline void connection_set_deadline(struct connection *connection, int64_t deadline_ms)
{
	if (connection)
		atomic_store_explicit(&connection->deadline_ms, deadline_ms, memory_order_relaxed);
}

/* A request of this many bytes has arrived. Cheap; NULL is allowed. */
static inline void connection_take_request(struct connection *connection, size_t bytes)
{
	if (!connection)
		return;
	connection->idle_since_ms = 0;
	connection->taken_bytes += bytes;
}

/* An answer begins, or all of it was sent. Cheap; NULL is allowed. */
static inline void connection_begin_answer(struct connection *connection, int64_t deadline_ms)
{
	connection_set_deadline(connection, deadline_ms);
	if (connection && !(connection->phase & 1))
		connection->phase++;
}

static inline void connection_end_answer(struct connection *connection, int64_t now_ms,
					 int64_t idle_ms)
{
	connection_set_deadline(connection, now_ms + idle_ms);
	if (connection && (connection->phase & 1))
		connection->phase++;
	if (connection)
		connection->idle_since_ms = now_ms;
}

/* Shuts down connections whose time is over; returns how many. */
unsigned int connections_enforce(struct connections *connections, int64_t now_ms);

/*
 * Shuts down connections that wait for their next request, those that have waited longest first,
 * until there are at most `most` or no more of that kind. Spares a connection that has received a
 * byte of the next request, one whose client has not received all of its last answer, and Unix
 * sockets, which do not show that. Returns how many.
 */
unsigned int connections_make_room(struct connections *connections, unsigned int most);
unsigned int connections_count(struct connections *connections);

/* Connections that have received bytes of a request that has not begun. */
unsigned int connections_unread(struct connections *connections);

#endif
