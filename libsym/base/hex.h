/* SPDX-License-Identifier: MIT */
/* Hexadecimal digits to and from numbers and bytes. No prefix, no sign, no locale. */
#ifndef LIBSYM_BASE_HEX_H
#define LIBSYM_BASE_HEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

extern const int8_t hex_values[256]; /* value of a digit in either case, -1 for any other byte */

/*
 * Reads the hexadecimal digits at `text`, at most `size_bytes` of them.
 * Returns how many were read; 0 when there is none or the value does not fit
 * into 64 bits. *ret is written only when something is returned.
 */
size_t hex_read_u64(const char *text, size_t size_bytes, uint64_t *ret);

#ifdef __SSE2__
/*
 * The same without a loop, where 16 bytes can be read at `text`; of more digits
 * the first 16.
 */
static inline unsigned int hex_read_usual(const char *text, uint64_t *ret)
{
	const __m128i low_bytes = _mm_set1_epi16(0x00ff);
	__m128i bytes = _mm_loadu_si128((const __m128i *)text);
	__m128i lower = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
	/* Behind '0' and 'a'; what is below them wraps to the top. */
	__m128i from_0 = _mm_sub_epi8(bytes, _mm_set1_epi8('0'));
	__m128i from_a = _mm_sub_epi8(lower, _mm_set1_epi8('a'));
	__m128i number = _mm_cmpeq_epi8(_mm_min_epu8(from_0, _mm_set1_epi8(9)), from_0);
	__m128i letter = _mm_cmpeq_epi8(_mm_min_epu8(from_a, _mm_set1_epi8(5)), from_a);
	unsigned int mask = (unsigned int)_mm_movemask_epi8(_mm_or_si128(number, letter));
	/* Bit 16 of the complement is set: an end is always found. */
	unsigned int count = (unsigned int)__builtin_ctz(~mask);
	__m128i values, pairs;
	uint64_t word;

	/* The low four bits of letters begin at 1 for 10. */
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
#endif

/* Writes `value` in lower case without leading zeros, 1 to 16 bytes, no NUL; returns the number of
 * bytes. */
size_t hex_write_u64(char *room, uint64_t value);

/* As hex_write_u64(), zero padded to at least `width` (at most 16) digits. */
size_t hex_write_u64_padded(char *room, uint64_t value, size_t width);

/* Writes 2 * `count` lower-case digits and a NUL to `room`. */
void hex_write_bytes(char *room, const void *bytes, size_t count);

/* Reads exactly 2 * `count` digits; false when one is no digit. */
bool hex_read_bytes(const char *text, void *bytes_ret, size_t count);

#endif
