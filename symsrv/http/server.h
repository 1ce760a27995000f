/* SPDX-License-Identifier: MIT */
/*
 * The HTTP server: connections, requests, answers. Only request.h and response.c include
 * microhttpd.h. Nothing in its callbacks blocks: for slow work the connection is suspended, and
 * another thread does the work.
 */
#ifndef SYMSRV_HTTP_SERVER_H
#define SYMSRV_HTTP_SERVER_H

#include "symsrv/lookup/lookup.h"
#include "symsrv/lookup/prefetch.h"
#include "symsrv/lookup/upload.h"
#include "symsrv/report/metrics.h"
#include "symsrv/util/access_log.h"

enum transient_answer {
	TRANSIENT_AUTO,
	TRANSIENT_503,
	TRANSIENT_RESET
};

struct server_settings {
	const struct holdings *holdings;
	const struct resolve_parts *resolve_parts;
	struct metrics *metrics;
	struct access_log *access_log; /* or NULL */
	const int *sockets;            /* listening; owned by the server */
	size_t socket_count;
	size_t shared_socket_count; /* how many of the first ones systemd has too */
	unsigned int threads;
	unsigned int connections, connections_per_client;
	enum transient_answer transient;
	int64_t wait_ms, header_ms, idle_ms;
	uint64_t min_rate_bytes;
	uint64_t forwarded_limit;
	uint64_t max_object_bytes;
	struct prefetch *prefetch;
	struct uploads *uploads;
};

struct server;

/* Returns 0 or a negative errno. */
int server_start(const struct server_settings *settings, struct server **ret);

/* Call this several times a second. */
void server_tick(struct server *server, int64_t now_ms);

/* The answer of /readyz. */
void server_set_ready(struct server *server, bool is_ready);

/* Lets no further client connect. Requests in progress go on, and connections end with their next
 * answer. */
void server_drain(struct server *server);
/* After that: whether there are clients that had connected, and whose connection has not begun. */
bool server_is_accepting(struct server *server);
/* Connections on which all or a part of a request has arrived that has not begun. */
unsigned int server_unread(struct server *server);
unsigned int server_active(struct server *server);
unsigned int server_connections(struct server *server);

/* From now on no request waits for an upstream; returns how many still do. */
void server_close(struct server *server);
unsigned int server_suspended(struct server *server);

/* Call this after server_close(), when nothing is suspended any more. */
void server_stop(struct server *server);

#endif
