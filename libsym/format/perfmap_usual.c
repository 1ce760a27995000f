/* SPDX-License-Identifier: MIT */
#include "libsym/format/perfmap_usual.h"

#include "libsym/base/processor.h"
#include "libsym/format/perfmap.h"
#include "libsym/format/perfmap_endings.h"
#include "libsym/limits.h"

#ifdef __x86_64__
#include <immintrin.h>

/* GCC and clang: the same for every function here, so that one can be part of another. */
#define WIDE        __attribute__((target("avx2,bmi,bmi2")))
#define WIDE_INLINE WIDE __attribute__((always_inline)) static inline

enum {
	/* Below: newline, NUL, tab and most of what is not printed; signed, so what is not ASCII
	 * too. */
	ODD_BELOW = 11,
	SCAN_STEP = 64,
	MOST_DIGITS = 16,
	/* What is looked at of a line without a look at the end of the text. */
	LEAST_BYTES = 2 * SCAN_STEP
};

bool perfmap_usual_works(void)
{
	return processor_has_avx2() && processor_has_bmi1() && processor_has_bmi2();
}

/* Of which each byte is the same. GCC would make it anew for each line. */
WIDE_INLINE __m256i keep(__m256i vector)
{
	__asm__("" : "+x"(vector));
	return vector;
}

struct constants {
	__m256i least, space, zero, nine, letter_a, five, digit_9, low_bits, weights;
};

WIDE_INLINE struct constants make_constants(void)
{
	return (struct constants){
		.least = keep(_mm256_set1_epi8(ODD_BELOW)),
		.space = keep(_mm256_set1_epi8(' ')),
		.zero = keep(_mm256_set1_epi8('0')),
		.nine = keep(_mm256_set1_epi8(9)),
		.letter_a = keep(_mm256_set1_epi8('a')),
		.five = keep(_mm256_set1_epi8(5)),
		.digit_9 = keep(_mm256_set1_epi8('9')),
		.low_bits = keep(_mm256_set1_epi8(0x0f)),
		.weights = keep(_mm256_set1_epi16(0x0110)),
	};
}

/* A bit for each of 64 bytes that is odd. */
WIDE_INLINE uint64_t find_odd(const struct constants *constants, const char *text)
{
	const __m256i least = constants->least;
	__m256i low = _mm256_loadu_si256((const __m256i *)text);
	__m256i high = _mm256_loadu_si256((const __m256i *)(text + 32));
	uint64_t odd = (unsigned int)_mm256_movemask_epi8(_mm256_cmpgt_epi8(least, low));

	return odd | (uint64_t)(unsigned int)_mm256_movemask_epi8(_mm256_cmpgt_epi8(least, high))
			     << 32;
}

/* The first odd byte; NULL when that may be among the last few before `end`. */
WIDE_INLINE const char *scan(const struct constants *constants, const char *text, const char *end)
{
	for (; end - text >= SCAN_STEP; text += SCAN_STEP) {
		uint64_t odd = find_odd(constants, text);

		if (odd)
			return text + __builtin_ctzll(odd);
	}
	return NULL;
}

/* The number of 1 to 16 digits, of which 16 bytes can be read. */
WIDE_INLINE uint64_t number_of(const struct constants *constants, const char *text,
			       unsigned int digits)
{
	/* From the count on: what moves so many bytes to the end, behind nothing. */
	static const int8_t places[2 * MOST_DIGITS] = { -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
							-1, -1, -1, -1, -1, 0,  1,  2,  3,  4,  5,
							6,  7,  8,  9,  10, 11, 12, 13, 14, 15 };
	__m128i bytes = _mm_loadu_si128((const __m128i *)text);
	__m128i letters = _mm_cmpgt_epi8(bytes, _mm256_castsi256_si128(constants->digit_9));
	/* The low four bits of letters begin at 1 for 10. */
	__m128i values =
		_mm_add_epi8(_mm_and_si128(bytes, _mm256_castsi256_si128(constants->low_bits)),
			     _mm_and_si128(letters, _mm256_castsi256_si128(constants->nine)));
	__m128i pairs;

	values = _mm_shuffle_epi8(values, _mm_loadu_si128((const __m128i *)(places + digits)));
	pairs = _mm_maddubs_epi16(values, _mm256_castsi256_si128(constants->weights));
	return __builtin_bswap64((uint64_t)_mm_cvtsi128_si64(_mm_packus_epi16(pairs, pairs)));
}

/* A bit for each of 32 bytes that is a hexadecimal digit. */
WIDE_INLINE uint32_t find_digits(const struct constants *constants, __m256i bytes)
{
	/* A space has the bit that tells lower from upper case. */
	__m256i lower = _mm256_or_si256(bytes, constants->space);
	/* Behind '0' and 'a'; what is below them wraps to the top. */
	__m256i from_0 = _mm256_sub_epi8(bytes, constants->zero);
	__m256i from_a = _mm256_sub_epi8(lower, constants->letter_a);
	__m256i number = _mm256_cmpeq_epi8(_mm256_min_epu8(from_0, constants->nine), from_0);
	__m256i letter = _mm256_cmpeq_epi8(_mm256_min_epu8(from_a, constants->five), from_a);

	return (uint32_t)_mm256_movemask_epi8(_mm256_or_si256(number, letter));
}

/* "[0x]HEX HEX "; returns what follows, or NULL. */
WIDE_INLINE const char *take_numbers(const struct constants *constants, const char *text,
				     struct perfmap_line *ret)
{
	unsigned int first, second;
	uint64_t others, rest, spaces;
	__m256i bytes;

	text += text[0] == '0' && text[1] == 'x' ? 2 : 0;
	bytes = _mm256_loadu_si256((const __m256i *)text);
	/* Bits behind the 32 stand for what is no digit, and no space either. */
	others = ~(uint64_t)find_digits(constants, bytes);
	spaces = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, constants->space));
	rest = others & (others - 1);
	first = (unsigned int)__builtin_ctzll(others);
	second = (unsigned int)__builtin_ctzll(rest) - first - 1;
	/* The lowest two. */
	if ((others ^ (rest & (rest - 1))) & ~spaces || first - 1 >= MOST_DIGITS ||
	    second - 1 >= MOST_DIGITS)
		return NULL;
	ret->start_address = number_of(constants, text, first);
	text += first + 1;
	ret->size_bytes = number_of(constants, text, second);
	return text + second + 1;
}

/* Of a name that ends with ']', in front of which as many bytes can be read as are compared. */
WIDE_INLINE void split_tier(struct perfmap_line *line)
{
	const char *end = line->name + line->name_bytes - PERFMAP_ENDING_BYTES;
	const uint8_t *tier = perfmap_endings_to_try(end);
	__m256i text = _mm256_loadu_si256((const __m256i *)end);

	for (;; tier++) {
		const struct perfmap_ending *ending = &perfmap_endings[*tier];
		__m256i other = _mm256_loadu_si256((const __m256i *)ending->text);
		uint32_t same = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(text, other));
		uint64_t tier_bytes = PERFMAP_ENDING_BYTES - ending->name_bytes;

		/* What is all in brackets is a name. */
		if (__builtin_expect((uint64_t)~same >> ending->name_bytes ||
					     tier_bytes >= line->name_bytes,
				     0))
			continue;
		line->tier = *tier;
		line->bare_bytes = line->name_bytes - tier_bytes;
		return;
	}
}

/* A line; returns the byte behind its newline, NULL if it is not usual. `begin` is as far back as
 * the text can be read. */
WIDE_INLINE const char *take(const struct constants *constants, const char *begin, const char *text,
			     const char *end, struct perfmap_line *ret)
{
	const char *newline = scan(constants, text, end), *name;

	if (!newline || *newline != '\n' || newline - begin < PERFMAP_ENDING_BYTES)
		return NULL;
	/* It takes no newline for a digit or a space. */
	name = take_numbers(constants, text, ret);
	if (!name || (size_t)(newline - name) - 1 >= LIMIT_NAME_BYTES ||
	    ret->start_address + ret->size_bytes < ret->start_address || newline[-1] == '\r')
		return NULL;
	ret->name = name;
	ret->name_bytes = ret->bare_bytes = (size_t)(newline - name);
	ret->tier = 0;
	if (newline[-1] == ']')
		split_tier(ret);
	return newline + 1;
}

WIDE size_t perfmap_usual_take(const char **next, const char *end, struct perfmap_line *lines,
			       size_t count)
{
	const char *begin = *next, *text = begin;
	const struct constants constants = make_constants();
	size_t taken = 0;

	while (taken < count && end - text >= LEAST_BYTES) {
		const char *behind = take(&constants, begin, text, end, &lines[taken]);

		if (!behind)
			break;
		text = behind;
		taken++;
	}
	*next = text;
	return taken;
}
#else
bool perfmap_usual_works(void)
{
	return false;
}

size_t perfmap_usual_take(const char **next, const char *end, struct perfmap_line *lines,
			  size_t count)
{
	(void)next, (void)end, (void)lines, (void)count;
	return 0;
}
#endif
