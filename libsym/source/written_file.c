/* SPDX-License-Identifier: MIT */
#include "libsym/source/written_file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "libsym/limits.h"

void written_file_init(struct written_file *file, int fd, struct held_back writer)
{
	*file = (struct written_file){ .fd = fd, .writer = writer };
	buf_init(&file->held, LIMIT_STDIO_BYTES);
}

void written_file_deinit(struct written_file *file)
{
	held_back_close(&file->writer);
	buf_deinit(&file->held);
	if (file->fd >= 0)
		close(file->fd);
}

int written_file_look(struct written_file *file)
{
	if (file->writer.context &&
	    file->writer.read(file->writer.context, file->fd, &file->held, &file->status))
		return 0;
	return fstat(file->fd, &file->status) ? -errno : 0;
}

uint64_t written_file_bytes(const struct written_file *file)
{
	return (uint64_t)file->status.st_size + file->held.size_bytes;
}

/* What is held back follows what the file had when it was looked at, whatever it has now. */
static size_t read_held(const struct written_file *file, void *room, size_t bytes, uint64_t offset)
{
	uint64_t place = offset - (uint64_t)file->status.st_size;

	if (place >= file->held.size_bytes)
		return 0;
	if (bytes > file->held.size_bytes - place)
		bytes = file->held.size_bytes - (size_t)place;
	memcpy(room, file->held.data + place, bytes);
	return bytes;
}

ssize_t written_file_read(const struct written_file *file, void *room, size_t bytes,
			  uint64_t offset)
{
	uint64_t end = (uint64_t)file->status.st_size;
	size_t got = 0;

	while (got < bytes) {
		uint64_t place = offset + got;
		size_t wanted = bytes - got;
		ssize_t more;

		if (file->held.size_bytes && place >= end)
			return (ssize_t)(got + read_held(file, (char *)room + got, wanted, place));
		if (file->held.size_bytes && wanted > end - place)
			wanted = (size_t)(end - place);
		more = pread(file->fd, (char *)room + got, wanted, (off_t)place);
		if (more < 0 && errno == EINTR)
			continue;
		if (more < 0)
			return -errno;
		if (!more)
			break;
		got += (size_t)more;
	}
	return (ssize_t)got;
}
