/* SPDX-License-Identifier: MIT */
/* Reads a store from end to end. Needs no lock, because objects never change; they only come and
 * go. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "libsym/base/cleanup.h"
#include "symsrv/store/store_file.h"
#include "symsrv/store/store_layout.h"

struct scrubber {
	int directory_fd;
	int (*check)(int fd, const struct store_record *record, const char **reason_ret);
	void (*report)(const char *name, const char *reason, int failure);
	struct store_scrub_result result;
};

/* 0 when the file is a valid object in its place; -EBADMSG when it is not, and *reason_ret says why
 * (static); another negative errno when that is unknown. */
static int store_scrub_judge(const struct scrubber *scrubber, int fd, const char *path,
			     struct store_record *record, const char **reason_ret)
{
	char place[STORE_OBJECT_PATH_BYTES];
	struct stat status;
	int failure;

	*reason_ret = "no object file, or cut";
	if (fstat(fd, &status))
		return -errno;
	failure = store_file_read(fd, (uint64_t)status.st_size, record);
	if (failure)
		return failure;
	*reason_ret = "in the place of another key";
	failure = store_object_path(record->key, place);
	if (failure || strcmp(place, path) != 0)
		return failure ? failure : -EBADMSG;
	*reason_ret = "checksum differs";
	failure = store_file_verify(fd, record);
	if (failure || !scrubber->check)
		return failure;
	return scrubber->check(fd, record, reason_ret);
}

static void report_unread(struct scrubber *scrubber, const char *path, int failure)
{
	scrubber->report(path, "cannot be read", failure);
	scrubber->result.failed_count++;
}

/* `path`: directory and name. */
static void scrub_file(struct scrubber *scrubber, int shelf_fd, const char *name, const char *path)
{
	int fd AUTO_CLOSE = openat(shelf_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct store_record record = { 0 };
	const char *reason;
	int failure;

	if (fd < 0 && errno == ENOENT)
		return; /* evicted in the meantime */
	failure = fd < 0 ? -errno : store_scrub_judge(scrubber, fd, path, &record, &reason);
	if (!failure) {
		scrubber->result.good_count++;
		scrubber->result.good_bytes += record.size_bytes;
	} else if (failure == -EBADMSG) {
		failure = unlinkat(shelf_fd, name, 0) ? -errno : 0;
		scrubber->report(record.key ? record.key : path, reason, failure);
		scrubber->result.failed_count += failure != 0;
		scrubber->result.removed_count += !failure;
	} else {
		/* Out of memory is no error of the file. */
		report_unread(scrubber, record.key ? record.key : path, failure);
	}
	store_record_deinit(&record);
}

static void scrub_shelf(struct scrubber *scrubber, const char *name)
{
	DIR *shelf GUARDED(dir) = store_layout_open(scrubber->directory_fd, name);
	char path[STORE_OBJECT_PATH_BYTES + 256];
	struct dirent *file;

	if (!shelf) {
		if (errno != ENOENT)
			report_unread(scrubber, name, -errno);
		return;
	}
	while ((file = readdir(shelf))) {
		if (file->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", name, file->d_name);
		scrub_file(scrubber, dirfd(shelf), file->d_name, path);
	}
}

int store_scrub(const char *directory,
		int (*check)(int fd, const struct store_record *record, const char **reason_ret),
		void (*report)(const char *name, const char *reason, int failure),
		struct store_scrub_result *ret)
{
	int fd AUTO_CLOSE = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct scrubber scrubber = { .directory_fd = fd, .check = check, .report = report };
	char name[16];
	unsigned int i;
	int failure;

	if (fd < 0)
		return -errno;
	failure = store_file_recognise(fd);
	if (failure)
		return failure;
	if (faccessat(fd, "objects", R_OK | X_OK, 0))
		return -errno;
	for (i = 0; i < 256; i++) {
		snprintf(name, sizeof(name), "objects/%02x", i);
		scrub_shelf(&scrubber, name);
	}
	*ret = scrubber.result;
	return 0;
}
