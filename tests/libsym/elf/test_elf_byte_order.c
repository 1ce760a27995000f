/* SPDX-License-Identifier: MIT */
/* Files of big-endian machines, and the function descriptors of 64-bit PowerPC. */
#include <criterion/criterion.h>
#include <elf.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/elf/elf_symbols.h"
#include "tests/support/elf_builder.h"

enum {
	TEXT = ELF_BUILDER_TEXT_VADDR,
	DATA = ELF_BUILDER_DATA_VADDR
};

static void swap(void *bytes, size_t size_bytes, Elf_Type type)
{
	Elf_Data data = {
		.d_buf = bytes, .d_size = size_bytes, .d_type = type, .d_version = EV_CURRENT
	};

	cr_assert_not_null(elf64_xlatetof(&data, &data, ELFDATA2MSB));
}

static Elf64_Shdr *sections_of(uint8_t *file)
{
	return (Elf64_Shdr *)(file + ((Elf64_Ehdr *)file)->e_shoff);
}

/* Converts the file to the other byte order. */
static void turn_round(uint8_t *file)
{
	Elf64_Ehdr header = *(Elf64_Ehdr *)file;

	elf_version(EV_CURRENT);
	for (size_t i = 0; i < header.e_shnum; i++) {
		const Elf64_Shdr *section = &sections_of(file)[i];

		if (section->sh_type == SHT_SYMTAB || section->sh_type == SHT_DYNSYM)
			swap(file + section->sh_offset, section->sh_size, ELF_T_SYM);
		if (section->sh_type == SHT_GNU_versym)
			swap(file + section->sh_offset, section->sh_size, ELF_T_HALF);
		if (section->sh_type == SHT_NOTE)
			swap(file + section->sh_offset, 12, ELF_T_WORD);
		if (section->sh_addr == DATA)
			swap(file + section->sh_offset, section->sh_size, ELF_T_XWORD);
	}
	swap(sections_of(file), header.e_shnum * sizeof(Elf64_Shdr), ELF_T_SHDR);
	swap(file + header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr), ELF_T_PHDR);
	swap(file, sizeof(header), ELF_T_EHDR);
	file[EI_DATA] = ELFDATA2MSB;
}

static struct object_file *open_file(uint8_t *file, size_t size_bytes)
{
	struct object_file *object = NULL;

	cr_assert_null(object_file_open(NULL, elf_builder_file(file, size_bytes), "turned.so", 0,
					SPARSE_FILE_TO_END, &object));
	free(file);
	return object;
}

Test(elf_byte_order, reads_symbols_of_big_endian_files)
{
	static const struct elf_builder_symbol symbols[] = {
		{ "old", TEXT + 0x10, 0x20, STB_GLOBAL, STT_FUNC },
		{ "today", TEXT + 0x10, 0x20, STB_GLOBAL, STT_FUNC },
		{ "local", TEXT + 0x40, 0, STB_LOCAL, STT_FUNC },
	};
	static const uint16_t versions[] = { 0x8002, 2, 1 };
	struct elf_builder_options options = {
		.dynamic_only = true, .build_id = 7, .machine = EM_S390, .versions = versions
	};
	struct object_file *object AUTO_OBJECT_FILE = NULL;
	struct elf_symbols table;
	size_t size_bytes;
	uint8_t *file = elf_builder_make(symbols, 3, options, &size_bytes);

	turn_round(file);
	object = open_file(file, size_bytes);
	cr_expect_eq(object->kind, SYM_IMAGE_ELF);
	cr_assert_eq(object->segment_count, 2);
	cr_expect_eq(object->segments[0].position, TEXT);
	cr_assert_null(elf_symbols_read(object, &table));
	cr_assert_eq(table.count, 3);
	cr_expect_str_eq(table.items[0].name, "today");
	cr_expect_eq(table.items[0].vaddr, TEXT + 0x10);
	cr_expect_eq(table.items[0].size_bytes, 0x20);
	cr_expect_str_eq(table.items[2].name, "local");
	cr_expect_eq(table.build_id.size_bytes, 20);
	cr_expect_eq(table.build_id.bytes[19], 7);
	elf_symbols_deinit(&table);
}

/* Opens a file with .opd in place of the builder's .data. */
static struct object_file *open_descriptors(const struct elf_builder_symbol *symbols, size_t count,
					    const uint64_t *descriptors, size_t bytes,
					    bool is_turned)
{
	struct elf_builder_options options = { .machine = EM_PPC64, .debug_link = "none" };
	size_t size_bytes;
	uint8_t *file = elf_builder_make(symbols, count, options, &size_bytes);
	Elf64_Shdr *sections = sections_of(file);

	memcpy(file + sections[((Elf64_Ehdr *)file)->e_shstrndx].sh_offset + 1, ".opd", 5);
	for (size_t i = 0; i < ((Elf64_Ehdr *)file)->e_shnum; i++) {
		if (sections[i].sh_addr != DATA)
			continue;
		sections[i].sh_name = 1;
		memcpy(file + sections[i].sh_offset, descriptors, bytes);
	}
	if (is_turned)
		turn_round(file);
	return open_file(file, size_bytes);
}

Test(elf_byte_order, finds_the_code_of_functions_with_descriptors)
{
	static const struct elf_builder_symbol symbols[] = {
		{ "second", DATA, 0x20, STB_GLOBAL, STT_FUNC, .in_data = true },
		{ "first", DATA + 24, 0x10, STB_LOCAL, STT_FUNC, .in_data = true },
		{ "nowhere", DATA + 48, 0x10, STB_GLOBAL, STT_FUNC, .in_data = true },
		{ "cut", DATA + ELF_BUILDER_DATA_BYTES - 4, 0x10, STB_GLOBAL, STT_FUNC,
		  .in_data = true },
		{ "stub", TEXT + 0x80, 0x20, STB_LOCAL, STT_FUNC },
	};
	static const uint64_t descriptors[] = { TEXT + 0x40, 1, 0, TEXT, 1, 0, 0x1234, 1, 0 };

	for (int i = 0; i < 2; i++) {
		struct object_file *object AUTO_OBJECT_FILE =
			open_descriptors(symbols, 5, descriptors, sizeof(descriptors), i);
		struct elf_symbols table;

		cr_assert_null(elf_symbols_read(object, &table));
		cr_assert_eq(table.count, 3);
		cr_expect_str_eq(table.items[0].name, "first");
		cr_expect_eq(table.items[0].vaddr, TEXT);
		cr_expect_eq(table.items[0].reach_bytes, 0x10);
		cr_expect_str_eq(table.items[1].name, "second");
		cr_expect_eq(table.items[1].vaddr, TEXT + 0x40);
		cr_expect_str_eq(table.items[2].name, "stub");
		elf_symbols_deinit(&table);
	}
}
