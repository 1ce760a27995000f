/* SPDX-License-Identifier: MIT */
/* Little-endian bytes for files that tests build. Out of memory is not reported here, because the
 * buffer's failure is sticky and the test fails anyway. */
#ifndef TESTS_SUPPORT_BYTE_WRITER_H
#define TESTS_SUPPORT_BYTE_WRITER_H

#include <stdint.h>

#include "libsym/base/buf.h"

static inline void put_u8(struct buf *buf, uint8_t value)
{
	buf_append(buf, &value, 1);
}

static inline void put_u16(struct buf *buf, uint16_t value)
{
	put_u8(buf, (uint8_t)value);
	put_u8(buf, (uint8_t)(value >> 8));
}

static inline void put_u32(struct buf *buf, uint32_t value)
{
	put_u16(buf, (uint16_t)value);
	put_u16(buf, (uint16_t)(value >> 16));
}

static inline void put_u64(struct buf *buf, uint64_t value)
{
	put_u32(buf, (uint32_t)value);
	put_u32(buf, (uint32_t)(value >> 32));
}

static inline void put_zeros(struct buf *buf, size_t count)
{
	while (count--)
		put_u8(buf, 0);
}

static inline void put_padding(struct buf *buf, size_t alignment)
{
	while (buf->size_bytes % alignment)
		put_u8(buf, 0);
}

/* Overwrites existing bytes. */
static inline void patch_u32(struct buf *buf, size_t position, uint32_t value)
{
	for (unsigned int i = 0; i < 4; i++)
		buf->data[position + i] = (char)(value >> 8 * i);
}

#endif
