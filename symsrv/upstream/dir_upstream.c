/* SPDX-License-Identifier: MIT */
#include "symsrv/upstream/dir_upstream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "symsrv/key/percent.h"
#include "symsrv/util/clock.h"

static const size_t step_bytes = (size_t)256 << 10;

static int open_file(const struct transfer *transfer)
{
	int root AUTO_CLOSE = open(transfer->upstream->url, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char *path AUTO_FREE = strdup(transfer->path);
	size_t length;

	if (root < 0)
		return -EIO; /* the directory itself is missing, which may pass */
	if (!path || !percent_decode(path, strlen(path), path, &length))
		return -ENOENT;
	return path_open_in_root(root, path, PATH_REGULAR);
}

static int dir_upstream_copy_file(struct transfer *transfer, int fd)
{
	char *room AUTO_FREE = malloc(step_bytes);
	struct stat status;
	ssize_t count;
	int failure;

	if (!room)
		return -ENOMEM;
	if (fstat(fd, &status))
		return -EIO;
	if ((uint64_t)status.st_size > transfer->set->max_object_bytes)
		return -EFBIG;
	failure = store_reserve(transfer->incoming, (uint64_t)status.st_size);
	if (failure)
		return failure;
	while ((count = read(fd, room, step_bytes))) {
		if (count < 0)
			return -EIO;
		if (*transfer->cancel)
			return -ECANCELED;
		*transfer->heard_ms = clock_now_ms();
		if (store_incoming_bytes(transfer->incoming) + (size_t)count >
		    transfer->set->max_object_bytes)
			return -EFBIG;
		failure = store_append(transfer->incoming, room, (size_t)count);
		if (failure)
			return failure;
	}
	return 0;
}

void dir_upstream_copy(struct transfer *transfer)
{
	int fd AUTO_CLOSE = open_file(transfer);
	int failure = fd < 0 ? fd : 0;
	int own_failure = failure ? 0 : store_begin(transfer->store, &transfer->incoming);

	if (!failure && !own_failure)
		failure = dir_upstream_copy_file(transfer, fd);
	if (own_failure)
		failure = own_failure;

	if (failure != -EAGAIN && failure != -EDEADLK)
		transfer->upstream->counts.asked++;
	if (failure)
		snprintf(transfer->error, sizeof(transfer->error), "%s", strerror(-failure));
	if (!failure)
		transfer->outcome = TRANSFER_GOT;
	else if (failure == -EAGAIN || failure == -EDEADLK)
		transfer->outcome = TRANSFER_WAITS;
	else if (own_failure || failure == -ENOSPC)
		transfer->outcome = TRANSFER_NO_ROOM;
	else if (failure == -EFBIG)
		transfer->outcome = TRANSFER_TOO_LARGE;
	else if (failure == -ECANCELED)
		transfer->outcome = TRANSFER_CANCELLED;
	else if (failure == -EIO || failure == -ENOMEM || failure == -EMFILE || failure == -ENFILE)
		transfer->outcome = TRANSFER_TRANSIENT;
	else if (failure == -EACCES || failure == -EPERM)
		transfer->outcome = TRANSFER_REFUSED;
	else
		transfer->outcome = TRANSFER_MISSING;
}
