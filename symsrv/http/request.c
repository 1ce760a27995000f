/* SPDX-License-Identifier: MIT */
/*
 * How a request is answered.
 *
 *   request_on_line()       the first line was read; the request is made
 *   take_headers()          the headers were read
 *   server_begin_request()  the path decides: a fixed answer, an object, or a report
 *   server_suspend()        another thread looks up or writes; server_resume() comes back
 *   end_object() ...        the answer
 *   request_on_completed()  counted, logged, freed
 */
#include "symsrv/http/request.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "symsrv/http/connections.h"
#include "symsrv/http/request_intake.h"
#include "symsrv/http/response.h"
#include "symsrv/key/percent.h"
#include "symsrv/report/report.h"
#include "symsrv/upstream/proxy_loop.h"
#include "symsrv/util/clock.h"
#include "symsrv/util/log.h"

static const size_t longest_report_bytes = 16 << 20;

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
	/* RFC 9110, 14.2: only a GET has a range. */
	if (!strcmp(request->method, "HEAD"))
		headers.range = NULL;
	return headers;
}

static enum MHD_Result answer_unsure(struct request *request)
{
	struct MHD_Response *response = response_fixed(ANSWER_UNSURE);

	if (response)
		MHD_add_response_header(response, PROXY_LOOP_UNASKED_HEADER,
					request->lookup.unqueried);
	request->result = RESULT_MISSING;
	return send_and_release(request, 404, response, 0);
}

/* Every answer but the whole object. */
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
	return response ? server_queue_response(request, 200, response, object->size_bytes)
			: answer_fixed(request, ANSWER_BUSY);
}

/*
 * A client of libdebuginfod 0.188 remembers every status but 406 as "there is none" for ten
 * minutes; it tries again only when the connection is reset.
 */
static enum MHD_Result answer_transient(struct request *request)
{
	enum transient_answer how = request->server->settings.transient;
	const union MHD_ConnectionInfo *info;
	const struct linger linger = { .l_onoff = 1, .l_linger = 0 };
	const char *agent =
		MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, "User-Agent");

	request->result = RESULT_TRANSIENT;
	/* Another symsrv would count a reset as a broken server. */
	if (how == TRANSIENT_503 || request->lookup.depth || request->lookup.from_peer ||
	    (how == TRANSIENT_AUTO &&
	     ((request->route.kind != ROUTE_DEBUGINFOD && request->route.kind != ROUTE_NAMES) ||
	      !agent || strncmp(agent, "elfutils/", 9) != 0)))
		return answer_fixed(request, ANSWER_BUSY);
	info = MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	if (info)
		setsockopt(info->connect_fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	request->status = 0;
	return MHD_NO;
}

/* ---- waiting ---- */

static void on_inquired(struct lookup *lookup)
{
	struct request *request = (struct request *)lookup;

	/* This thread may block, so it reads a small object into memory, not the server's thread.
	 */
	if (lookup->object)
		response_prepared(lookup->object);
	server_resume(request);
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
		proxy_loop_take(context, name, value);
	return MHD_YES;
}

static struct proxy_loop read_hops(const struct request *request)
{
	const struct server_settings *settings = &request->server->settings;
	char address[INET6_ADDRSTRLEN];
	struct proxy_loop proxy_loop = { 0 };
	struct proxy_loop_request asked;
	struct proxy_loop_lines lines;

	buf_init(&lines.forwarded, CONNECTION_MEMORY_BYTES);
	buf_init(&lines.via, CONNECTION_MEMORY_BYTES);
	MHD_get_connection_values(request->connection, MHD_HEADER_KIND, collect_hops, &lines);
	asked = (struct proxy_loop_request){ buf_string(&lines.forwarded), buf_string(&lines.via),
					     client_address(request->connection, address) };
	/* Out of memory for them. */
	if (asked.forwarded && asked.via)
		proxy_loop_read(&asked, settings->holdings->own_name, settings->forwarded_limit,
				&proxy_loop);
	buf_deinit(&lines.forwarded);
	buf_deinit(&lines.via);
	return proxy_loop;
}

static bool is_of_peer(const struct request *request)
{
	return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, PEER_HEADER) !=
	       NULL;
}

static enum MHD_Result server_look_up(struct request *request, const char *text)
{
	struct lookup *lookup = &request->lookup;
	struct proxy_loop proxy_loop = read_hops(request);

	if (proxy_loop.came_back && !atomic_exchange(&request->server->has_warned, true))
		log_message(LOG_LEVEL_WARNING, "a request came back to this server: %s",
			    is_of_peer(request)
				    ? "--self is not the URL that --peer has for it"
				    : "servers that are each other's upstreams ask for one "
				      "object many times; use --peer");
	request->forwarded_for = proxy_loop.chain;
	request->text = strdup(text);
	if (!request->text)
		return answer_transient(request);
	lookup->holdings = request->server->settings.holdings;
	lookup->key = request->route.key;
	lookup->section = request->route.section;
	lookup->text = request->text;
	lookup->is_local = !proxy_loop.may_go_on;
	lookup->forwarded_for = request->forwarded_for;
	lookup->from_peer = is_of_peer(request);
	/* It counts as a client of this server, so that both share one fetch. */
	lookup->depth = proxy_loop.depth - (lookup->from_peer && proxy_loop.depth);
	lookup->deadline_ms = clock_now_ms() + request->server->settings.wait_ms;
	lookup->done = on_inquired;
	if (!server_suspend(request))
		return answer_transient(request);
	lookup_start(lookup);
	return MHD_YES;
}

static enum MHD_Result begin_object(struct request *request, const struct request_headers *headers)
{
	const struct holdings *holdings = request->server->settings.holdings;
	char text[LOOKUP_TEXT_BYTES];
	int64_t now = holdings->now_ms();
	struct object *object;

	lookup_text(&request->route.key, request->route.section, text);
	object = object_table_find(holdings->objects, text, now);
	if (!object) {
		if (lookup_is_known_missing(holdings, text, &request->route.key, now))
			return answer_fixed(request, ANSWER_NOT_FOUND);
		return server_look_up(request, text);
	}
	request->result = RESULT_HIT;
	/* Kept until the request is counted, because its name goes into the log. */
	request->lookup.object = object;
	return send_object(request, object, headers);
}

static enum MHD_Result end_object(struct request *request)
{
	struct request_headers headers = headers_of(request);

	switch (request->lookup.outcome) {
	case LOOKUP_FOUND:
		request->result = request->lookup.was_fetched ? RESULT_FETCHED : RESULT_HIT;
		return send_object(request, request->lookup.object, &headers);
	case LOOKUP_MISSING:
		return request->lookup.unqueried[0] ? answer_unsure(request)
						    : answer_fixed(request, ANSWER_NOT_FOUND);
	default:
		return answer_transient(request);
	}
}

/* ---- reports ---- */

static void write_report(struct job *job)
{
	struct request *request = (struct request *)((char *)job - offsetof(struct request, job));
	struct server *server = request->server;
	struct reported reported = {
		.holdings = server->settings.holdings,
		.metrics = server->settings.metrics,
		.processes = server->settings.resolve_parts->processes,
		.maps = server->settings.resolve_parts->maps,
		.prefetch = server->settings.prefetch,
		.uploads = server->settings.uploads,
		.started_ms = server->started_ms,
		.connections = connections_count(server->connections),
		.memory = &server->memory,
		.is_ready = server->is_ready,
	};

	if (request->route.kind == ROUTE_METRICS)
		report_metrics(&reported, &request->report);
	else if (request->route.kind == ROUTE_PAGE)
		report_page(&reported, request->report_value, request->report_key,
			    &request->report);
	else if (!report_metadata(&reported, request->report_key, request->report_value,
				  &request->report))
		request->report.failure = BUF_TOO_BIG;
	server_resume(request);
}

static enum MHD_Result begin_report(struct request *request)
{
	if (request->route.kind == ROUTE_METADATA) {
		request->report_key = query_value(request, "key");
		request->report_value = query_value(request, "value");
		if (!request->report_key || !request->report_value)
			return answer_fixed(request, ANSWER_BAD_REQUEST);
	} else if (request->route.kind == ROUTE_PAGE) {
		const char *host =
			MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, "Host");

		request->report_key = host ? strdup(host) : NULL;
		request->report_value = query_value(request, "id");
		if (request->report_value)
			key_lower_name(request->report_value, request->report_value);
		if (request->report_value && !*request->report_value) {
			free(request->report_value);
			request->report_value = NULL;
		}
	}
	buf_init(&request->report, longest_report_bytes);
	if (!server_suspend(request))
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
	/* Other reports are small. */
	if (text && request->route.kind == ROUTE_METADATA &&
	    !memory_share_take(&request->memory, bytes)) {
		free(text);
		return answer_fixed(request, ANSWER_FULL);
	}
	response = text ? response_report(request->route.kind, text, bytes) : NULL;
	request->result = RESULT_OTHER;
	return send_and_release(request, 200, response, bytes);
}

/* ---- resolving ---- */

static bool takes_body(const struct request *request)
{
	return request->route.kind == ROUTE_RESOLVE || request->route.kind == ROUTE_SYMBOLICATE;
}

static void on_resolved(struct resolve *resolve)
{
	server_resume((struct request *)((char *)resolve - offsetof(struct request, resolve)));
}

static enum MHD_Result begin_resolve(struct request *request)
{
	const struct server_settings *settings = &request->server->settings;
	struct proxy_loop proxy_loop;

	/* A body in chunks has no length before its end. */
	if (request->body.failure)
		return answer_fixed(request, ANSWER_TOO_LONG);
	proxy_loop = read_hops(request);
	request->forwarded_for = proxy_loop.chain;
	request->resolve = (struct resolve){
		.holdings = settings->holdings,
		.parts = settings->resolve_parts,
		.body = request->body.data,
		.body_bytes = request->body.size_bytes,
		.forwarded_for = request->forwarded_for,
		.depth = proxy_loop.depth,
		.is_local = !proxy_loop.may_go_on,
		.is_symbolicate = request->route.kind == ROUTE_SYMBOLICATE,
		.most_wait_ms = settings->wait_ms,
		.memory = { .budget = &request->server->memory },
		.done = on_resolved,
	};
	if (!server_suspend(request))
		return answer_fixed(request, ANSWER_BUSY);
	resolve_start(&request->resolve);
	return MHD_YES;
}

/* Clients of Mozilla's API expect an object with a title. */
static enum MHD_Result refuse_resolve(struct request *request, const char *problem)
{
	bool is_json = request->resolve.is_symbolicate;
	char *text;

	if (asprintf(&text, is_json ? "{\"title\":\"%s\"}" : "%s\n", problem) < 0)
		return answer_fixed(request, ANSWER_BUSY);
	request->result = RESULT_REFUSED;
	return send_and_release(
		request, 400,
		response_report(is_json ? ROUTE_SYMBOLICATE : ROUTE_NOT_FOUND, text, strlen(text)),
		strlen(text));
}

static enum MHD_Result end_resolve(struct request *request)
{
	struct resolve *resolve = &request->resolve;
	size_t bytes = resolve->answer_bytes;
	struct MHD_Response *response;

	if (resolve->problem)
		return refuse_resolve(request, resolve->problem);
	if (!resolve->answer)
		return answer_fixed(request, resolve->is_refused ? ANSWER_FULL : ANSWER_BUSY);
	response = response_report(ROUTE_RESOLVE, resolve->answer, bytes);
	resolve->answer = NULL;
	request->result = RESULT_OTHER;
	return send_and_release(request, 200, response, bytes);
}

/* ---- requests ---- */

static const char *known_method(const char *method)
{
	static const char *const known[] = { "GET", "HEAD", "POST", "PUT" };

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!strcmp(method, known[i]))
			return known[i];
	return "other";
}

/* Another answer than ANSWER_COUNT: the request may not have the body that its headers announce. */
static enum fixed_answer begin_body(struct request *request, const struct request_headers *headers)
{
	unsigned long long length = headers->length ? strtoull(headers->length, NULL, 10) : 0;
	enum fixed_answer objection = ANSWER_COUNT;

	if (intake_is_for(request)) {
		objection = intake_objection(request, headers);
		if (objection == ANSWER_COUNT)
			objection = intake_begin(request, headers);
	} else if (strcmp(request->method, "POST") != 0 || !takes_body(request)) {
		objection = ANSWER_BODY;
	} else if (length > RESOLVE_MAX_BYTES) {
		objection = ANSWER_TOO_LONG;
	} else {
		buf_init(&request->body, RESOLVE_MAX_BYTES);
	}
	/* A body in chunks may become as long as any. */
	if (objection == ANSWER_COUNT && !request->arrival &&
	    !memory_share_take(&request->memory,
			       headers->length ? (size_t)length : RESOLVE_MAX_BYTES))
		objection = ANSWER_FULL;
	if (objection != ANSWER_COUNT)
		return objection;
	connection_set_deadline(request_connection(request),
				clock_now_ms() + request->server->settings.header_ms);
	return ANSWER_COUNT;
}

/* The first call for a request comes after its headers. An answer then makes MHD close the
 * connection, because a body may follow; so requests without a body are answered at the second. */
static enum MHD_Result take_headers(struct request *request, const char *method)
{
	struct request_headers headers = headers_of(request);
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(
		request->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
	enum fixed_answer objection;

	connection_take_request(request_connection(request), info ? info->header_size : 0);
	request->method = known_method(method);
	route_parse(request->path, request->path + request->path_bytes + 1, &request->route);
	if (!headers.has_body) {
		request->state = REQUEST_BEGUN;
		return MHD_YES;
	}
	objection = begin_body(request, &headers);
	request->state = objection == ANSWER_COUNT ? REQUEST_BODY : REQUEST_ANSWERED;
	return objection == ANSWER_COUNT ? MHD_YES : answer_fixed(request, objection);
}

static enum MHD_Result server_begin_request(struct request *request)
{
	struct request_headers headers = headers_of(request);

	request->state = REQUEST_ANSWERED;
	if (headers.hosts > 1)
		return answer_fixed(request, ANSWER_BAD_REQUEST);
	if (intake_is_for(request)) {
		enum fixed_answer objection = intake_objection(request, &headers);

		return objection == ANSWER_COUNT ? intake_run(request)
						 : answer_fixed(request, objection);
	}
	if (takes_body(request))
		return strcmp(request->method, "POST") ? answer_fixed(request, ANSWER_POST)
						       : begin_resolve(request);
	if (strcmp(request->method, "GET") != 0 && strcmp(request->method, "HEAD") != 0)
		return answer_fixed(request, ANSWER_METHOD);
	switch (request->route.kind) {
	case ROUTE_NAMES:
		if (headers.accepts_zstd)
			request->route.key.kind = KEY_NAMES_ZSTD;
		return begin_object(request, &headers);
	case ROUTE_SSQP:
	case ROUTE_DEBUGINFOD:
	case ROUTE_MAPS:
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

enum MHD_Result request_on_call(void *context, struct MHD_Connection *connection, const char *url,
				const char *method, const char *version, const char *upload_data,
				size_t *upload_data_bytes, void **request_slot)
{
	struct request *request = *request_slot;

	(void)context;
	(void)url;
	(void)version;
	if (!request)
		return MHD_NO; /* out of memory for it */
	request->connection = connection;
	switch (atomic_load(&request->state)) {
	case REQUEST_NEW:
		return take_headers(request, method);
	case REQUEST_BODY:
		if (!*upload_data_bytes)
			return server_begin_request(request);
		if (intake_is_for(request))
			intake_take(request, upload_data, *upload_data_bytes);
		else
			buf_append(&request->body, upload_data, *upload_data_bytes);
		*upload_data_bytes = 0;
		return MHD_YES;
	case REQUEST_BEGUN:
		return server_begin_request(request);
	case REQUEST_READY:
		if (route_is_of_object(request->route.kind))
			return end_object(request);
		if (takes_body(request))
			return end_resolve(request);
		if (intake_is_for(request))
			return intake_end(request);
		return end_report(request);
	default:
		/* It was answered already, so what still arrives is ignored. */
		*upload_data_bytes = 0;
		return MHD_YES;
	}
}

/* The first call for a request: its first line was read, its headers not yet. */
void *request_on_line(void *context, const char *uri, struct MHD_Connection *connection)
{
	struct server *server = context;
	const char *path = route_path(uri);
	size_t path_bytes = strcspn(path, "?");
	struct request *request =
		calloc(1, sizeof(*request) + path_bytes + 1 + route_room_bytes(path_bytes));

	if (!request)
		return NULL;
	request->server = server;
	request->memory.budget = &server->memory;
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

void request_on_completed(void *context, struct MHD_Connection *connection, void **request_slot,
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
		/* Without a status there was no answer: our own resets, and requests that MHD
		   refuses. */
		.was_aborted = request->status && code != MHD_REQUEST_TERMINATED_COMPLETED_OK,
	};
	metrics_count(server->settings.metrics, &answer);
	if (server->settings.access_log)
		log_request(request, answer.duration_us);
	connection_end_answer(request_connection(request), clock_now_ms(),
			      server->settings.idle_ms);
	object_release(request->lookup.object);
	buf_deinit(&request->report);
	buf_deinit(&request->body);
	intake_deinit(request);
	free(request->resolve.answer);
	memory_share_end(&request->resolve.memory);
	memory_share_end(&request->memory);
	free(request->report_key);
	free(request->report_value);
	free(request->text);
	free(request->forwarded_for);
	free(request);
	atomic_fetch_sub(&server->active, 1);
}
