/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdlib.h>
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
