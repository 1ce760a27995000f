/* SPDX-License-Identifier: MIT */
#include "libsym/base/hex.h"

#include <limits.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

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

#ifdef __SSE2__
enum {
	AT_ONCE = 16
};

/* The value of 8 digits; what is no digit yields anything. */
static inline uint64_t eight_digits(const char *text)
{
	uint64_t word;

	memcpy(&word, text, sizeof(word));
	/* Letters of either case have bit 6; their low four bits begin at 1 for 10. */
	word = (word & 0x0f0f0f0f0f0f0f0f) + 9 * (word >> 6 & 0x0101010101010101);
	/* Some bytes that are no digits have become more than 15, which must not reach their
	 * neighbours. */
	word &= 0x0f0f0f0f0f0f0f0f;
	word = __builtin_bswap64(word);
	word = (word | word >> 4) & 0x00ff00ff00ff00ff;
	word = (word | word >> 8) & 0x0000ffff0000ffff;
	return (word | word >> 16) & 0xffffffff;
}

/* How many of 16 bytes are digits, up to the first that is none. */
static inline unsigned int count_digits(const char *text)
{
	__m128i bytes = _mm_loadu_si128((const __m128i *)text);
	__m128i lower = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
	__m128i number = _mm_and_si128(_mm_cmpgt_epi8(bytes, _mm_set1_epi8('0' - 1)),
				       _mm_cmplt_epi8(bytes, _mm_set1_epi8('9' + 1)));
	__m128i letter = _mm_and_si128(_mm_cmpgt_epi8(lower, _mm_set1_epi8('a' - 1)),
				       _mm_cmplt_epi8(lower, _mm_set1_epi8('f' + 1)));
	unsigned int mask = (unsigned int)_mm_movemask_epi8(_mm_or_si128(number, letter));

	/* Bit 16 of the complement is set: an end is always found. */
	return (unsigned int)__builtin_ctz(~mask);
}

/* Perf maps have millions of these: the usual number, with other text behind it, without a loop. */
static inline size_t read_at_once(const char *text, uint64_t *ret)
{
	unsigned int count = count_digits(text);

	if (count == 0 || count == AT_ONCE)
		return 0;
	*ret = (eight_digits(text) << 32 | eight_digits(text + 8)) >> 4 * (AT_ONCE - count);
	return count;
}
#else
enum {
	AT_ONCE = INT_MAX
};

static inline size_t read_at_once(const char *text, uint64_t *ret)
{
	(void)text, (void)ret;
	return 0;
}
#endif

size_t hex_read_u64(const char *text, size_t size_bytes, uint64_t *ret)
{
	uint64_t value = 0;
	size_t i = size_bytes >= AT_ONCE ? read_at_once(text, ret) : 0;

	if (i)
		return i;
	for (; i < size_bytes; i++) {
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
