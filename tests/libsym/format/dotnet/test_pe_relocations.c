/* SPDX-License-Identifier: MIT */
#include "libsym/format/dotnet/pe_relocations.h"

#include <criterion/criterion.h>

#include "tests/support/relocated_pe.h"

Test(pe_relocations, list_every_pointer)
{
	uint8_t file[RELOCATED_PE_BYTES];
	struct pe_relocation_table where;
	struct pe_relocation_block block;
	struct reader table;
	uint32_t offset, count = 0;

	relocated_pe_build(file, 0);
	cr_assert(pe_relocations_locate(file, RELOCATED_PE_PAGE, &where));
	cr_expect_eq(where.preferred_base, relocated_pe_base);
	cr_expect_eq(where.rva, 2 * RELOCATED_PE_PAGE);
	table = reader_over(file + where.rva, where.size_bytes);
	cr_assert(pe_relocations_next_block(&table, &block));
	cr_expect_eq(block.page_rva, RELOCATED_PE_PAGE);
	while (pe_relocations_next_pointer(&block, &offset))
		cr_expect_eq(offset, RELOCATED_PE_FIRST + 8 * count++);
	cr_expect_eq(count, RELOCATED_PE_POINTERS);
	cr_expect_not(pe_relocations_next_block(&table, &block));
}

Test(pe_relocations, skip_other_than_64_bit_pointers)
{
	/* Padding (type 0), HIGHLOW (3), DIR64 (10). */
	static const uint8_t bytes[] = { 0, 0x10, 0, 0, 14, 0, 0, 0, 0, 0, 8, 0x30, 8, 0xa0 };
	struct reader table = reader_over(bytes, sizeof(bytes));
	struct pe_relocation_block block;
	uint32_t offset;

	cr_assert(pe_relocations_next_block(&table, &block));
	cr_assert(pe_relocations_next_pointer(&block, &offset));
	cr_expect_eq(offset, 8);
	cr_expect_not(pe_relocations_next_pointer(&block, &offset));
}

Test(pe_relocations, extend_to_the_end_of_the_page)
{
	static const uint8_t bytes[] = { 0, 0x10, 0, 0, 10, 0, 0, 0, 0xf8, 0xaf };
	struct reader table = reader_over(bytes, sizeof(bytes));
	struct pe_relocation_block block;
	uint32_t offset;

	cr_assert(pe_relocations_next_block(&table, &block));
	cr_assert(pe_relocations_next_pointer(&block, &offset));
	cr_expect_eq(offset, 0xff8);
}

Test(pe_relocations, stop_at_a_truncated_or_empty_block)
{
	static const uint8_t cut[] = { 0, 0x10, 0, 0, 14, 0, 0, 0, 0, 0, 8, 0x30, 8 };
	static const uint8_t empty[16] = { 0 };
	struct pe_relocation_block block;
	struct reader table = reader_over(cut, sizeof(cut));

	cr_expect_not(pe_relocations_next_block(&table, &block));
	table = reader_over(empty, sizeof(empty));
	cr_expect_not(pe_relocations_next_block(&table, &block));
	table = reader_over(cut, 7);
	cr_expect_not(pe_relocations_next_block(&table, &block));
}

Test(pe_relocations, are_not_found_in_a_truncated_header)
{
	uint8_t file[RELOCATED_PE_BYTES];
	struct pe_relocation_table where;
	size_t length, needed = RELOCATED_PE_DIRECTORY + 8;

	relocated_pe_build(file, 0);
	for (length = 0; length < needed; length++)
		cr_expect_not(pe_relocations_locate(file, length, &where), "%zu bytes", length);
	cr_expect(pe_relocations_locate(file, needed, &where));
}
