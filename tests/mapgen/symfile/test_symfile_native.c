/* SPDX-License-Identifier: MIT */
/* libelf reads the result. */
#include <criterion/criterion.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "mapgen/symfile/symfile_native.h"
#include "tests/support/elf_builder.h"

enum {
	VADDR = ELF_BUILDER_TEXT_VADDR,
	MOST_BYTES = 1 << 20
};

static uint8_t *image; /* a stripped file: .dynsym and a build-id */
static size_t image_bytes;

static struct outcome {
	const char *failure;
	struct buf file;
	uint8_t id[SYMFILE_ID_BYTES];
	uint64_t end;
} outcome;

static bool replaces;
static size_t most_bytes = MOST_BYTES;

static void render_bytes(const void *bytes, size_t size_bytes)
{
	int fd AUTO_CLOSE = elf_builder_file(bytes, size_bytes);
	struct symfile elf;

	buf_deinit(&outcome.file);
	outcome = (struct outcome){ 0 };
	buf_init(&outcome.file, most_bytes);
	symfile_init(&elf);
	symfile_add(&elf, VADDR, 0x10, "a.so!0x401000", NULL);
	symfile_add(&elf, VADDR + 0x40, 0x20, "exported", NULL);
	symfile_add(&elf, VADDR + 0x100000, 0x20, "behind all sections", NULL);
	outcome.failure =
		symfile_native_finish(&elf, fd, replaces, &outcome.file, outcome.id, &outcome.end);
	symfile_deinit(&elf);
}

static void render(void)
{
	render_bytes(image, image_bytes);
}

static void make_image(bool dynamic_only, uint8_t build_id)
{
	static const struct elf_builder_symbol exported = { "exported", VADDR + 0x40, 0x20,
							    STB_GLOBAL, STT_FUNC,     false,
							    false };
	struct elf_builder_options options = {
		.dynamic_only = dynamic_only,
		.build_id = build_id,
		.debug_link = "a.debug",
	};

	free(image);
	image = elf_builder_make(&exported, 1, options, &image_bytes);
}

static void make_and_render(void)
{
	make_image(true, 0x11);
	render();
	cr_assert_null(outcome.failure, "%s", outcome.failure);
}

static void end(void)
{
	buf_deinit(&outcome.file);
	free(image);
}

TestSuite(standin_native, .init = make_and_render, .fini = end);

static Elf64_Ehdr *header(void)
{
	return (Elf64_Ehdr *)(void *)image;
}

static Elf64_Shdr *section_of_type(uint32_t type)
{
	Elf64_Shdr *sections = (Elf64_Shdr *)(void *)(image + header()->e_shoff);

	for (size_t i = 0; i < header()->e_shnum; i++)
		if (sections[i].sh_type == type)
			return &sections[i];
	cr_assert_fail("no section of type %u", type);
	return NULL;
}

/* Number of the first section of this type in the result. */
static size_t find_section(Elf *elf, uint32_t type, GElf_Shdr *ret)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section))) {
		cr_assert_not_null(gelf_getshdr(section, ret));
		if (ret->sh_type == type)
			return elf_ndxscn(section);
	}
	cr_assert_fail("there is no section of type %u", type);
	return 0;
}

/* The first section of this name, which perf takes; 0: there is none. */
static size_t section_named(Elf *elf, const char *name)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t names;

	cr_assert_eq(elf_getshdrstrndx(elf, &names), 0);
	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) &&
		    !strcmp(elf_strptr(elf, names, header.sh_name), name))
			return elf_ndxscn(section);
	return 0;
}

static Elf *open_outcome(void)
{
	elf_version(EV_CURRENT);
	return elf_memory(outcome.file.data, outcome.file.size_bytes);
}

static void expect_symbol(Elf *elf, int number, const char *name, uint64_t value, size_t section)
{
	GElf_Shdr table;
	size_t index = find_section(elf, SHT_SYMTAB, &table);
	GElf_Sym symbol;

	cr_assert_not_null(gelf_getsym(elf_getdata(elf_getscn(elf, index), NULL), number, &symbol));
	cr_expect_str_eq(elf_strptr(elf, table.sh_link, symbol.st_name), name);
	cr_expect_eq(symbol.st_value, value);
	cr_expect_eq(symbol.st_shndx, section, "%s is in %u", name, symbol.st_shndx);
	cr_expect_eq(GELF_ST_TYPE(symbol.st_info), STT_FUNC);
}

Test(standin_native, has_a_symbol_table)
{
	Elf *elf = open_outcome();
	GElf_Shdr table, text;
	size_t text_index = find_section(elf, SHT_PROGBITS, &text);

	find_section(elf, SHT_SYMTAB, &table);
	cr_expect_eq(table.sh_size, 4 * sizeof(Elf64_Sym));
	expect_symbol(elf, 1, "a.so!0x401000", VADDR, text_index);
	expect_symbol(elf, 2, "exported", VADDR + 0x40, text_index);
	expect_symbol(elf, 3, "behind all sections", VADDR + 0x100000, SHN_UNDEF);
	elf_end(elf);
}

/* All bytes but the build-id and the offset of the section headers. */
Test(standin_native, keeps_the_bytes_of_the_file_where_they_are)
{
	Elf64_Ehdr made;

	memcpy(&made, outcome.file.data, sizeof(made));
	cr_expect_eq(made.e_shnum, header()->e_shnum + 2);
	header()->e_shoff = made.e_shoff;
	header()->e_shnum = made.e_shnum;
	for (size_t at = 0; at + SYMFILE_ID_BYTES <= image_bytes; at++)
		if (!memcmp(outcome.file.data + at, outcome.id, SYMFILE_ID_BYTES))
			memset(outcome.file.data + at, 0x11, SYMFILE_ID_BYTES);
	cr_expect_arr_eq(outcome.file.data, image, image_bytes);
	cr_expect_eq(outcome.end, image_bytes);
}

Test(standin_native, has_the_sections_that_were_there_and_two_more)
{
	Elf *elf = open_outcome();
	GElf_Shdr section;

	cr_expect(section_named(elf, ".gnu_debuglink"));
	cr_expect(section_named(elf, ".symtab"));
	cr_expect(section_named(elf, ".strtab"));
	find_section(elf, SHT_DYNSYM, &section);
	find_section(elf, SHT_NOTE, &section);
	cr_expect_arr_eq(outcome.file.data + section.sh_offset + section.sh_size - SYMFILE_ID_BYTES,
			 outcome.id, SYMFILE_ID_BYTES);
	elf_end(elf);
}

Test(standin_native, has_a_build_id_of_ours_that_tells_its_bytes)
{
	struct outcome first = outcome;

	cr_expect_arr_eq(first.id, symfile_id_mark, sizeof(symfile_id_mark));
	render();
	cr_expect_arr_eq(outcome.id, first.id, sizeof(first.id));
	image[ELF_BUILDER_TEXT_OFFSET] ^= 1;
	render();
	cr_expect(memcmp(outcome.id, first.id, sizeof(first.id)));
}

/* As perf looks for it: in the section of this name, if it has notes. */
static void expect_id_of_ours(void)
{
	static const Elf64_Nhdr expected = { 4, SYMFILE_ID_BYTES, NT_GNU_BUILD_ID };
	Elf *elf = open_outcome();
	GElf_Shdr section;
	const char *note;

	cr_assert_null(outcome.failure, "%s", outcome.failure);
	find_section(elf, SHT_NOTE, &section);
	note = outcome.file.data + section.sh_offset;
	cr_assert_eq(section.sh_size, sizeof(expected) + 4 + SYMFILE_ID_BYTES);
	cr_expect_arr_eq(note, &expected, sizeof(expected));
	cr_expect_str_eq(note + sizeof(expected), "GNU");
	cr_expect_arr_eq(note + sizeof(expected) + 4, outcome.id, SYMFILE_ID_BYTES);
	elf_end(elf);
}

Test(standin_native, has_a_build_id_where_the_file_has_none)
{
	Elf *elf;

	make_image(true, 0);
	render();
	expect_id_of_ours();
	elf = open_outcome();
	cr_expect(section_named(elf, ".note.gnu.build-id"));
	elf_end(elf);
}

Test(standin_native, has_a_build_id_in_the_place_of_one_of_another_length)
{
	Elf64_Nhdr *note = (Elf64_Nhdr *)(void *)(image + section_of_type(SHT_NOTE)->sh_offset);

	note->n_descsz = 8;
	render();
	expect_id_of_ours();
}

Test(standin_native, leaves_out_what_lies_behind_the_elf_file)
{
	struct outcome first = outcome;

	image = realloc(image, image_bytes + 1000);
	memset(image + image_bytes, 'b', 1000);
	render_bytes(image, image_bytes + 1000);
	cr_assert_null(outcome.failure);
	cr_expect_eq(outcome.end, image_bytes);
	cr_expect_arr_eq(outcome.id, first.id, sizeof(first.id));
}

static uint64_t size_of_symbol(int number)
{
	Elf *elf = open_outcome();
	GElf_Shdr table;
	size_t index = find_section(elf, SHT_SYMTAB, &table);
	GElf_Sym symbol;

	gelf_getsym(elf_getdata(elf_getscn(elf, index), NULL), number, &symbol);
	elf_end(elf);
	return symbol.st_size;
}

/* The last bytes of the first function, which has 16. */
static uint64_t size_with_end(const char *bytes, size_t count)
{
	memset(image + ELF_BUILDER_TEXT_OFFSET, 0x90, 0x10);
	memcpy(image + ELF_BUILDER_TEXT_OFFSET + 0x10 - count, bytes, count);
	render();
	return size_of_symbol(1);
}

Test(standin_native, a_function_that_ends_in_a_call_has_the_address_behind_it)
{
	cr_expect_eq(size_with_end("\xe8\x0a\x00\x00\x00", 5), 0x11);
	cr_expect_eq(size_with_end("\xff\x15\x0a\x00\x00\x00", 6), 0x11);
	cr_expect_eq(size_with_end("\xff\x93\x0a\x00\x00\x00", 6), 0x11);
	cr_expect_eq(size_with_end("\xff\xd0", 2), 0x11);
	cr_expect_eq(size_with_end("\xff\x50\x18", 3), 0x11);
	cr_expect_eq(size_with_end("\xc3", 1), 0x10);
	cr_expect_eq(size_with_end("\xe9\x0a\x00\x00\x00", 5), 0x10); /* jmp */
	cr_expect_eq(size_of_symbol(2), 0x20);
}

/* ---- what cannot serve, and what lies ---------------------------------------------------- */

static void expect_refused(const char *why)
{
	render();
	cr_assert_not_null(outcome.failure);
	cr_expect_not_null(strstr(outcome.failure, why), "%s", outcome.failure);
}

Test(standin_native, refuses_a_file_with_a_symbol_table)
{
	make_image(false, 0x11);
	expect_refused("symbol table");
}

Test(standin_native, replaces_a_symbol_table_where_that_is_asked_for)
{
	GElf_Shdr table;
	Elf *elf;

	make_image(false, 0x11);
	replaces = true;
	render();
	replaces = false;
	cr_assert_null(outcome.failure, "%s", outcome.failure);
	elf = open_outcome();
	cr_expect_eq(section_named(elf, ".symtab"), find_section(elf, SHT_SYMTAB, &table));
	cr_expect_eq(table.sh_size / table.sh_entsize, 4, "ours, and the one of no name");
	cr_expect_str_eq(elf_strptr(elf, table.sh_link, 1), "a.so!0x401000");
	elf_end(elf);
}

Test(standin_native, refuses_32_bits_and_the_other_byte_order)
{
	image[EI_CLASS] = ELFCLASS32;
	expect_refused("headers");
	image[EI_CLASS] = ELFCLASS64;
	image[EI_DATA] = ELFDATA2MSB;
	expect_refused("headers");
}

Test(standin_native, refuses_a_file_that_is_larger_than_it_may_be)
{
	section_of_type(SHT_PROGBITS)->sh_size = MOST_BYTES;
	expect_refused("too large");
}

Test(standin_native, refuses_a_file_that_is_cut_anywhere)
{
	for (size_t size_bytes = 0; size_bytes < image_bytes; size_bytes += 13) {
		render_bytes(image, size_bytes);
		cr_assert_not_null(outcome.failure, "%zu bytes", size_bytes);
	}
}

/* Whatever a header contains, there is an answer, and never more than the maximum. */
static void lie(size_t begin, size_t bytes)
{
	static const uint8_t lies[] = { 0x00, 0x01, 0x7f, 0x80, 0xff };

	for (size_t at = begin; at < begin + bytes; at++)
		for (size_t i = 0; i < sizeof(lies); i++) {
			uint8_t honest = image[at];

			image[at] = lies[i];
			render();
			cr_assert(outcome.failure || outcome.file.size_bytes <= MOST_BYTES);
			image[at] = honest;
		}
}

Test(standin_native, says_that_a_file_is_too_large_and_not_that_memory_is_short)
{
	const size_t whole_bytes = outcome.file.size_bytes;

	for (most_bytes = 1; most_bytes < whole_bytes; most_bytes++) {
		render();
		cr_expect_str_eq(outcome.failure, "it is too large", "%zu of %zu bytes", most_bytes,
				 whole_bytes);
	}
	render();
	cr_expect_null(outcome.failure);
}

Test(standin_native, survives_headers_that_lie)
{
	lie(0, sizeof(Elf64_Ehdr));
	lie(header()->e_phoff, header()->e_phnum * sizeof(Elf64_Phdr));
	lie(header()->e_shoff, header()->e_shnum * sizeof(Elf64_Shdr));
}
