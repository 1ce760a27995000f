/* SPDX-License-Identifier: MIT */
#include "libsym/base/hex.h"

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
/* Reads up to 16 digits at `text`, where 16 bytes are readable. */
static inline unsigned int read_16(const char *text, uint64_t *ret)
{
	const __m128i low_bytes = _mm_set1_epi16(0x00ff);
	__m128i bytes = _mm_loadu_si128((const __m128i *)text);
	__m128i lower = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
	/* Distance from '0' and from 'a'; smaller characters wrap around to large values. */
	__m128i from_0 = _mm_sub_epi8(bytes, _mm_set1_epi8('0'));
	__m128i from_a = _mm_sub_epi8(lower, _mm_set1_epi8('a'));
	__m128i number = _mm_cmpeq_epi8(_mm_min_epu8(from_0, _mm_set1_epi8(9)), from_0);
	__m128i letter = _mm_cmpeq_epi8(_mm_min_epu8(from_a, _mm_set1_epi8(5)), from_a);
	unsigned int mask = (unsigned int)_mm_movemask_epi8(_mm_or_si128(number, letter));
	/* Bit 16 of the complement is set, so the count is always defined. */
	unsigned int count = (unsigned int)__builtin_ctz(~mask);
	__m128i values, pairs;
	uint64_t word;

	/* The low four bits of the letters start at 1, which stands for 10. */
	values = _mm_add_epi8(_mm_and_si128(bytes, _mm_set1_epi8(0x0f)),
			      _mm_and_si128(letter, _mm_set1_epi8(9)));
	pairs = _mm_or_si128(_mm_slli_epi16(_mm_and_si128(values, low_bytes), 4),
			     _mm_srli_epi16(values, 8));
	word = (uint64_t)_mm_cvtsi128_si64(
		_mm_packus_epi16(_mm_and_si128(pairs, low_bytes), pairs));
	if (!count)
		return 0;
	*ret = __builtin_bswap64(word) >> 4 * (16 - count);
	return count;
}

/* The common case in /proc/PID/maps: a number of at most 15 digits, followed by more text. */
static inline size_t read_at_once(const char *text, size_t size_bytes, uint64_t *ret)
{
	uint64_t value;
	unsigned int count = size_bytes >= 16 ? read_16(text, &value) : 0;

	/* More digits may follow the sixteenth. */
	if (count == 0 || count == 16)
		return 0;
	*ret = value;
	return count;
}
#else
static inline size_t read_at_once(const char *text, size_t size_bytes, uint64_t *ret)
{
	(void)text, (void)size_bytes, (void)ret;
	return 0;
}
#endif

size_t hex_read_u64(const char *text, size_t size_bytes, uint64_t *ret)
{
	uint64_t value = 0;
	size_t i = read_at_once(text, size_bytes, ret);

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
