/* SPDX-License-Identifier: MIT */
/* PE headers: what is read, what is rejected, and that no rva leads outside. */
#include "libsym/format/dotnet/pe.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "tests/support/byte_writer.h"
#include "tests/support/pe_builder.h"

#define SECTION_BYTES 0x100
#define NO_ERROR      0

static uint8_t content[SECTION_BYTES];

static struct pe_recipe two_sections(void)
{
	struct pe_recipe recipe = { .machine = 0xfd1d, .section_count = 2 };

	for (size_t i = 0; i < sizeof(content); i++)
		content[i] = (uint8_t)i;
	recipe.sections[0] =
		(struct pe_recipe_section){ 0x1000, 0x40000000, content, sizeof(content), 0, 0 };
	recipe.sections[1] =
		(struct pe_recipe_section){ 0x3000, 0x60000000, content, sizeof(content), 0, 0 };
	return recipe;
}

static int parse(const struct pe_recipe *recipe, struct buf *file, struct pe *pe)
{
	struct sym_error *error;
	int code;

	buf_init(file, 1 << 20);
	build_pe(file, recipe);
	error = pe_parse(pe, file->data, file->size_bytes, PE_LAYOUT_FILE);
	code = error ? (int)sym_error_code(error) : NO_ERROR;
	sym_error_destroy(error);
	return code;
}

Test(pe, reads_headers_and_sections)
{
	struct pe_recipe recipe = two_sections();
	struct buf file;
	struct pe pe;

	cr_assert(eq(int, parse(&recipe, &file, &pe), NO_ERROR));
	cr_expect(eq(u16, pe.machine_raw, 0xfd1d));
	cr_expect(eq(u16, pe.machine, PE_MACHINE_AMD64));
	cr_expect(eq(u32, pe.timestamp, 0x5eed));
	cr_expect(eq(u32, pe.checksum, 0xc0ffee));
	cr_expect(eq(u32, pe.size_of_image_bytes, 0x4000));
	cr_expect(pe.is_64bit);
	cr_expect(eq(u32, pe.section_count, 2));
	cr_expect(eq(u32, pe.sections[1].virtual_address, 0x3000));
	cr_expect(eq(u32, pe.sections[1].raw_offset, 0x300));
	cr_expect(not(pe.has_r2rmap_entry));
	buf_deinit(&file);
}

Test(pe, separates_the_system_from_the_machine)
{
	static const struct {
		uint16_t raw, plain;
	} machines[] = {
		{ 0x8664, PE_MACHINE_AMD64 },
		{ 0xd11d, PE_MACHINE_ARM64 },
		{ 0x7abd, PE_MACHINE_ARM },
		{ 0x7a35, PE_MACHINE_I386 },
		{ 0x191d, PE_MACHINE_LOONGARCH64 },
		{ 0x2b1d, PE_MACHINE_RISCV64 },
		{ 0xaa64 ^ 0x4644, PE_MACHINE_ARM64 },
		{ 0x1234, 0x1234 },
	};

	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		struct pe_recipe recipe = two_sections();
		struct buf file;
		struct pe pe;

		recipe.machine = machines[i].raw;
		cr_assert(eq(int, parse(&recipe, &file, &pe), NO_ERROR));
		cr_expect(eq(u16, pe.machine, machines[i].plain));
		buf_deinit(&file);
	}
}

Test(pe, finds_bytes_by_rva_in_files)
{
	struct pe_recipe recipe = two_sections();
	size_t available;
	struct buf file;
	struct pe pe;

	cr_assert(eq(int, parse(&recipe, &file, &pe), NO_ERROR));
	cr_expect(eq(ptr, (void *)pe_bytes(&pe, 0x3010, 4), file.data + 0x310));
	cr_expect(eq(ptr, (void *)pe_bytes(&pe, 0, 2), file.data));
	cr_expect(eq(ptr, (void *)pe_bytes_to_end(&pe, 0x30ff, &available), file.data + 0x3ff));
	cr_expect(eq(sz, available, 1));
	cr_expect(eq(ptr, (void *)pe_bytes(&pe, 0x30ff, 2), NULL));
	cr_expect(eq(ptr, (void *)pe_bytes(&pe, 0x3100, 1), NULL));
	cr_expect(eq(ptr, (void *)pe_bytes(&pe, 0x2000, 1), NULL));
	cr_expect(eq(ptr, (void *)pe_bytes(&pe, UINT32_MAX, 1), NULL));
	cr_expect(eq(ptr, (void *)pe_bytes(&pe, 0x1000, SIZE_MAX), NULL));
	buf_deinit(&file);
}

/* The file has more bytes than the section. The padding belongs to no rva. */
Test(pe, finds_no_bytes_in_the_padding_of_a_section)
{
	struct pe_recipe recipe = two_sections();
	struct buf file;
	struct pe pe;

	recipe.sections[0].virtual_size_bytes = 0x80;
	cr_assert(eq(int, parse(&recipe, &file, &pe), NO_ERROR));
	cr_expect(eq(ptr, (void *)pe_bytes(&pe, 0x107f, 1), file.data + 0x27f));
	cr_expect(eq(ptr, (void *)pe_bytes(&pe, 0x1080, 1), NULL));
	buf_deinit(&file);
}

/* PE32 has the count of its directories at 92, PE32+ at 108. */
Test(pe, finds_the_directories_of_32_bit_images)
{
	const size_t optional_header = 0x58, wide_count = 108, narrow_count = 92;
	struct pe_recipe recipe = two_sections();
	struct buf file;
	struct pe pe;

	recipe.export_rva = 0x1000;
	recipe.debug_rva = 0x3000;
	recipe.debug_size_bytes = 28;
	cr_assert(eq(int, parse(&recipe, &file, &pe), NO_ERROR));
	file.data[optional_header] = 0x0b;
	file.data[optional_header + 1] = 0x01;
	memmove(file.data + optional_header + narrow_count,
		file.data + optional_header + wide_count, 4 + 16 * 8);
	cr_assert(eq(ptr, pe_parse(&pe, file.data, file.size_bytes, PE_LAYOUT_FILE), NULL));
	cr_expect(not(pe.is_64bit));
	cr_expect(eq(u32, pe.export_table.rva, 0x1000));
	cr_expect(eq(u32, pe.debug.rva, 0x3000));
	cr_expect(eq(u32, pe.debug.size_bytes, 28));
	buf_deinit(&file);
}

Test(pe, reads_loaded_images_by_rva)
{
	struct pe_recipe recipe = two_sections();
	static uint8_t memory[0x4000];
	struct buf file;
	struct pe pe;

	cr_assert(eq(int, parse(&recipe, &file, &pe), NO_ERROR));
	memcpy(memory, file.data, 0x200);
	memory[0x3010] = 77;
	cr_assert(eq(ptr, pe_parse(&pe, memory, sizeof(memory), PE_LAYOUT_LOADED), NULL));
	cr_expect(eq(u8, *pe_bytes(&pe, 0x3010, 1), 77));
	cr_expect(eq(ptr, (void *)pe_bytes(&pe, 0x4000, 1), NULL));
	cr_expect(eq(ptr, (void *)pe_bytes(&pe, 0x3fff, 2), NULL));
	buf_deinit(&file);
}

/* A debug directory that starts with a CodeView entry, as compilers emit it. */
static void put_debug_directory(struct buf *buf, uint32_t rva, uint32_t magic)
{
	put_zeros(buf, 12);
	put_u32(buf, 2);
	put_u32(buf, 64);
	put_zeros(buf, 8);
	put_zeros(buf, 12);
	put_u32(buf, 21);
	put_u32(buf, 284);
	put_u32(buf, rva + 56);
	put_u32(buf, 0);
	put_u32(buf, magic);
	for (uint8_t i = 0; i < 16; i++)
		put_u8(buf, (uint8_t)(0xa0 + i));
	put_u32(buf, 1);
	buf_append(buf, "A.ni.r2rmap", 12);
}

Test(pe, finds_the_r2rmap_signature)
{
	struct pe_recipe recipe = two_sections();
	struct buf file, debug;
	struct pe pe;

	buf_init(&debug, 1000);
	put_debug_directory(&debug, 0x1000, 0x4d523252);
	recipe.sections[0].bytes = debug.data;
	recipe.sections[0].size_bytes = debug.size_bytes;
	recipe.debug_rva = 0x1000;
	recipe.debug_size_bytes = 56;
	cr_assert(eq(int, parse(&recipe, &file, &pe), NO_ERROR));
	cr_expect(pe.has_r2rmap_entry);
	cr_expect(eq(u32, pe.r2rmap_version, 1));
	cr_expect(eq(u8, pe.r2rmap_signature[0], 0xa0));
	cr_expect(eq(u8, pe.r2rmap_signature[15], 0xaf));
	cr_assert(ne(ptr, (void *)pe.r2rmap_name, NULL));
	cr_expect(not(strcmp(pe.r2rmap_name, "A.ni.r2rmap")));
	buf_deinit(&file);
	buf_deinit(&debug);
}

Test(pe, ignores_a_debug_entry_with_another_magic)
{
	struct pe_recipe recipe = two_sections();
	struct buf file, debug;
	struct pe pe;

	buf_init(&debug, 1000);
	put_debug_directory(&debug, 0x1000, 0x12345678);
	recipe.sections[0].bytes = debug.data;
	recipe.sections[0].size_bytes = debug.size_bytes;
	recipe.debug_rva = 0x1000;
	recipe.debug_size_bytes = 56;
	cr_assert(eq(int, parse(&recipe, &file, &pe), NO_ERROR));
	cr_expect(not(pe.has_r2rmap_entry));
	buf_deinit(&file);
	buf_deinit(&debug);
}

Test(pe, survives_a_debug_directory_outside_the_image)
{
	struct pe_recipe recipe = two_sections();
	struct buf file;
	struct pe pe;

	recipe.debug_rva = 0xfffffff0;
	recipe.debug_size_bytes = 0xffffffff;
	cr_assert(eq(int, parse(&recipe, &file, &pe), NO_ERROR));
	cr_expect(not(pe.has_r2rmap_entry));
	buf_deinit(&file);
}

Test(pe, rejects_overlapping_sections)
{
	struct pe_recipe recipe = two_sections();
	struct buf file;
	struct pe pe;

	recipe.sections[1].rva = 0x10ff;
	cr_expect(eq(int, parse(&recipe, &file, &pe), SYM_ERROR_FORMAT));
	buf_deinit(&file);
	recipe.sections[1].rva = 0x1100;
	cr_expect(eq(int, parse(&recipe, &file, &pe), NO_ERROR));
	buf_deinit(&file);
}

Test(pe, rejects_sections_that_share_bytes_of_the_file)
{
	struct pe_recipe recipe = two_sections();
	struct buf file;
	struct pe pe;

	recipe.sections[1].raw_offset = 0x2ff;
	cr_expect(eq(int, parse(&recipe, &file, &pe), SYM_ERROR_FORMAT));
	buf_deinit(&file);
}

Test(pe, rejects_a_section_beyond_the_image)
{
	struct pe_recipe recipe = two_sections();
	struct buf file;
	struct pe pe;

	recipe.size_of_image_bytes = 0x30ff;
	cr_expect(eq(int, parse(&recipe, &file, &pe), SYM_ERROR_FORMAT));
	buf_deinit(&file);
	recipe.size_of_image_bytes = 0;
	recipe.sections[1].virtual_size_bytes = 0xffffffff;
	cr_expect(eq(int, parse(&recipe, &file, &pe), SYM_ERROR_FORMAT));
	buf_deinit(&file);
}

Test(pe, rejects_a_cli_header_outside_the_sections)
{
	struct pe_recipe recipe = two_sections();
	struct buf file;
	struct pe pe;

	recipe.cli_rva = 0x30c0;
	cr_expect(eq(int, parse(&recipe, &file, &pe), SYM_ERROR_FORMAT));
	buf_deinit(&file);
}

Test(pe, rejects_every_truncation)
{
	struct pe_recipe recipe = two_sections();
	struct buf file;
	struct pe pe;

	cr_assert(eq(int, parse(&recipe, &file, &pe), NO_ERROR));
	for (size_t size = 0; size < file.size_bytes; size++) {
		/* In a block of the exact size, so that a sanitizer detects a read past the end. */
		void *copy = malloc(size ? size : 1);
		struct sym_error *error;

		memcpy(copy, file.data, size);
		error = pe_parse(&pe, copy, size, PE_LAYOUT_FILE);
		cr_expect(error != NULL, "accepted with %zu bytes", size);
		sym_error_destroy(error);
		free(copy);
	}
	buf_deinit(&file);
}

Test(pe, recognises_only_pe_files)
{
	struct pe_recipe recipe = two_sections();
	struct buf file;
	struct pe pe;

	cr_assert(eq(int, parse(&recipe, &file, &pe), NO_ERROR));
	cr_expect(pe_recognise(file.data, file.size_bytes));
	cr_expect(not(pe_recognise("\177ELF", 4)));
	cr_expect(not(pe_recognise("MZ", 2)));
	patch_u32(&file, 0x3c, 0xffffffff);
	cr_expect(not(pe_recognise(file.data, file.size_bytes)));
	buf_deinit(&file);
}
