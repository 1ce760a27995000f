/* SPDX-License-Identifier: MIT */
#include "symsrv/upstream/s3.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"

void s3_add_header(struct curl_slist **headers, const char *format, const char *value)
{
	char *line AUTO_FREE = NULL;
	struct curl_slist *grown;

	if (asprintf(&line, format, value) < 0)
		return;
	grown = curl_slist_append(*headers, line);
	if (grown)
		*headers = grown;
}

void s3_sign(CURL *easy, const struct s3_credentials *credentials, const char *sha256,
	     struct curl_slist **headers)
{
	char *provider AUTO_FREE = NULL;

	if (asprintf(&provider, "aws:amz:%s:s3", credentials->region) < 0)
		return;
	curl_easy_setopt(easy, CURLOPT_AWS_SIGV4, provider);
	curl_easy_setopt(easy, CURLOPT_USERNAME, credentials->access_key);
	curl_easy_setopt(easy, CURLOPT_PASSWORD, credentials->secret_key);
	s3_add_header(headers, "x-amz-content-sha256: %s", sha256);
	if (credentials->token)
		s3_add_header(headers, "x-amz-security-token: %s", credentials->token);
}

void s3_keep_body(char *text, size_t room_bytes, const char *bytes, size_t count)
{
	size_t used = strlen(text), left = room_bytes - 1 - used;

	if (count > left)
		count = left;
	memcpy(text + used, bytes, count);
	text[used + count] = 0;
}

void s3_error_code(const char *body, char room[S3_CODE_BYTES])
{
	const char *start = strstr(body, "<Code>");
	size_t length;

	room[0] = 0;
	if (!start)
		return;
	start += strlen("<Code>");
	length = strspn(start, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
	if (start[length] == '<' && length < S3_CODE_BYTES)
		snprintf(room, S3_CODE_BYTES, "%.*s", (int)length, start);
}

void s3_status_text(long status, const char *body, char room[S3_STATUS_BYTES])
{
	char code[S3_CODE_BYTES];

	s3_error_code(body, code);
	snprintf(room, S3_STATUS_BYTES, "HTTP status %ld%s%s", status, *code ? " " : "", code);
}

const char *s3_slowness(CURL *easy)
{
	curl_off_t total_us = 0, bytes = 0;
	long status = 0;

	curl_easy_getinfo(easy, CURLINFO_TOTAL_TIME_T, &total_us);
	curl_easy_getinfo(easy, CURLINFO_SIZE_DOWNLOAD_T, &bytes);
	curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	if (total_us < 1000000)
		return NULL;
	if (!status)
		return "no answer for a second, others were asked";
	return bytes < total_us / 1000000 * S3_LEAST_BYTES
		       ? "less than 64 KB in a second, others were asked"
		       : NULL;
}
