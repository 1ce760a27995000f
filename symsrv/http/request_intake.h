/* SPDX-License-Identifier: MIT */
/*
 * Requests that bring something: lists of objects (POST /v1/have, /v1/prefetch), recordings (POST
 * /v1/prefetch), objects (PUT /v1/objects). A short body is kept in memory. A long one, which needs
 * the token, arrives in the store's directory for arrivals.
 */
#ifndef SYMSRV_HTTP_REQUEST_INTAKE_H
#define SYMSRV_HTTP_REQUEST_INTAKE_H

#include "symsrv/http/request.h"

bool intake_is_for(const struct request *request);

/* The answer to a request that is not accepted, judged by its headers; or ANSWER_COUNT. */
enum fixed_answer intake_objection(const struct request *request,
				   const struct request_headers *headers);

/* Prepares for the body. Another answer than ANSWER_COUNT: it cannot be taken. */
enum fixed_answer intake_begin(struct request *request, const struct request_headers *headers);
/* Takes a part of the body. */
void intake_take(struct request *request, const char *bytes, size_t count);

/* The body is complete: another thread works on it. */
enum MHD_Result intake_run(struct request *request);
/* Back on the server's thread: the answer. */
enum MHD_Result intake_end(struct request *request);
/* The request is over, however it ended. */
void intake_deinit(struct request *request);

#endif
