/* SPDX-License-Identifier: MIT */
#include "libsym/base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"

static const size_t read_step_bytes = (size_t)64 << 10;
static const unsigned int temporary_name_tries = 16;
static const unsigned int openat2_tries = 16;

const char *path_file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool path_ends_with(const char *path, const char *ending)
{
	size_t path_bytes = strlen(path), ending_bytes = strlen(ending);

	return path_bytes >= ending_bytes && !strcmp(path + path_bytes - ending_bytes, ending);
}

bool path_is_assembly(const char *path)
{
	size_t length = strlen(path);

	return length > 4 &&
	       (!strcasecmp(path + length - 4, ".dll") || !strcasecmp(path + length - 4, ".exe"));
}

bool path_is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

/* Finds the file without opening it. Opening a device, or a FIFO that another user has placed
 * there, already has side effects. */
static int path_locate(int root_fd, const char *path, unsigned int flags)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = (root_fd >= 0 ? RESOLVE_IN_ROOT : 0) |
			   (flags & PATH_NO_SYMLINKS ? RESOLVE_NO_SYMLINKS : 0) |
			   (flags & PATH_SAME_MOUNT ? RESOLVE_NO_XDEV : 0),
	};
	unsigned int attempt;
	int fd;

	/* A concurrent rename makes the kernel fail the lookup of ".." with EAGAIN. */
	for (attempt = 0; attempt < openat2_tries; attempt++) {
		fd = (int)syscall(SYS_openat2, root_fd >= 0 ? root_fd : AT_FDCWD, path, &how,
				  sizeof(how));
		if (fd >= 0)
			return fd;
		if (errno != EAGAIN && errno != EINTR)
			break;
	}
	/* Before Linux 5.6, or below a filter of system calls: enough without restrictions. */
	if (errno != ENOSYS || how.resolve)
		return -errno;
	fd = openat(AT_FDCWD, path, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int path_reopen(int located_fd)
{
	char self[64];
	int fd;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", located_fd);
	/* Without O_NONBLOCK, opening a FIFO waits for a writer. */
	fd = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

int path_open_in_root(int root_fd, const char *path, unsigned int flags)
{
	int located AUTO_CLOSE = path_locate(root_fd, path, flags);
	struct stat status;

	if (located < 0)
		return located;
	if (fstat(located, &status))
		return -errno;
	if ((flags & PATH_REGULAR) && !S_ISREG(status.st_mode))
		return -EINVAL;
	if ((flags & PATH_DIRECTORY) && !S_ISDIR(status.st_mode))
		return -ENOTDIR;
	return flags & PATH_LOCATE ? steal_fd(&located) : path_reopen(located);
}

int path_read_at(int fd, void *room, size_t size_bytes, uint64_t offset)
{
	uint8_t *next = room;

	if (offset > INT64_MAX || size_bytes > INT64_MAX - offset)
		return -EIO;
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

/* Reads at `offset`, or at the file position if the file has no offsets (a pipe). */
static ssize_t read_some(int fd, char *room, size_t size_bytes, uint64_t offset)
{
	ssize_t got;

	do {
		got = pread(fd, room, size_bytes, (off_t)offset);
		if (got < 0 && errno == ESPIPE)
			got = read(fd, room, size_bytes);
	} while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

/*
 * Reserves the size of the file and one byte, so that its end is seen without another allocation.
 */
static void reserve_whole(int fd, struct buf *buf)
{
	struct stat status;

	if (!fstat(fd, &status) && S_ISREG(status.st_mode) && status.st_size > 0 &&
	    (uint64_t)status.st_size < buf->max_bytes - buf->size_bytes)
		buf_reserve(buf, (size_t)status.st_size + 1);
}

int path_read_all(int fd, struct buf *buf)
{
	uint64_t offset = 0;

	reserve_whole(fd, buf);
	for (;;) {
		size_t left_bytes = buf->max_bytes - buf->size_bytes;
		size_t room_bytes = buf->capacity_bytes - buf->size_bytes;
		ssize_t got;
		char *room;

		/* One extra byte distinguishes a full buffer from a file that continues. */
		if (!left_bytes) {
			char beyond;

			got = read_some(fd, &beyond, 1, offset);
			return got > 0 ? -EFBIG : (int)got;
		}
		if (!room_bytes)
			room_bytes = left_bytes < read_step_bytes ? left_bytes : read_step_bytes;
		room = buf_reserve(buf, room_bytes);
		if (!room)
			return buf->failure == BUF_NO_MEMORY ? -ENOMEM : -EFBIG;
		got = read_some(fd, room, room_bytes, offset);
		if (got <= 0)
			return (int)got;
		buf->size_bytes += (size_t)got;
		offset += (uint64_t)got;
	}
}

int path_make_directories(const char *path, mode_t mode)
{
	AUTO_FREE char *copy = strdup(path);
	char *slash = copy;
	struct stat status;

	if (!copy)
		return -ENOMEM;
	if (!*path)
		return -ENOENT;
	while ((slash = strchr(slash + 1, '/'))) {
		*slash = '\0';
		if (mkdir(copy, mode) && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	if (mkdir(copy, mode) && errno != EEXIST)
		return -errno;
	if (stat(copy, &status))
		return -errno;
	return S_ISDIR(status.st_mode) ? 0 : -ENOTDIR;
}

int path_write_all(int fd, const void *bytes, size_t size_bytes)
{
	const uint8_t *next = bytes;

	while (size_bytes) {
		ssize_t written = write(fd, next, size_bytes);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return written < 0 ? -errno : -EIO;
		next += written;
		size_bytes -= (size_t)written;
	}
	return 0;
}

int path_copy_rest(int from_fd, int to_fd)
{
	uint8_t room[1 << 16];
	ssize_t count;
	int failure = 0;

	while (!failure && (count = read(from_fd, room, sizeof(room)))) {
		if (count > 0)
			failure = path_write_all(to_fd, room, (size_t)count);
		else if (errno != EINTR)
			failure = -errno;
	}
	return failure;
}

/* Releases the struct without touching the directory. */
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

/*
 * Creates a name in the directory and sets `temporary_name`. Returns 0 or a negative errno. The
 * name is random, so another user cannot take it in advance. It is not derived from the final name,
 * which may already have the maximum length.
 */
static int name_temporary(struct path_output *output,
			  int (*make)(struct path_output *output, const char *name))
{
	unsigned int attempt;

	for (attempt = 0; attempt < temporary_name_tries; attempt++) {
		char name[40];
		uint64_t noise;
		int failure;

		if (getrandom(&noise, sizeof(noise), 0) != (ssize_t)sizeof(noise))
			return -EIO;
		snprintf(name, sizeof(name), ".sym-%016llx.tmp", (unsigned long long)noise);
		failure = make(output, name);
		if (failure == -EEXIST)
			continue;
		if (failure)
			return failure;
		output->temporary_name = strdup(name);
		if (output->temporary_name)
			return 0;
		unlinkat(output->directory_fd, name, 0);
		return -ENOMEM;
	}
	return -EEXIST;
}

static int make_file(struct path_output *output, const char *name)
{
	output->fd = openat(output->directory_fd, name,
			    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return output->fd < 0 ? -errno : 0;
}

/* Uses the link in /proc: linking a descriptor itself requires a capability. */
static int make_link(struct path_output *output, const char *name)
{
	char self[32];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", output->fd);
	return linkat(AT_FDCWD, self, output->directory_fd, name, AT_SYMLINK_FOLLOW) ? -errno : 0;
}

static int open_temporary(struct path_output *output)
{
	/* Without /proc the file could not be given a name later. */
	if (!access("/proc/self/fd", X_OK))
		output->fd =
			openat(output->directory_fd, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	return output->fd >= 0 ? 0 : name_temporary(output, make_file);
}

/* Reopens the directory if allowed, because an O_PATH descriptor cannot be flushed. */
static int reopen_directory(int directory_fd)
{
	int fd = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? fcntl(directory_fd, F_DUPFD_CLOEXEC, 3) : fd;
}

int path_output_open_at(struct path_output *output, int directory_fd, const char *name)
{
	int failure;

	*output = (struct path_output){ .fd = -1, .directory_fd = -1 };
	if (!*name || strchr(name, '/') || !strcmp(name, ".") || !strcmp(name, ".."))
		return -EINVAL;
	output->name = strdup(name);
	if (!output->name)
		return -ENOMEM;
	output->directory_fd = reopen_directory(directory_fd);
	failure = output->directory_fd < 0 ? -errno : open_temporary(output);
	if (failure)
		output_release(output);
	return failure;
}

/* A descriptor of the directory of `path`, or a negative errno. */
static int open_parent(const char *path)
{
	const char *name = path_file_name(path);
	AUTO_FREE char *directory =
		name == path ? strdup(".") : strndup(path, (size_t)(name - path));
	int fd = directory ? open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

	if (!directory)
		return -ENOMEM;
	return fd < 0 ? -errno : fd;
}

int path_output_open(struct path_output *output, const char *path)
{
	AUTO_CLOSE int directory_fd = open_parent(path);

	*output = (struct path_output){ .fd = -1, .directory_fd = -1 };
	if (directory_fd < 0)
		return directory_fd;
	return path_output_open_at(output, directory_fd, path_file_name(path));
}

/* Replaces the directory and name of `output`, which are released. */
static int path_output_replace_place(struct path_output *output, int parent_fd,
				     const char *new_name)
{
	AUTO_CLOSE int directory_fd = reopen_directory(parent_fd);
	AUTO_FREE char *name = strdup(new_name);
	int former_fd = output->directory_fd;
	char *former_name = output->name;

	if (directory_fd < 0 || !name)
		return name ? -errno : -ENOMEM;
	if (output->temporary_name && renameat(output->directory_fd, output->temporary_name,
					       directory_fd, output->temporary_name))
		return -errno;
	output->directory_fd = directory_fd;
	output->name = STEAL(name);
	directory_fd = former_fd;
	free(former_name);
	return 0;
}

int path_output_move(struct path_output *output, const char *path)
{
	AUTO_CLOSE int parent_fd = open_parent(path);
	int failure = parent_fd < 0
			      ? parent_fd
			      : path_output_replace_place(output, parent_fd, path_file_name(path));

	if (failure)
		path_output_abandon(output);
	return failure;
}

/* Signals are blocked, so that the program is not killed while the file has only its temporary
 * name. */
static int path_output_rename(struct path_output *output)
{
	int failure = 0;
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (!output->temporary_name)
		failure = name_temporary(output, make_link);
	if (!failure && renameat(output->directory_fd, output->temporary_name, output->directory_fd,
				 output->name))
		failure = -errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return failure;
}

int path_output_commit(struct path_output *output, mode_t mode, bool durable)
{
	int failure = 0;

	if (fchmod(output->fd, mode) || (durable && fsync(output->fd)))
		failure = -errno;
	if (!failure)
		failure = path_output_rename(output);
	/* The new file is in place; failing to flush the directory does not undo that. */
	if (!failure && durable)
		(void)fsync(output->directory_fd);
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

int path_output_finish(struct path_output *output, const void *bytes, size_t size_bytes,
		       mode_t mode)
{
	int failure = path_write_all(output->fd, bytes, size_bytes);

	if (!failure)
		return path_output_commit(output, mode, false);
	path_output_abandon(output);
	return failure;
}

bool path_has_content(int directory_fd, const char *name, const void *bytes, size_t size_bytes)
{
	int fd AUTO_CLOSE =
		openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char *there AUTO_FREE = NULL;
	struct stat status;

	if (fd < 0 || fstat(fd, &status) || !S_ISREG(status.st_mode) ||
	    (uint64_t)status.st_size != size_bytes)
		return false;
	there = malloc(size_bytes + 1);
	return there && !path_read_at(fd, there, size_bytes, 0) &&
	       !memcmp(there, bytes, size_bytes);
}

void path_list_free(char **paths)
{
	for (char **path = paths; path && *path; path++)
		free(*path);
	free(paths);
}

bool path_list_copy(const char *const *paths, char ***ret)
{
	size_t count = 0;
	char **copies;

	*ret = NULL;
	if (!paths)
		return true;
	while (paths[count])
		count++;
	copies = calloc(count + 1, sizeof(*copies));
	for (size_t i = 0; copies && i < count; i++) {
		copies[i] = strdup(paths[i]);
		if (!copies[i]) {
			path_list_free(copies);
			return false;
		}
	}
	*ret = copies;
	return copies != NULL;
}
