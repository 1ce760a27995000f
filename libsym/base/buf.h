/* SPDX-License-Identifier: MIT */
/*
 * A growing byte buffer with a maximum size, so that a foreign file cannot exhaust memory. The
 * first failure (maximum reached, out of memory) is sticky: later appends do nothing, and the
 * caller checks once.
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

struct budget_account;

struct buf {
	char *data; /* NULL while capacity_bytes is 0; not NUL terminated by itself */
	size_t size_bytes;
	size_t capacity_bytes;
	size_t max_bytes;
	enum buf_failure failure;
	struct budget_account *account; /* charged for the memory; NULL: none */
};

void buf_init(struct buf *buf, size_t max_bytes);
/* Charges the memory to `account` from now on, until buf_deinit() or buf_steal(). Exceeding the
 * account fails like exceeding the maximum. The buffer must be empty. */
void buf_charge(struct buf *buf, struct budget_account *account);
void buf_deinit(struct buf *buf);

/* Clears the content and the failure; keeps the memory. */
void buf_clear(struct buf *buf);

/* Swaps the contents of two buffers. */
static inline void buf_swap(struct buf *a, struct buf *b)
{
	struct buf held = *a;

	*a = *b;
	*b = held;
}

/* Returns room for `bytes` more, not yet counted in size_bytes; NULL on failure. */
char *buf_reserve(struct buf *buf, size_t bytes);

bool buf_append_slow(struct buf *buf, const void *bytes, size_t count);
bool buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool buf_vprintf(struct buf *buf, const char *format, va_list arguments);

/* Shortens the content to `size_bytes`, which is at most its present size. */
static inline void buf_truncate(struct buf *buf, size_t size_bytes)
{
	buf->size_bytes = size_bytes;
}

/* Removes bytes at the beginning. */
static inline void buf_drop(struct buf *buf, size_t count)
{
	if (count)
		memmove(buf->data, buf->data + count, buf->size_bytes - count);
	buf->size_bytes -= count;
}

/* Appends `count` bytes. Returns false if the buffer has failed, now or earlier. */
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

/* The separator to print before the next reason: empty before the first one. */
static inline const char *buf_separator(const struct buf *reasons)
{
	return reasons->size_bytes ? "; " : "";
}

static inline bool buf_append_char(struct buf *buf, char byte)
{
	return buf_append(buf, &byte, 1);
}

/* The content as a NUL-terminated string; the NUL is not counted. NULL if the buffer has failed. */
const char *buf_string(struct buf *buf);

/* Returns the content as a NUL-terminated heap string and empties the buffer; NULL if it has
 * failed. */
char *buf_steal(struct buf *buf, size_t *size_bytes_ret);

#endif
