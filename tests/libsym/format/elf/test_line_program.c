/* SPDX-License-Identifier: MIT */
/* Programs written byte by byte from the standard. */
#include "libsym/format/elf/line_program.h"

#include <criterion/criterion.h>
#include <string.h>

struct self_reported_code {
	uint8_t bytes[256];
	size_t count;
};

static void put(struct self_reported_code *to, const void *bytes, size_t count)
{
	memcpy(to->bytes + to->count, bytes, count);
	to->count += count;
}

static void put_byte(struct self_reported_code *to, unsigned int byte)
{
	to->bytes[to->count++] = (uint8_t)byte;
}

static void put_32(struct self_reported_code *to, uint32_t value)
{
	put(to, &value, 4);
}

/* Line base -5, line range 14, opcode base 13. */
static const uint8_t opcodes[] = { 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1 };

static void put_address(struct self_reported_code *to, uint64_t address)
{
	put(to, (const uint8_t[]){ 0, 9, 2 }, 3);
	put(to, &address, 8);
}

/* Two rows, `line` and the next line, of 16 bytes each. */
static void put_sequence(struct self_reported_code *to, uint64_t address, unsigned int file,
			 unsigned int line)
{
	put_address(to, address);
	put(to, (const uint8_t[]){ 4, (uint8_t)file, 5, 7 }, 4);
	/* advance_line: signed, two bytes. */
	put(to,
	    (const uint8_t[]){ 3, (uint8_t)(((line - 1) & 0x7f) | 0x80), (uint8_t)((line - 1) >> 7),
			       1 },
	    4);
	/* 16 bytes and a line further: 13 + (1 + 5) + 14 * 16 = 243. */
	put_byte(to, 243);
	put(to, (const uint8_t[]){ 2, 16, 0, 1, 1 }, 5);
}

static struct self_reported_code begin_program(unsigned int version)
{
	struct self_reported_code all = { .count = 4 }, head = { .count = 0 };

	put(&all, (const uint8_t[]){ (uint8_t)version, 0 }, 2);
	if (version == 5)
		put(&all, (const uint8_t[]){ 8, 0 }, 2);
	put_byte(&head, 1);
	if (version >= 4)
		put_byte(&head, 1);
	put(&head, (const uint8_t[]){ 1, 0xfb, 14, 13 }, 4);
	put(&head, opcodes, sizeof(opcodes));
	/* The tables, which are not read. */
	put(&head, "anything", 8);
	put_32(&all, (uint32_t)head.count);
	put(&all, head.bytes, head.count);
	return all;
}

static void end_program(struct self_reported_code *all)
{
	uint32_t unit_bytes = (uint32_t)all->count - 4;

	memcpy(all->bytes, &unit_bytes, 4);
}

static struct self_reported_code program(unsigned int version)
{
	struct self_reported_code all = begin_program(version);

	put_sequence(&all, 0, 1, 500);
	put_sequence(&all, 0x2000, 3, 40);
	put_sequence(&all, 0x1000, 2, 20);
	end_program(&all);
	return all;
}

static void expect_row(const struct line_program *lines, uint64_t vaddr, uint32_t file,
		       uint32_t line)
{
	const struct line_row *row = line_program_find(lines, vaddr);

	cr_assert_not_null(row, "0x%llx", (unsigned long long)vaddr);
	cr_expect_eq(row->file, file);
	cr_expect_eq(row->line, line, "0x%llx: line %u", (unsigned long long)vaddr, row->line);
	cr_expect_eq(row->column, 7);
}

Test(line_program, finds_code_only_in_its_sequence)
{
	for (unsigned int version = 2; version <= 5; version++) {
		const struct self_reported_code bytes = program(version);
		struct line_program lines = { 0 };

		line_program_read(reader_over(bytes.bytes, bytes.count), 0, &lines);
		cr_expect_eq(lines.sequence_count, 2, "version %u", version);
		expect_row(&lines, 0x1000, 2, 20);
		expect_row(&lines, 0x100f, 2, 20);
		expect_row(&lines, 0x1010, 2, 21);
		expect_row(&lines, 0x101f, 2, 21);
		expect_row(&lines, 0x2011, 3, 41);
		/* The sequence at 0 belongs to removed code. */
		cr_expect_null(line_program_find(&lines, 0));
		cr_expect_null(line_program_find(&lines, 0x10));
		cr_expect_null(line_program_find(&lines, 0x1020));
		cr_expect_null(line_program_find(&lines, 0x2020));
		line_program_deinit(&lines);
	}
}

/* DWARF 5, 6.2.5.2: const_add_pc advances as special opcode 255 does, by (255 - 13) / 14 bytes. */
Test(line_program, advances_by_every_opcode)
{
	static const uint8_t code[] = {
		5, 7,    3,  9,  1,       /* set_column; advance_line 9; copy: line 10 */
		0, 3,    99, 1,  2,       /* an extended opcode that is not known */
		8, 10,   6,  12, 0x85, 1, /* const_add_pc; no operand; no operand; one operand */
		3, 0x7f, 1,               /* advance_line -1; copy */
		9, 0x10, 1,  3,  2,    1, /* fixed_advance_pc 0x110; advance_line 2; copy */
		2, 16,   0,  1,  1,       /* advance_pc; end_sequence */
	};
	struct self_reported_code bytes = begin_program(4);
	struct line_program lines = { 0 };

	put_address(&bytes, 0x1000);
	put(&bytes, code, sizeof(code));
	end_program(&bytes);
	line_program_read(reader_over(bytes.bytes, bytes.count), 0, &lines);
	cr_assert_eq(lines.row_count, 3);
	expect_row(&lines, 0x1010, 1, 10);
	expect_row(&lines, 0x1011, 1, 9);
	expect_row(&lines, 0x1120, 1, 9);
	expect_row(&lines, 0x1121, 1, 11);
	expect_row(&lines, 0x1130, 1, 11);
	cr_expect_null(line_program_find(&lines, 0x1131));
	line_program_deinit(&lines);
}

/* DWARF 5, 7.4: the unit begins with 0xffffffff, and its lengths have 64 bits. */
Test(line_program, reads_units_of_64_bits)
{
	const struct self_reported_code narrow = program(3);
	struct self_reported_code wide = { .count = 0 };
	struct line_program lines = { 0 };
	uint64_t unit_bytes = narrow.count, header_bytes = 0;

	memcpy(&header_bytes, narrow.bytes + 6, 4);
	put_32(&wide, UINT32_MAX);
	put(&wide, &unit_bytes, 8);
	put(&wide, narrow.bytes + 4, 2);
	put(&wide, &header_bytes, 8);
	put(&wide, narrow.bytes + 10, narrow.count - 10);
	line_program_read(reader_over(wide.bytes, wide.count), 0, &lines);
	cr_assert_eq(lines.sequence_count, 2);
	expect_row(&lines, 0x1010, 2, 21);
	expect_row(&lines, 0x2000, 3, 40);
	line_program_deinit(&lines);
}

Test(line_program, stays_empty_if_truncated_or_unknown)
{
	struct self_reported_code bytes = program(4);

	for (size_t cut = 0; cut < bytes.count; cut++) {
		struct line_program lines = { 0 };

		line_program_read(reader_over(bytes.bytes, cut), 0, &lines);
		cr_expect_eq(lines.row_count, 0, "cut at %zu", cut);
		cr_expect_null(line_program_find(&lines, 0x1000));
		line_program_deinit(&lines);
	}
	for (unsigned int version = 0; version < 8; version++) {
		struct line_program lines = { 0 };

		bytes.bytes[4] = (uint8_t)version;
		line_program_read(reader_over(bytes.bytes, bytes.count), version < 2 ? 0 : 1000,
				  &lines);
		cr_expect_eq(lines.row_count, 0);
		line_program_deinit(&lines);
	}
}
