/* SPDX-License-Identifier: MIT */
/*
 * Values of HTTP headers: ranges, entity tags, dates (RFC 9110). Pure text to
 * values and back; what does not follow the grammar counts as absent, as the
 * RFC wants it.
 */
#ifndef SYMSRV_HTTP_TEXT_H
#define SYMSRV_HTTP_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum http_range {
	HTTP_RANGE_NONE, /* send everything: no range, several, or not understood */
	HTTP_RANGE_PART,
	HTTP_RANGE_UNSATISFIABLE,
};

/* Value of a Range header against a body of size_bytes; *first_ret and *count_ret are set for a
 * part. */
enum http_range http_range_parse(const char *value, uint64_t size_bytes, uint64_t *first_ret,
				 uint64_t *count_ret);

/* Whether a list of tags (If-None-Match) has `etag` or "*"; weak tags count. */
bool http_tags_match(const char *list, const char *etag);

/* Whether the value of If-Range is exactly this tag or date: only then may a part be sent. */
bool http_if_range_holds(const char *value, const char *etag, const char *last_modified);

#define HTTP_DATE_BYTES 32
void http_date(int64_t time_s, char room[HTTP_DATE_BYTES]);

#endif
