/* SPDX-License-Identifier: MIT */
#include "symsrv/store_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/hex.h"
#include "libsym/base/path.h"
#include "symsrv/digest.h"

static const char first_line[] = "\nsymsrv object 1\n";
/* 8 digits, this text. */
static const char footer_text[] = " symsrv\n";
#define FOOTER_BYTES 16
/* A source path has 4 KiB at most. */
static const uint64_t longest_record_bytes = 16 << 10;

void store_record_deinit(struct store_record *record)
{
	free(record->key);
	record->key = NULL;
}

static bool has(int directory_fd, const char *name)
{
	return !faccessat(directory_fd, name, F_OK, AT_SYMLINK_NOFOLLOW);
}

int store_file_recognise(int directory_fd)
{
	bool is_in_use = has(directory_fd, "objects") || has(directory_fd, "tmp");

	return is_in_use && !has(directory_fd, "lock") ? -ENOTEMPTY : 0;
}

int store_file_path(const char *key, char path[STORE_FILE_PATH_BYTES])
{
	uint8_t digest[DIGEST_SHA256_BYTES];
	char hex[2 * DIGEST_SHA256_BYTES + 1];
	int failure = digest_sha256(key, strlen(key), digest);

	if (failure)
		return failure;
	hex_write_bytes(hex, digest, sizeof(digest));
	snprintf(path, STORE_FILE_PATH_BYTES, "objects/%.2s/%s", hex, hex + 2);
	return 0;
}

bool store_file_format(struct buf *buf, const struct store_record *record)
{
	size_t start = buf->size_bytes;

	buf_append_string(buf, first_line);
	buf_printf(buf, "key: %s\nname: %s\nsource: %s\nsha256: %s\n", record->key, record->name,
		   record->source, record->sha256);
	buf_printf(buf, "size: %llu\nfetched: %lld\ncontents: %u\n",
		   (unsigned long long)record->size_bytes, (long long)record->fetched_s,
		   record->contents);
	return buf_printf(buf, "%08zx%s", buf->size_bytes - start + FOOTER_BYTES, footer_text);
}

static void copy_text(char *room, size_t room_bytes, const char *value)
{
	size_t length = strnlen(value, room_bytes - 1);

	memcpy(room, value, length);
	room[length] = 0;
}

static int take_line(struct store_record *record, const char *line)
{
	const char *value = strstr(line, ": ");

	if (!value)
		return -EBADMSG;
	value += 2;
	if (!strncmp(line, "key: ", 5) && !record->key) {
		record->key = strdup(value);
		return record->key ? 0 : -ENOMEM;
	}
	if (!strncmp(line, "name: ", 6))
		copy_text(record->name, sizeof(record->name), value);
	else if (!strncmp(line, "source: ", 8))
		copy_text(record->source, sizeof(record->source), value);
	else if (!strncmp(line, "sha256: ", 8))
		copy_text(record->sha256, sizeof(record->sha256), value);
	else if (!strncmp(line, "size: ", 6))
		record->size_bytes = strtoull(value, NULL, 10);
	else if (!strncmp(line, "fetched: ", 9))
		record->fetched_s = strtoll(value, NULL, 10);
	else if (!strncmp(line, "contents: ", 10))
		record->contents = (uint32_t)strtoul(value, NULL, 10);
	return 0;
}

static int parse_record(char *text, struct store_record *record)
{
	char *line;

	if (strncmp(text, first_line, strlen(first_line)) != 0)
		return -EBADMSG;
	text += strlen(first_line);
	while ((line = strsep(&text, "\n")) && *line) {
		int failure = take_line(record, line);

		if (failure)
			return failure;
	}
	return record->key && strlen(record->sha256) == 64 ? 0 : -EBADMSG;
}

int store_file_read(int fd, uint64_t file_bytes, struct store_record *record)
{
	char footer[FOOTER_BYTES + 1] = "";
	struct store_record found = { 0 };
	char *text AUTO_FREE = NULL;
	uint64_t record_bytes;
	int failure;

	if (file_bytes < FOOTER_BYTES)
		return -EBADMSG;
	failure = path_read_at(fd, footer, FOOTER_BYTES, file_bytes - FOOTER_BYTES);
	if (failure)
		return failure;
	if (strcmp(footer + 8, footer_text) != 0 || hex_read_u64(footer, 8, &record_bytes) != 8 ||
	    record_bytes > file_bytes || record_bytes > longest_record_bytes ||
	    record_bytes < FOOTER_BYTES)
		return -EBADMSG;
	text = malloc(record_bytes - FOOTER_BYTES + 1);
	if (!text)
		return -ENOMEM;
	failure = path_read_at(fd, text, record_bytes - FOOTER_BYTES, file_bytes - record_bytes);
	if (failure)
		return failure;
	text[record_bytes - FOOTER_BYTES] = 0;
	failure = parse_record(text, &found);
	if (!failure && found.size_bytes != file_bytes - record_bytes)
		failure = -EBADMSG;
	if (failure)
		store_record_deinit(&found);
	else
		*record = found;
	return failure;
}

int store_file_verify(int fd, const struct store_record *record)
{
	uint8_t digest[DIGEST_SHA256_BYTES];
	char hex[2 * DIGEST_SHA256_BYTES + 1];
	int failure = digest_file(fd, record->size_bytes, digest, NULL);

	if (failure)
		return failure;
	hex_write_bytes(hex, digest, sizeof(digest));
	return strcmp(hex, record->sha256) ? -EBADMSG : 0;
}
