/* SPDX-License-Identifier: MIT */
#include "libsym/base/buf.h"

#include <stdio.h>
#include <stdlib.h>

#include "libsym/base/budget.h"
#include "libsym/base/huge_memory.h"

static const size_t smallest_capacity_bytes = 64;

void buf_init(struct buf *buf, size_t max_bytes)
{
	*buf = (struct buf){ .max_bytes = max_bytes };
}

void buf_deinit(struct buf *buf)
{
	free(buf->data);
	budget_release(buf->account, buf->capacity_bytes);
	*buf = (struct buf){ .max_bytes = buf->max_bytes, .account = buf->account };
}

void buf_charge(struct buf *buf, struct budget_account *account)
{
	buf->account = account;
}

void buf_clear(struct buf *buf)
{
	buf->size_bytes = 0;
	buf->failure = BUF_OK;
}

static bool buf_enlarge(struct buf *buf, size_t capacity_bytes)
{
	uint64_t more_bytes = capacity_bytes - buf->capacity_bytes;
	char *data;

	if (buf->account && !budget_reserve(buf->account, more_bytes, NULL))
		return false;
	data = realloc(buf->data, capacity_bytes ? capacity_bytes : 1);
	if (!data) {
		budget_release(buf->account, more_bytes);
		return false;
	}
	huge_memory_advise(data, capacity_bytes);
	buf->data = data;
	buf->capacity_bytes = capacity_bytes;
	return true;
}

char *buf_reserve(struct buf *buf, size_t bytes)
{
	size_t needed_bytes, capacity_bytes;

	if (buf->failure != BUF_OK)
		return NULL;
	if (__builtin_add_overflow(buf->size_bytes, bytes, &needed_bytes) ||
	    needed_bytes > buf->max_bytes) {
		buf->failure = BUF_TOO_BIG;
		return NULL;
	}
	if (needed_bytes <= buf->capacity_bytes && buf->data)
		return buf->data + buf->size_bytes;
	capacity_bytes = buf->capacity_bytes ? buf->capacity_bytes : smallest_capacity_bytes;
	while (capacity_bytes < needed_bytes)
		if (__builtin_mul_overflow(capacity_bytes, 2, &capacity_bytes))
			capacity_bytes = needed_bytes;
	if (capacity_bytes > buf->max_bytes)
		capacity_bytes = needed_bytes > buf->max_bytes / 2 ? buf->max_bytes : needed_bytes;
	if (!buf_enlarge(buf, capacity_bytes)) {
		buf->failure =
			budget_left_bytes(buf->account) < capacity_bytes - buf->capacity_bytes
				? BUF_TOO_BIG
				: BUF_NO_MEMORY;
		return NULL;
	}
	return buf->data + buf->size_bytes;
}

bool buf_append_slow(struct buf *buf, const void *bytes, size_t count)
{
	char *room = buf_reserve(buf, count);

	if (!room)
		return false;
	if (count)
		memcpy(room, bytes, count);
	buf->size_bytes += count;
	return true;
}

bool buf_vprintf(struct buf *buf, const char *format, va_list arguments)
{
	size_t room_bytes = buf->capacity_bytes - buf->size_bytes;
	va_list again;
	char *room;
	int length;

	if (buf->failure != BUF_OK)
		return false;
	va_copy(again, arguments);
	length = vsnprintf(room_bytes ? buf->data + buf->size_bytes : NULL, room_bytes, format,
			   again);
	va_end(again);
	if (length < 0) {
		buf->failure = BUF_TOO_BIG;
		return false;
	}
	/* vsnprintf() also writes a NUL. It lies after the content and is not counted. */
	room = buf_reserve(buf, (size_t)length + 1);
	if (!room)
		return false;
	if ((size_t)length >= room_bytes)
		vsnprintf(room, (size_t)length + 1, format, arguments);
	buf->size_bytes += (size_t)length;
	return true;
}

bool buf_printf(struct buf *buf, const char *format, ...)
{
	va_list arguments;
	bool done;

	va_start(arguments, format);
	done = buf_vprintf(buf, format, arguments);
	va_end(arguments);
	return done;
}

const char *buf_string(struct buf *buf)
{
	char *end = buf_reserve(buf, 1);

	if (!end)
		return NULL;
	*end = '\0';
	return buf->data;
}

char *buf_steal(struct buf *buf, size_t *size_bytes_ret)
{
	char *data;

	if (!buf_string(buf))
		return NULL;
	data = buf->data;
	if (size_bytes_ret)
		*size_bytes_ret = buf->size_bytes;
	budget_release(buf->account, buf->capacity_bytes);
	*buf = (struct buf){ .max_bytes = buf->max_bytes, .account = buf->account };
	return data;
}
