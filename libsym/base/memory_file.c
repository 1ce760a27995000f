/* SPDX-License-Identifier: MIT */
#include "libsym/base/memory_file.h"

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

int memory_file_write(int fd, const void *data, size_t size_bytes, uint64_t offset)
{
	const uint8_t *next = data;
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit))
		return -errno;
	if (limit.rlim_cur != RLIM_INFINITY &&
	    (offset > limit.rlim_cur || size_bytes > limit.rlim_cur - offset))
		return -EFBIG;
	while (size_bytes) {
		ssize_t written = pwrite(fd, next, size_bytes, (off_t)offset);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return written ? -errno : -EIO;
		next += written;
		offset += (uint64_t)written;
		size_bytes -= (size_t)written;
	}
	return 0;
}
