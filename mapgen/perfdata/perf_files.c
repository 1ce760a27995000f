/* SPDX-License-Identifier: MIT */
/*
 * Where perf-fix writes before its output is complete.
 *
 *   a file       a temporary file beside it, renamed over it at the end
 *   a directory  a new directory beside it, exchanged with the old one in one step
 *   a pipe       an unnamed file, copied to standard output at the end
 *
 * The input may be the output (--in-place): then it is locked, because two at once would lose
 * --undo.
 */
#include "mapgen/perfdata/perf_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/foreign_file.h"
#include "libsym/base/path.h"
#include "mapgen/cli/message.h"
#include "mapgen/cli/temporary_file.h"
#include "mapgen/cli/work_directory.h"

enum {
	MOST_PARTS = 65536
};

static struct sym_error *add_part(struct perf_place *place, const char *name, int input_fd,
				  int output_fd, bool is_main)
{
	struct perf_part *parts = NULL;

	if (place->part_count < MOST_PARTS)
		parts = reallocarray(place->parts, place->part_count + 1, sizeof(*parts));
	if (parts) {
		place->parts = parts;
		parts[place->part_count] =
			(struct perf_part){ strdup(name), input_fd, output_fd, is_main };
		if (parts[place->part_count].name) {
			place->part_count++;
			return NULL;
		}
	}
	close(input_fd);
	close(output_fd);
	return &sym_error_no_memory;
}

/* ---- a file ------------------------------------------------------------------------------ */

static struct sym_error *open_file_output(struct perf_place *place, int *fd_ret)
{
	int failure;

	if (!strcmp(place->output_path, "-"))
		return temporary_file_open(fd_ret);
	failure = path_output_open(&place->file, place->output_path);
	if (failure)
		return sym_error_create(SYM_ERROR_IO, "%s: cannot write: %s", place->output_path,
					strerror(-failure));
	/* The part closes its own descriptor. */
	*fd_ret = fcntl(place->file.fd, F_DUPFD_CLOEXEC, 3);
	return *fd_ret < 0 ? sym_error_create(SYM_ERROR_IO, "out of descriptors") : NULL;
}

static struct sym_error *open_file(struct perf_place *place, int input_fd)
{
	int output_fd = -1;
	struct sym_error *failure = open_file_output(place, &output_fd);

	if (!failure)
		return add_part(place, "-", input_fd, output_fd, true);
	close(input_fd);
	return failure;
}

/* ---- a directory ----------------------------------------------------------------------------- */

struct sym_error *perf_files_copy(int input_fd, int output_fd, const char *name)
{
	int failure = path_copy_rest(input_fd, output_fd);

	return failure ? sym_error_create(SYM_ERROR_IO, "%s: cannot copy: %s", name,
					  strerror(-failure))
		       : NULL;
}

static bool is_data(const char *name)
{
	return !strcmp(name, "data") || !strncmp(name, "data.", 5);
}

static struct sym_error *copy_directory(struct perf_place *place, int input_fd, int output_fd,
					bool is_top);

static int open_entry(int directory_fd, const char *name, struct stat *status_ret)
{
	int fd = foreign_file_open(directory_fd, name, FOREIGN_NO_LINKS, NULL, status_ret);

	if (fd != -EINVAL)
		return fd;
	fd = openat(directory_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -EINVAL;
	status_ret->st_mode = S_IFDIR;
	return fd;
}

static struct sym_error *copy_entry(struct perf_place *place, int input_directory,
				    int output_directory, const char *name, bool is_top)
{
	int output_fd AUTO_CLOSE = -1;
	struct stat status;
	int input_fd AUTO_CLOSE = open_entry(input_directory, name, &status);

	if (input_fd == -EINVAL)
		return sym_error_create(
			SYM_ERROR_IO,
			"%s: neither a perf.data file nor a directory of perf record --threads",
			name);
	if (input_fd < 0)
		return sym_error_create(SYM_ERROR_IO, "%s: cannot open: %s", name,
					strerror(-input_fd));
	if (S_ISDIR(status.st_mode) && is_top) {
		if (mkdirat(output_directory, name, 0700))
			return sym_error_create(SYM_ERROR_IO, "%s: cannot create: %s", name,
						strerror(errno));
		output_fd = openat(output_directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		return output_fd < 0 ? sym_error_create(SYM_ERROR_IO, "%s: cannot open", name)
				     : copy_directory(place, input_fd, output_fd, false);
	}
	if (!S_ISREG(status.st_mode))
		return sym_error_create(
			SYM_ERROR_IO,
			"%s: neither a perf.data file nor a directory of perf record --threads",
			name);
	output_fd = openat(output_directory, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
			   status.st_mode & 0777);
	if (output_fd < 0)
		return sym_error_create(SYM_ERROR_IO, "%s: cannot write: %s", name,
					strerror(errno));
	if (is_top && is_data(name))
		return add_part(place, name, steal_fd(&input_fd), steal_fd(&output_fd),
				!strcmp(name, "data"));
	return perf_files_copy(input_fd, output_fd, name);
}

static struct sym_error *copy_directory(struct perf_place *place, int input_fd, int output_fd,
					bool is_top)
{
	int listing_fd = fcntl(input_fd, F_DUPFD_CLOEXEC, 3);
	DIR *listing GUARDED(dir) = listing_fd < 0 ? NULL : fdopendir(listing_fd);
	const struct dirent *entry;
	struct sym_error *failure = NULL;

	if (!listing)
		return sym_error_create(SYM_ERROR_IO, "%s: cannot list: %s", place->input_path,
					strerror(errno));
	while (!failure && (entry = readdir(listing)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
		    strcmp(entry->d_name, "undo"))
			failure = copy_entry(place, input_fd, output_fd, entry->d_name, is_top);
	return failure;
}

/* Whether the directory has parts; true also when it cannot be listed, which is reported later. */
static bool has_data(int directory_fd)
{
	int listing_fd = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *listing GUARDED(dir) = listing_fd < 0 ? NULL : fdopendir(listing_fd);
	const struct dirent *entry;

	if (!listing)
		return true;
	while ((entry = readdir(listing)))
		if (is_data(entry->d_name))
			return true;
	return false;
}

static struct sym_error *open_directory(struct perf_place *place, int input_fd)
{
	int output_fd AUTO_CLOSE = -1;
	struct sym_error *failure;

	if (!has_data(input_fd))
		return sym_error_create(SYM_ERROR_IO, "%s: a directory without perf.data",
					place->input_path);

	if (!strcmp(place->output_path, "-"))
		return sym_error_create(SYM_ERROR_IO,
					"cannot write the directory %s to standard output",
					place->input_path);
	place->is_directory = true;
	place->directory = message_format("%s.XXXXXX", place->output_path);
	if (!work_directory_make(place->directory)) {
		failure = sym_error_create(SYM_ERROR_IO,
					   "%s: cannot create a directory beside it: %s",
					   place->output_path, strerror(errno));
		free(STEAL(place->directory));
		return failure;
	}
	output_fd = open(place->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (output_fd < 0)
		return sym_error_create(SYM_ERROR_IO, "%s: %s", place->directory, strerror(errno));
	return copy_directory(place, input_fd, output_fd, true);
}

/* ---- both ---------------------------------------------------------------------------------------
 */

/* The target of a link: the file is replaced, not the link. "x/" and "x" are the same path, and the
 * temporary file must not be inside it. */
static char *perf_files_follow_link(const char *path)
{
	char *real = strcmp(path, "-") ? realpath(path, NULL) : NULL;
	size_t length = strlen(path);

	if (real)
		return real;

	while (length > 1 && path[length - 1] == '/')
		length--;
	return strndup(path, length);
}

/* A file that exists and is not regular is not replaced: /dev/null, a FIFO. Data that is changed in
 * place is locked, or --undo would be lost. */
static struct sym_error *take_place(struct perf_place *place, int input_fd)
{
	struct stat status;

	if (!strcmp(place->output_path, "-") || stat(place->output_path, &status))
		return NULL;
	if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
		return sym_error_create(SYM_ERROR_IO, "%s is not a regular file: not written",
					place->output_path);
	if (!path_is_same_file(&status, &place->input_status))
		return NULL;
	place->replaces_input = true;
	place->lock_fd = fcntl(input_fd, F_DUPFD_CLOEXEC, 3);
	if (place->lock_fd < 0 || flock(place->lock_fd, LOCK_EX | LOCK_NB))
		return sym_error_create(
			SYM_ERROR_IO, "%s: cannot be locked: %s", place->output_path,
			errno == EWOULDBLOCK ? "another perf-fix is changing it" : strerror(errno));
	/* Another perf-fix may just have renamed its output to this path. */
	if (stat(place->output_path, &status) || !path_is_same_file(&status, &place->input_status))
		return sym_error_create(SYM_ERROR_IO, "%s was replaced while it was read",
					place->output_path);
	return NULL;
}

struct sym_error *perf_place_open(struct perf_place *place, const char *input_path,
				  const char *output_path)
{
	bool from_pipe = !strcmp(input_path, "-");
	struct sym_error *failure;
	int fd;

	*place = (struct perf_place)PERF_PLACE_NONE;
	place->input_path = from_pipe ? "standard input" : input_path;
	place->output_path = perf_files_follow_link(output_path);
	if (!place->output_path)
		return &sym_error_no_memory;
	fd = from_pipe ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
		       : open(input_path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &place->input_status))
		failure = sym_error_create(SYM_ERROR_IO, "%s: cannot open: %s", place->input_path,
					   strerror(errno));
	else
		failure = take_place(place, fd);
	if (!failure && !S_ISDIR(place->input_status.st_mode))
		return open_file(place, fd);
	if (!failure)
		failure = open_directory(place, fd);
	if (fd >= 0)
		close(fd);
	return failure;
}

/* perf refuses data that belongs neither to its user nor to root. */
static void perf_files_give(const struct perf_place *place, int fd)
{
	if (S_ISREG(place->input_status.st_mode) || S_ISDIR(place->input_status.st_mode))
		(void)!fchown(fd, place->input_status.st_uid, place->input_status.st_gid);
}

static struct sym_error *pour_out(struct perf_place *place)
{
	int fd = place->parts[0].output_fd;

	if (lseek(fd, 0, SEEK_SET) < 0)
		return sym_error_create(SYM_ERROR_IO, "cannot read the output back: %s",
					strerror(errno));
	return perf_files_copy(fd, STDOUT_FILENO, "standard output");
}

/* The old file is moved away in the same step. */
static struct sym_error *rename_directory(struct perf_place *place)
{
	int fd AUTO_CLOSE = open(place->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat status;

	if (fd >= 0) {
		perf_files_give(place, fd);
		fchmod(fd, place->input_status.st_mode & 0777);
	}
	if (lstat(place->output_path, &status)) {
		if (!rename(place->directory, place->output_path)) {
			work_directory_keep();
			free(STEAL(place->directory));
			return NULL;
		}
	} else if (!path_is_same_file(&status, &place->input_status)) {
		/* A directory may hold anything, so only the one that was read is replaced. */
		return sym_error_create(SYM_ERROR_IO, "%s already exists", place->output_path);
	} else if (!renameat2(AT_FDCWD, place->directory, AT_FDCWD, place->output_path,
			      RENAME_EXCHANGE)) {
		return NULL; /* the old directory is removed with the object */
	}
	return sym_error_create(SYM_ERROR_IO, "%s: cannot rename the output: %s",
				place->output_path, strerror(errno));
}

struct sym_error *perf_place_commit(struct perf_place *place)
{
	mode_t mode =
		S_ISREG(place->input_status.st_mode) ? place->input_status.st_mode & 0777 : 0600;
	int failure;

	if (place->is_directory)
		return rename_directory(place);
	if (place->file.fd < 0)
		return pour_out(place);
	perf_files_give(place, place->file.fd);
	failure = path_output_commit(&place->file, mode, false);
	return failure ? sym_error_create(SYM_ERROR_IO, "%s: cannot rename the output: %s",
					  place->output_path, strerror(-failure))
		       : NULL;
}

void perf_place_deinit(struct perf_place *place)
{
	for (size_t i = 0; i < place->part_count; i++) {
		free(place->parts[i].name);
		close(place->parts[i].input_fd);
		close(place->parts[i].output_fd);
	}
	free(place->parts);
	path_output_abandon(&place->file);
	if (place->directory)
		work_directory_remove(place->directory);
	if (place->lock_fd >= 0)
		close(place->lock_fd);
	free(place->directory);
	free((char *)place->output_path);
}
