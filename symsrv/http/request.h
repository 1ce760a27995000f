/* SPDX-License-Identifier: MIT */
/*
 * One request, from its first line to its last byte: what libmicrohttpd's callbacks do. Only
 * server.c and request*.c include this.
 */
#ifndef SYMSRV_HTTP_REQUEST_H
#define SYMSRV_HTTP_REQUEST_H

#include <microhttpd.h>

#include "symsrv/http/answer.h"
#include "symsrv/http/server.h"
#include "symsrv/resolve/resolve_batch.h"
#include "symsrv/util/library_log.h"
#include "symsrv/util/memory_budget.h"

/* Memory of one connection: its headers must fit in. */
#define CONNECTION_MEMORY_BYTES ((size_t)24 << 10)

struct server {
	struct server_settings settings;
	struct connections *connections;
	struct MHD_Daemon *daemon;
	struct acceptor *acceptor;
	int64_t started_ms;
	int64_t next_enforce_ms; /* of server_tick() */
	struct library_log library_log;
	atomic_uint arriving; /* accepted, and not yet begun by the library */
	atomic_uint active;
	atomic_uint suspended;
	struct memory_budget memory;
	atomic_bool has_warned; /* of upstreams that ask each other */
	atomic_bool is_ready;
	atomic_bool is_draining; /* each connection closes after its next answer */
	atomic_bool is_closing;  /* no request is suspended from now on */
};

enum request_state {
	REQUEST_NEW,
	REQUEST_BODY, /* its body arrives */
	REQUEST_BEGUN,
	REQUEST_ANSWERED,
	REQUEST_WAITING,
	REQUEST_READY,
};

struct request {
	struct lookup lookup;
	struct job job; /* for reports */
	struct server *server;
	struct MHD_Connection *connection;
	struct route route;
	const char *method;
	int64_t started_us;
	_Atomic int state;          /* enum request_state */
	struct resolve resolve;     /* POST /v1/resolve */
	struct buf body;            /* of the request */
	struct memory_share memory; /* for the body */
	/* POST /v1/prefetch, PUT /v1/objects: */
	struct store_incoming *arrival; /* a long body, or NULL */
	int arrival_failure;            /* 0 or a negative errno */
	unsigned int intake_status;     /* the answer */
	char *intake_text;              /* heap */
	bool is_stranger;               /* there is a token, and the request has it not */
	struct buf report;
	/* heap; of the page: what to look up, and the Host header */
	char *report_value, *report_key;
	char *text;          /* heap, for a look-up */
	char *forwarded_for; /* heap */
	/* For metrics and the access log: */
	enum answer_result result;
	unsigned int status;
	uint64_t bytes;
	const char *source;
	size_t path_bytes;
	char path[]; /* as received, without the query; the room of the route follows */
};

/* request_answer.c: */
struct connection *request_connection(const struct request *request);
/* `bytes`: of the body. */
enum MHD_Result server_queue_response(struct request *request, unsigned int status,
				      struct MHD_Response *response, uint64_t bytes);
enum MHD_Result answer_fixed(struct request *request, enum fixed_answer answer);
/* NULL: out of memory for the response. */
enum MHD_Result send_and_release(struct request *request, unsigned int status,
				 struct MHD_Response *response, uint64_t bytes);
/* From here on another thread owns the request, until it is resumed; unless the server is closing.
 */
bool server_suspend(struct request *request);
void server_resume(struct request *request);
/* A decoded value of the query, heap; NULL when it is missing or malformed. */
char *query_value(const struct request *request, const char *name);

/* Callbacks of libmicrohttpd; `context` is the server. */
void *request_on_line(void *context, const char *uri, struct MHD_Connection *connection);
enum MHD_Result request_on_call(void *context, struct MHD_Connection *connection, const char *url,
				const char *method, const char *version, const char *upload_data,
				size_t *upload_data_bytes, void **request_slot);
void request_on_completed(void *context, struct MHD_Connection *connection, void **request_slot,
			  enum MHD_RequestTerminationCode code);

#endif
