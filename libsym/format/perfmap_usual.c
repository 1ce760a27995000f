/* SPDX-License-Identifier: MIT */
#include "libsym/format/perfmap_usual.h"

#include "libsym/base/processor.h"
#include "libsym/format/perfmap.h"
#include "libsym/format/perfmap_endings.h"
#include "libsym/limits.h"

void perfmap_usual_init(struct perfmap_usual *usual, const char *text, size_t size_bytes,
			uint32_t first_number)
{
	usual->begin = usual->scanned_from = usual->scanned_to = text;
	usual->end = text + size_bytes;
	usual->first_number = first_number;
	usual->next = usual->count = 0;
}

#ifdef __x86_64__
#include <immintrin.h>

#define ALWAYS_INLINE __attribute__((always_inline)) static inline

enum {
	/* Below: newline, NUL, tab and most of what is not printed; signed, so what is not ASCII
	 * too. */
	ODD_BELOW = 11,
	SCAN_STEP = 64,
	READ_BEHIND = 2 + 64, /* from where a line begins */
	MOST_DIGITS = 16,
	MOST_SIZE_DIGITS = 8
};

bool perfmap_usual_works(void)
{
	return processor_has_avx2() && processor_has_bmi1() && processor_has_bmi2() &&
	       processor_counts_bits();
}

/* GCC would write two words as one vector, which takes it longer to make. */
ALWAYS_INLINE uint32_t apart(uint32_t word)
{
	__asm__("" : "+r"(word));
	return word;
}

/* Of a text that begins with so many digits, and behind the next byte so many more: may they be the
 * numbers? */
ALWAYS_INLINE bool are_numbers(const char *text, uint64_t first, uint64_t second)
{
	return first - 1 < MOST_DIGITS && second - 1 < MOST_SIZE_DIGITS && text[first] == ' ' &&
	       text[first + 1 + second] == ' ';
}

/* GCC and clang: the same for every function here, so that one can be part of another. */
#define WIDE __attribute__((target("avx2,bmi,bmi2,popcnt")))

struct constants {
	__m256i least, space, zero, nine, letter_a, five, digit_9, low_bits, weights;
};

WIDE ALWAYS_INLINE struct constants make_constants(void)
{
	struct constants ret = {
		.least = _mm256_set1_epi8(ODD_BELOW),
		.space = _mm256_set1_epi8(' '),
		.zero = _mm256_set1_epi8('0'),
		.nine = _mm256_set1_epi8(9),
		.letter_a = _mm256_set1_epi8('a'),
		.five = _mm256_set1_epi8(5),
		.digit_9 = _mm256_set1_epi8('9'),
		.low_bits = _mm256_set1_epi8(0x0f),
		.weights = _mm256_set1_epi16(0x0110),
	};

	__asm__(""
		: "+x"(ret.least), "+x"(ret.space), "+x"(ret.zero), "+x"(ret.nine),
		  "+x"(ret.letter_a), "+x"(ret.five), "+x"(ret.digit_9), "+x"(ret.low_bits),
		  "+x"(ret.weights));
	return ret;
}

WIDE ALWAYS_INLINE uint64_t find_odd(const struct constants *constants, const char *text)
{
	const __m256i least = constants->least;
	__m256i low = _mm256_loadu_si256((const __m256i *)text);
	__m256i high = _mm256_loadu_si256((const __m256i *)(text + 32));
	uint64_t odd = (unsigned int)_mm256_movemask_epi8(_mm256_cmpgt_epi8(least, low));

	return odd | (uint64_t)(unsigned int)_mm256_movemask_epi8(_mm256_cmpgt_epi8(least, high))
			     << 32;
}

/* The number of 1 to 16 digits, of which 16 bytes can be read. */
WIDE ALWAYS_INLINE uint64_t number_of(const struct constants *constants, const char *text,
				      uint64_t digits)
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
WIDE ALWAYS_INLINE uint32_t find_digits(const struct constants *constants, __m256i bytes)
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

WIDE ALWAYS_INLINE const char *take_numbers(const struct constants *constants, const char *text,
					    struct numbered_range *ret)
{
	uint64_t others, first, second;

	text += text[0] == '0' && text[1] == 'x' ? 2 : 0;
	others = ~(uint64_t)find_digits(constants, _mm256_loadu_si256((const __m256i *)text));
	first = _tzcnt_u64(others);
	second = _tzcnt_u64(_blsr_u64(others)) - first - 1;
	if (!are_numbers(text, first, second))
		return NULL;
	ret->start = number_of(constants, text, first);
	text += first + 1;
	ret->size_bytes = number_of(constants, text, second);
	return ret->start >> 63 ? NULL : text + second + 1;
}

WIDE ALWAYS_INLINE bool ends_with(const char *end, const struct perfmap_ending *ending)
{
	__m256i text = _mm256_loadu_si256((const __m256i *)(end - PERFMAP_ENDING_BYTES));
	__m256i other = _mm256_load_si256((const __m256i *)ending->text);

	return !(~(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(text, other)) &
		 ending->tier_mask);
}

/* Finds where some more of the text is odd; false near its end. */
WIDE static __attribute__((noinline)) bool scan(struct perfmap_usual *usual)
{
	const struct constants constants = make_constants();
	const char *text = usual->scanned_to;
	size_t left_bytes = (size_t)(usual->end - text);
	uint16_t *next = usual->odd;
	uint32_t steps, i;

	if (left_bytes < SCAN_STEP + READ_BEHIND)
		return false;
	steps = left_bytes < PERFMAP_USUAL_SCANNED + READ_BEHIND
			? (uint32_t)(left_bytes - READ_BEHIND) / SCAN_STEP
			: PERFMAP_USUAL_SCANNED / SCAN_STEP;
	for (i = 0; i < steps; i++) {
		const uint32_t here = i * SCAN_STEP;
		uint64_t odd = find_odd(&constants, text + here);
		uint16_t *behind = next + _mm_popcnt_u64(odd);

		/* Where there are fewer, what is written is written over. */
		*next++ = (uint16_t)apart(here + (uint32_t)_tzcnt_u64(odd));
		odd = _blsr_u64(odd);
		*next++ = (uint16_t)(here + (uint32_t)_tzcnt_u64(odd));
		for (odd = _blsr_u64(odd); __builtin_expect(odd != 0, 0); odd = _blsr_u64(odd))
			*next++ = (uint16_t)(here + (uint32_t)_tzcnt_u64(odd));
		next = behind;
	}
	usual->scanned_from = text;
	usual->scanned_to = text + (size_t)steps * SCAN_STEP;
	usual->next = 0;
	usual->count = (uint32_t)(next - usual->odd);
	return true;
}

/* Of lines that end where the text is odd next, none of which has more than LIMIT_NAME_BYTES. */
WIDE static __attribute__((noinline)) size_t take(const struct perfmap_usual *usual,
						  const char **next, struct numbered_range *ranges,
						  size_t count)
{
	const struct constants constants = make_constants();
	const char *text = *next, *from = usual->scanned_from;
	const uint16_t *odd = usual->odd + usual->next;
	const uint32_t zero = (uint32_t)(uintptr_t)usual->begin - usual->first_number;
	const struct numbered_range *end = ranges + count;
	struct numbered_range *range;

	for (range = ranges; range < end; range++) {
		const char *newline = from + *odd++, *name;
		const struct perfmap_ending *ending = perfmap_ending_to_try(newline);

		/* They take no newline for a digit or a space. */
		name = take_numbers(&constants, text, range);
		if (__builtin_expect(!name || name == newline || *newline != '\n', 0))
			break;
		while (__builtin_expect(!ends_with(newline, ending), 0))
			ending = ending->other;
		/* What is all in brackets is a name. */
		if (__builtin_expect(ending->tier_bytes >= (size_t)(newline - name), 0) ||
		    (!ending->number && (*name == '[' || newline[-1] == '\r')))
			break;
		range->value = ending->number;
		if (!memcmp(name, "stub", 4) && perfmap_is_stub(name, (size_t)(newline - name)))
			range->value |= PERFMAP_STUB_BIT;
		range->number = (uint32_t)(uintptr_t)name - zero;
		text = newline + 1;
	}
	*next = text;
	return (size_t)(range - ranges);
}

/* Where the text is odd next; NULL when that may be among the last few bytes. */
static const char *find_next(struct perfmap_usual *usual, const char *text)
{
	/* What is in between was read otherwise. */
	if (usual->scanned_to < text) {
		usual->scanned_to = text;
		usual->next = usual->count;
	}
	for (;;) {
		for (; usual->next < usual->count; usual->next++) {
			const char *odd = usual->scanned_from + usual->odd[usual->next];

			if (odd >= text)
				return odd;
		}
		if (!scan(usual))
			return NULL;
	}
}

size_t perfmap_usual_take(struct perfmap_usual *usual, const char **next,
			  struct numbered_range *ranges, uint32_t *ends, size_t count)
{
	const char *newline = find_next(usual, *next);
	uint32_t first_end;

	/* The rest of them are shorter, and an ending can be looked at. */
	if (!newline || newline - *next > (ptrdiff_t)LIMIT_NAME_BYTES ||
	    newline - usual->begin < PERFMAP_ENDING_BYTES)
		return 0;
	if (count > usual->count - usual->next)
		count = usual->count - usual->next;
	count = take(usual, next, ranges, count);
	first_end = usual->first_number + (uint32_t)(usual->scanned_from - usual->begin);
	for (size_t i = 0; i < count; i++)
		ends[i] = first_end + usual->odd[usual->next + i];
	usual->next += (uint32_t)count;
	return count;
}
#else
bool perfmap_usual_works(void)
{
	return false;
}

size_t perfmap_usual_take(struct perfmap_usual *usual, const char **next,
			  struct numbered_range *ranges, uint32_t *ends, size_t count)
{
	(void)usual, (void)next, (void)ranges, (void)ends, (void)count;
	return 0;
}
#endif
