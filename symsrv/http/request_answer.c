/* SPDX-License-Identifier: MIT */
/* Shared by all files of requests: queueing an answer, waiting for another thread, the query. */
#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "symsrv/http/connections.h"
#include "symsrv/http/request.h"
#include "symsrv/http/response.h"
#include "symsrv/key/percent.h"
#include "symsrv/util/clock.h"

/* How long a client may take to begin reading an answer. */
static const int64_t answer_ms = 20000;

/* ---- answers ---- */

struct connection *request_connection(const struct request *request)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

enum MHD_Result server_queue_response(struct request *request, unsigned int status,
				      struct MHD_Response *response, uint64_t bytes)
{
	uint64_t rate = request->server->settings.min_rate_bytes;

	request->status = status;
	request->bytes = strcmp(request->method, "HEAD") ? bytes : 0;
	connection_begin_answer(request_connection(request),
				clock_now_ms() + answer_ms +
					(rate ? (int64_t)(bytes / rate * 1000) : INT32_MAX));
	return MHD_queue_response(request->connection, status, response);
}

enum MHD_Result answer_fixed(struct request *request, enum fixed_answer answer)
{
	struct MHD_Response *response = response_fixed(answer);

	request->result = fixed_answers[answer].result;
	/* Out of memory: the connection is closed. */
	return response ? send_and_release(request, fixed_answers[answer].status, response, 0)
			: MHD_NO;
}

enum MHD_Result send_and_release(struct request *request, unsigned int status,
				 struct MHD_Response *response, uint64_t bytes)
{
	enum MHD_Result result;

	if (!response)
		return answer_fixed(request, ANSWER_BUSY);
	if (request->server->is_draining)
		MHD_add_response_header(response, "Connection", "close");
	result = server_queue_response(request, status, response, bytes);
	MHD_destroy_response(response);
	return result;
}

/* ---- waiting ---- */

bool server_suspend(struct request *request)
{
	struct server *server = request->server;

	atomic_fetch_add(&server->suspended, 1);
	if (server->is_closing) {
		atomic_fetch_sub(&server->suspended, 1);
		return false;
	}
	connection_set_deadline(request_connection(request), 0);
	atomic_store(&request->state, REQUEST_WAITING);
	MHD_suspend_connection(request->connection);
	return true;
}

void server_resume(struct request *request)
{
	struct server *server = request->server;

	atomic_store(&request->state, REQUEST_READY);
	MHD_resume_connection(request->connection);
	/* The request may have ended by now. */
	atomic_fetch_sub(&server->suspended, 1);
}

char *query_value(const struct request *request, const char *name)
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
