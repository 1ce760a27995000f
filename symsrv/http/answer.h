/* SPDX-License-Identifier: MIT */
/*
 * Answers: the fixed ones, and how an object is sent for the headers of a request. The headers of
 * an object are in response.c. No sockets, no HTTP library.
 */
#ifndef SYMSRV_HTTP_ANSWER_H
#define SYMSRV_HTTP_ANSWER_H

#include <stdbool.h>

#include "symsrv/http/http_text.h"
#include "symsrv/lookup/cached_object.h"
#include "symsrv/report/metrics.h"

enum fixed_answer {
	ANSWER_NOT_FOUND,
	ANSWER_UNSURE, /* not found, but not all servers were asked */
	ANSWER_BAD_REQUEST,
	ANSWER_BODY, /* bad request; the connection cannot be used again */
	ANSWER_METHOD,
	ANSWER_POST, /* the path needs a POST */
	ANSWER_PUT,
	ANSWER_NO_UPLOADS,
	ANSWER_TOKEN,
	ANSWER_WRONG_TOKEN,
	ANSWER_EMPTY,
	ANSWER_TOO_LONG, /* the body */
	ANSWER_TOO_LARGE,
	ANSWER_BUSY,
	ANSWER_FULL, /* no memory is left for the requests of clients */
	ANSWER_OK,
	ANSWER_VERSION,
	ANSWER_NOT_READY,
	ANSWER_COUNT
};

struct fixed_row {
	unsigned int status;
	enum answer_result result;
	const char *text;
	const char *header, *value; /* one more header, or NULL */
};

extern const struct fixed_row fixed_answers[ANSWER_COUNT];

/* The headers that decide how an object is sent; NULL if absent. */
struct request_headers {
	const char *range, *if_range, *if_none_match, *if_modified_since, *max_size;
	unsigned int hosts; /* RFC 9112, 3.2: more than one is malformed */
	bool has_body, is_chunked;
	const char *length; /* Content-Length */
	bool accepts_zstd;
};

/* Records one header of a request. */
void request_headers_take(struct request_headers *headers, const char *name, const char *value);

struct answer_plan {
	unsigned int status;    /* 200, 206, 304, 406 or 416 */
	uint64_t first, count;  /* 206: of the object */
	char content_range[80]; /* 206, 416 */
};

void answer_plan(const struct object *object, const struct request_headers *headers,
		 struct answer_plan *ret);

#endif
