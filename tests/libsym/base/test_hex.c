/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/hex.h"

Test(hex, accepts_digits_of_both_cases_and_no_other_byte)
{
	for (int byte = 0; byte < 256; byte++) {
		int expected = -1;

		if (byte >= '0' && byte <= '9')
			expected = byte - '0';
		else if ((byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F'))
			expected = (byte | 0x20) - 'a' + 10;
		cr_expect_eq(hex_values[byte], expected, "byte %d", byte);
	}
}

Test(hex, reads_up_to_the_first_other_byte)
{
	uint64_t value = 0;

	cr_expect_eq(hex_read_u64("1aF g", 5, &value), 3);
	cr_expect_eq(value, 0x1af);
	cr_expect_eq(hex_read_u64("1234", 2, &value), 2);
	cr_expect_eq(value, 0x12);
}

Test(hex, stops_at_every_other_byte_at_every_position)
{
	for (size_t place = 0; place < 16; place++)
		for (int byte = 0; byte < 256; byte++) {
			char text[] = "0aF965cD3bE71f08 ";
			uint64_t value = 0, expected = 0;
			size_t count = 0;

			text[place] = (char)byte;
			for (; count < 16 && hex_values[(unsigned char)text[count]] >= 0; count++)
				expected = expected << 4 |
					   (uint64_t)hex_values[(unsigned char)text[count]];
			cr_assert_eq(hex_read_u64(text, sizeof(text) - 1, &value), count,
				     "byte %d at %zu", byte, place);
			cr_assert_eq(value, expected, "byte %d at %zu", byte, place);
		}
}

Test(hex, reads_the_largest_value_after_any_number_of_zeros)
{
	const char text[] = "000000000000000000000000ffffffffffffffff";
	uint64_t value = 0;

	cr_expect_eq(hex_read_u64(text, sizeof(text) - 1, &value), sizeof(text) - 1);
	cr_expect_eq(value, UINT64_MAX);
}

/* strtoull() is the oracle. */
Test(hex, reads_any_number_in_any_text)
{
	static const char others[] = " xgG/:@`\n\x80\xff-";

	srandom(1);
	for (int round = 0; round < 20000; round++) {
		char text[64], *end;
		size_t digit_count = (size_t)random() % 17;
		uint64_t value = 7, expected;

		for (size_t i = 0; i < sizeof(text); i++)
			text[i] = "0123456789abcdefABCDEF"[random() % 22];
		text[digit_count] = others[(size_t)random() % (sizeof(others) - 1)];
		text[sizeof(text) - 1] = '\0';
		if (digit_count < 2 || (text[1] | 0x20) == 'x')
			continue;
		expected = strtoull(text, &end, 16);
		cr_assert_eq(hex_read_u64(text, sizeof(text) - 1, &value), digit_count, "%s", text);
		cr_assert_eq(end - text, digit_count);
		cr_assert_eq(value, expected, "%s", text);
		cr_assert_eq(hex_read_u64(text, digit_count, &value), digit_count,
			     "the same without what follows");
		cr_assert_eq(value, expected);
	}
}

Test(hex, writes_nothing_without_a_number)
{
	uint64_t value = 7;

	cr_expect_eq(hex_read_u64("", 0, &value), 0);
	cr_expect_eq(hex_read_u64("x", 1, &value), 0);
	cr_expect_eq(hex_read_u64(" 1", 2, &value), 0);
	cr_expect_eq(hex_read_u64("10000000000000000", 17, &value), 0, "2 to the 64");
	cr_expect_eq(value, 7);
}

/* printf() is the oracle. */
Test(hex, writes_what_printf_writes)
{
	for (unsigned int bit = 0; bit < 64; bit++) {
		for (int below = -1; below <= 1; below++) {
			uint64_t value = ((uint64_t)1 << bit) + (uint64_t)below;
			char expected[32], room[32] = { 0 };

			snprintf(expected, sizeof(expected), "%" PRIx64, value);
			cr_expect_eq(hex_write_u64(room, value), strlen(expected));
			cr_expect_str_eq(room, expected);
			memset(room, 0, sizeof(room));
			snprintf(expected, sizeof(expected), "%08" PRIx64, value);
			cr_expect_eq(hex_write_u64_padded(room, value, 8), strlen(expected));
			cr_expect_str_eq(room, expected);
		}
	}
}

Test(hex, pads_to_sixteen_digits_at_most)
{
	char room[32] = { 0 };

	cr_expect_eq(hex_write_u64_padded(room, 0xab, 99), 16);
	cr_expect_str_eq(room, "00000000000000ab");
}

Test(hex, converts_bytes_to_digits_and_back)
{
	const uint8_t bytes[] = { 0x00, 0x0f, 0xf0, 0xff, 0x5a };
	uint8_t again[sizeof(bytes)];
	char room[2 * sizeof(bytes) + 1];

	hex_write_bytes(room, bytes, sizeof(bytes));
	cr_expect_str_eq(room, "000ff0ff5a");
	cr_expect(hex_read_bytes(room, again, sizeof(again)));
	cr_expect_arr_eq(again, bytes, sizeof(bytes));
	cr_expect(hex_read_bytes("000FF0FF5A", again, sizeof(again)));
	cr_expect_arr_eq(again, bytes, sizeof(bytes));
}

Test(hex, rejects_other_bytes_among_the_digits)
{
	uint8_t bytes[2];

	cr_expect_not(hex_read_bytes("00g0", bytes, 2));
	cr_expect_not(hex_read_bytes("000 ", bytes, 2));
	cr_expect_not(hex_read_bytes("00", bytes, 2),
		      "a NUL is no digit, and nothing behind it is read");
}
