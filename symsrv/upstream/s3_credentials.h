/* SPDX-License-Identifier: MIT */
#ifndef SYMSRV_UPSTREAM_S3_CREDENTIALS_H
#define SYMSRV_UPSTREAM_S3_CREDENTIALS_H

#include <stdbool.h>

struct s3_credentials {
	char *access_key, *secret_key; /* heap */
	char *token;                   /* heap, or NULL */
	char *region;                  /* heap; "us-east-1" unless the file names another */
};

/* Parses the text of a credentials file of AWS: lines "aws_access_key_id = ...",
 * "aws_secret_access_key = ...", "aws_session_token = ...", "region = ..."; others are ignored. */
bool s3_credentials_parse(const char *text, struct s3_credentials *ret);
void s3_credentials_deinit(struct s3_credentials *credentials);

#endif
