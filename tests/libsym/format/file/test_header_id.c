/* SPDX-License-Identifier: MIT */
/* The r2rmap that a PE image names: found through its debug directory, and bounded. */
#include "libsym/format/file/header_id.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "tests/support/byte_writer.h"
#include "tests/support/pe_builder.h"

enum {
	RVA = 0x1000,
	OFFSET = 0x200, /* of the first section in the files of build_pe() */
	ENTRY_BYTES = 28,
};

/* One entry of the debug directory, and what it leads to. */
static void put_entry(struct buf *buf, uint32_t type, uint32_t size_bytes, uint32_t offset,
		      const char *name)
{
	put_zeros(buf, 12);
	put_u32(buf, type);
	put_u32(buf, size_bytes);
	put_u32(buf, 0);
	put_u32(buf, offset);
	put_u32(buf, 0x4d523252);
	for (uint8_t i = 0; i < 16; i++)
		put_u8(buf, (uint8_t)(0xa0 + i));
	put_u32(buf, 1);
	buf_append(buf, name, strlen(name) + 1);
}

static bool reads(const struct buf *debug, uint32_t directory_bytes, struct pe_r2rmap_id *ret)
{
	struct pe_recipe recipe = { .machine = 0xfd1d, .section_count = 1 };
	struct byte_source source;
	struct buf file;
	bool is_read;

	recipe.sections[0] = (struct pe_recipe_section){
		RVA, 0x40000000, (const uint8_t *)debug->data, debug->size_bytes, 0, 0
	};
	recipe.debug_rva = RVA;
	recipe.debug_size_bytes = directory_bytes;
	buf_init(&file, 1 << 20);
	build_pe(&file, &recipe);
	source = byte_source_over_memory(file.data, file.size_bytes);
	is_read = header_id_read_pe_r2rmap(&source, ret);
	buf_deinit(&file);
	return is_read;
}

Test(header_id, reads_the_r2rmap_that_an_image_names)
{
	struct pe_r2rmap_id found;
	struct buf debug;

	buf_init(&debug, 4096);
	put_entry(&debug, 21, 200, OFFSET + ENTRY_BYTES, "A.ni.r2rmap");
	put_zeros(&debug, 300);
	cr_assert(reads(&debug, ENTRY_BYTES, &found));
	cr_expect(eq(u32, found.id.version, 1));
	cr_expect(eq(u8, found.id.signature[0], 0xa0));
	cr_expect(eq(u8, found.id.signature[15], 0xaf));
	cr_expect(eq(str, found.name, (char *)"A.ni.r2rmap"));
	buf_deinit(&debug);
}

Test(header_id, rejects_an_r2rmap_without_a_name_or_beyond_the_file)
{
	static const struct {
		uint32_t type, size_bytes, offset;
		const char *name;
	} cases[] = {
		{ 20, 200, OFFSET + ENTRY_BYTES, "A.ni.r2rmap" },
		{ 21, 24, OFFSET + ENTRY_BYTES, "A.ni.r2rmap" },
		{ 21, 30, OFFSET + ENTRY_BYTES, "A.ni.r2rmap" },
		{ 21, 200, 0xffffff00, "A.ni.r2rmap" },
		{ 21, 200, OFFSET, "A.ni.r2rmap" },
		{ 21, 200, OFFSET + ENTRY_BYTES, "" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct pe_r2rmap_id found;
		struct buf debug;

		buf_init(&debug, 4096);
		put_entry(&debug, cases[i].type, cases[i].size_bytes, cases[i].offset,
			  cases[i].name);
		put_zeros(&debug, 300);
		cr_expect(not(reads(&debug, ENTRY_BYTES, &found)), "%zu", i);
		cr_expect(not(reads(&debug, 0, &found)), "%zu", i);
		buf_deinit(&debug);
	}
}
