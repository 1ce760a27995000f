/* SPDX-License-Identifier: MIT */
#include "libsym/file/file_source.h"

#include <errno.h>
#include <sys/stat.h>

#include "libsym/base/path.h"

static bool read_descriptor(const struct byte_source *source, void *room, size_t count,
			    uint64_t offset)
{
	return path_read_at(source->fd, room, count, source->offset + offset) == 0;
}

struct sym_error *file_source_over(int fd, uint64_t offset, uint64_t size_bytes,
				   struct byte_source *ret)
{
	struct stat status;
	uint64_t left_bytes;

	if (fstat(fd, &status))
		return sym_error_from_errno(errno, NULL, "cannot examine the file");
	if (!S_ISREG(status.st_mode))
		return sym_error_create(SYM_ERROR_ARGUMENT, "not a regular file");
	left_bytes = offset <= (uint64_t)status.st_size ? (uint64_t)status.st_size - offset : 0;
	if (size_bytes == UINT64_MAX && offset <= (uint64_t)status.st_size)
		size_bytes = left_bytes;
	if (size_bytes > left_bytes)
		return sym_error_create(SYM_ERROR_ARGUMENT,
					"the file is shorter than the given size");
	*ret = (struct byte_source){
		.read = read_descriptor, .fd = fd, .offset = offset, .size_bytes = size_bytes
	};
	return NULL;
}
