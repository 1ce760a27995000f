/* SPDX-License-Identifier: MIT */
#include "symsrv/store/store_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/hex.h"
#include "libsym/base/path.h"
#include "libsym/libsym.h"
#include "symsrv/util/digest.h"

static const char first_line[] = "\nsymsrv object 1\n";
/* 8 digits, then this text. */
static const char footer_text[] = " symsrv\n";
#define FOOTER_BYTES 16
/* A source path has at most 4 KiB. */
static const uint64_t longest_record_bytes = 16 << 10;

void store_record_deinit(struct store_record *record)
{
	free(record->key);
	record->key = NULL;
}

static bool store_file_has(int directory_fd, const char *name)
{
	return !faccessat(directory_fd, name, F_OK, AT_SYMLINK_NOFOLLOW);
}

static bool is_part_of_store(const char *name)
{
	/* mkfs makes the last one. */
	static const char *const parts[] = { ".", "..", "lock", "objects", "tmp", "lost+found" };

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (!strcmp(name, parts[i]))
			return true;
	return false;
}

int store_file_recognise(int directory_fd)
{
	int fd AUTO_CLOSE = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool has_lock = store_file_has(directory_fd, "lock");
	bool has_objects = store_file_has(directory_fd, "objects");
	bool has_tmp = store_file_has(directory_fd, "tmp");
	DIR *directory GUARDED(dir) = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *file;

	if (!directory)
		return -errno;
	steal_fd(&fd);
	if (has_lock && has_objects && has_tmp)
		return 0;
	if (!has_lock && (has_objects || has_tmp))
		return -ENOTEMPTY;
	/* A socket of --listen may stand in a new store already. */
	while ((file = readdir(directory)))
		if (file->d_type != DT_SOCK && !is_part_of_store(file->d_name))
			return -ENOTEMPTY;
	return 0;
}

int store_object_path(const char *key, char path[STORE_OBJECT_PATH_BYTES])
{
	uint8_t digest[DIGEST_SHA256_BYTES];
	char hex[2 * DIGEST_SHA256_BYTES + 1];
	int failure = digest_sha256(key, strlen(key), digest);

	if (failure)
		return failure;
	hex_write_bytes(hex, digest, sizeof(digest));
	snprintf(path, STORE_OBJECT_PATH_BYTES, "objects/%.2s/%s", hex, hex + 2);
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

bool store_file_is_better(int directory_fd, const char *path, const struct store_record *record)
{
	struct store_record here;
	struct stat status;
	bool is_better;
	int fd AUTO_CLOSE = -1;

	if (record->contents & SYM_CONTENT_DEBUG_INFO)
		return false;
	fd = openat(directory_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &status) || store_file_read(fd, (uint64_t)status.st_size, &here))
		return false;
	is_better = here.contents & SYM_CONTENT_DEBUG_INFO && !strcmp(here.key, record->key);
	store_record_deinit(&here);
	return is_better;
}

int store_file_verify(int fd, const struct store_record *record)
{
	uint8_t digest[DIGEST_SHA256_BYTES];
	char hex[2 * DIGEST_SHA256_BYTES + 1];
	int failure = digest_file(fd, record->size_bytes, sizeof(digest), digest);

	if (failure)
		return failure;
	hex_write_bytes(hex, digest, sizeof(digest));
	return strcmp(hex, record->sha256) ? -EBADMSG : 0;
}

int store_file_unwrap(int fd, uint64_t file_bytes, const char *key, struct store_record *record)
{
	int failure = store_file_read(fd, file_bytes, record);

	if (failure)
		return failure;
	failure = strcmp(record->key, key) != 0 ? -EBADMSG : store_file_verify(fd, record);
	if (!failure && (ftruncate(fd, (off_t)record->size_bytes) ||
			 lseek(fd, (off_t)record->size_bytes, SEEK_SET) < 0))
		failure = -errno;
	if (failure)
		store_record_deinit(record);
	return failure;
}
