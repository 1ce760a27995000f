/* SPDX-License-Identifier: MIT */
#include "symsrv/store/store_layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"

DIR *store_layout_open(int directory_fd, const char *name)
{
	int fd AUTO_CLOSE =
		path_open_in_root(directory_fd, name, PATH_DIRECTORY | PATH_NO_SYMLINKS);
	DIR *directory;

	if (fd < 0) {
		errno = -fd;
		return NULL;
	}
	directory = fdopendir(fd);
	if (directory)
		steal_fd(&fd);
	return directory;
}

/* A directory that is no store may have other files. */
void store_layout_empty_tmp(int directory_fd)
{
	DIR *tmp GUARDED(dir) = store_layout_open(directory_fd, "tmp");
	struct dirent *file;

	while (tmp && (file = readdir(tmp)))
		if (!strncmp(file->d_name, STORE_ARRIVAL_PREFIX, strlen(STORE_ARRIVAL_PREFIX)))
			unlinkat(dirfd(tmp), file->d_name, 0);
}

/* A symbolic link there would lead writes and removals out of the store. */
static int make_directory(int directory_fd, const char *name)
{
	struct stat status;

	if (!mkdirat(directory_fd, name, 0755))
		return 0;
	if (errno != EEXIST || fstatat(directory_fd, name, &status, AT_SYMLINK_NOFOLLOW))
		return -errno;
	if (S_ISLNK(status.st_mode))
		return -ELOOP;
	return S_ISDIR(status.st_mode) ? 0 : -ENOTDIR;
}

int store_layout_make(int directory_fd)
{
	int failure = make_directory(directory_fd, "tmp");
	char name[16];
	unsigned int i;

	if (!failure)
		failure = make_directory(directory_fd, "objects");
	for (i = 0; !failure && i < 256; i++) {
		snprintf(name, sizeof(name), "objects/%02x", i);
		failure = make_directory(directory_fd, name);
	}
	return failure;
}

int store_layout_move(int directory_fd, const char *from, const char *path)
{
	int failure;

	if (!renameat(directory_fd, from, directory_fd, path))
		return 0;
	if (errno != ENOENT)
		return -errno;
	failure = store_layout_make(directory_fd);
	if (failure)
		return failure;
	return renameat(directory_fd, from, directory_fd, path) ? -errno : 0;
}

int store_layout_sync(int directory_fd, const char *path)
{
	char shelf[16];
	int fd AUTO_CLOSE = -1;

	snprintf(shelf, sizeof(shelf), "%.10s", path);
	fd = openat(directory_fd, shelf, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 || fsync(fd) ? -errno : 0;
}
