/* SPDX-License-Identifier: MIT */
#include "symsrv/http/answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "symsrv/util/version.h"

const struct fixed_row fixed_answers[ANSWER_COUNT] = {
	[ANSWER_NOT_FOUND] = { 404, RESULT_MISSING, "not found\n", "Cache-Control", "max-age=30" },
	[ANSWER_UNSURE] = { 404, RESULT_MISSING, "not found\n", "Cache-Control", "no-store" },
	[ANSWER_BAD_REQUEST] = { 400, RESULT_REFUSED, "malformed request\n" },
	[ANSWER_BODY] = { 400, RESULT_REFUSED, "a request here has no body\n", "Connection",
			  "close" },
	[ANSWER_METHOD] = { 405, RESULT_REFUSED, "GET and HEAD only\n", "Allow", "GET, HEAD" },
	[ANSWER_POST] = { 405, RESULT_REFUSED, "POST only\n", "Allow", "POST" },
	[ANSWER_PUT] = { 405, RESULT_REFUSED, "PUT only\n", "Allow", "PUT" },
	[ANSWER_NO_UPLOADS] = { 403, RESULT_REFUSED, "this server takes no uploads\n", "Connection",
				"close" },
	[ANSWER_TOKEN] = { 401, RESULT_REFUSED, "an upload needs a token\n", "WWW-Authenticate",
			   "Bearer" },
	[ANSWER_WRONG_TOKEN] = { 403, RESULT_REFUSED, "another token\n", "Connection", "close" },
	[ANSWER_EMPTY] = { 400, RESULT_REFUSED, "the request has no body\n" },
	[ANSWER_TOO_LONG] = { 413, RESULT_REFUSED, "the body is too long\n", "Connection",
			      "close" },
	[ANSWER_TOO_LARGE] = { 406, RESULT_REFUSED, "larger than X-DEBUGINFOD-MAXSIZE\n" },
	[ANSWER_BUSY] = { 503, RESULT_TRANSIENT, "an upstream or the store failed; try again\n",
			  "Retry-After", "5" },
	[ANSWER_FULL] = { 503, RESULT_REFUSED, "too many requests at a time; try again\n",
			  "Retry-After", "5" },
	[ANSWER_OK] = { 200, RESULT_OTHER, "ok\n", "Cache-Control", "no-store" },
	[ANSWER_VERSION] = { 200, RESULT_OTHER, "symsrv " SYMSRV_VERSION "\n", "Cache-Control",
			     "no-store" },
	[ANSWER_NOT_READY] = { 503, RESULT_OTHER, "not ready\n", "Cache-Control", "no-store" },
};

void request_headers_take(struct request_headers *headers, const char *name, const char *value)
{
	if (!strcasecmp(name, "Range"))
		/* Two such headers are one list, and for a list the whole object is sent. */
		headers->range = headers->range ? "" : value;
	else if (!strcasecmp(name, "If-Range"))
		headers->if_range = value;
	else if (!strcasecmp(name, "If-None-Match"))
		headers->if_none_match = value;
	else if (!strcasecmp(name, "If-Modified-Since"))
		headers->if_modified_since = value;
	else if (!strcasecmp(name, "X-DEBUGINFOD-MAXSIZE"))
		headers->max_size = value;
	else if (!strcasecmp(name, "Accept-Encoding"))
		headers->accepts_zstd |= http_accepts(value, "zstd");
	else if (!strcasecmp(name, "Host"))
		headers->hosts++;
	else if (!strcasecmp(name, "Content-Length"))
		headers->length = value;
	else if (!strcasecmp(name, "Transfer-Encoding"))
		headers->is_chunked = true;
	headers->has_body =
		headers->is_chunked || (headers->length && strcmp(headers->length, "0") != 0);
}

static bool is_above(const char *max_size, uint64_t bytes)
{
	char *end;
	unsigned long long limit = strtoull(max_size, &end, 10);

	return *max_size >= '0' && *max_size <= '9' && !*end && limit && bytes > limit;
}

static void plan_range(const struct object *object, const struct request_headers *headers,
		       struct answer_plan *ret)
{
	unsigned long long size_bytes = object->size_bytes;
	char date[HTTP_DATE_BYTES];

	http_date(object->modified_s, date);
	if (headers->if_range && !http_if_range_holds(headers->if_range, object->etag, date))
		return;
	switch (http_range_parse(headers->range, size_bytes, &ret->first, &ret->count)) {
	case HTTP_RANGE_PART:
		ret->status = 206;
		snprintf(ret->content_range, sizeof(ret->content_range), "bytes %llu-%llu/%llu",
			 (unsigned long long)ret->first,
			 (unsigned long long)(ret->first + ret->count - 1), size_bytes);
		break;
	case HTTP_RANGE_UNSATISFIABLE:
		ret->status = 416;
		snprintf(ret->content_range, sizeof(ret->content_range), "bytes */%llu",
			 size_bytes);
		break;
	default:
		break;
	}
}

static bool is_known(const struct object *object, const struct request_headers *headers)
{
	char date[HTTP_DATE_BYTES];

	if (headers->if_none_match)
		return http_tags_match(headers->if_none_match, object->etag);
	if (!headers->if_modified_since)
		return false;
	/* A later time does not count, because a file may be replaced by an older one. */
	http_date(object->modified_s, date);
	return date[0] && !strcmp(headers->if_modified_since, date);
}

void answer_plan(const struct object *object, const struct request_headers *headers,
		 struct answer_plan *ret)
{
	ret->status = 200;
	if (headers->max_size && is_above(headers->max_size, object->size_bytes))
		ret->status = 406;
	else if (is_known(object, headers))
		ret->status = 304;
	else if (headers->range)
		plan_range(object, headers, ret);
}
