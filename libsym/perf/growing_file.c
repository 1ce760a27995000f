/* SPDX-License-Identifier: MIT */
#include "libsym/perf/growing_file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "libsym/limits.h"

void growing_file_init(struct growing_file *file, int fd, struct unflushed writer)
{
	*file = (struct growing_file){ .fd = fd, .writer = writer };
	buf_init(&file->held, LIMIT_STDIO_BYTES);
}

void growing_file_deinit(struct growing_file *file)
{
	unflushed_close(&file->writer);
	buf_deinit(&file->held);
	if (file->fd >= 0)
		close(file->fd);
}

int growing_file_look(struct growing_file *file)
{
	if (file->writer.context &&
	    file->writer.read(file->writer.context, file->fd, &file->held, &file->status))
		return 0;
	return fstat(file->fd, &file->status) ? -errno : 0;
}

uint64_t growing_file_bytes(const struct growing_file *file)
{
	return (uint64_t)file->status.st_size + file->held.size_bytes;
}

/* Reads up to `bytes`; a negative errno on failure. */
static ssize_t read_file(int fd, char *room, size_t bytes, uint64_t offset)
{
	size_t got = 0;

	while (got < bytes) {
		ssize_t more = pread(fd, room + got, bytes - got, (off_t)(offset + got));

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

ssize_t growing_file_read(const struct growing_file *file, void *room, size_t bytes,
			  uint64_t offset)
{
	const struct buf *held = &file->held;
	/* Unflushed bytes follow the size at the time of the last look, not the current size. */
	uint64_t end = held->size_bytes ? (uint64_t)file->status.st_size : UINT64_MAX, place;
	size_t written_bytes = bytes;
	ssize_t got;

	if (offset >= end)
		written_bytes = 0;
	else if (bytes > end - offset)
		written_bytes = (size_t)(end - offset);
	got = read_file(file->fd, room, written_bytes, offset);
	if (got < 0 || (size_t)got < written_bytes || written_bytes == bytes)
		return got;
	place = offset + written_bytes - end;
	bytes -= written_bytes;
	if (place >= held->size_bytes)
		return got;
	if (bytes > held->size_bytes - place)
		bytes = held->size_bytes - (size_t)place;
	memcpy((char *)room + written_bytes, held->data + place, bytes);
	return got + (ssize_t)bytes;
}
