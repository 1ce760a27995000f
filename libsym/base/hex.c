/* SPDX-License-Identifier: MIT */
#include "libsym/base/hex.h"

static const char digits[] = "0123456789abcdef";

#define NOT_A_DIGIT_8  -1, -1, -1, -1, -1, -1, -1, -1
#define NOT_A_DIGIT_16 NOT_A_DIGIT_8, NOT_A_DIGIT_8
#define LETTERS_ROW    -1, 10, 11, 12, 13, 14, 15, -1, NOT_A_DIGIT_8
#define NOT_A_DIGIT_64 NOT_A_DIGIT_16, NOT_A_DIGIT_16, NOT_A_DIGIT_16, NOT_A_DIGIT_16

const int8_t hex_values[256] = {
	NOT_A_DIGIT_16,
	NOT_A_DIGIT_16,
	NOT_A_DIGIT_16,
	0,
	1,
	2,
	3,
	4,
	5,
	6,
	7,
	8,
	9,
	-1,
	-1,
	-1,
	-1,
	-1,
	-1,
	LETTERS_ROW,
	NOT_A_DIGIT_16,
	LETTERS_ROW,
	NOT_A_DIGIT_16,
	NOT_A_DIGIT_64,
	NOT_A_DIGIT_64,
};

size_t hex_read_u64(const char *text, size_t size_bytes, uint64_t *ret)
{
	uint64_t value = 0;
	size_t i;

	for (i = 0; i < size_bytes; i++) {
		int digit = hex_values[(unsigned char)text[i]];

		if (digit < 0)
			break;
		if (value >> 60)
			return 0;
		value = value << 4 | (uint64_t)digit;
	}
	if (i)
		*ret = value;
	return i;
}

size_t hex_write_u64_padded(char *room, uint64_t value, size_t width)
{
	size_t count = value ? (size_t)(67 - __builtin_clzll(value)) / 4 : 1;
	size_t i;

	if (count < width)
		count = width < 16 ? width : 16;
	for (i = count; i-- > 0; value >>= 4)
		room[i] = digits[value & 15];
	return count;
}

size_t hex_write_u64(char *room, uint64_t value)
{
	return hex_write_u64_padded(room, value, 1);
}

void hex_write_bytes(char *room, const void *bytes, size_t count)
{
	const uint8_t *byte = bytes;
	size_t i;

	for (i = 0; i < count; i++) {
		*room++ = digits[byte[i] >> 4];
		*room++ = digits[byte[i] & 15];
	}
	*room = '\0';
}

bool hex_read_bytes(const char *text, void *bytes_ret, size_t count)
{
	uint8_t *byte = bytes_ret;
	size_t i;

	for (i = 0; i < count; i++) {
		int high = hex_values[(unsigned char)text[2 * i]];
		int low = high < 0 ? -1 : hex_values[(unsigned char)text[2 * i + 1]];

		if (low < 0)
			return false;
		byte[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}
