/* SPDX-License-Identifier: MIT */
#include "libsym/format/elf/eh_frame.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/byte_writer.h"

/* The bytes of a section under test, at VADDR. */
enum {
	VADDR = 0x10000
};

static struct buf new_section(void)
{
	struct buf section;

	buf_init(&section, 1 << 20);
	return section;
}

/* Ends a record that began at `start`. */
static void end_record(struct buf *section, size_t start)
{
	put_padding(section, 4);
	patch_u32(section, start, (uint32_t)(section->size_bytes - start - 4));
}

/* A CIE of version 1 with this augmentation and its data; returns where it begins. */
static size_t put_cie(struct buf *section, const char *augmentation, const void *data, size_t bytes)
{
	size_t start = section->size_bytes;

	put_u32(section, 0);
	put_u32(section, 0);
	put_u8(section, 1);
	buf_append(section, augmentation, strlen(augmentation) + 1);
	put_u8(section, 1);
	put_u8(section, 0x78);
	put_u8(section, 16);
	if (*augmentation == 'z')
		put_u8(section, (uint8_t)bytes);
	buf_append(section, data, bytes);
	end_record(section, start);
	return start;
}

static size_t begin_fde(struct buf *section, size_t cie)
{
	size_t start = section->size_bytes;

	put_u32(section, 0);
	put_u32(section, (uint32_t)(section->size_bytes - cie));
	return start;
}

/* Addresses in the form of gcc and clang: signed 32 bits relative to their own position. */
static void put_fde(struct buf *section, size_t cie, uint64_t vaddr, uint32_t size_bytes)
{
	size_t start = begin_fde(section, cie);

	put_u32(section, (uint32_t)(vaddr - (VADDR + section->size_bytes)));
	put_u32(section, size_bytes);
	put_u8(section, 0);
	end_record(section, start);
}

static struct eh_frame over(const struct buf *section)
{
	return eh_frame_over(reader_over(section->data, section->size_bytes), VADDR, true);
}

static void expect_next(struct eh_frame *frame, uint64_t vaddr, uint64_t size_bytes)
{
	struct eh_frame_function function = { 0 };

	cr_assert(eh_frame_next(frame, &function));
	cr_expect_eq(function.vaddr, vaddr);
	cr_expect_eq(function.size_bytes, size_bytes);
}

static void expect_end(struct eh_frame *frame, bool sound)
{
	struct eh_frame_function function;

	cr_assert_not(eh_frame_next(frame, &function));
	cr_expect_eq(reader_ok(&frame->records), sound);
}

Test(eh_frame, reads_functions_in_the_order_of_the_file)
{
	struct buf section = new_section();
	size_t cie = put_cie(&section, "zR", "\x1b", 1);
	struct eh_frame frame;

	put_fde(&section, cie, 0x4000, 0x20);
	put_fde(&section, cie, 0x3000, 0x10);
	put_u32(&section, 0);
	frame = over(&section);
	expect_next(&frame, 0x4000, 0x20);
	expect_next(&frame, 0x3000, 0x10);
	expect_end(&frame, true);
	buf_deinit(&section);
}

/* DWARF 4, 6.4.1: the sizes of an address and of a segment follow the augmentation. */
Test(eh_frame, reads_functions_of_a_cie_of_version_4)
{
	struct buf section = new_section();
	struct eh_frame frame;

	put_u32(&section, 0);
	put_u32(&section, 0);
	put_u8(&section, 4);
	buf_append(&section, "zR", 3);
	put_u8(&section, 8);
	put_u8(&section, 0);
	/* Code alignment, data alignment, return register, one byte, the encoding. */
	buf_append(&section, "\x01\x78\x10\x01\x1b", 5);
	end_record(&section, 0);
	put_fde(&section, 0, 0x4000, 0x20);
	put_u32(&section, 0);
	frame = over(&section);
	expect_next(&frame, 0x4000, 0x20);
	expect_end(&frame, true);
	buf_deinit(&section);
}

Test(eh_frame, skips_personality_and_landing_pads)
{
	struct buf section = new_section();
	/* C++: indirect personality, 4 bytes; signal frames; pointer authentication. */
	size_t plain = put_cie(&section, "zPLRSB", "\x9b\1\2\3\4\x1b\x1b", 7);
	struct eh_frame frame;

	put_fde(&section, plain, 0x4000, 0x20);
	frame = over(&section);
	expect_next(&frame, 0x4000, 0x20);
	expect_end(&frame, true);
	buf_deinit(&section);
}

Test(eh_frame, reads_absolute_addresses_of_either_width)
{
	struct buf section = new_section();
	size_t cie = put_cie(&section, "", "", 0);
	size_t fde = begin_fde(&section, cie);
	struct eh_frame frame;

	put_u64(&section, 0x123456789abc);
	put_u64(&section, 0x10);
	end_record(&section, fde);
	frame = over(&section);
	expect_next(&frame, 0x123456789abc, 0x10);
	buf_clear(&section);
	cie = put_cie(&section, "", "", 0);
	fde = begin_fde(&section, cie);
	put_u32(&section, 0x8048000);
	put_u32(&section, 0x10);
	end_record(&section, fde);
	frame = eh_frame_over(reader_over(section.data, section.size_bytes), VADDR, false);
	expect_next(&frame, 0x8048000, 0x10);
	buf_deinit(&section);
}

Test(eh_frame, keeps_32_bit_addresses_below_4_gib)
{
	struct buf section = new_section();
	size_t cie = put_cie(&section, "zR", "\x1b", 1);
	struct eh_frame frame;

	put_fde(&section, cie, 0xf000,
		0x10); /* lies before the section: the distance is negative */
	frame = eh_frame_over(reader_over(section.data, section.size_bytes), VADDR, false);
	expect_next(&frame, 0xf000, 0x10);
	buf_deinit(&section);
}

Test(eh_frame, follows_each_function_to_its_own_cie)
{
	struct buf section = new_section();
	size_t narrow = put_cie(&section, "zR", "\x1b", 1);
	size_t wide = put_cie(&section, "zR", "\x0c", 1);
	struct eh_frame frame;
	size_t fde;

	put_fde(&section, narrow, 0x4000, 0x20);
	fde = begin_fde(&section, wide);
	put_u64(&section, 0x5000);
	put_u64(&section, 0x30);
	end_record(&section, fde);
	put_fde(&section, narrow, 0x6000, 0x40);
	frame = over(&section);
	expect_next(&frame, 0x4000, 0x20);
	expect_next(&frame, 0x5000, 0x30);
	expect_next(&frame, 0x6000, 0x40);
	expect_end(&frame, true);
	buf_deinit(&section);
}

Test(eh_frame, skips_unreadable_functions)
{
	static const struct {
		const char *augmentation, *data;
		size_t bytes;
	} odd[] = {
		{ "zR", "\x9b", 1 },     /* indirect */
		{ "zR", "\x3b", 1 },     /* relative to something else */
		{ "zR", "\x01", 1 },     /* LEB */
		{ "zR", "\xff", 1 },     /* omitted */
		{ "eh", "12345678", 8 }, /* gcc 2 */
		{ "zX", "\x1b", 1 },     /* an unknown letter */
		{ "zRRRRRRRRRRRRRRRRRRRR", "\x1b", 1 },
	};

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		struct buf section = new_section();
		size_t bad = put_cie(&section, odd[i].augmentation, odd[i].data, odd[i].bytes);
		size_t good = put_cie(&section, "zR", "\x1b", 1);
		struct eh_frame frame;

		put_fde(&section, bad, 0x4000, 0x20);
		put_fde(&section, good, 0x5000, 0x20);
		frame = over(&section);
		expect_next(&frame, 0x5000, 0x20);
		expect_end(&frame, true);
		buf_deinit(&section);
	}
}

Test(eh_frame, skips_functions_without_code_or_beyond_the_address_space)
{
	struct buf section = new_section();
	size_t cie = put_cie(&section, "", "", 0);
	static const uint64_t bounds[][2] = {
		{ 0x4000, 0 }, { UINT64_MAX - 3, 8 }, { 0x4000, UINT64_MAX }, { 0x4000, 1 }
	};
	struct eh_frame frame;

	for (size_t i = 0; i < 4; i++) {
		size_t fde = begin_fde(&section, cie);

		put_u64(&section, bounds[i][0]);
		put_u64(&section, bounds[i][1]);
		end_record(&section, fde);
	}
	frame = over(&section);
	expect_next(&frame, 0x4000, 1);
	expect_end(&frame, true);
	buf_deinit(&section);
}

Test(eh_frame, ends_at_a_malformed_record)
{
	struct buf section = new_section();
	size_t cie = put_cie(&section, "zR", "\x1b", 1);
	struct eh_frame frame;

	put_fde(&section, cie, 0x4000, 0x20);
	put_u32(&section, 0x7fffffff);
	put_u32(&section, 4);
	frame = over(&section);
	expect_next(&frame, 0x4000, 0x20);
	expect_end(&frame, false);
	buf_deinit(&section);
}

/* A record that ends inside its own id must not be read past its end. */
Test(eh_frame, ends_at_a_record_shorter_than_its_id)
{
	static const uint8_t relative = 0x1b;

	for (uint32_t length = 1; length < 4; length++) {
		struct buf section = new_section();
		size_t cie = put_cie(&section, "zR", &relative, 1),
		       start = begin_fde(&section, cie);
		struct eh_frame_function function;
		struct eh_frame frame;
		uint8_t *exact;

		patch_u32(&section, start, length);
		/* so that a sanitizer detects a read past the end */
		exact = malloc(section.size_bytes);
		memcpy(exact, section.data, section.size_bytes);
		frame = eh_frame_over(reader_over(exact, section.size_bytes), VADDR, true);
		cr_expect_not(eh_frame_next(&frame, &function));
		free(exact);
		buf_deinit(&section);
	}
}

Test(eh_frame, does_not_read_a_function_as_a_cie)
{
	struct buf section = new_section();
	size_t cie = put_cie(&section, "zR", "\x1b", 1);
	size_t first = section.size_bytes;
	struct eh_frame frame;

	put_fde(&section, cie, 0x4000, 0x20);
	put_fde(&section, first, 0x5000, 0x20);
	put_fde(&section, first + 1, 0x6000, 0x20);
	put_fde(&section, section.size_bytes + 8, 0x7000, 0x20); /* forwards: a huge distance */
	frame = over(&section);
	expect_next(&frame, 0x4000, 0x20);
	expect_end(&frame, true);
	buf_deinit(&section);
}

Test(eh_frame, finds_the_records_by_the_header)
{
	/* version 1; pointer: signed 32 bits from here; count and table as ld writes them */
	static const uint8_t header[] = { 1, 0x1b, 3, 0x3b, 0xfc, 0xff, 0xff, 0xff };
	static const uint8_t omitted[] = { 1, 0xff, 3, 0x3b, 0, 0, 0, 0 };
	static const uint8_t unknown[] = { 2, 0x1b, 3, 0x3b, 0, 0, 0, 0 };
	uint64_t vaddr = 0;

	cr_assert(eh_frame_header_read(reader_over(header, 8), 0x5000, true, &vaddr));
	cr_expect_eq(vaddr, 0x5000);
	cr_expect_not(eh_frame_header_read(reader_over(header, 7), 0x5000, true, &vaddr));
	cr_expect_not(eh_frame_header_read(reader_over(omitted, 8), 0x5000, true, &vaddr));
	cr_expect_not(eh_frame_header_read(reader_over(unknown, 8), 0x5000, true, &vaddr));
	cr_expect_not(eh_frame_header_read(reader_over(NULL, 0), 0x5000, true, &vaddr));
}
