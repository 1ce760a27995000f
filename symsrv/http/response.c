/* SPDX-License-Identifier: MIT */
#include "symsrv/http/response.h"

#include <fcntl.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"

/* Objects up to this size are sent from memory: one system call sends head and body. */
static const uint64_t small_bytes = 24 << 10;
static const char *caching_of(const struct object *object)
{
	return object->may_be_bettered ? "no-store" : "public, max-age=86400";
}

struct MHD_Response *response_fixed(enum fixed_answer answer)
{
	const struct fixed_row *fixed = &fixed_answers[answer];
	struct MHD_Response *response = MHD_create_response_from_buffer(
		strlen(fixed->text), (void *)fixed->text, MHD_RESPMEM_PERSISTENT);

	if (!response)
		return NULL;
	MHD_add_response_header(response, "Content-Type", "text/plain; charset=utf-8");
	if (fixed->header)
		MHD_add_response_header(response, fixed->header, fixed->value);
	return response;
}

static void add_object_headers(struct MHD_Response *response, const struct object *object)
{
	char text[HTTP_DATE_BYTES];

	MHD_add_response_header(response, "Content-Type", "application/octet-stream");
	MHD_add_response_header(response, "ETag", object->etag);
	MHD_add_response_header(response, "Cache-Control", caching_of(object));
	MHD_add_response_header(response, "Accept-Ranges", "bytes");
	http_date(object->modified_s, text);
	MHD_add_response_header(response, "Last-Modified", text);
	if (!strncmp(object->text, "names", 5))
		MHD_add_response_header(response, "Vary", "Accept-Encoding");
	snprintf(text, sizeof(text), "%llu", (unsigned long long)object->size_bytes);
	/* In lower case: libdebuginfod 0.188 accepts nothing else. It is the size of the file. */
	if (!strncmp(object->text, "names-zstd/", 11))
		MHD_add_response_header(response, "Content-Encoding", "zstd");
	else
		MHD_add_response_header(response, "x-debuginfod-size", text);
	if (object->name[0])
		MHD_add_response_header(response, "x-debuginfod-file", object->name);
	if (object->source[0])
		MHD_add_response_header(response, "x-symsrv-source", object->source);
}

static struct MHD_Response *respond_from_memory(const struct object *object)
{
	char *bytes AUTO_FREE = malloc(object->size_bytes + 1);
	struct MHD_Response *response;

	if (!bytes || path_read_at(object->fd, bytes, object->size_bytes, object->offset))
		return NULL;
	response =
		MHD_create_response_from_buffer(object->size_bytes, bytes, MHD_RESPMEM_MUST_FREE);
	if (response)
		STEAL(bytes);
	return response;
}

struct MHD_Response *response_of_part(const struct object *object, uint64_t first, uint64_t count)
{
	int fd = fcntl(object->fd, F_DUPFD_CLOEXEC, 3);
	struct MHD_Response *response =
		fd >= 0 ? MHD_create_response_from_fd_at_offset64(count, fd, object->offset + first)
			: NULL;

	if (response)
		add_object_headers(response, object);
	else if (fd >= 0)
		close(fd);
	return response;
}

static void destroy_response(void *response)
{
	MHD_destroy_response(response);
}

struct MHD_Response *response_prepared(struct object *object)
{
	struct MHD_Response *response = object->attachment;
	void *none = NULL;

	if (response)
		return response;
	if (object->size_bytes <= small_bytes) {
		response = respond_from_memory(object);
		if (response)
			add_object_headers(response, object);
	} else {
		response = response_of_part(object, 0, object->size_bytes);
	}
	if (!response)
		return NULL;
	object->detach = destroy_response;
	if (atomic_compare_exchange_strong(&object->attachment, &none, response))
		return response;
	MHD_destroy_response(response);
	return none;
}

struct MHD_Response *response_without_body(const struct object *object, unsigned int status)
{
	struct MHD_Response *response =
		MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);

	if (response && status == 304) {
		MHD_add_response_header(response, "ETag", object->etag);
		MHD_add_response_header(response, "Cache-Control", caching_of(object));
	}
	return response;
}

struct MHD_Response *response_report(enum route_kind kind, char *text, size_t bytes)
{
	static const char *const types[ROUTE_KIND_COUNT] = {
		[ROUTE_METRICS] = "text/plain; version=0.0.4; charset=utf-8",
		[ROUTE_METADATA] = "application/json",
		[ROUTE_RESOLVE] = "application/json",
		[ROUTE_SYMBOLICATE] = "application/json",
		[ROUTE_HAVE] = "application/json",
		[ROUTE_PREFETCH] = "application/json",
		[ROUTE_OBJECTS] = "application/json",
		[ROUTE_NOT_FOUND] = "text/plain; charset=utf-8",
		[ROUTE_PAGE] = "text/html; charset=utf-8",
	};
	struct MHD_Response *response =
		MHD_create_response_from_buffer(bytes, text, MHD_RESPMEM_MUST_FREE);

	if (!response) {
		free(text);
		return NULL;
	}
	MHD_add_response_header(response, "Content-Type", types[kind]);
	MHD_add_response_header(response, "Cache-Control", "no-store");
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	if (kind == ROUTE_PAGE)
		MHD_add_response_header(
			response, "Content-Security-Policy",
			"default-src 'none'; style-src 'unsafe-inline'; form-action 'self'");
	return response;
}
