/* SPDX-License-Identifier: MIT */
#include "libsym/debugfile.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libsym/elf_symbols.h"
#include "tests/support/elf_builder.h"
#include "tests/support/program.h"

static const struct elf_builder_symbol symbols[] = {
	{ "a_static_function", ELF_BUILDER_TEXT_VADDR, 0x20, STB_LOCAL, STT_FUNC },
};

/* A tree with one debug file, filed under the build-id 1111... and having the one given. */
static char *tree_with(uint8_t build_id)
{
	char *tree = scratch_create();
	char *directory = scratch_path(tree, "11");
	char *path = scratch_path(tree, "11/11111111111111111111111111111111111111.debug");
	struct elf_builder_options options = { .build_id = build_id };
	size_t size_bytes;
	uint8_t *bytes = elf_builder_make(symbols, 1, options, &size_bytes);

	cr_assert_eq(mkdir(directory, 0755), 0);
	scratch_write(path, bytes, size_bytes);
	free(bytes);
	free(path);
	free(directory);
	return tree;
}

static struct elf_build_id id_of_byte(uint8_t byte)
{
	struct elf_build_id id = { .size_bytes = 20 };

	memset(id.bytes, byte, id.size_bytes);
	return id;
}

Test(debugfile, is_found_by_build_id)
{
	struct elf_build_id id = id_of_byte(0x11);
	struct image *image AUTO_IMAGE = NULL;
	struct elf_symbols table;
	char *tree = tree_with(0x11);

	cr_assert_null(debugfile_open(-1, tree, &id, &image));
	cr_assert_not_null(image);
	cr_assert_null(elf_symbols_read(image, &table));
	cr_assert_eq(table.count, 1);
	cr_expect(table.has_full_table);
	cr_expect_eq(table.build_id.size_bytes, 20);
	cr_expect_str_eq(table.items[0].name, "a_static_function");
	elf_symbols_deinit(&table);
	scratch_remove(tree);
}

Test(debugfile, is_not_believed_with_another_build_id_or_none)
{
	static const uint8_t others[] = { 0x22, 0 };
	struct elf_build_id id = id_of_byte(0x11);

	for (size_t i = 0; i < sizeof(others); i++) {
		struct image *image AUTO_IMAGE = NULL;
		char *tree = tree_with(others[i]);

		cr_assert_null(debugfile_open(-1, tree, &id, &image));
		cr_expect_null(image);
		scratch_remove(tree);
	}
}

Test(debugfile, may_be_missing)
{
	struct elf_build_id other = id_of_byte(0x33), none = { .size_bytes = 0 };
	struct image *image AUTO_IMAGE = NULL;
	char *tree = tree_with(0x11);

	cr_assert_null(debugfile_open(-1, tree, &other, &image));
	cr_expect_null(image);
	cr_assert_null(debugfile_open(-1, tree, &none, &image));
	cr_expect_null(image);
	scratch_remove(tree);
}

Test(debugfile, is_not_used_when_it_is_damaged)
{
	struct elf_build_id id = id_of_byte(0x11);
	struct image *image AUTO_IMAGE = NULL;
	char *tree = tree_with(0x11);
	char *path = scratch_path(tree, "11/11111111111111111111111111111111111111.debug");

	scratch_write(path, "\177ELF\2\1", 6);
	cr_assert_null(debugfile_open(-1, tree, &id, &image));
	cr_expect_null(image);
	free(path);
	scratch_remove(tree);
}
