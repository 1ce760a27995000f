/* SPDX-License-Identifier: MIT */
/* Bytes that are read piece by piece, for readers that need a few headers of a file of gigabytes.
 * The bytes come from a descriptor in the library and from memory in tests. */
#ifndef LIBSYM_FORMAT_FILE_BYTE_SOURCE_H
#define LIBSYM_FORMAT_FILE_BYTE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct byte_source {
	/* Returns true if all `count` bytes were read. Called only for ranges inside size_bytes. */
	bool (*read)(const struct byte_source *source, void *room, size_t count, uint64_t offset);
	const void *data; /* for byte_source_over_memory() */
	int fd;           /* for a caller's own `read` */
	uint64_t offset;  /* for a caller's own `read`: of byte 0 in the file */
	uint64_t size_bytes;
};

static inline bool byte_source_covers(const struct byte_source *source, uint64_t offset,
				      uint64_t count)
{
	return offset <= source->size_bytes && count <= source->size_bytes - offset;
}

static inline bool byte_source_read(const struct byte_source *source, void *room, size_t count,
				    uint64_t offset)
{
	return byte_source_covers(source, offset, count) &&
	       source->read(source, room, count, offset);
}

static inline bool byte_source_read_memory(const struct byte_source *source, void *room,
					   size_t count, uint64_t offset)
{
	if (count)
		memcpy(room, (const char *)source->data + offset, count);
	return true;
}

static inline struct byte_source byte_source_over_memory(const void *data, size_t size_bytes)
{
	return (struct byte_source){
		.read = byte_source_read_memory, .data = data, .fd = -1, .size_bytes = size_bytes
	};
}

#endif
