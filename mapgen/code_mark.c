/* SPDX-License-Identifier: MIT */
#include "mapgen/code_mark.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "mapgen/seconds.h"

static const double shortest_wait_s = 0.05;
/* The part of the time that may go into looking is one of so many. */
static const double patience = 20;

/* START-END rwxp OFFSET DEVICE INODE PATH: code of a file. Runtimes that jit have memory files. */
static bool counts(const char *line)
{
	const char *permissions = strchr(line, ' '), *path = strchr(line, '/');

	return permissions && strlen(permissions) > 3 && permissions[3] == 'x' && path &&
	       strncmp(path, "/memfd:", 7) != 0;
}

/* A file that was written since may be mapped anew where it was: its line is the same then. What is
 * deleted is not written by that path. */
static uint64_t add_file(uint64_t sum, int root_fd, char *line)
{
	char *path = strchr(line, '/');
	int fd AUTO_CLOSE = -1;
	struct stat status;

	path[strcspn(path, "\n")] = '\0';
	fd = path_open_in_root(root_fd, path, PATH_REGULAR);
	if (fd < 0 || fstat(fd, &status))
		return sum;
	sum = XXH3_64bits_withSeed(&status.st_size, sizeof(status.st_size), sum);
	return XXH3_64bits_withSeed(&status.st_ctim, sizeof(status.st_ctim), sum);
}

static uint64_t read_sum(int32_t pid)
{
	char path[64];
	FILE *maps GUARDED(file) = NULL;
	char *line AUTO_FREE = NULL;
	int root_fd AUTO_CLOSE = -1;
	size_t room_bytes = 0;
	ssize_t length;
	uint64_t sum = 0;

	snprintf(path, sizeof(path), "/proc/%" PRId32 "/maps", pid);
	maps = fopen(path, "re");
	snprintf(path, sizeof(path), "/proc/%" PRId32 "/root", pid);
	root_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	while (maps && (length = getline(&line, &room_bytes, maps)) > 0)
		if (counts(line))
			sum = add_file(XXH3_64bits_withSeed(line, (size_t)length, sum), root_fd,
				       line);
	return sum;
}

void code_mark_wait(struct code_mark *mark, double seconds)
{
	double next_s = seconds_now() + seconds;

	if (next_s > mark->next_s)
		mark->next_s = next_s;
}

void code_mark_set(struct code_mark *mark, int32_t pid)
{
	double begin_s = seconds_now();

	mark->sum = read_sum(pid);
	mark->next_s = seconds_now() + shortest_wait_s;
	code_mark_wait(mark, patience * (seconds_now() - begin_s));
}

bool code_mark_changed(struct code_mark *mark, int32_t pid)
{
	uint64_t before = mark->sum;

	if (!before || seconds_now() < mark->next_s)
		return false;
	code_mark_set(mark, pid);
	if (mark->sum)
		return mark->sum != before;
	/* Gone, or cannot be read for now; another process may have its id later. */
	mark->sum = before;
	return false;
}
