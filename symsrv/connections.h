/* SPDX-License-Identifier: MIT */
/*
 * Deadlines of connections. A server's idle time-out is renewed by every byte,
 * so that a client who drips stays for ever; here each phase of a connection
 * has an absolute end, and a connection that misses it is shut down. So is one
 * whose client has taken everything and waits for the rest of an answer that does
 * not come: its file was cut while it was sent, and sendfile() has nothing more.
 * Knows sockets and times, refuses to know HTTP.
 */
#ifndef SYMSRV_CONNECTIONS_H
#define SYMSRV_CONNECTIONS_H

#include <stdatomic.h>
#include <stdint.h>

struct connection {
	int fd;
	_Atomic int64_t deadline_ms; /* 0: none */
	atomic_uint phase;           /* odd: an answer is being sent */
	/* When it was last looked at, while its client waited: */
	unsigned int seen_phase;
	uint64_t seen_acked_bytes;
	struct connection *next, **link;
};

struct connections;

struct connections *connections_create(void);
void connections_destroy(struct connections *connections);

/* NULL: no memory, the connection then has no deadlines. */
struct connection *connections_add(struct connections *connections, int fd, int64_t deadline_ms);
/* To be called before the socket is closed. */
void connections_remove(struct connections *connections, struct connection *connection);

/* Cheap, without a lock; NULL is fine. */
static inline void connection_set_deadline(struct connection *connection, int64_t deadline_ms)
{
	if (connection)
		atomic_store_explicit(&connection->deadline_ms, deadline_ms, memory_order_relaxed);
}

/* An answer begins, or what was sent of it is all. As above. */
static inline void connection_begin_answer(struct connection *connection, int64_t deadline_ms)
{
	connection_set_deadline(connection, deadline_ms);
	if (connection && !(connection->phase & 1))
		connection->phase++;
}

static inline void connection_end_answer(struct connection *connection, int64_t deadline_ms)
{
	connection_set_deadline(connection, deadline_ms);
	if (connection && (connection->phase & 1))
		connection->phase++;
}

/* Shuts down those whose time is over; returns how many. */
unsigned int connections_enforce(struct connections *connections, int64_t now_ms);
unsigned int connections_count(struct connections *connections);

#endif
