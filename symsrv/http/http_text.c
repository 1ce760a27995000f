/* SPDX-License-Identifier: MIT */
#include "symsrv/http/http_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* Reads digits at *text; false when there are none or the number does not fit. */
static bool read_number(const char **text, uint64_t *ret)
{
	char *end;

	if (**text < '0' || **text > '9')
		return false;
	errno = 0;
	*ret = strtoull(*text, &end, 10);
	*text = end;
	return !errno;
}

static const char *skip_blanks(const char *text)
{
	return text + strspn(text, " \t");
}

static enum http_range parse_suffix(const char *text, uint64_t size_bytes, uint64_t *first_ret,
				    uint64_t *count_ret)
{
	uint64_t count;

	if (!read_number(&text, &count) || *skip_blanks(text))
		return HTTP_RANGE_NONE;
	if (!count || !size_bytes)
		return HTTP_RANGE_UNSATISFIABLE;
	*count_ret = count < size_bytes ? count : size_bytes;
	*first_ret = size_bytes - *count_ret;
	return HTTP_RANGE_PART;
}

enum http_range http_range_parse(const char *value, uint64_t size_bytes, uint64_t *first_ret,
				 uint64_t *count_ret)
{
	uint64_t first, last = UINT64_MAX;

	if (!value || strncasecmp(value, "bytes", 5) != 0)
		return HTTP_RANGE_NONE;
	value = skip_blanks(value + 5);
	if (*value++ != '=')
		return HTTP_RANGE_NONE;
	value = skip_blanks(value);
	if (*value == '-')
		return parse_suffix(value + 1, size_bytes, first_ret, count_ret);
	if (!read_number(&value, &first) || *value++ != '-')
		return HTTP_RANGE_NONE;
	if (*value >= '0' && *value <= '9' && !read_number(&value, &last))
		return HTTP_RANGE_NONE;
	if (*skip_blanks(value) || last < first)
		return HTTP_RANGE_NONE;
	if (first >= size_bytes)
		return HTTP_RANGE_UNSATISFIABLE;
	if (last >= size_bytes)
		last = size_bytes - 1;
	*first_ret = first;
	*count_ret = last - first + 1;
	return HTTP_RANGE_PART;
}

bool http_tags_match(const char *list, const char *etag)
{
	size_t length = strlen(etag);

	for (;;) {
		list += strspn(list, " \t,");
		if (*list == '*')
			return true;
		if (!strncmp(list, "W/", 2))
			list += 2;
		if (*list != '"')
			return false;
		if (!strncmp(list, etag, length))
			return true;
		list = strchr(list + 1, '"');
		if (!list)
			return false;
		list++;
	}
}

bool http_if_range_holds(const char *value, const char *etag, const char *last_modified)
{
	return !strcmp(value, etag) || !strcmp(value, last_modified);
}

/* "q=0", "q=0.0": not acceptable (RFC 9110, 12.4.2). */
static bool is_refused(const char *parameters)
{
	const char *weight = strcasestr(parameters, "q=");
	const char *rest = weight ? weight + 2 + strspn(weight + 2, "0.") : NULL;

	return rest && (!*rest || *rest == ' ' || *rest == '\t' || *rest == ';');
}

bool http_accepts(const char *value, const char *coding)
{
	size_t length = strlen(coding);

	while (*(value += strspn(value, " \t,"))) {
		size_t item_bytes = strcspn(value, ",");
		size_t name_bytes = strcspn(value, " \t;,");
		char item[64];

		if (name_bytes == length && !strncasecmp(value, coding, length)) {
			snprintf(item, sizeof(item), "%.*s", (int)(item_bytes - name_bytes),
				 value + name_bytes);
			return !is_refused(item);
		}
		value += item_bytes;
	}
	return false;
}

void http_date(int64_t time_s, char room[HTTP_DATE_BYTES])
{
	time_t time = (time_t)time_s;
	struct tm parts;

	room[0] = 0;
	/* The server keeps the locale "C", so the names are English. */
	if (gmtime_r(&time, &parts) && parts.tm_year <= 8099 && parts.tm_year >= 0)
		strftime(room, HTTP_DATE_BYTES, "%a, %d %b %Y %H:%M:%S GMT", &parts);
}
