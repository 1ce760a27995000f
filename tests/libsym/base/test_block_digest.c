/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "libsym/base/block_digest.h"

Test(block_digest, is_what_the_library_says_of_every_length_at_every_alignment)
{
	enum {
		LONGEST = 9000
	};
	unsigned char *bytes = malloc(LONGEST + 64);

	for (size_t i = 0; i < LONGEST + 64; i++)
		bytes[i] = (unsigned char)(i * i + i / 251);
	for (size_t size_bytes = 0; size_bytes <= LONGEST; size_bytes++) {
		const unsigned char *begin = bytes + size_bytes % 37;

		cr_assert_eq(block_digest(begin, size_bytes), XXH3_64bits(begin, size_bytes),
			     "%zu bytes", size_bytes);
	}
	free(bytes);
}

static void write_line(char *room, int number)
{
	char line[128];

	snprintf(line, sizeof(line), "%012x 0010 method_%06d_%031d\n", 0x600000 + number * 0x10,
		 number, 0);
	memcpy(room, line, 64);
}

/* Numbered lines of 64 bytes of which two change places forwards and two backwards: sums, and sums
 * of sums, stay what they were. */
Test(block_digest, is_another_where_neighbours_have_changed_places)
{
	static const int before[] = { 0, 1, 3, 2 }, after[] = { 1, 0, 2, 3 };
	char one[4 * 64], other[4 * 64];

	for (int first = 0; first < 4; first++) {
		for (int i = 0; i < 4; i++) {
			write_line(one + (size_t)i * 64, first + before[i]);
			write_line(other + (size_t)i * 64, first + after[i]);
		}
		cr_expect_neq(block_digest(one, sizeof(one)), block_digest(other, sizeof(other)),
			      "%d", first);
	}
}
