/* SPDX-License-Identifier: MIT */
/*
 * Answers in the form in which libmicrohttpd sends them. Knows headers and
 * where the bytes are, refuses to know who asked.
 */
#ifndef SYMSRV_RESPONSE_H
#define SYMSRV_RESPONSE_H

#include "symsrv/answer.h"
#include "symsrv/route.h"

struct MHD_Response;

/*
 * The answer to a plain GET of the object, made once and shared by all who ask:
 * belongs to the object. NULL: no memory or no descriptor.
 */
struct MHD_Response *response_prepared(struct object *object);

/* A part of the object, with its headers; the caller's. NULL as above. */
struct MHD_Response *response_of_part(const struct object *object, uint64_t first, uint64_t count);

/* What is sent when the object itself is not: 304, 416; the caller's. */
struct MHD_Response *response_without_body(const struct object *object, unsigned int status);

/* A fixed answer; `closes`: and the connection ends with it. */
struct MHD_Response *response_fixed(enum fixed_answer answer, bool closes);

/* A report, whose text (heap) is taken over; the caller's. NULL: no memory. */
struct MHD_Response *response_report(enum route_kind kind, char *text, size_t bytes);

#endif
