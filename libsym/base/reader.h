/* SPDX-License-Identifier: MIT */
/*
 * A bounded cursor over untrusted bytes. Numbers are little-endian unless `is_big_endian` is set.
 * Reads never leave the buffer. The first failure is sticky: it records the position and the
 * reason, and every later read yields 0. So a record is read straight through and checked once with
 * reader_ok().
 */
#ifndef LIBSYM_BASE_READER_H
#define LIBSYM_BASE_READER_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct reader {
	const uint8_t *data; /* borrowed */
	size_t size_bytes;
	size_t position;     /* offset of the next byte, at most size_bytes */
	const char *failure; /* NULL, or a static text: what could not be read */
	size_t failed_at;    /* position of the first failure */
	bool is_big_endian;  /* applies to numbers; reader_part() inherits it */
};

static inline struct reader reader_over(const void *data, size_t size_bytes)
{
	/* An empty buffer may be NULL, and even adding 0 to NULL is undefined. */
	return (struct reader){ .data = size_bytes ? data : "", .size_bytes = size_bytes };
}

static inline bool reader_ok(const struct reader *reader)
{
	return !reader->failure;
}

/* Records a failure at the present position, unless one is recorded. */
static inline void reader_fail(struct reader *reader, const char *failure)
{
	if (reader->failure)
		return;
	reader->failure = failure;
	reader->failed_at = reader->position;
}

static inline size_t reader_left(const struct reader *reader)
{
	return reader->failure ? 0 : reader->size_bytes - reader->position;
}

/* The next `count` bytes, or NULL. The cursor moves only on success. */
static inline const uint8_t *reader_bytes(struct reader *reader, size_t count)
{
	const uint8_t *bytes;

	if (reader->failure || count > reader->size_bytes - reader->position) {
		reader_fail(reader, "unexpected end of data");
		return NULL;
	}
	bytes = reader->data + reader->position;
	reader->position += count;
	return bytes;
}

static inline void reader_skip(struct reader *reader, size_t count)
{
	reader_bytes(reader, count);
}

static inline void reader_seek(struct reader *reader, size_t position)
{
	if (reader->failure)
		return;
	if (position > reader->size_bytes) {
		reader_fail(reader, "offset beyond the end of data");
		return;
	}
	reader->position = position;
}

/* Makes the data end at `end`, which must lie between the cursor and the present end. */
static inline void reader_end_at(struct reader *reader, size_t end)
{
	if (reader->failure)
		return;
	if (end < reader->position || end > reader->size_bytes) {
		reader_fail(reader, "a part ends before its beginning");
		return;
	}
	reader->size_bytes = end;
}

static inline uint8_t reader_u8(struct reader *reader)
{
	const uint8_t *bytes = reader_bytes(reader, 1);

	return bytes ? bytes[0] : 0;
}

/* Numbers inside the bytes of a record, which reader_bytes() has returned. */
static inline uint16_t reader_u16_at(const struct reader *reader, const uint8_t *bytes)
{
	uint16_t value;

	memcpy(&value, bytes, sizeof(value));
	return reader->is_big_endian ? be16toh(value) : le16toh(value);
}

static inline uint32_t reader_u32_at(const struct reader *reader, const uint8_t *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return reader->is_big_endian ? be32toh(value) : le32toh(value);
}

static inline uint64_t reader_u64_at(const struct reader *reader, const uint8_t *bytes)
{
	uint64_t value;

	memcpy(&value, bytes, sizeof(value));
	return reader->is_big_endian ? be64toh(value) : le64toh(value);
}

static inline uint16_t reader_u16(struct reader *reader)
{
	const uint8_t *bytes = reader_bytes(reader, 2);

	return bytes ? reader_u16_at(reader, bytes) : 0;
}

static inline uint32_t reader_u32(struct reader *reader)
{
	const uint8_t *bytes = reader_bytes(reader, 4);

	return bytes ? reader_u32_at(reader, bytes) : 0;
}

static inline uint64_t reader_u64(struct reader *reader)
{
	const uint8_t *bytes = reader_bytes(reader, 8);

	return bytes ? reader_u64_at(reader, bytes) : 0;
}

/* A NUL-terminated string inside the buffer, or NULL. The cursor moves past the NUL. */
static inline const char *reader_string(struct reader *reader)
{
	const uint8_t *start, *end;

	if (reader->failure)
		return NULL;
	start = reader->data + reader->position;
	end = memchr(start, 0, reader->size_bytes - reader->position);
	if (!end) {
		reader_fail(reader, "string without an end");
		return NULL;
	}
	reader->position += (size_t)(end - start) + 1;
	return (const char *)start;
}

/* An independent reader over [offset, offset + size_bytes) of this one's data. It has failed if
 * that range lies outside. */
static inline struct reader reader_part(const struct reader *reader, size_t offset,
					size_t size_bytes)
{
	struct reader part = reader_over(NULL, 0);

	if (offset > reader->size_bytes || size_bytes > reader->size_bytes - offset)
		reader_fail(&part, "range beyond the end of data");
	else
		part = reader_over(reader->data + offset, size_bytes);
	part.is_big_endian = reader->is_big_endian;
	return part;
}

#endif
