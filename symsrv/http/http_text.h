/* SPDX-License-Identifier: MIT */
/*
 * Values of HTTP headers: ranges, entity tags, dates (RFC 9110). Pure text to values and back; a
 * malformed value counts as absent, as the RFC requires.
 */
#ifndef SYMSRV_HTTP_HTTP_TEXT_H
#define SYMSRV_HTTP_HTTP_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum http_range {
	HTTP_RANGE_NONE, /* send everything: no range, several, or not understood */
	HTTP_RANGE_PART,
	HTTP_RANGE_UNSATISFIABLE,
};

/* Parses the value of a Range header for a body of size_bytes. Sets *first_ret and *count_ret for
 * HTTP_RANGE_PART. */
enum http_range http_range_parse(const char *value, uint64_t size_bytes, uint64_t *first_ret,
				 uint64_t *count_ret);

/* True if a list of tags (If-None-Match) contains `etag` or "*"; weak tags count. */
bool http_tags_match(const char *list, const char *etag);

/* Whether the value of If-Range is exactly this tag or date; only then a part may be sent. */
bool http_if_range_holds(const char *value, const char *etag, const char *last_modified);

/* Whether the value of Accept-Encoding names `coding`, and not with q=0. "*" does not count. */
bool http_accepts(const char *value, const char *coding);

#define HTTP_DATE_BYTES 32
void http_date(int64_t time_s, char room[HTTP_DATE_BYTES]);

#endif
