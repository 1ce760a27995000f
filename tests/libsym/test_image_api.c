/* SPDX-License-Identifier: MIT */
/* What the public header says of one file: where the names of a native image come from. */
#include <criterion/criterion.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/libsym.h"
#include "tests/support/elf_builder.h"
#include "tests/support/program.h"

static const struct elf_builder_symbol symbols[] = {
	{ "a_method", ELF_BUILDER_TEXT_VADDR, 0x20, STB_LOCAL, STT_NOTYPE },
	{ "exported", ELF_BUILDER_TEXT_VADDR + 0x20, 0x20, STB_GLOBAL, STT_FUNC },
};

static void expect_symbol_file(struct elf_builder_options options, bool itself)
{
	char *directory = scratch_create(), *path = scratch_path(directory, "program");
	struct sym_image *image;
	size_t size_bytes;
	uint8_t *bytes = elf_builder_make(symbols, 2, options, &size_bytes);

	scratch_write(path, bytes, size_bytes);
	cr_assert_null(sym_image_open(path, &image));
	if (itself)
		cr_expect_str_eq(sym_image_symbol_file(image), path);
	else
		cr_expect_null(sym_image_symbol_file(image));
	sym_image_close(image);
	free(bytes);
	free(path);
	scratch_remove(directory);
}

Test(image_api, says_that_an_image_has_its_own_symbol_table)
{
	expect_symbol_file((struct elf_builder_options){ 0 }, true);
}

Test(image_api, takes_exports_for_no_symbol_table)
{
	expect_symbol_file((struct elf_builder_options){ .dynamic_only = true }, false);
}

Test(image_api, has_no_symbol_file_for_an_assembly)
{
	struct sym_image *image;

	cr_assert_null(sym_image_open("fixtures/prebuilt/sample.dll", &image));
	cr_expect_null(sym_image_symbol_file(image));
	sym_image_close(image);
}
