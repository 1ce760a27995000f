/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "libsym/base/reader.h"

static const uint8_t digits[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };

Test(reader, reads_little_endian_numbers_in_turn)
{
	struct reader reader = reader_over(digits, sizeof(digits));

	cr_expect_eq(reader_u8(&reader), 1);
	cr_expect_eq(reader_u16(&reader), 0x0302);
	cr_expect_eq(reader_u32(&reader), 0x07060504);
	cr_expect_eq(reader_u64(&reader), 0x0f0e0d0c0b0a0908);
	cr_expect(reader_ok(&reader));
	cr_expect_eq(reader_left(&reader), 0);
}

Test(reader, reads_big_endian_numbers_on_request)
{
	struct reader reader = reader_over(digits, sizeof(digits)), part;

	reader.is_big_endian = true;
	cr_expect_eq(reader_u8(&reader), 1);
	cr_expect_eq(reader_u16(&reader), 0x0203);
	cr_expect_eq(reader_u32(&reader), 0x04050607);
	cr_expect_eq(reader_u64(&reader), 0x08090a0b0c0d0e0f);
	part = reader_part(&reader, 1, 2);
	cr_expect_eq(reader_u16(&part), 0x0203, "a part is as the whole");
}

Test(reader, keeps_the_top_bits)
{
	const uint8_t ones[14] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
				   0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	struct reader reader = reader_over(ones, sizeof(ones));

	cr_expect_eq(reader_u16(&reader), UINT16_MAX);
	cr_expect_eq(reader_u32(&reader), UINT32_MAX);
	cr_expect_eq(reader_u64(&reader), UINT64_MAX);
}

Test(reader, skips_and_seeks)
{
	struct reader reader = reader_over(digits, sizeof(digits));

	reader_skip(&reader, 3);
	cr_expect_eq(reader_u8(&reader), 4);
	reader_seek(&reader, 14);
	cr_expect_eq(reader_u8(&reader), 15);
	reader_seek(&reader, 15);
	cr_expect(reader_ok(&reader), "the end itself is a position");
}

/* In a block of the exact size, so that a sanitizer detects a read past the end. */
Test(reader, never_leaves_its_bytes)
{
	for (size_t size_bytes = 1; size_bytes < 8; size_bytes++) {
		uint8_t *block = malloc(size_bytes);
		struct reader reader = reader_over(block, size_bytes);

		memset(block, 0xff, size_bytes);
		cr_expect_eq(reader_u64(&reader), 0, "half a number is none");
		cr_expect_not(reader_ok(&reader));
		cr_expect_eq(reader.failed_at, 0);
		cr_expect_eq(reader.position, 0, "the cursor stays where the number would begin");
		free(block);
	}
}

Test(reader, yields_nothing_after_the_first_failure)
{
	struct reader reader = reader_over(digits, sizeof(digits));

	reader_seek(&reader, 12);
	cr_expect_eq(reader_u32(&reader), 0);
	cr_expect_eq(reader.failed_at, 12);
	cr_expect_eq(reader_u8(&reader), 0, "there is a byte, but something is missing before it");
	cr_expect_null(reader_string(&reader));
	cr_expect_null(reader_bytes(&reader, 0));
	cr_expect_eq(reader_left(&reader), 0);
	reader_seek(&reader, 0);
	reader_fail(&reader, "another");
	cr_expect_str_eq(reader.failure, "unexpected end of data");
	cr_expect_eq(reader.failed_at, 12);
}

Test(reader, rejects_a_position_beyond_the_end)
{
	struct reader reader = reader_over(digits, sizeof(digits));

	reader_skip(&reader, 2);
	reader_seek(&reader, 16);
	cr_expect_not(reader_ok(&reader));
	cr_expect_eq(reader.failed_at, 2);
}

Test(reader, rejects_a_count_that_overflows)
{
	struct reader reader = reader_over(digits, sizeof(digits));

	reader_skip(&reader, 5);
	cr_expect_null(reader_bytes(&reader, SIZE_MAX));
	cr_expect_not(reader_ok(&reader));
}

Test(reader, reads_only_terminated_strings)
{
	struct reader reader = reader_over("ab\0\0cd", 6);

	cr_expect_str_eq(reader_string(&reader), "ab");
	cr_expect_str_eq(reader_string(&reader), "");
	cr_expect_null(reader_string(&reader), "no NUL inside the data");
	cr_expect_eq(reader.failed_at, 4);
}

Test(reader, has_no_bytes_over_null)
{
	struct reader reader = reader_over(NULL, 0);

	cr_expect_not_null(reader_bytes(&reader, 0), "no bytes are not a failure");
	cr_expect_null(reader_string(&reader));
	reader = reader_over(NULL, 0);
	cr_expect_eq(reader_u8(&reader), 0);
	cr_expect_not(reader_ok(&reader));
}

Test(reader, makes_a_reader_over_a_part)
{
	struct reader whole = reader_over(digits, sizeof(digits));
	struct reader part = reader_part(&whole, 4, 2);

	cr_expect_eq(reader_u16(&part), 0x0605);
	reader_u8(&part);
	cr_expect_not(reader_ok(&part));
	cr_expect(reader_ok(&whole));
	part = reader_part(&whole, 15, 0);
	cr_expect(reader_ok(&part), "an empty part at the end");
}

Test(reader, rejects_a_part_that_lies_outside)
{
	struct reader whole = reader_over(digits, sizeof(digits));
	struct reader part = reader_part(&whole, 16, 0);

	cr_expect_not(reader_ok(&part));
	part = reader_part(&whole, 10, 6);
	cr_expect_not(reader_ok(&part));
	part = reader_part(&whole, 8, SIZE_MAX - 4);
	cr_expect_not(reader_ok(&part), "offset and size overflow");
}
