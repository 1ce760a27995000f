/* SPDX-License-Identifier: MIT */
#include "symsrv/upstream/s3_credentials.h"

#include <stdlib.h>
#include <string.h>

static bool take_credential(const char *line, size_t length, const char *name, char **ret)
{
	size_t name_bytes = strlen(name);
	const char *value = line + name_bytes, *end = line + length;

	if (length < name_bytes || memcmp(line, name, name_bytes) != 0)
		return true;
	while (value < end && (*value == ' ' || *value == '\t'))
		value++;
	if (value == end || *value++ != '=')
		return true;
	while (value < end && (*value == ' ' || *value == '\t'))
		value++;
	while (end > value && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
		end--;
	free(*ret);
	*ret = strndup(value, (size_t)(end - value));
	return *ret != NULL;
}

bool s3_credentials_parse(const char *text, struct s3_credentials *ret)
{
	bool is_good = true;

	*ret = (struct s3_credentials){ .region = strdup("us-east-1") };
	while (*text) {
		size_t length = strcspn(text, "\n");

		is_good &= take_credential(text, length, "aws_access_key_id", &ret->access_key);
		is_good &= take_credential(text, length, "aws_secret_access_key", &ret->secret_key);
		is_good &= take_credential(text, length, "aws_session_token", &ret->token);
		is_good &= take_credential(text, length, "region", &ret->region);
		text += length;
		text += *text == '\n';
	}
	if (is_good && ret->access_key && ret->secret_key && ret->region)
		return true;
	s3_credentials_deinit(ret);
	return false;
}

void s3_credentials_deinit(struct s3_credentials *credentials)
{
	free(credentials->access_key);
	free(credentials->secret_key);
	free(credentials->token);
	free(credentials->region);
	*credentials = (struct s3_credentials){ 0 };
}
