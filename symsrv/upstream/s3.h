/* SPDX-License-Identifier: MIT */
/*
 * The needs of an S3-compatible store beside HTTP: signed requests (AWS Signature Version 4), its
 * error codes, its credentials.
 *
 * libcurl 7.88 signs every header of CURLOPT_HTTPHEADER, so a request to the store has no header
 * that a proxy in front of the store would change (Via, X-Forwarded-For). Paths consist of hex
 * digits and slashes, because this libcurl signs others wrongly.
 */
#ifndef SYMSRV_UPSTREAM_S3_H
#define SYMSRV_UPSTREAM_S3_H

#include <curl/curl.h>
#include <stdbool.h>

#include "symsrv/upstream/s3_credentials.h"

/* SHA-256 of a body without bytes. */
#define S3_EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

/* Signs the request of `easy`. `sha256`: hex, of its body. Adds headers to the list, which the
 * caller sets. */
void s3_sign(CURL *easy, const struct s3_credentials *credentials, const char *sha256,
	     struct curl_slist **headers);

/* Appends a header, "NAME: %s"; out of memory leaves the list as it is. */
void s3_add_header(struct curl_slist **headers, const char *format, const char *value);

/* Appends bytes of a body to a text, as far as they fit. */
void s3_keep_body(char *text, size_t room_bytes, const char *bytes, size_t count);

#define S3_CODE_BYTES 48
/* The text of <Code> in the body of an error, or "": "NoSuchKey", "SignatureDoesNotMatch", ... */
void s3_error_code(const char *body, char room[S3_CODE_BYTES]);

#define S3_STATUS_BYTES (32 + S3_CODE_BYTES)
/* The status of an answer, with that code. */
void s3_status_text(long status, const char *body, char room[S3_STATUS_BYTES]);

/* A store that sends less in a second counts as slow, and others are asked too. */
#define S3_LEAST_BYTES (64 << 10)
/* How a request was slow that was cancelled because others have answered (static); NULL: it was not
 * slow. */
const char *s3_slowness(CURL *easy);

#endif
