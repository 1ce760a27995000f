/* SPDX-License-Identifier: MIT */
/*
 * The HTTP server: connections, requests, answers. Only server.c and response.c
 * include microhttpd.h. Nothing in its callbacks blocks: what is not at
 * hand is asked for elsewhere while the connection is suspended.
 */
#ifndef SYMSRV_SERVER_H
#define SYMSRV_SERVER_H

#include "symsrv/access_log.h"
#include "symsrv/inquiry.h"
#include "symsrv/metrics.h"

enum transient_answer {
	TRANSIENT_AUTO,
	TRANSIENT_503,
	TRANSIENT_RESET
};

struct server_settings {
	const struct holdings *holdings;
	struct metrics *metrics;
	struct access_log *access_log; /* or NULL */
	const int *sockets;            /* listening; taken over */
	size_t socket_count;
	unsigned int threads; /* a socket */
	unsigned int connections, connections_per_client;
	enum transient_answer transient;
	int64_t wait_ms, header_ms, idle_ms;
	uint64_t min_rate_bytes;
	uint64_t forwarded_limit;
};

struct server;

/* 0 or a negative errno. */
int server_start(const struct server_settings *settings, struct server **ret);

/* To be called some times a second. */
void server_tick(struct server *server, int64_t now_ms);

/* What /readyz says. */
void server_set_ready(struct server *server, bool is_ready);

/* Takes no more connections; what is under way goes on, and connections end with their next
 * answer. */
void server_drain(struct server *server);
unsigned int server_active(struct server *server);
unsigned int server_connections(struct server *server);

/* From now on no request waits for anybody; how many still do. */
void server_close(struct server *server);
unsigned int server_suspended(struct server *server);

/* After server_close(), when nothing is suspended any more. */
void server_stop(struct server *server);

#endif
