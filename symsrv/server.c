/* SPDX-License-Identifier: MIT */
#include "symsrv/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "symsrv/answer.h"
#include "symsrv/clock.h"
#include "symsrv/connections.h"
#include "symsrv/hops.h"
#include "symsrv/library_log.h"
#include "symsrv/percent.h"
#include "symsrv/report.h"
#include "symsrv/response.h"

/* Time that a client has to begin taking an answer. */
static const int64_t answer_ms = 20000;
/*
 * What the kernel may hold for a client who does not take it. Without a bound it
 * is megabytes each, and filling them for a thousand slow readers takes seconds.
 */
static const int most_unsent_bytes = 128 << 10;
static const size_t connection_memory_bytes = 24 << 10;
static const size_t longest_report_bytes = 16 << 20;

/* Idle connections leave so much of the limit free, and one more, for whoever comes. */
static const unsigned int free_share = 16;

struct server {
	struct server_settings settings;
	struct connections *connections;
	struct MHD_Response *fixed[2][ANSWER_COUNT]; /* the second ends the connection */
	struct MHD_Daemon **daemons;
	size_t daemon_count;
	int64_t started_ms;
	struct library_log library_log;
	atomic_uint active;
	atomic_uint suspended;
	atomic_bool is_ready;
	atomic_bool is_draining; /* connections end with their next answer */
	atomic_bool is_closing;  /* nothing is suspended any more */
};

enum request_state {
	REQUEST_NEW,
	REQUEST_BEGUN,
	REQUEST_ANSWERED,
	REQUEST_WAITING,
	REQUEST_READY,
};

struct request {
	struct inquiry inquiry;
	struct job job; /* for reports */
	struct server *server;
	struct MHD_Connection *connection;
	struct route route;
	const char *method;
	int64_t started_us;
	_Atomic int state; /* enum request_state */
	struct buf report;
	char *report_value, *report_key; /* heap */
	char *text;                      /* heap, for an inquiry */
	char *forwarded_for;             /* heap */
	/* For counting: */
	enum answer_result result;
	unsigned int status;
	uint64_t bytes;
	const char *source;
	size_t path_bytes;
	char path[]; /* as it came, without the query; behind it the room of the route */
};

/* ---- answers ---- */

static struct connection *connection_of(const struct request *request)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static enum MHD_Result queue(struct request *request, unsigned int status,
			     struct MHD_Response *response, uint64_t bytes)
{
	uint64_t rate = request->server->settings.min_rate_bytes;

	request->status = status;
	request->bytes = strcmp(request->method, "HEAD") ? bytes : 0;
	connection_begin_answer(connection_of(request),
				clock_now_ms() + answer_ms +
					(rate ? (int64_t)(bytes / rate * 1000) : INT32_MAX));
	return MHD_queue_response(request->connection, status, response);
}

static enum MHD_Result answer_fixed(struct request *request, enum fixed_answer answer)
{
	/* GCC 12 reads what is an index as if it were not atomic. */
	bool is_draining = request->server->is_draining;

	request->result = fixed_answers[answer].result;
	return queue(request, fixed_answers[answer].status,
		     request->server->fixed[is_draining][answer], 0);
}

static bool make_fixed_answers(struct server *server)
{
	bool is_good = true;
	unsigned int i;

	for (i = 0; i < 2 * ANSWER_COUNT; i++) {
		server->fixed[i / ANSWER_COUNT][i % ANSWER_COUNT] =
			response_fixed(i % ANSWER_COUNT, i >= ANSWER_COUNT);
		is_good &= server->fixed[i / ANSWER_COUNT][i % ANSWER_COUNT] != NULL;
	}
	return is_good;
}

/* ---- objects ---- */

static enum MHD_Result collect_header(void *context, enum MHD_ValueKind kind, const char *name,
				      const char *value)
{
	(void)kind;
	if (value)
		request_headers_take(context, name, value);
	return MHD_YES;
}

static struct request_headers headers_of(const struct request *request)
{
	struct request_headers headers = { 0 };

	MHD_get_connection_values(request->connection, MHD_HEADER_KIND, collect_header, &headers);
	/* RFC 9110, 14.2: a range is of a GET. */
	if (!strcmp(request->method, "HEAD"))
		headers.range = NULL;
	return headers;
}

static enum MHD_Result send_and_release(struct request *request, unsigned int status,
					struct MHD_Response *response, uint64_t bytes)
{
	enum MHD_Result result;

	if (!response)
		return answer_fixed(request, ANSWER_BUSY);
	if (request->server->is_draining)
		MHD_add_response_header(response, "Connection", "close");
	result = queue(request, status, response, bytes);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result answer_unsure(struct request *request)
{
	struct MHD_Response *response = response_fixed(ANSWER_UNSURE, false);

	if (response)
		MHD_add_response_header(response, HOPS_UNASKED_HEADER, request->inquiry.unasked);
	request->result = RESULT_MISSING;
	return send_and_release(request, 404, response, 0);
}

/* Everything but the whole object. */
static enum MHD_Result send_other(struct request *request, const struct object *object,
				  const struct answer_plan *plan)
{
	struct MHD_Response *response = plan->status == 206
						? response_of_part(object, plan->first, plan->count)
						: response_without_body(object, plan->status);

	if (response && plan->content_range[0])
		MHD_add_response_header(response, "Content-Range", plan->content_range);
	return send_and_release(request, plan->status, response,
				plan->status == 206 ? plan->count : 0);
}

static enum MHD_Result send_object(struct request *request, struct object *object,
				   const struct request_headers *headers)
{
	struct answer_plan plan = { 0 };
	struct MHD_Response *response;

	request->source = object->source;
	answer_plan(object, headers, &plan);
	if (plan.status == 406)
		return answer_fixed(request, ANSWER_TOO_LARGE);
	if (plan.status != 200)
		return send_other(request, object, &plan);
	if (request->server->is_draining)
		return send_and_release(request, 200,
					response_of_part(object, 0, object->size_bytes),
					object->size_bytes);
	response = response_prepared(object);
	return response ? queue(request, 200, response, object->size_bytes)
			: answer_fixed(request, ANSWER_BUSY);
}

/*
 * A client of libdebuginfod 0.188 remembers every status but 406 as "there is
 * none" for ten minutes; only a connection that is reset makes it try again.
 */
static enum MHD_Result answer_transient(struct request *request)
{
	enum transient_answer how = request->server->settings.transient;
	const union MHD_ConnectionInfo *info;
	const struct linger linger = { .l_onoff = 1, .l_linger = 0 };
	const char *agent =
		MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, "User-Agent");

	request->result = RESULT_TRANSIENT;
	/* Another symsrv would take the server for broken. */
	if (how == TRANSIENT_503 || request->inquiry.depth ||
	    (how == TRANSIENT_AUTO && (request->route.kind != ROUTE_DEBUGINFOD || !agent ||
				       strncmp(agent, "elfutils/", 9) != 0)))
		return answer_fixed(request, ANSWER_BUSY);
	info = MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	if (info)
		setsockopt(info->connect_fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	request->status = 0;
	return MHD_NO;
}

/* ---- waiting ---- */

/* From here on another thread has the request, until it is resumed; unless it is too late for that.
 */
static bool suspend(struct request *request)
{
	struct server *server = request->server;

	atomic_fetch_add(&server->suspended, 1);
	if (server->is_closing) {
		atomic_fetch_sub(&server->suspended, 1);
		return false;
	}
	connection_set_deadline(connection_of(request), 0);
	atomic_store(&request->state, REQUEST_WAITING);
	MHD_suspend_connection(request->connection);
	return true;
}

static void resume(struct request *request)
{
	struct server *server = request->server;

	atomic_store(&request->state, REQUEST_READY);
	MHD_resume_connection(request->connection);
	/* The request may be gone by now. */
	atomic_fetch_sub(&server->suspended, 1);
}

static void on_inquired(struct inquiry *inquiry)
{
	struct request *request = (struct request *)inquiry;

	/* Reading a small object into memory is better done here than on the server's thread. */
	if (inquiry->object)
		response_prepared(inquiry->object);
	resume(request);
}

static const char *client_address(struct MHD_Connection *connection, char room[INET6_ADDRSTRLEN])
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	const struct sockaddr *address = info ? info->client_addr : NULL;
	const void *bytes = NULL;

	if (address && address->sa_family == AF_INET)
		bytes = &((const struct sockaddr_in *)address)->sin_addr;
	else if (address && address->sa_family == AF_INET6)
		bytes = &((const struct sockaddr_in6 *)address)->sin6_addr;
	if (!bytes || !inet_ntop(address->sa_family, bytes, room, INET6_ADDRSTRLEN))
		return "-";
	return room;
}

static enum MHD_Result collect_hops(void *context, enum MHD_ValueKind kind, const char *name,
				    const char *value)
{
	(void)kind;
	if (value)
		hops_take(context, name, value);
	return MHD_YES;
}

static struct hops read_hops(const struct request *request)
{
	const struct server_settings *settings = &request->server->settings;
	char address[INET6_ADDRSTRLEN];
	struct hops hops = { 0 };
	struct hops_request asked;
	struct hops_lines lines;

	buf_init(&lines.forwarded, connection_memory_bytes);
	buf_init(&lines.via, connection_memory_bytes);
	MHD_get_connection_values(request->connection, MHD_HEADER_KIND, collect_hops, &lines);
	asked = (struct hops_request){ buf_string(&lines.forwarded), buf_string(&lines.via),
				       client_address(request->connection, address) };
	/* Without memory for them it goes no further. */
	if (asked.forwarded && asked.via)
		hops_read(&asked, settings->holdings->own_name, settings->forwarded_limit, &hops);
	buf_deinit(&lines.forwarded);
	buf_deinit(&lines.via);
	return hops;
}

static enum MHD_Result inquire(struct request *request, const char *text, size_t text_bytes)
{
	struct inquiry *inquiry = &request->inquiry;
	struct hops hops = read_hops(request);

	request->forwarded_for = hops.chain;
	request->text = strndup(text, text_bytes);
	if (!request->text)
		return answer_transient(request);
	inquiry->holdings = request->server->settings.holdings;
	inquiry->key = request->route.key;
	inquiry->section = request->route.section;
	inquiry->text = request->text;
	inquiry->is_local = !hops.may_go_on;
	inquiry->forwarded_for = request->forwarded_for;
	inquiry->depth = hops.depth;
	inquiry->deadline_ms = clock_now_ms() + request->server->settings.wait_ms;
	inquiry->done = on_inquired;
	if (!suspend(request))
		return answer_transient(request);
	inquiry_start(inquiry);
	return MHD_YES;
}

static enum MHD_Result begin_object(struct request *request, const struct request_headers *headers)
{
	const struct holdings *holdings = request->server->settings.holdings;
	char text[INQUIRY_TEXT_BYTES];
	size_t length = inquiry_text(&request->route.key, request->route.section, text);
	int64_t now = clock_now_ms();
	struct object *object = object_table_find(holdings->objects, text, length, now);

	if (!object) {
		if (inquiry_is_known_missing(holdings, text, length, &request->route.key, now))
			return answer_fixed(request, ANSWER_NOT_FOUND);
		return inquire(request, text, length);
	}
	request->result = RESULT_HIT;
	/* Kept until the request is counted: its name goes into the log. */
	request->inquiry.object = object;
	return send_object(request, object, headers);
}

static enum MHD_Result end_object(struct request *request)
{
	struct request_headers headers = headers_of(request);

	switch (request->inquiry.outcome) {
	case INQUIRY_FOUND:
		request->result = request->inquiry.was_fetched ? RESULT_FETCHED : RESULT_HIT;
		return send_object(request, request->inquiry.object, &headers);
	case INQUIRY_MISSING:
		return request->inquiry.unasked[0] ? answer_unsure(request)
						   : answer_fixed(request, ANSWER_NOT_FOUND);
	default:
		return answer_transient(request);
	}
}

/* ---- reports ---- */

static void write_report(struct job *job)
{
	struct request *request = (struct request *)((char *)job - offsetof(struct request, job));
	const struct server *server = request->server;
	struct reported reported = {
		.holdings = server->settings.holdings,
		.metrics = server->settings.metrics,
		.started_ms = server->started_ms,
		.connections = connections_count(server->connections),
		.is_ready = server->is_ready,
	};

	if (request->route.kind == ROUTE_METRICS)
		report_metrics(&reported, &request->report);
	else if (request->route.kind == ROUTE_PAGE)
		report_page(&reported, request->report_value, &request->report);
	else if (!report_metadata(&reported, request->report_key, request->report_value,
				  &request->report))
		request->report.failure = BUF_TOO_BIG;
	resume(request);
}

/* A decoded value of the query on the heap; NULL when there is none or it is malformed. */
static char *query_value(const struct request *request, const char *name)
{
	const char *value =
		MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, name);
	char *text AUTO_FREE = value ? strdup(value) : NULL;
	size_t length;
	char *byte;

	for (byte = text; byte && *byte; byte++)
		if (*byte == '+')
			*byte = ' ';
	if (!text || !percent_decode(text, strlen(text), text, &length))
		return NULL;
	return STEAL(text);
}

static enum MHD_Result begin_report(struct request *request)
{
	char *byte;

	if (request->route.kind == ROUTE_METADATA) {
		request->report_key = query_value(request, "key");
		request->report_value = query_value(request, "value");
		if (!request->report_key || !request->report_value)
			return answer_fixed(request, ANSWER_BAD_REQUEST);
	} else if (request->route.kind == ROUTE_PAGE) {
		request->report_value = query_value(request, "id");
		for (byte = request->report_value; byte && *byte; byte++)
			*byte = (char)(*byte >= 'A' && *byte <= 'Z' ? *byte | 0x20 : *byte);
		if (request->report_value && !*request->report_value) {
			free(request->report_value);
			request->report_value = NULL;
		}
	}
	buf_init(&request->report, longest_report_bytes);
	if (!suspend(request))
		return answer_fixed(request, ANSWER_BUSY);
	workers_submit(request->server->settings.holdings->workers, &request->job, write_report);
	return MHD_YES;
}

static enum MHD_Result end_report(struct request *request)
{
	struct MHD_Response *response;
	size_t bytes;
	char *text;

	if (request->report.failure)
		return answer_fixed(request, ANSWER_BAD_REQUEST);
	text = buf_steal(&request->report, &bytes);
	response = text ? response_report(request->route.kind, text, bytes) : NULL;
	request->result = RESULT_OTHER;
	return send_and_release(request, 200, response, bytes);
}

/* ---- requests ---- */

/*
 * The first call for a request comes when its headers are there. An answer that
 * is given so early makes MHD close the connection, because a body may follow:
 * right for a request with a body, wrong for all others, which are answered at
 * the second call.
 */
static enum MHD_Result take_headers(struct request *request, const char *method)
{
	struct request_headers headers = headers_of(request);
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(
		request->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

	connection_take_request(connection_of(request), info ? info->header_size : 0);
	request->method = !strcmp(method, "GET")    ? "GET"
			  : !strcmp(method, "HEAD") ? "HEAD"
						    : "other";
	request->state = headers.has_body ? REQUEST_ANSWERED : REQUEST_BEGUN;
	return headers.has_body ? answer_fixed(request, ANSWER_BODY) : MHD_YES;
}

static enum MHD_Result begin(struct request *request)
{
	struct request_headers headers = headers_of(request);

	request->state = REQUEST_ANSWERED;
	if (headers.hosts > 1)
		return answer_fixed(request, ANSWER_BAD_REQUEST);
	if (!strcmp(request->method, "other"))
		return answer_fixed(request, ANSWER_METHOD);
	route_parse(request->path, request->path + request->path_bytes + 1, &request->route);
	switch (request->route.kind) {
	case ROUTE_SSQP:
	case ROUTE_DEBUGINFOD:
		return begin_object(request, &headers);
	case ROUTE_METADATA:
	case ROUTE_METRICS:
	case ROUTE_PAGE:
		return begin_report(request);
	case ROUTE_HEALTH:
		return answer_fixed(request, ANSWER_OK);
	case ROUTE_READY:
		return answer_fixed(request,
				    request->server->is_ready ? ANSWER_OK : ANSWER_NOT_READY);
	case ROUTE_VERSION:
		return answer_fixed(request, ANSWER_VERSION);
	case ROUTE_BAD:
		return answer_fixed(request, ANSWER_BAD_REQUEST);
	default:
		return answer_fixed(request, ANSWER_NOT_FOUND);
	}
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *upload_data,
				  size_t *upload_data_bytes, void **request_slot)
{
	struct request *request = *request_slot;

	(void)context;
	(void)url;
	(void)version;
	(void)upload_data;
	if (!request)
		return MHD_NO; /* there was no memory for it */
	request->connection = connection;
	switch (atomic_load(&request->state)) {
	case REQUEST_NEW:
		return take_headers(request, method);
	case REQUEST_BEGUN:
		return begin(request);
	case REQUEST_READY:
		if (request->route.kind == ROUTE_SSQP || request->route.kind == ROUTE_DEBUGINFOD)
			return end_object(request);
		return end_report(request);
	default:
		/* Answered already; what still arrives is of no interest. */
		*upload_data_bytes = 0;
		return MHD_YES;
	}
}

/* First sight of a request: its line has been read, its headers not yet. */
static void *on_request_line(void *context, const char *uri, struct MHD_Connection *connection)
{
	struct server *server = context;
	const char *path = route_path(uri);
	size_t path_bytes = strcspn(path, "?");
	struct request *request =
		calloc(1, sizeof(*request) + path_bytes + 1 + route_room_bytes(path_bytes));

	if (!request)
		return NULL;
	request->server = server;
	request->connection = connection;
	request->method = "";
	request->source = "";
	request->started_us = clock_now_us();
	request->result = RESULT_OTHER;
	request->path_bytes = path_bytes;
	memcpy(request->path, path, path_bytes);
	atomic_fetch_add(&server->active, 1);
	return request;
}

static void log_request(const struct request *request, int64_t duration_us)
{
	char address[INET6_ADDRSTRLEN];
	struct access_entry entry = {
		.client = client_address(request->connection, address),
		.method = request->method,
		.path = request->path,
		.user_agent = MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND,
							  "User-Agent"),
		.source = request->result == RESULT_FETCHED ? request->source
							    : metrics_result_text(request->result),
		.status = request->status,
		.bytes = request->bytes,
		.duration_us = duration_us,
	};

	access_log_write(request->server->settings.access_log, &entry);
}

static void on_completed(void *context, struct MHD_Connection *connection, void **request_slot,
			 enum MHD_RequestTerminationCode code)
{
	struct request *request = *request_slot;
	struct server *server = context;
	struct metrics_answer answer;

	if (!request)
		return;
	*request_slot = NULL;
	request->connection = connection;
	answer = (struct metrics_answer){
		.kind = request->route.kind,
		.result = request->result,
		.status = request->status,
		.bytes = request->bytes,
		.duration_us = clock_now_us() - request->started_us,
		.path = request->path,
		/* Without a status there was no answer: our own resets, what MHD refuses. */
		.was_aborted = request->status && code != MHD_REQUEST_TERMINATED_COMPLETED_OK,
	};
	metrics_count(server->settings.metrics, &answer);
	if (server->settings.access_log)
		log_request(request, answer.duration_us);
	connection_end_answer(connection_of(request), clock_now_ms(), server->settings.idle_ms);
	object_release(request->inquiry.object);
	buf_deinit(&request->report);
	free(request->report_key);
	free(request->report_value);
	free(request->text);
	free(request->forwarded_for);
	free(request);
	atomic_fetch_sub(&server->active, 1);
}

static void on_connection(void *context, struct MHD_Connection *connection, void **slot,
			  enum MHD_ConnectionNotificationCode code)
{
	struct server *server = context;
	const union MHD_ConnectionInfo *info;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		connections_remove(server->connections, *slot);
		*slot = NULL;
		return;
	}
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	if (!info)
		return;
	setsockopt(info->connect_fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &most_unsent_bytes,
		   sizeof(most_unsent_bytes));
	*slot = connections_add(server->connections, info->connect_fd,
				clock_now_ms() + server->settings.header_ms);
}

/* Paths stay as they came: MHD's own decoding ends them at %00 and hides %2F. */
static size_t keep_escapes(void *context, struct MHD_Connection *connection, char *text)
{
	(void)context;
	(void)connection;
	return strlen(text);
}

/* ---- life ---- */

/* Each socket has a daemon, whose own limit keeps connections waiting; this is the limit for all of
 * them together. */
static enum MHD_Result on_accept(void *context, const struct sockaddr *address, socklen_t size)
{
	const struct server *server = context;

	(void)address;
	(void)size;
	return connections_count(server->connections) < server->settings.connections ? MHD_YES
										     : MHD_NO;
}

static struct MHD_Daemon *start_daemon(struct server *server, int socket)
{
	const struct server_settings *settings = &server->settings;
	unsigned int threads = settings->threads > 1 ? settings->threads : 0;
	unsigned int flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME |
			     MHD_USE_ERROR_LOG | MHD_USE_TURBO;

	return MHD_start_daemon(
		flags, 0, on_accept, server, on_request, server, MHD_OPTION_EXTERNAL_LOGGER,
		library_log_take, &server->library_log, MHD_OPTION_LISTEN_SOCKET, socket,
		MHD_OPTION_CONNECTION_LIMIT, settings->connections,
		MHD_OPTION_PER_IP_CONNECTION_LIMIT, settings->connections_per_client,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, connection_memory_bytes,
		MHD_OPTION_CONNECTION_TIMEOUT, 0u, MHD_OPTION_STRICT_FOR_CLIENT, 1,
		MHD_OPTION_NOTIFY_COMPLETED, on_completed, server, MHD_OPTION_URI_LOG_CALLBACK,
		on_request_line, server, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server,
		MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL, MHD_OPTION_SIGPIPE_HANDLED_BY_APP,
		1,
		/* A pool of none is warned of. */
		threads ? MHD_OPTION_THREAD_POOL_SIZE : MHD_OPTION_END, threads, MHD_OPTION_END);
}

static void destroy(struct server *server)
{
	unsigned int i;

	for (i = 0; i < 2 * ANSWER_COUNT; i++)
		if (server->fixed[i / ANSWER_COUNT][i % ANSWER_COUNT])
			MHD_destroy_response(server->fixed[i / ANSWER_COUNT][i % ANSWER_COUNT]);
	connections_destroy(server->connections);
	free(server->daemons);
	free(server);
}

static bool prepare(struct server *server)
{
	server->started_ms = clock_now_ms();
	server->connections = connections_create();
	server->daemons = calloc(server->settings.socket_count, sizeof(struct MHD_Daemon *));
	return server->connections && server->daemons && make_fixed_answers(server);
}

int server_start(const struct server_settings *settings, struct server **ret)
{
	struct server *server = calloc(1, sizeof(*server));
	size_t i;

	if (!server)
		return -ENOMEM;
	server->settings = *settings;
	if (!prepare(server)) {
		destroy(server);
		return -ENOMEM;
	}
	for (i = 0; i < settings->socket_count; i++) {
		server->daemons[i] = start_daemon(server, settings->sockets[i]);
		if (!server->daemons[i]) {
			server_stop(server);
			return -EIO;
		}
		server->daemon_count++;
	}
	*ret = server;
	return 0;
}

void server_tick(struct server *server, int64_t now_ms)
{
	struct metrics *metrics = server->settings.metrics;
	unsigned int limit = server->settings.connections;

	metrics->shut_down += connections_enforce(server->connections, now_ms);
	metrics->dismissed +=
		connections_make_room(server->connections, limit - (limit / free_share + 1));
}

void server_set_ready(struct server *server, bool is_ready)
{
	server->is_ready = is_ready;
}

void server_drain(struct server *server)
{
	size_t i;

	server->is_draining = true;
	for (i = 0; i < server->daemon_count; i++) {
		int socket = MHD_quiesce_daemon(server->daemons[i]);

		if (socket >= 0)
			close(socket);
	}
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
	size_t i;

	if (!server)
		return;
	for (i = 0; i < server->daemon_count; i++)
		MHD_stop_daemon(server->daemons[i]);
	destroy(server);
}
