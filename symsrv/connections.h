/* SPDX-License-Identifier: MIT */
/*
 * Deadlines of connections. A server's idle time-out is renewed by every byte,
 * so that a client who drips stays for ever; here each phase of a connection
 * has an absolute end, and a connection that misses it is shut down. So is one
 * whose client has taken everything and waits for the rest of an answer that does
 * not come: its file was cut while it was sent, and sendfile() has nothing more.
 * Where there is little room for others, those that wait for their next request
 * are ended too. Knows sockets and times, refuses to know HTTP.
 */
#ifndef SYMSRV_CONNECTIONS_H
#define SYMSRV_CONNECTIONS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct connection {
	int fd;
	_Atomic int64_t deadline_ms;   /* 0: none */
	atomic_uint phase;             /* odd: an answer is being sent */
	_Atomic int64_t idle_since_ms; /* 0: it is new, or a request is under way */
	_Atomic uint64_t taken_bytes;  /* of the requests whose headers are there */
	bool is_leaving;
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

/* A request of so many bytes is there. As above. */
static inline void connection_take_request(struct connection *connection, size_t bytes)
{
	if (!connection)
		return;
	connection->idle_since_ms = 0;
	connection->taken_bytes += bytes;
}

/* An answer begins, or what was sent of it is all. As above. */
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

/* Shuts down those whose time is over; returns how many. */
unsigned int connections_enforce(struct connections *connections, int64_t now_ms);

/*
 * Ends connections that wait for their next request until there are no more than
 * `most`, or no more of that kind: those that have waited longest first. Never
 * one of which a byte of the next request is there, or one whose client has not yet
 * all of its last answer; nor one of a Unix socket, which does not tell. Returns how many.
 */
unsigned int connections_make_room(struct connections *connections, unsigned int most);
unsigned int connections_count(struct connections *connections);

#endif
