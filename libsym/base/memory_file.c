/* SPDX-License-Identifier: MIT */
#include "libsym/base/memory_file.h"

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include "libsym/base/path.h"

int memory_file_write(int fd, const void *data, size_t size_bytes, uint64_t offset)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
	    (offset > limit.rlim_cur || size_bytes > limit.rlim_cur - offset))
		return -EFBIG;
	if (lseek(fd, (off_t)offset, SEEK_SET) < 0)
		return -errno;
	return path_write_all(fd, data, size_bytes);
}
