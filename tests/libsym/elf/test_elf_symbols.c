/* SPDX-License-Identifier: MIT */
#include "libsym/elf/elf_symbols.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/elf_builder.h"

enum {
	TEXT = ELF_BUILDER_TEXT_VADDR
};

static struct object_file *open_bytes(const void *bytes, size_t size_bytes)
{
	struct object_file *object = NULL;
	int fd = elf_builder_file(bytes, size_bytes);

	cr_assert_null(object_file_open(NULL, fd, "built.so", 0, SPARSE_FILE_TO_END, &object));
	return object;
}

static struct object_file *open_symbols(const struct elf_builder_symbol *symbols, size_t count,
					struct elf_builder_options options)
{
	size_t size_bytes;
	uint8_t *bytes = elf_builder_make(symbols, count, options, &size_bytes);
	struct object_file *object = open_bytes(bytes, size_bytes);

	free(bytes);
	return object;
}

/* Gives all symbols the name of the first one. */
static void share_first_name(uint8_t *file, size_t size_bytes)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)(void *)file;
	const Elf64_Shdr *sections = (const Elf64_Shdr *)(void *)(file + header->e_shoff);

	for (size_t i = 0; i < header->e_shnum; i++) {
		Elf64_Sym *table = (Elf64_Sym *)(void *)(file + sections[i].sh_offset);

		if (sections[i].sh_type != SHT_SYMTAB)
			continue;
		cr_assert_leq(sections[i].sh_offset + sections[i].sh_size, size_bytes);
		for (size_t k = 2; k < sections[i].sh_size / sizeof(*table); k++)
			table[k].st_name = table[1].st_name;
	}
}

Test(elf_symbols, reads_functions_in_order_of_vaddr)
{
	static const struct elf_builder_symbol symbols[] = {
		{ "second", TEXT + 0x20, 0x10, STB_GLOBAL, STT_FUNC },
		{ "first", TEXT, 0x20, STB_LOCAL, STT_FUNC },
		{ "chosen_at_run_time", TEXT + 0x30, 8, STB_GLOBAL, STT_GNU_IFUNC },
	};
	struct object_file *object AUTO_OBJECT_FILE =
		open_symbols(symbols, 3, (struct elf_builder_options){ 0 });
	struct elf_symbols table;

	cr_assert_null(elf_symbols_read(object, &table));
	cr_assert_eq(table.count, 3);
	cr_expect_str_eq(table.items[0].name, "first");
	cr_expect_eq(table.items[0].vaddr, TEXT);
	cr_expect_eq(table.items[0].reach_bytes, 0x20);
	cr_expect_str_eq(table.items[1].name, "second");
	cr_expect_str_eq(table.items[2].name, "chosen_at_run_time");
	elf_symbols_deinit(&table);
}

/* Thumb code starts at even vaddrs; its symbols have bit 0 set. */
Test(elf_symbols, clears_the_thumb_bit)
{
	static const struct elf_builder_symbol symbols[] = {
		{ "arm", TEXT, 0x10, STB_GLOBAL, STT_FUNC },
		{ "thumb", TEXT + 0x11, 8, STB_GLOBAL, STT_FUNC },
		{ "chosen", TEXT + 0x19, 8, STB_GLOBAL, STT_GNU_IFUNC },
		{ "label", TEXT + 0x23, 0, STB_GLOBAL, STT_NOTYPE },
		{ "last", TEXT + ELF_BUILDER_TEXT_BYTES - 1, 2, STB_GLOBAL, STT_FUNC },
	};
	static const uint64_t arm[] = { 0, 0x10, 0x18, 0x23, ELF_BUILDER_TEXT_BYTES - 2 };

	for (int i = 0; i < 2; i++) {
		struct elf_builder_options options = { .machine = i ? EM_AARCH64 : EM_ARM };
		struct object_file *object AUTO_OBJECT_FILE = open_symbols(symbols, 5, options);
		struct elf_symbols table;

		cr_assert_null(elf_symbols_read(object, &table));
		cr_assert_eq(table.count, 5);
		for (size_t k = 0; k < 5; k++)
			cr_expect_eq(table.items[k].vaddr, i ? symbols[k].vaddr : TEXT + arm[k]);
		cr_expect_eq(table.items[4].reach_bytes, i ? 1 : 2);
		elf_symbols_deinit(&table);
	}
}

Test(elf_symbols, drops_symbols_without_code_in_this_file)
{
	static const struct elf_builder_symbol symbols[] = {
		{ "imported", 0, 0, STB_GLOBAL, STT_FUNC, .undefined = true },
		{ "table", ELF_BUILDER_DATA_VADDR, 8, STB_GLOBAL, STT_OBJECT, .in_data = true },
		{ "function_in_data", ELF_BUILDER_DATA_VADDR, 8, STB_GLOBAL, STT_FUNC,
		  .in_data = true },
		{ "outside_its_section", TEXT + ELF_BUILDER_TEXT_BYTES, 8, STB_GLOBAL, STT_FUNC },
		{ "$x", TEXT, 0, STB_LOCAL, STT_NOTYPE },
		{ "section", TEXT, 0, STB_LOCAL, STT_SECTION },
		{ "", TEXT, 4, STB_GLOBAL, STT_FUNC },
	};
	struct object_file *object AUTO_OBJECT_FILE =
		open_symbols(symbols, 7, (struct elf_builder_options){ 0 });
	struct elf_symbols table;

	cr_assert_null(elf_symbols_read(object, &table));
	cr_expect_eq(table.count, 0);
	elf_symbols_deinit(&table);
}

/* As in GHC's runtime and programs. */
Test(elf_symbols, counts_an_object_with_a_size_in_code_as_code)
{
	static const struct elf_builder_symbol symbols[] = {
		{ "stg_ap_v_info", TEXT, 0x20, STB_GLOBAL, STT_OBJECT },
		{ "alias", TEXT, 0x20, STB_LOCAL, STT_FUNC },
		{ "mark", TEXT + 0x40, 0, STB_GLOBAL, STT_OBJECT },
		{ "stg_ap_v_closure", ELF_BUILDER_DATA_VADDR, 8, STB_GLOBAL, STT_OBJECT,
		  .in_data = true },
	};
	struct object_file *object AUTO_OBJECT_FILE =
		open_symbols(symbols, 4, (struct elf_builder_options){ 0 });
	struct elf_symbols table;

	cr_assert_null(elf_symbols_read(object, &table));
	cr_assert_eq(table.count, 2);
	cr_expect_str_eq(table.items[0].name, "alias", "a function is the better name");
	cr_expect_str_eq(table.items[1].name, "stg_ap_v_info");
	cr_expect_eq(table.items[1].reach_bytes, 0x20);
	elf_symbols_deinit(&table);
}

Test(elf_symbols, falls_back_to_dynsym)
{
	static const struct elf_builder_symbol symbols[] = {
		{ "exported", TEXT, 0x20, STB_GLOBAL, STT_FUNC },
	};
	struct object_file *object AUTO_OBJECT_FILE =
		open_symbols(symbols, 1, (struct elf_builder_options){ .dynamic_only = true });
	struct elf_symbols table;

	cr_assert_null(elf_symbols_read(object, &table));
	cr_assert_eq(table.count, 1);
	cr_expect_str_eq(table.items[0].name, "exported");
	elf_symbols_deinit(&table);
}

Test(elf_symbols, puts_the_preferred_name_first)
{
	static const struct elf_builder_symbol symbols[] = {
		{ "__write", TEXT, 0x20, STB_GLOBAL, STT_FUNC },
		{ "weak", TEXT, 0x20, STB_WEAK, STT_FUNC },
		{ "a_local", TEXT, 0x20, STB_LOCAL, STT_FUNC },
		{ "write", TEXT, 0x20, STB_GLOBAL, STT_FUNC },
		{ "sizeless", TEXT, 0, STB_GLOBAL, STT_FUNC },
		{ "label", TEXT, 0x20, STB_GLOBAL, STT_NOTYPE },
	};
	static const char *const order[] = { "write",   "__write", "weak",
					     "a_local", "label",   "sizeless" };
	struct object_file *object AUTO_OBJECT_FILE =
		open_symbols(symbols, 6, (struct elf_builder_options){ 0 });
	struct elf_symbols table;

	cr_assert_null(elf_symbols_read(object, &table));
	cr_assert_eq(table.count, 6);
	for (size_t i = 0; i < 6; i++)
		cr_expect_str_eq(table.items[i].name, order[i]);
	elf_symbols_deinit(&table);
}

Test(elf_symbols, extends_a_sizeless_symbol_to_the_next_or_the_end_of_its_section)
{
	static const struct elf_builder_symbol symbols[] = {
		{ "start", TEXT, 0, STB_GLOBAL, STT_NOTYPE },
		{ "start_too", TEXT, 0, STB_GLOBAL, STT_NOTYPE },
		{ "middle", TEXT + 0x40, 0x10, STB_GLOBAL, STT_FUNC },
		{ "last", TEXT + 0xf00, 0, STB_GLOBAL, STT_FUNC },
		{ "too_long", TEXT + 0xf80, UINT64_MAX, STB_GLOBAL, STT_FUNC },
	};
	struct object_file *object AUTO_OBJECT_FILE =
		open_symbols(symbols, 5, (struct elf_builder_options){ 0 });
	struct elf_symbols table;

	cr_assert_null(elf_symbols_read(object, &table));
	cr_assert_eq(table.count, 5);
	cr_expect_eq(table.items[0].reach_bytes, 0x40);
	cr_expect_eq(table.items[1].reach_bytes, 0x40);
	cr_expect_eq(table.items[2].reach_bytes, 0x10);
	cr_expect_eq(table.items[3].reach_bytes, 0x80);
	cr_expect_eq(table.items[4].reach_bytes, 0x80);
	elf_symbols_deinit(&table);
}

/* As in libLLVM-14: one function has three names without a size, and a fourth with one. */
Test(elf_symbols, ends_a_second_name_where_the_function_ends)
{
	static const struct elf_builder_symbol symbols[] = {
		{ "alias", TEXT, 0, STB_GLOBAL, STT_FUNC },
		{ "other_alias", TEXT, 0, STB_WEAK, STT_FUNC },
		{ "function", TEXT, 0x21, STB_LOCAL, STT_FUNC },
		{ "behind_the_padding", TEXT + 0x30, 8, STB_GLOBAL, STT_FUNC },
	};
	struct object_file *object AUTO_OBJECT_FILE =
		open_symbols(symbols, 4, (struct elf_builder_options){ 0 });
	struct elf_symbols table;

	cr_assert_null(elf_symbols_read(object, &table));
	cr_assert_eq(table.count, 4);
	for (size_t i = 0; i < 3; i++)
		cr_expect_eq(table.items[i].reach_bytes, 0x21, "%s", table.items[i].name);
	elf_symbols_deinit(&table);
}

/* Labels in assembler code. eu-addr2line gives the padding after the function no name either. */
Test(elf_symbols, ends_a_label_where_its_function_ends)
{
	static const struct elf_builder_symbol symbols[] = {
		{ "function", TEXT, 0x21, STB_GLOBAL, STT_FUNC },
		{ "inner", TEXT + 8, 4, STB_LOCAL, STT_FUNC },
		{ "label", TEXT + 0x10, 0, STB_LOCAL, STT_NOTYPE },
		{ "last_label", TEXT + 0x20, 0, STB_LOCAL, STT_NOTYPE },
		{ "label_behind", TEXT + 0x28, 0, STB_LOCAL, STT_NOTYPE },
		{ "behind_the_padding", TEXT + 0x30, 8, STB_GLOBAL, STT_FUNC },
	};
	struct object_file *object AUTO_OBJECT_FILE =
		open_symbols(symbols, 6, (struct elf_builder_options){ 0 });
	struct elf_symbols table;

	cr_assert_null(elf_symbols_read(object, &table));
	cr_assert_eq(table.count, 6);
	cr_expect_eq(table.items[2].reach_bytes, 0x10);
	cr_expect_eq(table.items[3].reach_bytes, 1);
	cr_expect_eq(table.items[4].reach_bytes, 8);
	elf_symbols_deinit(&table);
}

/* As in the C library; gdb and eu-addr2line choose free, too. */
Test(elf_symbols, puts_the_name_of_an_old_version_last)
{
	static const struct elf_builder_symbol symbols[] = {
		{ "cfree@GLIBC_2.2.5", TEXT, 0x10, STB_GLOBAL, STT_FUNC },
		{ "__free", TEXT, 0x10, STB_LOCAL, STT_FUNC },
		{ "free", TEXT, 0x10, STB_GLOBAL, STT_FUNC },
		{ "__libc_free", TEXT, 0x10, STB_GLOBAL, STT_FUNC },
		{ "__memcpy", TEXT + 0x20, 0x10, STB_GLOBAL, STT_FUNC },
		{ "memcpy@@GLIBC_2.14", TEXT + 0x20, 0x10, STB_GLOBAL, STT_FUNC },
	};
	struct object_file *object AUTO_OBJECT_FILE =
		open_symbols(symbols, 6, (struct elf_builder_options){ 0 });
	struct elf_symbols table;

	cr_assert_null(elf_symbols_read(object, &table));
	cr_assert_eq(table.count, 6);
	cr_expect_str_eq(table.items[0].name, "free");
	cr_expect_str_eq(table.items[3].name, "cfree@GLIBC_2.2.5");
	cr_expect_str_eq(table.items[4].name, "memcpy@@GLIBC_2.14");
	elf_symbols_deinit(&table);
}

/* As in libnsl, whose functions all have an old version, and in the C library. */
Test(elf_symbols, puts_internal_aliases_last)
{
	static const struct elf_builder_symbol symbols[] = {
		{ "__EI_nis_getnames", TEXT, 0x10, STB_LOCAL, STT_FUNC },
		{ "__GI_nis_getnames", TEXT, 0x10, STB_LOCAL, STT_FUNC },
		{ "nis_getnames@GLIBC_2.2.5", TEXT, 0x10, STB_GLOBAL, STT_FUNC },
		{ "__GI_____strtof_l_internal", TEXT + 0x20, 0x10, STB_LOCAL, STT_FUNC },
		{ "____strtof_l_internal", TEXT + 0x20, 0x10, STB_LOCAL, STT_FUNC },
	};
	struct object_file *object AUTO_OBJECT_FILE =
		open_symbols(symbols, 5, (struct elf_builder_options){ 0 });
	struct elf_symbols table;

	cr_assert_null(elf_symbols_read(object, &table));
	cr_assert_eq(table.count, 5);
	cr_expect_str_eq(table.items[0].name, "nis_getnames@GLIBC_2.2.5");
	cr_expect_str_eq(table.items[3].name, "____strtof_l_internal");
	elf_symbols_deinit(&table);
}

/* A stripped C library has versions only in .gnu.version. */
Test(elf_symbols, puts_an_old_version_of_the_version_table_last)
{
	static const struct elf_builder_symbol symbols[] = {
		{ "cfree", TEXT, 0x10, STB_GLOBAL, STT_FUNC },
		{ "free", TEXT, 0x10, STB_GLOBAL, STT_FUNC },
		{ "only_old", TEXT + 0x20, 0x10, STB_GLOBAL, STT_FUNC },
	};
	static const uint16_t versions[] = { 0x8002, 2, 0x8003 };
	struct object_file *object AUTO_OBJECT_FILE = open_symbols(
		symbols, 3,
		(struct elf_builder_options){ .dynamic_only = true, .versions = versions });
	struct elf_symbols table;

	cr_assert_null(elf_symbols_read(object, &table));
	cr_assert_eq(table.count, 3);
	cr_expect_str_eq(table.items[0].name, "free");
	cr_expect_str_eq(table.items[1].name, "cfree");
	cr_expect_str_eq(table.items[2].name, "only_old");
	elf_symbols_deinit(&table);
}

Test(elf_symbols, removes_versions_from_names)
{
	static const struct elf_builder_symbol symbols[] = {
		{ "fopen@@GLIBC_2.2.5", TEXT, 0x10, STB_GLOBAL, STT_FUNC },
		{ "memcpy@GLIBC_2.2.5", TEXT + 0x10, 0x10, STB_GLOBAL, STT_FUNC },
		{ "plain", TEXT + 0x20, 0x10, STB_GLOBAL, STT_FUNC },
		{ "@odd", TEXT + 0x30, 0x10, STB_GLOBAL, STT_FUNC },
	};
	static const size_t lengths[] = { 5, 6, 5, 4 };
	struct object_file *object AUTO_OBJECT_FILE =
		open_symbols(symbols, 4, (struct elf_builder_options){ 0 });
	struct elf_symbols table;

	cr_assert_null(elf_symbols_read(object, &table));
	cr_assert_eq(table.count, 4);
	for (size_t i = 0; i < 4; i++)
		cr_expect_eq(elf_symbols_name_bytes(&table.items[i]), lengths[i]);
	elf_symbols_deinit(&table);
}

/* e_phnum can claim 65,535 segments, each of which would be compared with each mapping. */
Test(elf_symbols, rejects_a_file_with_too_many_segments)
{
	size_t size_bytes = 64 + 1000 * sizeof(Elf64_Phdr);
	uint8_t *bytes = calloc(1, size_bytes);
	Elf64_Ehdr *header = (Elf64_Ehdr *)bytes;
	struct object_file *object = NULL;
	struct sym_error *error;
	int fd;

	cr_assert_not_null(bytes);
	*header = (Elf64_Ehdr){
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB },
		.e_phoff = 64,
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1000,
	};
	for (size_t i = 0; i < 1000; i++)
		((Elf64_Phdr *)(bytes + 64))[i].p_type = PT_LOAD;
	fd = elf_builder_file(bytes, size_bytes);
	error = object_file_open(NULL, fd, "many", 0, SPARSE_FILE_TO_END, &object);
	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), SYM_ERROR_FORMAT);
	cr_expect_null(object);
	sym_error_destroy(error);
	close(fd);
	free(bytes);
}

Test(elf_symbols, has_no_symbols_without_section_headers)
{
	static const struct elf_builder_symbol symbols[] = {
		{ "f", TEXT, 0x20, STB_GLOBAL, STT_FUNC },
	};
	size_t size_bytes;
	uint8_t *bytes =
		elf_builder_make(symbols, 1, (struct elf_builder_options){ 0 }, &size_bytes);
	struct object_file *object AUTO_OBJECT_FILE = NULL;
	struct elf_symbols table;

	((Elf64_Ehdr *)bytes)->e_shoff = 0;
	((Elf64_Ehdr *)bytes)->e_shnum = 0;
	object = open_bytes(bytes, size_bytes);
	cr_assert_null(elf_symbols_read(object, &table));
	cr_expect_eq(table.count, 0);
	elf_symbols_deinit(&table);
	free(bytes);
}

/* Every truncation and every changed byte of the tables yields an answer or an error, never a crash
 * (run with SAN=1). */
Test(elf_symbols, survives_every_truncation_and_every_flipped_byte)
{
	static const struct elf_builder_symbol symbols[] = {
		{ "f", TEXT, 0x20, STB_GLOBAL, STT_FUNC },
		{ "g", TEXT + 0x20, 0, STB_WEAK, STT_FUNC },
	};
	size_t size_bytes, tables = 0x2000, good = 0;
	uint8_t *bytes =
		elf_builder_make(symbols, 2, (struct elf_builder_options){ 0 }, &size_bytes);

	for (size_t i = 0; i < size_bytes * 2; i++) {
		size_t at = i / 2;
		bool cut = i % 2;
		struct object_file *object AUTO_OBJECT_FILE = NULL;
		struct elf_symbols table;
		struct sym_error *error;
		int fd;

		if (at >= 256 && at < tables)
			continue;
		bytes[at] ^= 0xff;
		fd = elf_builder_file(bytes, cut ? at : size_bytes);
		bytes[at] ^= 0xff;
		error = object_file_open(NULL, fd, "built.so", 0, SPARSE_FILE_TO_END, &object);
		if (error)
			close(fd);
		if (!error && object->kind == SYM_IMAGE_ELF)
			error = elf_symbols_read(object, &table);
		else if (!error)
			continue;
		good += !error;
		if (error)
			sym_error_destroy(error);
		else
			elf_symbols_deinit(&table);
	}
	cr_expect_gt(good, 0);
	free(bytes);
}

/* The string table then ends inside the last name. */
static void cut_last_name(uint8_t *file)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)(void *)file;
	Elf64_Shdr *sections = (Elf64_Shdr *)(void *)(file + header->e_shoff);

	for (size_t i = 0; i < header->e_shnum; i++) {
		Elf64_Shdr *strings = &sections[sections[i].sh_link];

		while (sections[i].sh_type == SHT_SYMTAB &&
		       !file[strings->sh_offset + strings->sh_size - 1])
			strings->sh_size--;
	}
}

/* Names are measured only in tables with a long name, or whose last name has no end. */
Test(elf_symbols, reads_names_of_any_length_and_drops_one_without_an_end)
{
	static const size_t lengths[] = { 1, 511, 512, 513, 1022, 1023, 1024, 1025, 5000 };
	static char names[9][5001];

	for (size_t i = 0; i < 9; i++)
		memset(names[i], 'n', lengths[i]);
	for (size_t i = 0; i < 2 * 9; i++) {
		const struct elf_builder_symbol symbols[] = {
			{ names[i / 2], TEXT, 1, STB_GLOBAL, STT_FUNC },
			{ "last", TEXT + 1, 1, STB_GLOBAL, STT_FUNC },
		};
		struct object_file *object AUTO_OBJECT_FILE = NULL;
		bool is_cut = i % 2;
		struct elf_symbols table;
		size_t size_bytes;
		uint8_t *file = elf_builder_make(symbols, 2, (struct elf_builder_options){ 0 },
						 &size_bytes);

		if (is_cut)
			cut_last_name(file);
		object = open_bytes(file, size_bytes);
		free(file);
		cr_assert_null(elf_symbols_read(object, &table));
		cr_assert_eq(table.count, is_cut ? 1 : 2, "%zu bytes", lengths[i / 2]);
		cr_expect_str_eq(table.items[0].name, names[i / 2]);
		elf_symbols_deinit(&table);
	}
}

/* The file contains the name once, however many symbols have it. */
Test(elf_symbols, bounds_long_names_by_the_size_of_the_file)
{
	enum {
		COUNT = 2000,
		LONG = 5000
	};
	static struct elf_builder_symbol symbols[COUNT + 1];
	char name[LONG + 1];
	struct object_file *object AUTO_OBJECT_FILE = NULL;
	struct elf_symbols table;
	size_t bytes = 0, size_bytes;
	uint8_t *file;

	memset(name, 'n', LONG);
	name[LONG] = '\0';
	symbols[0] = (struct elf_builder_symbol){ name, TEXT, 1, STB_GLOBAL, STT_FUNC };
	for (size_t i = 1; i <= COUNT; i++)
		symbols[i] = (struct elf_builder_symbol){ "n", TEXT + 2 * (i % 1000), 1, STB_GLOBAL,
							  STT_FUNC };
	file = elf_builder_make(symbols, COUNT + 1, (struct elf_builder_options){ 0 }, &size_bytes);
	share_first_name(file, size_bytes);
	object = open_bytes(file, size_bytes);
	free(file);
	cr_assert_null(elf_symbols_read(object, &table));
	cr_expect_gt(table.count, 0);
	for (size_t i = 0; i < table.count; i++)
		bytes += strlen(table.items[i].name);
	cr_expect_leq(bytes, 4 * size_bytes, "%zu bytes of names out of %zu", bytes, size_bytes);
	elf_symbols_deinit(&table);
}

Test(elf_symbols, is_charged_for_its_items)
{
	static const struct elf_builder_symbol symbols[] = {
		{ "first", TEXT, 0x20, STB_LOCAL, STT_FUNC },
		{ "second", TEXT + 0x20, 0x10, STB_GLOBAL, STT_FUNC },
	};
	size_t size_bytes;
	uint8_t *bytes =
		elf_builder_make(symbols, 2, (struct elf_builder_options){ 0 }, &size_bytes);
	int fd = elf_builder_file(bytes, size_bytes);
	struct object_file *object = NULL;
	struct elf_symbols table;
	struct sym_error *error;
	struct budget budget;

	free(bytes);
	budget_init(&budget);
	cr_assert_null(
		object_file_open(&budget.others, fd, "built.so", 0, SPARSE_FILE_TO_END, &object));
	cr_expect_eq(budget.others.held_bytes, 0, "nothing is held before it is asked for");
	cr_assert_null(elf_symbols_read(object, &table));
	cr_expect_geq(budget.others.held_bytes, 2 * sizeof(*table.items));
	elf_symbols_deinit(&table);
	cr_expect_eq(budget.others.held_bytes, 0);
	budget.others.most_bytes = 4 * sizeof(*table.items);
	error = elf_symbols_read(object, &table);
	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), SYM_ERROR_LIMIT);
	cr_expect_eq(budget.others.held_bytes, 0);
	sym_error_destroy(error);
	object_file_close(object);
	budget_deinit(&budget);
}
