/* SPDX-License-Identifier: MIT */
#include "symsrv/upstream/verify.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "libsym/base/path.h"
#include "symsrv/util/digest.h"

static int object_to(char *reason, size_t reason_bytes, const char *text)
{
	snprintf(reason, reason_bytes, "%s", text);
	return -EBADMSG;
}

static int verify_digest(int fd, uint64_t size_bytes, const struct key *key, char *reason,
			 size_t reason_bytes)
{
	size_t digest_bytes = key->kind == KEY_SHA1 ? DIGEST_SHA1_BYTES : DIGEST_SHA256_BYTES;
	uint8_t digest[DIGEST_SHA256_BYTES];
	int failure = digest_file(fd, size_bytes, digest_bytes, digest);

	if (failure || !memcmp(digest, key->id, digest_bytes))
		return failure;
	return object_to(reason, reason_bytes, "another checksum");
}

/* The most common wrong answer: a login or error page with status 200. */
static bool is_web_page(int fd, uint64_t size_bytes)
{
	char start[64] = "";
	size_t count = size_bytes < sizeof(start) - 1 ? (size_t)size_bytes : sizeof(start) - 1;
	const char *text = start;

	if (path_read_at(fd, start, count, 0))
		return false;
	text += strspn(text, " \t\r\n");
	return !strncasecmp(text, "<!doctype html", 14) || !strncasecmp(text, "<html", 5);
}

/* Each row of a map ends with a newline, and nothing else in it shows its length. */
static int verify_map_end(int fd, uint64_t size_bytes, char *reason, size_t reason_bytes)
{
	char last;
	int failure = path_read_at(fd, &last, 1, size_bytes - 1);

	if (failure || last == '\n')
		return failure;
	return object_to(reason, reason_bytes, "the file is cut");
}

/* Reports `error` and destroys it. Out of memory is no error of the file. */
static int object_with(char *reason, size_t reason_bytes, struct sym_error *error)
{
	enum sym_error_code code = sym_error_code(error);

	object_to(reason, reason_bytes, sym_error_message(error));
	sym_error_destroy(error);
	return code == SYM_ERROR_NO_MEMORY ? -ENOMEM : code == SYM_ERROR_IO ? -EIO : -EBADMSG;
}

int verify_content(int fd, uint64_t size_bytes, const struct key *key, uint32_t *contents_ret,
		   char *reason, size_t reason_bytes)
{
	struct sym_identity identity = { .size = sizeof(identity) };
	struct sym_error *error;
	const char *why;

	*contents_ret = 0;
	if (!size_bytes)
		return object_to(reason, reason_bytes, "empty");
	if (key->kind == KEY_SHA1 || key->kind == KEY_SHA256)
		return verify_digest(fd, size_bytes, key, reason, reason_bytes);
	/* Objects that are made here have no identity inside. */
	if (key->kind == KEY_SOURCE || key->kind == KEY_NAMES_ZSTD || key->kind == KEY_PE_MAP ||
	    key->kind == KEY_PE_R2RMAP || key->kind == KEY_IMAGE_OF_MAP ||
	    key->kind == KEY_IMAGE_OF_PDB)
		return 0;
	if (is_web_page(fd, size_bytes))
		return object_to(reason, reason_bytes, "a web page");
	error = sym_identity_read(fd, size_bytes, &identity);
	if (error)
		return object_with(reason, reason_bytes, error);
	*contents_ret = identity.contents;
	if (!key_matches(key, &identity, &why))
		return object_to(reason, reason_bytes, why);
	/* A debug file in its place would cost every client its size. */
	if (key->kind == KEY_NAMES &&
	    identity.contents & (SYM_CONTENT_DEBUG_INFO | SYM_CONTENT_CODE))
		return object_to(reason, reason_bytes, "has more than names");
	return key->kind == KEY_MAP ? verify_map_end(fd, size_bytes, reason, reason_bytes) : 0;
}
