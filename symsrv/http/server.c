/* SPDX-License-Identifier: MIT */
#include "symsrv/http/server.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>

#include "symsrv/http/acceptor.h"
#include "symsrv/http/connections.h"
#include "symsrv/http/request.h"
#include "symsrv/util/clock.h"

/*
 * Most bytes that the kernel holds for a client that does not read. Without a limit it holds
 * megabytes for each, and filling these for a thousand slow readers takes seconds.
 */
static const int most_unsent_bytes = 128 << 10;

/* Idle connections leave this part of the limit free, and one more, for new clients. */
static const unsigned int free_share = 16;

/* Time between looks at the deadlines of all connections: with thousands, each look costs a
 * fraction of a millisecond. */
static const int64_t enforce_interval_ms = 1000;

static void on_connection(void *context, struct MHD_Connection *connection, void **slot,
			  enum MHD_ConnectionNotificationCode code)
{
	struct server *server = context;
	const union MHD_ConnectionInfo *info;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		connections_remove(server->connections, *slot);
		*slot = NULL;
		acceptor_wake(server->acceptor);
		return;
	}
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	if (info) {
		setsockopt(info->connect_fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &most_unsent_bytes,
			   sizeof(most_unsent_bytes));
		*slot = connections_add(server->connections, info->connect_fd,
					clock_now_ms() + server->settings.header_ms);
	}
	atomic_fetch_sub(&server->arriving, 1);
}

/* Paths stay encoded, because MHD's decoding ends them at %00 and hides %2F. */
static size_t keep_escapes(void *context, struct MHD_Connection *connection, char *text)
{
	(void)context;
	(void)connection;
	return strlen(text);
}

/* ---- life ---- */

/* Bodies, and answers that were not read. */
static const size_t most_request_bytes = (size_t)512 << 20;

/* Further clients wait in the queues of the sockets. */
static bool has_room(void *context)
{
	const struct server *server = context;

	return connections_count(server->connections) + server->arriving <
	       server->settings.connections;
}

static void server_take_connection(void *context, int fd, const struct sockaddr *address,
				   socklen_t size_bytes)
{
	struct server *server = context;

	atomic_fetch_add(&server->arriving, 1);
	/* False: the client is over its limit, and the connection is closed. */
	if (MHD_add_connection(server->daemon, fd, address, size_bytes) != MHD_YES)
		atomic_fetch_sub(&server->arriving, 1);
}

static struct MHD_Daemon *start_daemon(struct server *server)
{
	const struct server_settings *settings = &server->settings;
	unsigned int threads = settings->threads > 1 ? settings->threads : 0;
	unsigned int flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME |
			     MHD_USE_ERROR_LOG | MHD_USE_TURBO | MHD_USE_NO_LISTEN_SOCKET;
	unsigned int limit = settings->connections;

	/* Each worker has an equal part of the limit; has_room() limits all of them together. */
	if (threads && __builtin_mul_overflow(limit, threads, &limit))
		limit = UINT_MAX;
	return MHD_start_daemon(
		flags, 0, NULL, NULL, request_on_call, server, MHD_OPTION_EXTERNAL_LOGGER,
		library_log_take, &server->library_log, MHD_OPTION_CONNECTION_LIMIT, limit,
		MHD_OPTION_PER_IP_CONNECTION_LIMIT, settings->connections_per_client,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY_BYTES,
		MHD_OPTION_CONNECTION_TIMEOUT, 0u, MHD_OPTION_STRICT_FOR_CLIENT, 1,
		MHD_OPTION_NOTIFY_COMPLETED, request_on_completed, server,
		MHD_OPTION_URI_LOG_CALLBACK, request_on_line, server, MHD_OPTION_NOTIFY_CONNECTION,
		on_connection, server, MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL,
		MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
		/* MHD warns about a pool of no threads. */
		threads ? MHD_OPTION_THREAD_POOL_SIZE : MHD_OPTION_END, threads, MHD_OPTION_END);
}

int server_start(const struct server_settings *settings, struct server **ret)
{
	struct server *server = calloc(1, sizeof(*server));
	const struct acceptor_settings accepting = {
		.sockets = settings->sockets,
		.socket_count = settings->socket_count,
		.shared_count = settings->shared_socket_count,
		.has_room = has_room,
		.take = server_take_connection,
		.context = server,
	};
	int failure;

	if (!server)
		return -ENOMEM;
	server->memory.most_bytes = most_request_bytes;
	server->settings = *settings;
	server->started_ms = clock_now_ms();
	server->connections = connections_create();
	failure = server->connections ? 0 : -ENOMEM;
	if (!failure)
		server->daemon = start_daemon(server);
	if (!failure)
		failure = server->daemon ? acceptor_start(&accepting, &server->acceptor) : -EIO;
	if (failure)
		server_stop(server);
	else
		*ret = server;
	return failure;
}

void server_tick(struct server *server, int64_t now_ms)
{
	struct metrics *metrics = server->settings.metrics;
	unsigned int limit = server->settings.connections;

	if (now_ms >= server->next_enforce_ms) {
		server->next_enforce_ms = now_ms + enforce_interval_ms;
		metrics->shut_down += connections_enforce(server->connections, now_ms);
	}
	metrics->dismissed +=
		connections_make_room(server->connections, limit - (limit / free_share + 1));
}

void server_set_ready(struct server *server, bool is_ready)
{
	server->is_ready = is_ready;
}

void server_drain(struct server *server)
{
	server->is_draining = true;
	acceptor_drain(server->acceptor);
}

bool server_is_accepting(struct server *server)
{
	return !acceptor_is_done(server->acceptor) || server->arriving;
}

unsigned int server_unread(struct server *server)
{
	return connections_unread(server->connections);
}

unsigned int server_active(struct server *server)
{
	return server->active;
}

unsigned int server_connections(struct server *server)
{
	return connections_count(server->connections);
}

void server_close(struct server *server)
{
	server->is_closing = true;
}

unsigned int server_suspended(struct server *server)
{
	return server->suspended;
}

void server_stop(struct server *server)
{
	if (!server)
		return;
	acceptor_stop(server->acceptor);
	/* The last connections that it closes wake the acceptor. */
	if (server->daemon)
		MHD_stop_daemon(server->daemon);
	acceptor_destroy(server->acceptor);
	connections_destroy(server->connections);
	free(server);
}
