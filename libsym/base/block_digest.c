/* SPDX-License-Identifier: MIT */
#include "libsym/base/block_digest.h"

#include <stdint.h>
#include <string.h>
#include <xxhash.h>

#include "libsym/base/processor.h"

enum {
	COLUMNS = 8
};

/* Of each column of the words the sum, and the sum of the sums so far, which tells in which row
 * what was. */
struct sums {
	uint64_t plain[COLUMNS], ordered[COLUMNS];
};

enum {
	ROW_BYTES = COLUMNS * sizeof(uint64_t)
};

static void sum_up(const char *bytes, size_t rows, struct sums *ret)
{
	*ret = (struct sums){ 0 };
	for (size_t i = 0; i < rows; i++)
		for (size_t column = 0; column < COLUMNS; column++) {
			uint64_t word;

			memcpy(&word, bytes + i * ROW_BYTES + column * sizeof(word), sizeof(word));
			ret->plain[column] += word;
			ret->ordered[column] += ret->plain[column];
		}
}

#ifdef __x86_64__
#include <immintrin.h>

__attribute__((target("avx2"))) static void sum_up_by_4(const char *bytes, size_t rows,
							struct sums *ret)
{
	__m256i plain[2] = { _mm256_setzero_si256(), _mm256_setzero_si256() };
	__m256i ordered[2] = { _mm256_setzero_si256(), _mm256_setzero_si256() };

	for (const char *end = bytes + rows * ROW_BYTES; bytes < end; bytes += ROW_BYTES)
		for (int half = 0; half < 2; half++) {
			__m256i words = _mm256_loadu_si256((const __m256i *)bytes + half);

			plain[half] = _mm256_add_epi64(plain[half], words);
			ordered[half] = _mm256_add_epi64(ordered[half], plain[half]);
		}
	memcpy(ret->plain, plain, sizeof(plain));
	memcpy(ret->ordered, ordered, sizeof(ordered));
}
#endif

uint64_t block_digest(const void *bytes, size_t size_bytes)
{
	const char *text = bytes;
	size_t rows = size_bytes / ROW_BYTES, left = size_bytes % ROW_BYTES;
	/* The sums, and what is no whole row. */
	struct {
		struct sums sums;
		char rest[ROW_BYTES];
	} all;

#ifdef __x86_64__
	if (processor_has_avx2())
		sum_up_by_4(text, rows, &all.sums);
	else
#endif
		sum_up(text, rows, &all.sums);
	if (left)
		memcpy(all.rest, text + rows * ROW_BYTES, left);
	return XXH3_64bits(&all, sizeof(all.sums) + left);
}
