/* SPDX-License-Identifier: MIT */
#include "mapgen/perf_output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "mapgen/message.h"
#include "mapgen/work_directory.h"

enum {
	MOST_PARTS = 65536,
	COPY_BYTES = 256 << 10
};

static char *add_part(struct perf_place *place, const char *name, int input_fd, int output_fd,
		      bool is_main)
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
	return message_format("out of memory");
}

/* ---- a file ------------------------------------------------------------------------------ */

static char *open_hidden(int *fd_ret)
{
	const char *directory = getenv("TMPDIR");

	/* Not /tmp first: it is in memory on many machines. */
	*fd_ret = open(directory && *directory ? directory : "/var/tmp",
		       O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	if (*fd_ret < 0)
		*fd_ret = open("/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	return *fd_ret < 0 ? message_format("cannot make a temporary file: %s", strerror(errno))
			   : NULL;
}

static char *open_file_output(struct perf_place *place, int *fd_ret)
{
	int failure;

	if (!strcmp(place->output_path, "-"))
		return open_hidden(fd_ret);
	failure = path_output_open(&place->file, place->output_path);
	if (failure)
		return message_format("%s: cannot write: %s", place->output_path,
				      strerror(-failure));
	/* The part closes its own. */
	*fd_ret = fcntl(place->file.fd, F_DUPFD_CLOEXEC, 3);
	return *fd_ret < 0 ? message_format("out of descriptors") : NULL;
}

static char *open_file(struct perf_place *place, int input_fd)
{
	int output_fd = -1;
	char *failure = open_file_output(place, &output_fd);

	if (!failure)
		return add_part(place, "-", input_fd, output_fd, true);
	close(input_fd);
	return failure;
}

/* ---- a directory ----------------------------------------------------------------------------- */

static char *copy_plain(int input_fd, int output_fd, const char *name)
{
	char *room AUTO_FREE = malloc(COPY_BYTES);
	int failure = room ? 0 : -ENOMEM;

	while (!failure) {
		ssize_t got = read(input_fd, room, COPY_BYTES);

		if (!got)
			return NULL;
		if (got < 0 && errno == EINTR)
			continue;
		failure = got < 0 ? -errno : path_write_all(output_fd, room, (size_t)got);
	}
	return message_format("%s: cannot copy: %s", name, strerror(-failure));
}

static bool is_data(const char *name)
{
	return !strcmp(name, "data") || !strncmp(name, "data.", 5);
}

static char *copy_directory(struct perf_place *place, int input_fd, int output_fd, bool is_top);

static char *copy_entry(struct perf_place *place, int input_directory, int output_directory,
			const char *name, bool is_top)
{
	int input_fd AUTO_CLOSE =
		openat(input_directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int output_fd AUTO_CLOSE = -1;
	struct stat status;

	if (input_fd < 0 || fstat(input_fd, &status))
		return message_format("%s: cannot open: %s", name, strerror(errno));
	if (S_ISDIR(status.st_mode) && is_top) {
		if (mkdirat(output_directory, name, 0700))
			return message_format("%s: cannot make: %s", name, strerror(errno));
		output_fd = openat(output_directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		return output_fd < 0 ? message_format("%s: cannot open", name)
				     : copy_directory(place, input_fd, output_fd, false);
	}
	if (!S_ISREG(status.st_mode))
		return message_format("%s: neither a file nor a directory of perf's", name);
	output_fd = openat(output_directory, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
			   status.st_mode & 0777);
	if (output_fd < 0)
		return message_format("%s: cannot write: %s", name, strerror(errno));
	if (is_top && is_data(name))
		return add_part(place, name, steal_fd(&input_fd), steal_fd(&output_fd),
				!strcmp(name, "data"));
	return copy_plain(input_fd, output_fd, name);
}

static char *copy_directory(struct perf_place *place, int input_fd, int output_fd, bool is_top)
{
	int listing_fd = fcntl(input_fd, F_DUPFD_CLOEXEC, 3);
	DIR *listing GUARDED(dir) = listing_fd < 0 ? NULL : fdopendir(listing_fd);
	const struct dirent *entry;
	char *failure = NULL;

	if (!listing)
		return message_format("%s: cannot list: %s", place->input_path, strerror(errno));
	while (!failure && (entry = readdir(listing)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
		    strcmp(entry->d_name, "undo"))
			failure = copy_entry(place, input_fd, output_fd, entry->d_name, is_top);
	return failure;
}

/* Is there some at its top? True also where it cannot be listed, which is said with the rest. */
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

static char *open_directory(struct perf_place *place, int input_fd)
{
	int output_fd AUTO_CLOSE = -1;
	char *failure;

	if (!has_data(input_fd))
		return message_format("%s: a directory without perf's data", place->input_path);

	if (!strcmp(place->output_path, "-"))
		return message_format("%s is a directory: it does not fit into a pipe",
				      place->input_path);
	place->is_directory = true;
	place->directory = message_format("%s.XXXXXX", place->output_path);
	if (!work_directory_make(place->directory)) {
		failure = message_format("%s: cannot make a directory beside it: %s",
					 place->output_path, strerror(errno));
		free(STEAL(place->directory));
		return failure;
	}
	output_fd = open(place->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (output_fd < 0)
		return message_format("%s: %s", place->directory, strerror(errno));
	return copy_directory(place, input_fd, output_fd, true);
}

/* ---- both ---------------------------------------------------------------------------------------
 */

/* Where a link leads: what is there is replaced, not the link. "x/" and "x" are the same place, and
 * what is written beside it must not be inside. */
static char *resolved(const char *path)
{
	char *real = strcmp(path, "-") ? realpath(path, NULL) : NULL;
	size_t length = strlen(path);

	if (real)
		return real;

	while (length > 1 && path[length - 1] == '/')
		length--;
	return strndup(path, length);
}

/* What is no file, and is there, is not ours to replace: /dev/null, a FIFO. And who changes data in
 * its place is alone there, or the way back would be lost. */
static char *take_place(struct perf_place *place, int input_fd)
{
	struct stat status;

	if (!strcmp(place->output_path, "-") || stat(place->output_path, &status))
		return NULL;
	if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
		return message_format("%s is no regular file: not written", place->output_path);
	if (!path_is_same_file(&status, &place->input_status))
		return NULL;
	place->replaces_input = true;
	place->lock_fd = fcntl(input_fd, F_DUPFD_CLOEXEC, 3);
	if (place->lock_fd < 0 || flock(place->lock_fd, LOCK_EX | LOCK_NB))
		return message_format("%s: cannot be locked: %s", place->output_path,
				      errno == EWOULDBLOCK ? "another perf-fix changes it"
							   : strerror(errno));
	/* The other one may just have put its own there. */
	if (stat(place->output_path, &status) || !path_is_same_file(&status, &place->input_status))
		return message_format("%s was replaced meanwhile", place->output_path);
	return NULL;
}

char *perf_place_open(struct perf_place *place, const char *input_path, const char *output_path)
{
	bool from_pipe = !strcmp(input_path, "-");
	char *failure;
	int fd;

	*place = (struct perf_place)PERF_PLACE_NONE;
	place->input_path = from_pipe ? "standard input" : input_path;
	place->output_path = resolved(output_path);
	if (!place->output_path)
		return message_format("out of memory");
	fd = from_pipe ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
		       : open(input_path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &place->input_status))
		failure = message_format("%s: cannot open: %s", place->input_path, strerror(errno));
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

/* perf refuses data that belongs to somebody else than its user or root. */
static void give(const struct perf_place *place, int fd)
{
	if (S_ISREG(place->input_status.st_mode) || S_ISDIR(place->input_status.st_mode))
		(void)!fchown(fd, place->input_status.st_uid, place->input_status.st_gid);
}

static char *pour_out(struct perf_place *place)
{
	int fd = place->parts[0].output_fd;

	if (lseek(fd, 0, SEEK_SET) < 0)
		return message_format("cannot read what was written: %s", strerror(errno));
	return copy_plain(fd, STDOUT_FILENO, "standard output");
}

/* What is there is taken out of the way at the same moment. */
static char *rename_directory(struct perf_place *place)
{
	int fd AUTO_CLOSE = open(place->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat status;

	if (fd >= 0) {
		give(place, fd);
		fchmod(fd, place->input_status.st_mode & 0777);
	}
	if (lstat(place->output_path, &status)) {
		if (!rename(place->directory, place->output_path)) {
			work_directory_keep();
			free(STEAL(place->directory));
			return NULL;
		}
	} else if (!path_is_same_file(&status, &place->input_status)) {
		/* A directory may hold anything: only the one that was read is replaced. */
		return message_format("%s is there already", place->output_path);
	} else if (!renameat2(AT_FDCWD, place->directory, AT_FDCWD, place->output_path,
			      RENAME_EXCHANGE)) {
		return NULL; /* the old one is removed with the object */
	}
	return message_format("%s: cannot put in place: %s", place->output_path, strerror(errno));
}

char *perf_place_commit(struct perf_place *place)
{
	mode_t mode =
		S_ISREG(place->input_status.st_mode) ? place->input_status.st_mode & 0777 : 0600;
	int failure;

	if (place->is_directory)
		return rename_directory(place);
	if (place->file.fd < 0)
		return pour_out(place);
	give(place, place->file.fd);
	failure = path_output_commit(&place->file, mode, false);
	return failure ? message_format("%s: cannot put in place: %s", place->output_path,
					strerror(-failure))
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
