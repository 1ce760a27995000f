/* SPDX-License-Identifier: MIT */
/* Writes the numbers of debug information, independently of the reader. */
#ifndef TESTS_SUPPORT_NIBBLE_WRITER_H
#define TESTS_SUPPORT_NIBBLE_WRITER_H

#include <stddef.h>
#include <stdint.h>

struct nibbles {
	uint8_t bytes[256];
	size_t count; /* of nibbles */
};

static inline void put_nibble(struct nibbles *out, unsigned int nibble)
{
	out->bytes[out->count / 2] |= (uint8_t)(nibble << (out->count % 2 * 4));
	out->count++;
}

static inline void put_number(struct nibbles *out, uint32_t value)
{
	unsigned int groups = 1;

	while (groups < 11 && value >> (3 * groups))
		groups++;
	while (groups--)
		put_nibble(out, (value >> (3 * groups) & 7) | (groups ? 8 : 0));
}

static inline size_t end_byte(struct nibbles *out)
{
	out->count = (out->count + 1) / 2 * 2;
	return out->count / 2;
}

#endif
