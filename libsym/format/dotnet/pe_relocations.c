/* SPDX-License-Identifier: MIT */
#include "libsym/format/dotnet/pe_relocations.h"

static const uint16_t magic_pe32_plus = 0x20b;
static const uint16_t type_dir64 = 10;
static const uint32_t directory_number = 5;

bool pe_relocations_locate(const void *head, size_t size_bytes, struct pe_relocation_table *ret)
{
	struct reader reader = reader_over(head, size_bytes);
	struct pe_relocation_table table;
	size_t optional_header;

	if (reader_u16(&reader) != 0x5a4d)
		return false;
	reader_seek(&reader, 60);
	reader_seek(&reader, reader_u32(&reader));
	if (reader_u32(&reader) != 0x4550)
		return false;
	reader_skip(&reader, 20);
	optional_header = reader.position;
	if (reader_u16(&reader) != magic_pe32_plus)
		return false;
	reader_seek(&reader, optional_header + 24);
	table.preferred_base = reader_u64(&reader);
	reader_seek(&reader, optional_header + 108);
	if (reader_u32(&reader) <= directory_number)
		return false;
	reader_seek(&reader, optional_header + 112 + directory_number * 8);
	table.rva = reader_u32(&reader);
	table.size_bytes = reader_u32(&reader);
	if (!reader_ok(&reader) || !table.rva || !table.size_bytes)
		return false;
	*ret = table;
	return true;
}

bool pe_relocations_next_block(struct reader *table, struct pe_relocation_block *ret)
{
	uint32_t page_rva, block_bytes;
	const uint8_t *entries;

	if (reader_left(table) < 8)
		return false;
	page_rva = reader_u32(table);
	block_bytes = reader_u32(table);
	/* The padding after the last block is zero. */
	if (block_bytes < 8)
		return false;
	entries = reader_bytes(table, block_bytes - 8);
	if (!entries)
		return false;
	*ret = (struct pe_relocation_block){ page_rva, reader_over(entries, block_bytes - 8) };
	return true;
}

bool pe_relocations_next_pointer(struct pe_relocation_block *block, uint32_t *offset_ret)
{
	while (reader_left(&block->entries) >= 2) {
		uint16_t entry = reader_u16(&block->entries);

		if (entry >> 12 != type_dir64)
			continue;
		*offset_ret = entry & 0xfff;
		return true;
	}
	return false;
}
