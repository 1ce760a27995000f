/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/block_digest.h"

enum {
	LONGEST = 700,
	ALIGNMENTS = 65
};

static void fill(unsigned char *bytes, size_t size_bytes)
{
	for (size_t i = 0; i < size_bytes; i++)
		bytes[i] = (unsigned char)(i * i + i / 251);
}

/* In blocks of their own, so that nothing around the bytes can be looked at unseen. */
Test(block_digest, is_the_same_wherever_the_bytes_lie)
{
	for (size_t size_bytes = 0; size_bytes <= LONGEST; size_bytes++) {
		unsigned char *bytes = malloc(size_bytes + 1), *moved;
		size_t moved_bytes = size_bytes * 7 % ALIGNMENTS;

		fill(bytes, size_bytes);
		moved = malloc(size_bytes + moved_bytes + 1);
		memcpy(moved + moved_bytes, bytes, size_bytes);
		cr_assert_eq(block_digest(bytes, size_bytes),
			     block_digest(moved + moved_bytes, size_bytes), "%zu bytes",
			     size_bytes);
		free(bytes);
		free(moved);
	}
}

Test(block_digest, is_another_for_every_byte_that_is_another)
{
	unsigned char bytes[LONGEST];
	uint64_t before;

	fill(bytes, LONGEST);
	for (size_t size_bytes = 1; size_bytes <= LONGEST; size_bytes += 13) {
		before = block_digest(bytes, size_bytes);
		for (size_t i = 0; i < size_bytes; i++) {
			bytes[i] ^= (unsigned char)(1 << i % 8);
			cr_assert_neq(block_digest(bytes, size_bytes), before, "byte %zu of %zu", i,
				      size_bytes);
			bytes[i] ^= (unsigned char)(1 << i % 8);
		}
		cr_assert_neq(block_digest(bytes, size_bytes - 1), before);
	}
}

/* What a file is likely to have become: words that have changed their places, or moved. */
Test(block_digest, is_another_where_words_have_changed_places)
{
	uint64_t words[64], before;

	for (size_t i = 0; i < 64; i++)
		words[i] = i * 0x9e3779b97f4a7c15;
	before = block_digest(words, sizeof(words));
	for (size_t i = 0; i < 64; i++)
		for (size_t other = 0; other < i; other++) {
			uint64_t word = words[i];

			words[i] = words[other];
			words[other] = word;
			cr_assert_neq(block_digest(words, sizeof(words)), before, "%zu and %zu", i,
				      other);
			words[other] = words[i];
			words[i] = word;
		}
	cr_expect_eq(block_digest(words, sizeof(words)), before);
	for (size_t i = 1; i < 32; i++)
		cr_assert_neq(block_digest(words + i, 256), block_digest(words, 256));
}
