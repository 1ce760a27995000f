/* SPDX-License-Identifier: MIT */
#include "libsym/base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"

static const size_t read_step_bytes = (size_t)64 << 10;
static const unsigned int temporary_name_tries = 100;

const char *path_file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int check_kind(int fd, unsigned int flags)
{
	struct stat status;

	if (!(flags & PATH_REGULAR))
		return 0;
	if (fstat(fd, &status))
		return -errno;
	return S_ISREG(status.st_mode) ? 0 : -EINVAL;
}

int path_open_in_root(int root_fd, const char *path, unsigned int flags)
{
	struct open_how how = {
		/* Without O_NONBLOCK the opening of a FIFO waits for a writer. */
		.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
		.resolve = root_fd >= 0 ? RESOLVE_IN_ROOT : 0,
	};
	int fd, failure;

	if (flags & PATH_DIRECTORY)
		how.flags |= O_DIRECTORY;
	if (flags & PATH_NO_SYMLINKS) {
		how.flags |= O_NOFOLLOW;
		how.resolve |= RESOLVE_NO_SYMLINKS;
	}
	fd = (int)syscall(SYS_openat2, root_fd >= 0 ? root_fd : AT_FDCWD, path, &how, sizeof(how));
	if (fd < 0)
		return -errno;
	failure = check_kind(fd, flags);
	if (failure) {
		close(fd);
		return failure;
	}
	return fd;
}

int path_read_at(int fd, void *room, size_t size_bytes, uint64_t offset)
{
	uint8_t *next = room;

	while (size_bytes) {
		ssize_t got = pread(fd, next, size_bytes, (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return -EIO;
		next += got;
		offset += (uint64_t)got;
		size_bytes -= (size_t)got;
	}
	return 0;
}

int path_read_all(int fd, struct buf *buf)
{
	for (;;) {
		size_t room_bytes = buf->max_bytes - buf->size_bytes;
		char *room;
		ssize_t got;

		/* One byte more than allowed tells a full buffer from a file that goes on. */
		if (!room_bytes) {
			char beyond;

			got = read(fd, &beyond, 1);
			return got < 0 ? -errno : got ? -EFBIG : 0;
		}
		if (room_bytes > read_step_bytes)
			room_bytes = read_step_bytes;
		room = buf_reserve(buf, room_bytes);
		if (!room)
			return buf->failure == BUF_NO_MEMORY ? -ENOMEM : -EFBIG;
		got = read(fd, room, room_bytes);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return 0;
		buf->size_bytes += (size_t)got;
	}
}

int path_make_directories(const char *path, mode_t mode)
{
	AUTO_FREE char *copy = strdup(path);
	char *slash = copy;

	if (!copy)
		return -ENOMEM;
	while ((slash = strchr(slash + 1, '/'))) {
		*slash = '\0';
		if (mkdir(copy, mode) && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	if (mkdir(copy, mode) && errno != EEXIST)
		return -errno;
	return 0;
}

int path_write_all(int fd, const void *bytes, size_t size_bytes)
{
	const uint8_t *next = bytes;

	while (size_bytes) {
		ssize_t written = write(fd, next, size_bytes);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		next += written;
		size_bytes -= (size_t)written;
	}
	return 0;
}

/* Releases what the object holds without touching the directory. */
static void output_release(struct path_output *output)
{
	if (output->fd >= 0)
		close(output->fd);
	if (output->directory_fd >= 0)
		close(output->directory_fd);
	free(output->temporary_name);
	free(output->name);
	*output = (struct path_output){ .fd = -1, .directory_fd = -1 };
}

static int open_temporary(struct path_output *output)
{
	unsigned int attempt;

	for (attempt = 0; attempt < temporary_name_tries; attempt++) {
		struct buf name;

		buf_init(&name, 4096);
		buf_printf(&name, ".%.200s.%d.%u", output->name, (int)getpid(), attempt);
		output->temporary_name = buf_steal(&name, NULL);
		if (!output->temporary_name) {
			buf_deinit(&name);
			return -ENOMEM;
		}
		output->fd = openat(output->directory_fd, output->temporary_name,
				    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (output->fd >= 0)
			return 0;
		free(STEAL(output->temporary_name));
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

int path_output_open_at(struct path_output *output, int directory_fd, const char *name)
{
	int failure;

	*output = (struct path_output){ .fd = -1, .directory_fd = -1 };
	output->name = strdup(name);
	if (!output->name)
		return -ENOMEM;
	output->directory_fd = fcntl(directory_fd, F_DUPFD_CLOEXEC, 3);
	failure = output->directory_fd < 0 ? -errno : open_temporary(output);
	if (failure)
		output_release(output);
	return failure;
}

int path_output_open(struct path_output *output, const char *path)
{
	const char *name = path_file_name(path);
	AUTO_FREE char *directory =
		name == path ? strdup(".") : strndup(path, (size_t)(name - path));
	AUTO_CLOSE int directory_fd = -1;

	*output = (struct path_output){ .fd = -1, .directory_fd = -1 };
	if (!directory)
		return -ENOMEM;
	directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory_fd < 0)
		return -errno;
	return path_output_open_at(output, directory_fd, name);
}

int path_output_commit(struct path_output *output, mode_t mode, bool durable)
{
	int failure = 0;

	if (fchmod(output->fd, mode) || (durable && fsync(output->fd)) ||
	    renameat(output->directory_fd, output->temporary_name, output->directory_fd,
		     output->name))
		failure = -errno;
	if (failure)
		path_output_abandon(output);
	else
		output_release(output);
	return failure;
}

void path_output_abandon(struct path_output *output)
{
	if (output->temporary_name)
		unlinkat(output->directory_fd, output->temporary_name, 0);
	output_release(output);
}
