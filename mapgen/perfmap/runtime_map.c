/* SPDX-License-Identifier: MIT */
#include "mapgen/perfmap/runtime_map.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/foreign_file.h"
#include "libsym/libsym.h"
#include "mapgen/cli/message.h"

/*
 * One write holds whole lines up to this many bytes. The kernel can cut a write of a dying process
 * only between two pages, so small writes rarely cross one.
 */
static const size_t piece_bytes = 4096;

/* Free space that appending leaves to the runtime. */
static const size_t room_left_bytes = 1 << 20;

/* How long an incomplete last line may take to become complete. */
enum {
	TORN_TRIES = 25,
	TORN_PAUSE_MS = 20
};

bool runtime_map_comes_in_blocks(const char *version)
{
	const long first_major = 11;

	return version && strtol(version, NULL, 10) >= first_major;
}

static int take_descriptor(int32_t pid, int32_t number)
{
	int pidfd AUTO_CLOSE = (int)syscall(SYS_pidfd_open, pid, 0);

	return pidfd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, number, 0);
}

struct sym_error *runtime_map_open(int32_t pid, const struct sym_perf_map_info *info,
				   const struct rights *rights, struct runtime_map *ret)
{
	int fd AUTO_CLOSE = take_descriptor(pid, info->writer_fd);
	int read_fd AUTO_CLOSE = -1;
	char own_path[64];
	struct stat status;
	int flags;

	if (fd < 0)
		return sym_error_create(SYM_ERROR_PERMISSION,
					"cannot copy descriptor %d of process %d: %s%s",
					info->writer_fd, pid, strerror(errno),
					errno == EPERM ? " (needs ptrace permission)" : "");
	if (fstat(fd, &status) || !S_ISREG(status.st_mode) || status.st_ino != info->writer_inode ||
	    status.st_dev != info->writer_device)
		return sym_error_create(SYM_ERROR_STALE,
					"process %d has replaced its perf map just now", pid);
	snprintf(own_path, sizeof(own_path), "/proc/self/fd/%d", fd);
	read_fd = foreign_file_open(-1, own_path, FOREIGN_KERNEL_LINK, rights, NULL);
	flags = fcntl(fd, F_GETFL);
	if (read_fd < 0 || flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
		return sym_error_create(SYM_ERROR_IO,
					"cannot read and write the perf map of process %d", pid);
	if (!(flags & O_APPEND) && fcntl(fd, F_SETFL, flags | O_APPEND))
		return sym_error_create(SYM_ERROR_IO,
					"cannot set O_APPEND on the perf map of process %d: %s",
					pid, strerror(errno));
	*ret = (struct runtime_map){ steal_fd(&fd), steal_fd(&read_fd), !(flags & O_APPEND),
				     rights };
	return NULL;
}

void runtime_map_close(struct runtime_map *map)
{
	if (map->write_fd >= 0)
		close(map->write_fd);
	if (map->read_fd >= 0)
		close(map->read_fd);
	*map = (struct runtime_map){ -1, -1, false, NULL };
}

bool runtime_map_ends_in_half_a_line(const struct runtime_map *map)
{
	const struct timespec pause = { .tv_nsec = TORN_PAUSE_MS * 1000000L };

	for (int i = 0; i < TORN_TRIES; i++) {
		struct stat status;
		char last = '\n';

		if (fstat(map->read_fd, &status) || !status.st_size ||
		    pread(map->read_fd, &last, 1, status.st_size - 1) != 1 || last == '\n')
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

/* Whole lines of up to piece_bytes; a single line when that is longer. */
static size_t next_piece(const char *text, size_t size_bytes)
{
	const char *end;

	if (size_bytes <= piece_bytes)
		return size_bytes;
	end = memrchr(text, '\n', piece_bytes);
	if (!end)
		end = memchr(text, '\n', size_bytes);
	return end ? (size_t)(end - text) + 1 : size_bytes;
}

/*
 * Removes the incomplete line that a full disk left, if nothing follows: no other program can have
 * appended to a file that could not grow.
 */
static void take_back(int fd, const char *piece, size_t written_bytes)
{
	const char *newline = memrchr(piece, '\n', written_bytes);
	size_t torn_bytes = written_bytes - (newline ? (size_t)(newline - piece) + 1 : 0);
	off_t end = lseek(fd, 0, SEEK_CUR);
	struct stat status;

	if (!fstat(fd, &status) && status.st_size == end && end >= (off_t)torn_bytes)
		(void)!ftruncate(fd, end - (off_t)torn_bytes);
}

/* Whether the runtime would still have space after this many bytes. On a full disk the runtime's
 * own lines would be torn. */
static bool has_room(int fd, size_t size_bytes)
{
	struct statvfs disk;

	/* Without a limit there are no blocks to count. */
	return fstatvfs(fd, &disk) || !disk.f_blocks ||
	       (uint64_t)disk.f_bavail * disk.f_frsize >= size_bytes + room_left_bytes;
}

/* True if this process may write so many bytes more: its limit of file sizes (ulimit -f). */
static bool is_within_limit(int fd, size_t size_bytes)
{
	struct rlimit limit;
	struct stat status;

	return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY ||
	       fstat(fd, &status) || (uint64_t)status.st_size + size_bytes < limit.rlim_cur;
}

/* Returns 0 or an errno. */
static int append_lines(const struct runtime_map *map, const char *text, size_t size_bytes)
{
	if (!has_room(map->write_fd, size_bytes))
		return ENOSPC;
	if (!is_within_limit(map->write_fd, size_bytes))
		return EFBIG;
	while (size_bytes) {
		size_t piece = next_piece(text, size_bytes);
		ssize_t written = write(map->write_fd, text, piece);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return errno;
		if ((size_t)written < piece) {
			take_back(map->write_fd, text, (size_t)written);
			return ENOSPC;
		}
		text += piece;
		size_bytes -= piece;
	}
	return 0;
}

static void run_child(const struct runtime_map *map, const char *text, size_t size_bytes)
{
	static const int ignored[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGXFSZ };
	struct rights_held held;
	int result;

	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	setsid();
	/* If a full disk or a quota keeps the process from writing to this file, nothing is written
	 * for it. Without its ids the limit of an ordinary user applies. */
	result = rights_assume(map->rights, &held);
	if (result == -EPERM)
		result = rights_drop_file_capabilities(&held);
	_exit(result ? -result : append_lines(map, text, size_bytes));
}

struct sym_error *runtime_map_append(const struct runtime_map *map, const char *text,
				     size_t size_bytes)
{
	int status = 0;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child < 0)
		return sym_error_create(SYM_ERROR_IO, "cannot start the writer: %s",
					strerror(errno));
	if (!child)
		run_child(map, text, size_bytes);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status))
		return sym_error_create(SYM_ERROR_IO, "the writer was ended by signal %d",
					WTERMSIG(status));
	if (WEXITSTATUS(status))
		return sym_error_create(SYM_ERROR_IO, "cannot append: %s",
					strerror(WEXITSTATUS(status)));
	return NULL;
}
