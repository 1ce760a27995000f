/* SPDX-License-Identifier: MIT */
#include "symsrv/http/request_intake.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/path.h"
#include "symsrv/http/connections.h"
#include "symsrv/http/response.h"
#include "symsrv/key/debuginfod.h"
#include "symsrv/lookup/object_list.h"
#include "symsrv/lookup/recording_images.h"
#include "symsrv/util/clock.h"

/* The body of a request without the token. */
static const uint64_t most_open_bytes = 1 << 20;
static const uint64_t most_recording_bytes = 256 << 20;

bool intake_is_for(const struct request *request)
{
	return request->route.kind == ROUTE_HAVE || request->route.kind == ROUTE_PREFETCH ||
	       request->route.kind == ROUTE_OBJECTS;
}

static const char *authorization_of(const struct request *request)
{
	return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, "Authorization");
}

/* ANSWER_COUNT: the request has the token. */
static enum fixed_answer objection_without_token(const struct request *request)
{
	switch (uploads_claim(request->server->settings.uploads, authorization_of(request))) {
	case UPLOAD_RIGHT_GOOD:
		return ANSWER_COUNT;
	case UPLOAD_RIGHT_NONE:
		return ANSWER_NO_UPLOADS;
	case UPLOAD_RIGHT_UNKNOWN:
		return ANSWER_TOKEN;
	default:
		return ANSWER_WRONG_TOKEN;
	}
}

static unsigned long long length_of(const struct request_headers *headers)
{
	return headers->length ? strtoull(headers->length, NULL, 10) : 0;
}

/* Whether the body arrives in the store. */
static bool is_large(const struct request *request, const struct request_headers *headers)
{
	return request->route.kind == ROUTE_OBJECTS ||
	       (request->route.kind == ROUTE_PREFETCH && length_of(headers) > most_open_bytes);
}

static uint64_t most_bytes(const struct request *request)
{
	return request->route.kind == ROUTE_OBJECTS ? request->server->settings.max_object_bytes
						    : most_recording_bytes;
}

enum fixed_answer intake_objection(const struct request *request,
				   const struct request_headers *headers)
{
	enum fixed_answer objection;

	if (strcmp(request->method, request->route.kind == ROUTE_OBJECTS ? "PUT" : "POST") != 0)
		return request->route.kind == ROUTE_OBJECTS ? ANSWER_PUT : ANSWER_POST;
	if (!is_large(request, headers))
		return length_of(headers) > most_open_bytes ? ANSWER_TOO_LONG : ANSWER_COUNT;
	objection = objection_without_token(request);
	/* Without the token a list may be sent, so the length is what is wrong. */
	if (objection != ANSWER_COUNT && request->route.kind == ROUTE_PREFETCH)
		return ANSWER_TOO_LONG;
	if (objection == ANSWER_COUNT && length_of(headers) > most_bytes(request))
		return ANSWER_TOO_LONG;
	return objection;
}

static enum fixed_answer answer_for(int failure)
{
	return failure == -ENOSPC ? ANSWER_TOO_LONG : ANSWER_BUSY;
}

enum fixed_answer intake_begin(struct request *request, const struct request_headers *headers)
{
	struct store *store = request->server->settings.holdings->store;
	int failure;

	if (!is_large(request, headers)) {
		buf_init(&request->body, most_open_bytes);
		return ANSWER_COUNT;
	}
	failure = store_begin(store, &request->arrival);
	if (!failure && length_of(headers))
		failure = store_reserve(request->arrival, length_of(headers));
	return failure ? answer_for(failure) : ANSWER_COUNT;
}

void intake_take(struct request *request, const char *bytes, size_t count)
{
	if (!request->arrival) {
		buf_append(&request->body, bytes, count);
		return;
	}
	if (request->arrival_failure)
		return;
	/* The client has the token, so it may take as long as bytes come. */
	connection_set_deadline(request_connection(request),
				clock_now_ms() + request->server->settings.header_ms);
	if (store_incoming_bytes(request->arrival) + count > most_bytes(request))
		request->arrival_failure = -ENOSPC;
	else
		request->arrival_failure = store_append(request->arrival, bytes, count);
}

/* ---- work on other threads ---- */

static void answer_with(struct request *request, unsigned int status, char *text)
{
	request->intake_status = text ? status : 503;
	request->intake_text = text;
}

static void refuse_with(struct request *request, unsigned int status, const char *reason)
{
	char *text;

	answer_with(request, status, asprintf(&text, "%s\n", reason) < 0 ? NULL : text);
}

static bool read_body(const struct byte_source *source, void *room, size_t count, uint64_t offset)
{
	return !path_read_at(source->fd, room, count, offset);
}

static struct byte_source body_source(const struct request *request)
{
	if (!request->arrival)
		return byte_source_over_memory(request->body.data, request->body.size_bytes);
	return (struct byte_source){
		.read = read_body,
		.fd = store_incoming_fd(request->arrival),
		.size_bytes = store_incoming_bytes(request->arrival),
	};
}

struct prefetching {
	const struct holdings *holdings;
	struct prefetch *prefetch;
	bool is_stranger; /* there is a token, and the request has it not */
	unsigned int queued, here, dropped;
};

static void prefetch_key(struct prefetching *prefetching, const struct key *key)
{
	if (object_list_is_here(prefetching->holdings, key))
		prefetching->here++;
	else if (prefetch_add(prefetching->prefetch, key, prefetching->is_stranger))
		prefetching->queued++;
	else
		prefetching->dropped++;
}

/* Making the names of an image fetches its debug file too. */
static bool prefetch_image(void *context, const char *build_id)
{
	struct prefetching *prefetching = context;
	char path[2 * KEY_MAX_ID + 16];
	const char *section;
	struct key key;

	snprintf(path, sizeof(path), "%s/symtab", build_id);
	if (strlen(build_id) <= (size_t)2 * KEY_MAX_ID && debuginfod_parse(path, &key, &section))
		prefetch_key(prefetching, &key);
	return prefetching->queued + prefetching->here + prefetching->dropped < OBJECT_LIST_MAX;
}

static void answer_prefetch(struct request *request, const struct prefetching *prefetching)
{
	char *text;

	if (asprintf(&text, "{\"queued\":%u,\"have\":%u,\"dropped\":%u}", prefetching->queued,
		     prefetching->here, prefetching->dropped) < 0)
		text = NULL;
	answer_with(request, 202, text);
}

static void take_recording(struct request *request, const struct byte_source *source,
			   struct prefetching *prefetching)
{
	int failure = recording_images_each(source, prefetch_image, prefetching);

	if (failure == -EBADMSG)
		refuse_with(request, 422, "neither a JSON object nor a recording");
	else if (failure)
		answer_with(request, 503, NULL);
	else
		answer_prefetch(request, prefetching);
}

static void take_list(struct request *request, struct prefetching *prefetching)
{
	struct object_list list;
	const char *problem =
		object_list_parse(request->body.data, request->body.size_bytes, &list);

	if (problem == object_list_no_memory) {
		answer_with(request, 503, NULL);
	} else if (problem) {
		refuse_with(request, 400, problem);
	} else if (request->route.kind == ROUTE_HAVE) {
		answer_with(request, 200, object_list_have(&list, prefetching->holdings));
	} else {
		for (size_t i = 0; i < list.count; i++)
			prefetch_key(prefetching, &list.items[i].key);
		answer_prefetch(request, prefetching);
	}
	object_list_deinit(&list);
}

static void run_list(struct job *job)
{
	struct request *request = (struct request *)((char *)job - offsetof(struct request, job));
	const struct server_settings *settings = &request->server->settings;
	struct prefetching prefetching = {
		.holdings = settings->holdings,
		.prefetch = settings->prefetch,
		.is_stranger = request->is_stranger,
	};
	struct byte_source source = body_source(request);
	char magic[2] = "";

	if (request->arrival ||
	    (request->route.kind == ROUTE_PREFETCH && source.size_bytes > sizeof(magic) &&
	     byte_source_read(&source, magic, sizeof(magic), 0) && !memcmp(magic, "PK", 2)))
		take_recording(request, &source, &prefetching);
	else
		take_list(request, &prefetching);
	server_resume(request);
}

static void run_upload(struct job *job)
{
	struct request *request = (struct request *)((char *)job - offsetof(struct request, job));
	struct upload upload = { .incoming = request->arrival, .name = request->report_value };

	request->arrival = NULL;
	uploads_take(request->server->settings.uploads, &upload);
	switch (upload.outcome) {
	case UPLOADED_STORED:
		answer_with(request, 201, upload.answer);
		break;
	case UPLOADED_KEPT:
		answer_with(request, 200, upload.answer);
		break;
	case UPLOADED_REFUSED:
		refuse_with(request, 422, upload.reason);
		break;
	default:
		answer_with(request, 503, NULL);
		break;
	}
	server_resume(request);
}

enum MHD_Result intake_run(struct request *request)
{
	const struct holdings *holdings = request->server->settings.holdings;
	enum upload_right right;

	/* A body in chunks has no length before its end. */
	if (request->body.failure == BUF_TOO_BIG || request->arrival_failure == -ENOSPC)
		return answer_fixed(request, ANSWER_TOO_LONG);
	if (request->body.failure || request->arrival_failure)
		return answer_fixed(request, ANSWER_BUSY);
	if (request->route.kind == ROUTE_OBJECTS && !request->arrival)
		return answer_fixed(request, ANSWER_EMPTY);
	/* Freed with the request. */
	request->report_value = query_value(request, "name");
	right = uploads_right_of(request->server->settings.uploads, authorization_of(request));
	request->is_stranger = right == UPLOAD_RIGHT_UNKNOWN || right == UPLOAD_RIGHT_WRONG;
	if (!server_suspend(request))
		return answer_fixed(request, ANSWER_BUSY);
	if (request->route.kind == ROUTE_OBJECTS)
		workers_submit(holdings->checkers, &request->job, run_upload);
	else
		workers_submit(holdings->workers, &request->job, run_list);
	return MHD_YES;
}

enum MHD_Result intake_end(struct request *request)
{
	char *text = request->intake_text;
	unsigned int status = request->intake_status;
	size_t bytes = text ? strlen(text) : 0;

	request->intake_text = NULL;
	if (!text)
		return answer_fixed(request, ANSWER_BUSY);
	request->result = status >= 400 ? RESULT_REFUSED : RESULT_OTHER;
	return send_and_release(
		request, status,
		response_report(status < 400 ? request->route.kind : ROUTE_NOT_FOUND, text, bytes),
		bytes);
}

void intake_deinit(struct request *request)
{
	store_abandon(request->arrival);
	free(request->intake_text);
}
