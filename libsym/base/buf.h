/* SPDX-License-Identifier: MIT */
/*
 * A growing byte buffer with a maximum. Every buffer is created with the
 * largest size that it may ever reach, so nothing that a foreign file says can
 * make memory grow without end. The first failure (maximum reached, out of
 * memory) sticks: later appends do nothing, and the caller checks once.
 */
#ifndef LIBSYM_BASE_BUF_H
#define LIBSYM_BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum buf_failure {
	BUF_OK = 0,
	BUF_TOO_BIG, /* would have grown past max_bytes */
	BUF_NO_MEMORY,
};

struct buf {
	char *data; /* NULL while capacity_bytes is 0; not NUL terminated by itself */
	size_t size_bytes;
	size_t capacity_bytes;
	size_t max_bytes;
	enum buf_failure failure;
};

void buf_init(struct buf *buf, size_t max_bytes);
void buf_deinit(struct buf *buf);

/* Forgets the content and the failure, keeps the memory. */
void buf_clear(struct buf *buf);

/* Each gets what the other has. */
static inline void buf_swap(struct buf *a, struct buf *b)
{
	struct buf held = *a;

	*a = *b;
	*b = held;
}

/* Room for `bytes` more, not yet counted in size_bytes; NULL on failure. */
char *buf_reserve(struct buf *buf, size_t bytes);

/* Room for about `bytes` more that are to come, which spares moving what is there again and again.
 * Where there is none, nothing has failed. */
void buf_expect(struct buf *buf, size_t bytes);

bool buf_append_slow(struct buf *buf, const void *bytes, size_t count);
bool buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool buf_vprintf(struct buf *buf, const char *format, va_list arguments);

/* Cuts the content back to `size_bytes`, which must not be more than it has. */
static inline void buf_truncate(struct buf *buf, size_t size_bytes)
{
	buf->size_bytes = size_bytes;
}

/* Appends `count` bytes; false when the buffer has failed, now or earlier. */
static inline bool buf_append(struct buf *buf, const void *bytes, size_t count)
{
	if (buf->failure == BUF_OK && count <= buf->capacity_bytes - buf->size_bytes) {
		if (count)
			memcpy(buf->data + buf->size_bytes, bytes, count);
		buf->size_bytes += count;
		return true;
	}
	return buf_append_slow(buf, bytes, count);
}

static inline bool buf_append_string(struct buf *buf, const char *string)
{
	return buf_append(buf, string, strlen(string));
}

/* Before one more of several reasons. */
static inline const char *buf_separator(const struct buf *reasons)
{
	return reasons->size_bytes ? "; " : "";
}

static inline bool buf_append_char(struct buf *buf, char byte)
{
	return buf_append(buf, &byte, 1);
}

/* The content as a NUL-terminated string (the NUL is not counted); NULL when the buffer has failed.
 */
const char *buf_string(struct buf *buf);

/* Hands the content out as a NUL-terminated heap string and empties the buffer; NULL when it has
 * failed. */
char *buf_steal(struct buf *buf, size_t *size_bytes_ret);

#endif
