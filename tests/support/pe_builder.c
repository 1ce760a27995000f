/* SPDX-License-Identifier: MIT */
/* Writes the headers field by field, in the order of the PE/COFF specification. */
#include "tests/support/pe_builder.h"

#include "tests/support/byte_writer.h"

static const uint32_t headers_bytes = 0x200;

static uint32_t virtual_size(const struct pe_recipe_section *section)
{
	return section->virtual_size_bytes ? section->virtual_size_bytes
					   : (uint32_t)section->size_bytes;
}

static uint32_t size_of_image(const struct pe_recipe *recipe)
{
	uint32_t end = headers_bytes;

	for (size_t i = 0; i < recipe->section_count; i++)
		if (recipe->sections[i].rva + virtual_size(&recipe->sections[i]) > end)
			end = recipe->sections[i].rva + virtual_size(&recipe->sections[i]);
	return (end + 0xfff) & ~0xfffu;
}

static void put_optional_header(struct buf *out, const struct pe_recipe *recipe)
{
	uint32_t directories[16][2] = { 0 };

	put_u16(out, 0x20b);
	put_zeros(out, 14);
	put_u32(out, 0);           /* entry point */
	put_u32(out, 0x1000);      /* base of code */
	put_u64(out, 0x180000000); /* image base */
	put_u32(out, 0x1000);      /* section alignment */
	put_u32(out, 0x10);        /* file alignment */
	put_zeros(out, 16);
	put_u32(out,
		recipe->size_of_image_bytes ? recipe->size_of_image_bytes : size_of_image(recipe));
	put_u32(out, headers_bytes);
	put_u32(out, 0xc0ffee); /* checksum */
	put_u16(out, 3);
	put_u16(out, 0);
	put_zeros(out, 32);
	put_u32(out, 0);
	put_u32(out, 16);
	directories[0][0] = recipe->export_rva;
	directories[0][1] = recipe->export_rva ? 40 : 0;
	directories[6][0] = recipe->debug_rva;
	directories[6][1] = recipe->debug_size_bytes;
	directories[14][0] = recipe->cli_rva;
	directories[14][1] = recipe->cli_rva ? 72 : 0;
	for (size_t i = 0; i < 16; i++) {
		put_u32(out, directories[i][0]);
		put_u32(out, directories[i][1]);
	}
}

void build_pe(struct buf *out, const struct pe_recipe *recipe)
{
	uint32_t raw_offset = headers_bytes;
	size_t start = out->size_bytes;

	buf_append(out, "MZ", 2);
	put_zeros(out, 0x3a);
	put_u32(out, 0x40);
	buf_append(out, "PE\0\0", 4);
	put_u16(out, recipe->machine);
	put_u16(out, (uint16_t)recipe->section_count);
	put_u32(out, 0x5eed); /* timestamp */
	put_zeros(out, 8);
	put_u16(out, 240);
	put_u16(out, 0x2022);
	put_optional_header(out, recipe);
	for (size_t i = 0; i < recipe->section_count; i++) {
		const struct pe_recipe_section *section = &recipe->sections[i];

		buf_append(out, ".sect\0\0\0", 8);
		put_u32(out, virtual_size(section));
		put_u32(out, section->rva);
		put_u32(out, (uint32_t)section->size_bytes);
		put_u32(out, section->raw_offset ? section->raw_offset : raw_offset);
		put_zeros(out, 12);
		put_u32(out, section->characteristics);
		raw_offset += (uint32_t)section->size_bytes;
	}
	put_zeros(out, start + headers_bytes - out->size_bytes);
	for (size_t i = 0; i < recipe->section_count; i++)
		buf_append(out, recipe->sections[i].bytes, recipe->sections[i].size_bytes);
}
