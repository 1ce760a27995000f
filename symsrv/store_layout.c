/* SPDX-License-Identifier: MIT */
#include "symsrv/store_layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"

/* There may be files of somebody else, where the directory was no store. */
void store_layout_empty_tmp(int directory_fd)
{
	int fd = openat(directory_fd, "tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *tmp GUARDED(dir) = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *file;

	while (tmp && (file = readdir(tmp)))
		if (!strncmp(file->d_name, STORE_ARRIVAL_PREFIX, strlen(STORE_ARRIVAL_PREFIX)))
			unlinkat(fd, file->d_name, 0);
	if (fd >= 0 && !tmp)
		close(fd);
}

int store_layout_make(int directory_fd)
{
	char name[16];
	unsigned int i;

	if ((mkdirat(directory_fd, "tmp", 0755) && errno != EEXIST) ||
	    (mkdirat(directory_fd, "objects", 0755) && errno != EEXIST))
		return -errno;
	for (i = 0; i < 256; i++) {
		snprintf(name, sizeof(name), "objects/%02x", i);
		if (mkdirat(directory_fd, name, 0755) && errno != EEXIST)
			return -errno;
	}
	return 0;
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
