/* SPDX-License-Identifier: MIT */
#include "libsym/clr/write_barrier.h"

#include <criterion/criterion.h>
#include <string.h>

/* Puts the function in front of the barrier at `at`, and the barrier where it is to begin. */
static void fill(uint8_t *page, size_t at, size_t start)
{
	static const uint8_t checked[] = {
		0x48, 0x8d, 0x05, 0x11, 0x22, 0x33, 0x44, 0x48, 0x3b, 0x38, 0x72, 0x12,
		0x48, 0x8d, 0x05, 0x15, 0x22, 0x33, 0x44, 0x48, 0x3b, 0x38, 0x73, 0x06,
		0xff, 0x25, 0x66, 0x77, 0x88, 0x99, 0x48, 0x89, 0x37, 0xc3,
	};
	static const uint8_t barrier[] = { 0x48, 0x89, 0x37, 0x49, 0x89, 0xf8, 0xc3, 0, 0x90 };

	memset(page, 0, WRITE_BARRIER_PAGE_BYTES);
	page[0] = 0xc3;
	memcpy(page + at, checked, sizeof(checked));
	memcpy(page + start, barrier, sizeof(barrier));
}

static void expect_found(size_t at, size_t start)
{
	uint8_t page[WRITE_BARRIER_PAGE_BYTES];
	struct write_barrier found = { 0 };

	fill(page, at, start);
	cr_assert(write_barrier_recognise(page, 0x7000, &found));
	cr_expect_eq(found.start_address, 0x7000 + start);
	cr_expect_eq(found.size_bytes, 9, "up to the last byte that is there");
}

Test(write_barrier, is_found_where_net_8_and_net_10_put_it)
{
	expect_found(1, 0x30);
	expect_found(16, 0x40);
}

Test(write_barrier, is_no_page_that_has_another_byte_anywhere_before_it)
{
	uint8_t page[WRITE_BARRIER_PAGE_BYTES];
	struct write_barrier found;
	size_t refused = 0;

	for (size_t i = 0; i < 0x33; i++) {
		fill(page, 1, 0x30);
		page[i] ^= 0x40;
		refused += !write_barrier_recognise(page, 0x7000, &found);
	}
	/* All but three displacements of four bytes, and the padding. */
	cr_expect_eq(refused, 1 + 34 - 12 + 3);
}

Test(write_barrier, is_not_in_a_page_of_zeros_or_of_ones)
{
	uint8_t page[WRITE_BARRIER_PAGE_BYTES] = { 0 };
	struct write_barrier found;

	cr_expect_not(write_barrier_recognise(page, 0, &found));
	memset(page, 0xff, sizeof(page));
	cr_expect_not(write_barrier_recognise(page, 0, &found));
	memset(page, 0xc3, sizeof(page));
	cr_expect_not(write_barrier_recognise(page, 0, &found));
}
