/* SPDX-License-Identifier: MIT */
/*
 * Answers as libmicrohttpd sends them. Knows headers and where the bytes are, not the client.
 */
#ifndef SYMSRV_HTTP_RESPONSE_H
#define SYMSRV_HTTP_RESPONSE_H

#include "symsrv/http/answer.h"
#include "symsrv/key/route.h"

struct MHD_Response;

/*
 * The answer to a plain GET of the object, made once for all clients; owned by the object. NULL:
 * out of memory or descriptors.
 */
struct MHD_Response *response_prepared(struct object *object);

/* A part of the object, with its headers; owned by the caller. NULL: out of memory or descriptors.
 */
struct MHD_Response *response_of_part(const struct object *object, uint64_t first, uint64_t count);

/* An answer without the object: 304, 416; owned by the caller. */
struct MHD_Response *response_without_body(const struct object *object, unsigned int status);

/* A fixed answer; owned by the caller. NULL: out of memory. */
struct MHD_Response *response_fixed(enum fixed_answer answer);

/* A report, whose text (heap) is adopted; owned by the caller. NULL: out of memory. */
struct MHD_Response *response_report(enum route_kind kind, char *text, size_t bytes);

#endif
