/* SPDX-License-Identifier: MIT */
/* Programs written here byte by byte, after the standard. */
#include "libsym/format/line_program.h"

#include <criterion/criterion.h>
#include <string.h>

struct written {
	uint8_t bytes[256];
	size_t count;
};

static void put(struct written *to, const void *bytes, size_t count)
{
	memcpy(to->bytes + to->count, bytes, count);
	to->count += count;
}

static void put_byte(struct written *to, unsigned int byte)
{
	to->bytes[to->count++] = (uint8_t)byte;
}

static void put_32(struct written *to, uint32_t value)
{
	put(to, &value, 4);
}

/* Line base -5, line range 14, opcode base 13. */
static const uint8_t opcodes[] = { 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1 };

static void put_address(struct written *to, uint64_t address)
{
	put(to, (const uint8_t[]){ 0, 9, 2 }, 3);
	put(to, &address, 8);
}

/* Two rows of `line` and the one behind it, 16 bytes each. */
static void put_sequence(struct written *to, uint64_t address, unsigned int file, unsigned int line)
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

static struct written program(unsigned int version)
{
	struct written all = { .count = 4 }, head = { .count = 0 };
	uint32_t unit_bytes;

	put(&all, (const uint8_t[]){ (uint8_t)version, 0 }, 2);
	if (version == 5)
		put(&all, (const uint8_t[]){ 8, 0 }, 2);
	put_byte(&head, 1);
	if (version >= 4)
		put_byte(&head, 1);
	put(&head, (const uint8_t[]){ 1, 0xfb, 14, 13 }, 4);
	put(&head, opcodes, sizeof(opcodes));
	/* Tables, of which nothing is asked. */
	put(&head, "anything", 8);
	put_32(&all, (uint32_t)head.count);
	put(&all, head.bytes, head.count);
	put_sequence(&all, 0, 1, 500);
	put_sequence(&all, 0x2000, 3, 40);
	put_sequence(&all, 0x1000, 2, 20);
	unit_bytes = (uint32_t)all.count - 4;
	memcpy(all.bytes, &unit_bytes, 4);
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

Test(line_program, knows_code_by_its_sequence_alone)
{
	for (unsigned int version = 2; version <= 5; version++) {
		const struct written bytes = program(version);
		struct line_program lines = { 0 };

		line_program_read(reader_over(bytes.bytes, bytes.count), 0, &lines);
		cr_expect_eq(lines.sequence_count, 2, "version %u", version);
		expect_row(&lines, 0x1000, 2, 20);
		expect_row(&lines, 0x100f, 2, 20);
		expect_row(&lines, 0x1010, 2, 21);
		expect_row(&lines, 0x101f, 2, 21);
		expect_row(&lines, 0x2011, 3, 41);
		/* The one at 0 is of code that was thrown away. */
		cr_expect_null(line_program_find(&lines, 0));
		cr_expect_null(line_program_find(&lines, 0x10));
		cr_expect_null(line_program_find(&lines, 0x1020));
		cr_expect_null(line_program_find(&lines, 0x2020));
		line_program_deinit(&lines);
	}
}

Test(line_program, stays_empty_where_it_is_cut_or_not_known)
{
	struct written bytes = program(4);

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
