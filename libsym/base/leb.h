/* SPDX-License-Identifier: MIT */
/*
 * LEB128 numbers as in DWARF: seven bits a byte, lowest first; bit 7 is set in all bytes except the
 * last. Bits beyond 64 are dropped. More than ten bytes fail the reader.
 *
 * DWARF 5, section 7.6.
 */
#ifndef LIBSYM_BASE_LEB_H
#define LIBSYM_BASE_LEB_H

#include "libsym/base/reader.h"

enum {
	LEB_MAX_BYTES = 10
};

/* Returns the raw bits, and how many in *shift_ret; 0 on failure. */
static inline uint64_t leb_bits(struct reader *reader, unsigned int *shift_ret, uint8_t *last_ret)
{
	uint64_t value = 0;
	unsigned int shift = 0;

	for (int i = 0; i < LEB_MAX_BYTES; i++) {
		uint8_t byte = reader_u8(reader);

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (!(byte & 0x80)) {
			*shift_ret = shift;
			*last_ret = byte;
			return reader_ok(reader) ? value : 0;
		}
	}
	reader_fail(reader, "number without an end");
	*shift_ret = 64;
	*last_ret = 0;
	return 0;
}

static inline uint64_t leb_unsigned(struct reader *reader)
{
	unsigned int shift;
	uint8_t last;

	return leb_bits(reader, &shift, &last);
}

static inline int64_t leb_signed(struct reader *reader)
{
	unsigned int shift;
	uint8_t last;
	uint64_t value = leb_bits(reader, &shift, &last);

	if (shift < 64 && (last & 0x40))
		value |= ~(uint64_t)0 << shift;
	return (int64_t)value;
}

#endif
