/* SPDX-License-Identifier: MIT */
#include "libsym/base/path_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"

enum {
	MOST_SYMLINKS = 40, /* as the kernel's MAXSYMLINKS */
	MOST_STEPS = 4 * PATH_MAX
};

/*
 * Only real directories are ever entered, so `resolved` holds no symbolic link
 * and ".." may be taken off it as text; the walk then starts again at the
 * root. Following ".." of a directory that somebody moves at that moment could
 * lead out of the root.
 */
struct walk {
	int root_fd;
	int fd; /* the directory that `resolved` names, or the end of the walk */
	int symlinks;
	char resolved[PATH_MAX]; /* "" at the root, otherwise "/a/b" */
	char pending[PATH_MAX];
};

static int start_again(struct walk *walk)
{
	if (walk->fd >= 0)
		close(walk->fd);
	walk->resolved[0] = '\0';
	walk->fd = openat(walk->root_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return walk->fd < 0 ? -errno : 0;
}

/* pending = front / middle / what is left of pending behind the component. */
static int put_before_rest(struct walk *walk, const char *front, const char *middle,
			   const char *rest)
{
	char joined[PATH_MAX];
	int length = snprintf(joined, sizeof(joined), "%s/%s%s", front, middle, rest);

	if (length < 0 || (size_t)length >= sizeof(joined))
		return -ENAMETOOLONG;
	memcpy(walk->pending, joined, (size_t)length + 1);
	return 0;
}

static int go_up(struct walk *walk, const char *rest)
{
	char *slash = strrchr(walk->resolved, '/');
	int result;

	if (slash)
		*slash = '\0';
	result = put_before_rest(walk, walk->resolved, "", rest);
	return result ? result : start_again(walk);
}

static int follow(struct walk *walk, int link_fd, const char *rest)
{
	char target[PATH_MAX];
	ssize_t length = readlinkat(link_fd, "", target, sizeof(target) - 1);
	bool absolute;
	int result;

	if (length < 0)
		return -errno;
	if (++walk->symlinks > MOST_SYMLINKS)
		return -ELOOP;
	target[length] = '\0';
	absolute = target[0] == '/';
	result = put_before_rest(walk, absolute ? "" : walk->resolved, target, rest);
	return result ? result : start_again(walk);
}

static int enter(struct walk *walk, const char *component, const char *rest, bool no_symlinks)
{
	int fd AUTO_CLOSE = openat(walk->fd, component, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	size_t length = strlen(walk->resolved);
	struct stat status;

	if (fd < 0 || fstat(fd, &status))
		return -errno;
	if (S_ISLNK(status.st_mode))
		return no_symlinks ? -ELOOP : follow(walk, fd, rest);
	if (rest[0] && !S_ISDIR(status.st_mode))
		return -ENOTDIR;
	if (length + strlen(component) + 2 > sizeof(walk->resolved))
		return -ENAMETOOLONG;
	snprintf(walk->resolved + length, sizeof(walk->resolved) - length, "/%s", component);
	memmove(walk->pending, rest, strlen(rest) + 1);
	close(walk->fd);
	walk->fd = steal_fd(&fd);
	return 0;
}

static int step(struct walk *walk, bool no_symlinks)
{
	const char *start = walk->pending + strspn(walk->pending, "/");
	size_t length = strcspn(start, "/");
	char component[NAME_MAX + 1], rest[PATH_MAX];

	if (length > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(component, start, length);
	component[length] = '\0';
	memcpy(rest, start + length, strlen(start + length) + 1);
	if (!strcmp(component, "") || !strcmp(component, ".")) {
		memcpy(walk->pending, rest, strlen(rest) + 1);
		return 0;
	}
	if (!strcmp(component, ".."))
		return go_up(walk, rest);
	return enter(walk, component, rest, no_symlinks);
}

int path_walk_open(int root_fd, const char *path, bool no_symlinks)
{
	struct walk walk = { .root_fd = root_fd, .fd = -1 };
	size_t length = strlen(path);
	unsigned int steps = 0;
	int result;

	if (!length)
		return -ENOENT;
	if (length >= sizeof(walk.pending))
		return -ENAMETOOLONG;
	memcpy(walk.pending, path, length + 1);
	result = start_again(&walk);
	while (!result && walk.pending[0])
		result = ++steps > MOST_STEPS ? -ELOOP : step(&walk, no_symlinks);
	if (!result)
		return walk.fd;
	if (walk.fd >= 0)
		close(walk.fd);
	return result;
}
