/* SPDX-License-Identifier: MIT */
#include "libsym/clr/write_barrier.h"

#include <criterion/criterion.h>
#include <string.h>

/* Puts the function before the barrier at `at`, and the barrier at its start. */
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
	cr_assert_eq(found.count, 1);
	cr_expect_str_eq(found.functions[0].name, "JIT_WriteBarrier");
	cr_expect_eq(found.functions[0].start_address, 0x7000 + start);
	cr_expect_eq(found.functions[0].size_bytes, 9, "up to the last byte that is there");
}

Test(write_barrier, is_found_as_in_net_8_and_net_10)
{
	expect_found(1, 0x30);
	expect_found(16, 0x40);
}

Test(write_barrier, rejects_a_page_with_another_byte_before_it)
{
	uint8_t page[WRITE_BARRIER_PAGE_BYTES];
	struct write_barrier found;
	size_t refused = 0;

	for (size_t i = 0; i < 0x33; i++) {
		fill(page, 1, 0x30);
		page[i] ^= 0x40;
		refused += !write_barrier_recognise(page, 0x7000, &found);
	}
	/* All except three displacements of four bytes, and the padding. */
	cr_expect_eq(refused, 1 + 34 - 12 + 3);
}

/* ---- ARM64 ------------------------------------------------------------------------------------
 */

/* As objdump shows the page in libcoreclr.so of 9.0.23 and of 10.0.15, up to the barrier. */
static const uint32_t net9[] = { 0xd65f03c0, 0xf84085af, 0x14000002, 0xd503201f, 0x580006cc,
				 0xeb0c01df, 0x580006cc, 0xfa4c21c2, 0x54000042, 0x14000004,
				 0xf80085cf, 0xd65f03c0, 0xd503201f };
static const uint32_t net10[] = { 0xd65f03c0, 0xf84085af, 0x14000002, 0xd503201f, 0x580020cc,
				  0x580020f1, 0xeb0c01df, 0xfa5121c2, 0x54000042, 0x14000004,
				  0xf80085cf, 0xd65f03c0, 0xd503201f };
/* stlr; ldr the table; add; ldrb; cbnz to the end; strb; the end; and the bytes after it. */
static const uint32_t variant[] = { 0xc89ffdcf, 0x580004cc, 0x8b4e318c, 0x39400191, 0xb5000071,
				    0x39000191, 0x910021ce, 0xd65f03c0, 0xd503201f, 0xd65f03c0 };

static void fill_arm64(uint8_t *page, const uint32_t *begin)
{
	memset(page, 0, WRITE_BARRIER_PAGE_BYTES);
	memcpy(page, begin, sizeof(net9));
	memcpy(page + sizeof(net9), variant, sizeof(variant));
}

static void expect_function(const struct write_barrier_function *function, const char *name,
			    uint64_t start, uint64_t end)
{
	cr_expect_str_eq(function->name, name);
	cr_expect_eq(function->start_address, start);
	cr_expect_eq(function->start_address + function->size_bytes, end);
}

Test(write_barrier, is_found_on_arm64_with_its_neighbours)
{
	const uint32_t *const pages[] = { net9, net10 };

	for (size_t i = 0; i < 2; i++) {
		uint8_t page[WRITE_BARRIER_PAGE_BYTES];
		struct write_barrier found;

		fill_arm64(page, pages[i]);
		cr_assert(write_barrier_recognise(page, 0x7000, &found));
		cr_assert_eq(found.count, 3);
		expect_function(&found.functions[0], "JIT_ByRefWriteBarrier", 0x7004, 0x700c);
		expect_function(&found.functions[1], "JIT_CheckedWriteBarrier", 0x7010, 0x7030);
		expect_function(&found.functions[2], "JIT_WriteBarrier", 0x7034, 0x7054);
	}
}

Test(write_barrier, rejects_an_arm64_page_with_another_word_or_without_end)
{
	uint8_t page[WRITE_BARRIER_PAGE_BYTES];
	struct write_barrier found;
	size_t refused = 0;

	for (size_t i = 0; i <= sizeof(net9); i += 4) {
		fill_arm64(page, net9);
		page[i] ^= 0x40;
		refused += !write_barrier_recognise(page, 0x7000, &found);
	}
	/* All except the four that compare with the heap's limits. */
	cr_expect_eq(refused, 14 - 4);
	fill_arm64(page, net9);
	memset(page + sizeof(net9) + 4, 0, WRITE_BARRIER_PAGE_BYTES - sizeof(net9) - 4);
	cr_expect_not(write_barrier_recognise(page, 0x7000, &found));
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
