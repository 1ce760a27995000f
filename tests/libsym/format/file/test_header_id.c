/* SPDX-License-Identifier: MIT */
/* The r2rmap and the PDB that a PE image names: found by its debug directory, and bounded. */
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

typedef bool read_fn(const struct byte_source *source, void *ret);

static bool read_r2rmap(const struct byte_source *source, void *ret)
{
	return header_id_read_pe_r2rmap(source, ret);
}

static bool read_pdb(const struct byte_source *source, void *ret)
{
	return header_id_read_pe_pdb(source, ret);
}

static bool reads_by(read_fn *read, const struct buf *debug, uint32_t directory_bytes, void *ret)
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
	is_read = read(&source, ret);
	buf_deinit(&file);
	return is_read;
}

static bool reads(const struct buf *debug, uint32_t directory_bytes, struct pe_r2rmap_id *ret)
{
	return reads_by(read_r2rmap, debug, directory_bytes, ret);
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

static void put_codeview_entry(struct buf *buf, bool is_portable, uint32_t size_bytes,
			       uint32_t offset)
{
	put_zeros(buf, 8);
	put_u16(buf, 0);
	put_u16(buf, is_portable ? 0x504d : 0);
	put_u32(buf, 2);
	put_u32(buf, size_bytes);
	put_u32(buf, 0);
	put_u32(buf, offset);
}

static void put_codeview(struct buf *buf, uint32_t magic, uint8_t first)
{
	put_u32(buf, magic);
	for (uint8_t i = 0; i < 16; i++)
		put_u8(buf, (uint8_t)(first + i));
	put_u32(buf, 1);
}

enum {
	CODEVIEW_BYTES = 24
};

Test(header_id, reads_the_pdb_that_an_image_names)
{
	static const uint8_t in_text_order[] = { 0x23, 0x22, 0x21, 0x20, 0x25, 0x24, 0x27, 0x26,
						 0x28, 0x29, 0x2a, 0x2b, 0x2c, 0x2d, 0x2e, 0x2f };
	struct pe_pdb_id found;
	struct buf debug;

	buf_init(&debug, 4096);
	put_codeview_entry(&debug, false, CODEVIEW_BYTES, OFFSET + 3 * ENTRY_BYTES);
	put_codeview_entry(&debug, true, CODEVIEW_BYTES, OFFSET + 3 * ENTRY_BYTES + CODEVIEW_BYTES);
	put_codeview_entry(&debug, false, CODEVIEW_BYTES, OFFSET + 3 * ENTRY_BYTES);
	put_codeview(&debug, 0x53445352, 0x10);
	put_codeview(&debug, 0x53445352, 0x20);
	put_zeros(&debug, 300);
	/* The portable one wins over those of linkers. */
	cr_assert(reads_by(read_pdb, &debug, 3 * ENTRY_BYTES, &found));
	cr_expect_arr_eq(found.guid, in_text_order, 16);
	cr_expect(found.is_portable);
	cr_assert(reads_by(read_pdb, &debug, ENTRY_BYTES, &found));
	cr_expect(eq(u8, found.guid[0], 0x13));
	cr_expect(not(found.is_portable));
	buf_deinit(&debug);
}

Test(header_id, rejects_a_pdb_that_is_cut_or_beyond_the_file)
{
	static const struct {
		uint32_t magic, size_bytes, offset;
	} cases[] = {
		{ 0x3031424e, CODEVIEW_BYTES, OFFSET + ENTRY_BYTES },
		{ 0x53445352, CODEVIEW_BYTES - 1, OFFSET + ENTRY_BYTES },
		{ 0x53445352, CODEVIEW_BYTES, 0xffffff00 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct pe_pdb_id found;
		struct buf debug;

		buf_init(&debug, 4096);
		put_codeview_entry(&debug, true, cases[i].size_bytes, cases[i].offset);
		put_codeview(&debug, cases[i].magic, 0x10);
		put_zeros(&debug, 300);
		cr_expect(not(reads_by(read_pdb, &debug, ENTRY_BYTES, &found)), "%zu", i);
		buf_deinit(&debug);
	}
}
