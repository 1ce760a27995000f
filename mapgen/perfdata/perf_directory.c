/* SPDX-License-Identifier: MIT */
#include "mapgen/perfdata/perf_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/foreign_file.h"
#include "libsym/error.h"
#include "mapgen/perfdata/perf_data.h"
#include "mapgen/perfdata/perf_insert.h"

static struct sym_error *io_error(const char *path, int failure)
{
	return sym_error_create(failure == ENOENT ? SYM_ERROR_NOT_FOUND : SYM_ERROR_IO, "%s: %s",
				path, strerror(failure));
}

/* One file of the directory, without compression, to where `output_fd` stands; -1: only counts. */
static struct sym_error *copy_file(int directory_fd, const char *path, const char *name,
				   int output_fd, uint64_t *bytes_ret)
{
	struct stat status;
	int fd AUTO_CLOSE = foreign_file_open(directory_fd, name, FOREIGN_NO_LINKS, NULL, &status);
	struct perf_data_job job = { .input_fd = fd,
				     .output_fd = output_fd,
				     .path = path,
				     .is_part = strcmp(name, "data") != 0 };
	struct perf_data_result result;
	struct sym_error *error;
	char *cut AUTO_FREE = NULL;

	if (fd < 0)
		return io_error(path, -fd);
	error = perf_data_copy(&job, &result);
	if (error)
		return error;
	cut = result.cut;
	if (cut)
		return sym_error_create(SYM_ERROR_FORMAT, "%s", cut);
	*bytes_ret = result.output_bytes;
	return NULL;
}

/* The parts have the numbers of perf's threads, from 0 on. */
static struct sym_error *copy_parts(int directory_fd, const char *path, int output_fd,
				    uint64_t *bytes_ret)
{
	struct sym_error *error = NULL;

	*bytes_ret = 0;
	for (unsigned int i = 0; !error; i++) {
		char name[32], part_path[4096];
		uint64_t part_bytes = 0;
		struct stat status;

		snprintf(name, sizeof(name), "data.%u", i);
		snprintf(part_path, sizeof(part_path), "%s/%s", path, name);
		if (fstatat(directory_fd, name, &status, AT_SYMLINK_NOFOLLOW))
			return errno == ENOENT ? NULL : io_error(part_path, errno);
		error = copy_file(directory_fd, part_path, name, output_fd, &part_bytes);
		*bytes_ret += part_bytes;
	}
	return error;
}

struct sym_error *perf_directory_join(int directory_fd, const char *path, int output_fd)
{
	uint64_t bytes, written, at;
	const char *trouble;
	char main_path[4096];
	struct sym_error *error;

	snprintf(main_path, sizeof(main_path), "%s/data", path);
	error = copy_file(directory_fd, main_path, "data", output_fd, &bytes);
	if (!error)
		error = copy_parts(directory_fd, path, -1, &bytes);
	if (error || !bytes)
		return error;
	trouble = perf_insert_trouble(output_fd, PERF_DATA_FILE);
	if (trouble)
		return sym_error_create(SYM_ERROR_FORMAT, "%s: %s", main_path, trouble);
	if (!perf_insert_room(output_fd, true, bytes, &at) ||
	    lseek(output_fd, (off_t)at, SEEK_SET) < 0)
		return io_error("the joined perf.data", errno);
	error = copy_parts(directory_fd, path, output_fd, &written);
	if (!error && written != bytes)
		error = sym_error_create(SYM_ERROR_FORMAT, "%s: it changed while it was read",
					 path);
	return error;
}
