/* SPDX-License-Identifier: MIT */
/* The public functions about one file: where the names of a native image come from. */
#include <criterion/criterion.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

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

Test(image_api, reports_the_images_own_symbol_table)
{
	expect_symbol_file((struct elf_builder_options){ 0 }, true);
}

Test(image_api, does_not_count_exports_as_a_symbol_table)
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

/* As with -ffunction-sections: a symbol at 0x10 of one section does not name 0x10 of another. */
Test(image_api, names_no_vaddr_in_a_relocatable_file)
{
	char *directory = scratch_create(), *path = scratch_path(directory, "cached_object.o");
	uint64_t vaddr = ELF_BUILDER_TEXT_VADDR + 0x30;
	struct sym_result *result;
	struct sym_image *image;
	size_t size_bytes;
	uint8_t *bytes =
		elf_builder_make(symbols, 2, (struct elf_builder_options){ 0 }, &size_bytes);
	Elf64_Ehdr header;

	memcpy(&header, bytes, sizeof(header));
	header.e_type = ET_REL;
	header.e_phnum = 0;
	memcpy(bytes, &header, sizeof(header));
	scratch_write(path, bytes, size_bytes);
	cr_assert_null(sym_image_open(path, &image));
	cr_assert_null(sym_result_create(&result));
	cr_assert_null(sym_image_resolve(image, SYM_POSITION_VADDR, &vaddr, 1, result));
	cr_expect_eq(sym_result_at(result, 0)->status, SYM_UNSUPPORTED);
	cr_expect_null(sym_result_at(result, 0)->name);
	sym_result_destroy(result);
	sym_image_close(image);
	free(bytes);
	free(path);
	scratch_remove(directory);
}

/* The bytes of the file identify the functions. */
Test(image_api, lists_functions_by_file_offset)
{
	char *directory = scratch_create(), *path = scratch_path(directory, "program");
	const struct sym_symbol *found;
	struct sym_symbols *list;
	struct sym_image *image;
	size_t size_bytes;
	uint8_t *bytes =
		elf_builder_make(symbols, 2, (struct elf_builder_options){ 0 }, &size_bytes);

	memcpy(bytes + ELF_BUILDER_TEXT_OFFSET + 0x20, "\xde\xad\xbe\xef", 4);
	scratch_write(path, bytes, size_bytes);
	cr_assert_null(sym_image_open(path, &image));
	cr_assert_null(sym_image_symbols(image, SYM_IMAGE_SYMBOLS_BY_OFFSET, &list));
	cr_assert_eq(sym_symbols_count(list), 2);
	found = sym_symbols_at(list, 1);
	cr_expect_str_eq(found->name, "exported");
	cr_assert_leq(found->start, size_bytes - 4);
	cr_expect_eq(memcmp(bytes + found->start, "\xde\xad\xbe\xef", 4), 0);
	sym_symbols_destroy(list);
	sym_image_close(image);
	free(bytes);
	free(path);
	scratch_remove(directory);
}

/* ---- places of debug files ---- */

struct heard {
	char *places[16];
	uint32_t flags[16];
	size_t count, most;
};

static int hear(void *context, const struct sym_debug_path *place)
{
	struct heard *heard = context;

	cr_assert_lt(heard->count, 16);
	heard->places[heard->count] = strdup(place->path);
	heard->flags[heard->count++] = place->flags;
	return heard->count == heard->most;
}

static void forget(struct heard *heard)
{
	for (size_t i = 0; i < heard->count; i++)
		free(heard->places[i]);
	heard->count = 0;
}

/* An image with one symbol, made with `options`, in a directory of its own. */
static struct sym_image *open_made(struct elf_builder_options options, char **directory_ret)
{
	char *directory = scratch_create(), *path = scratch_path(directory, "program");
	struct sym_image *image;
	size_t size_bytes;
	uint8_t *bytes = elf_builder_make(symbols, 1, options, &size_bytes);

	scratch_write(path, bytes, size_bytes);
	cr_assert_null(sym_image_open(path, &image));
	free(bytes);
	free(path);
	*directory_ret = directory;
	return image;
}

/* gdb's manual, "Separate Debug Files", for the debug directory of distributions. */
Test(image_api, lists_debug_paths_in_the_order_of_debuggers)
{
	struct elf_builder_options options = { .dynamic_only = true,
					       .build_id = 0x5a,
					       .debug_link = "program.debug" };
	struct heard heard = { .most = 99 };
	char *directory, *expected[4];
	struct sym_image *image = open_made(options, &directory);
	char *real = realpath(directory, NULL);

	expected[0] = strdup("/usr/lib/debug/.build-id/5a/"
			     "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a.debug");
	cr_assert_geq(asprintf(&expected[1], "%s/program.debug", real), 0);
	cr_assert_geq(asprintf(&expected[2], "%s/.debug/program.debug", real), 0);
	cr_assert_geq(asprintf(&expected[3], "/usr/lib/debug%s/program.debug", real), 0);
	cr_assert_null(sym_image_each_debug_path(image, hear, &heard));
	cr_assert_eq(heard.count, 4);
	for (size_t i = 0; i < 4; i++) {
		cr_expect_str_eq(heard.places[i], expected[i]);
		cr_expect_eq(heard.flags[i], i ? SYM_DEBUG_PATH_BY_LINK : 0);
		free(expected[i]);
	}
	forget(&heard);
	free(real);
	sym_image_close(image);
	scratch_remove(directory);
}

/* For one file: searched before the others, by build-id and by link. */
Test(image_api, lists_given_directories_first)
{
	static const char *const dirs[] = { "/one", "two", NULL };
	struct elf_builder_options options = { .dynamic_only = true,
					       .build_id = 0x5a,
					       .debug_link = "program.debug" };
	struct heard heard = { .most = 99 };
	char *directory, *expected[4];
	struct sym_image *image = open_made(options, &directory);
	char *real = realpath(directory, NULL);

	cr_assert_null(sym_image_set_debug_dirs(image, dirs));
	cr_assert_null(sym_image_each_debug_path(image, hear, &heard));
	cr_assert_eq(heard.count, 8);
	expected[0] = strdup("/one/.build-id/5a/5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a.debug");
	expected[1] = strdup("two/.build-id/5a/5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a.debug");
	cr_assert_geq(asprintf(&expected[2], "/one%s/program.debug", real), 0);
	cr_assert_geq(asprintf(&expected[3], "two%s/program.debug", real), 0);
	for (size_t i = 0; i < 4; i++) {
		/* The one of /usr/lib/debug lies between them. */
		cr_expect_str_eq(heard.places[i < 2 ? i : i + 1], expected[i]);
		free(expected[i]);
	}
	forget(&heard);
	free(real);
	sym_image_close(image);
	scratch_remove(directory);
}

Test(image_api, uses_a_debug_file_in_a_given_directory)
{
	struct elf_builder_options options = { .build_id = 0x5a };
	size_t size_bytes;
	uint8_t *bytes = elf_builder_make(symbols, 2, options, &size_bytes);
	char *tree = scratch_create(), *ids = scratch_path(tree, ".build-id");
	char *below = scratch_path(ids, "5a"), *directory;
	char *file = scratch_path(below, "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a.debug");
	const char *const dirs[] = { tree, NULL };
	struct sym_image *image;
	struct sym_error *error;

	cr_assert_eq(mkdir(ids, 0755) | mkdir(below, 0755), 0);
	scratch_write(file, bytes, size_bytes);
	options.dynamic_only = true;
	image = open_made(options, &directory);
	cr_assert_null(sym_image_set_debug_dirs(image, dirs));
	cr_assert_not_null(sym_image_symbol_file(image));
	cr_expect_str_eq(sym_image_symbol_file(image), file);
	error = sym_image_set_debug_dirs(image, NULL);
	cr_expect_not_null(error, "the directories are in use");
	sym_error_destroy(error);
	sym_image_close(image);
	free(file);
	free(below);
	free(ids);
	free(bytes);
	scratch_remove(directory);
	scratch_remove(tree);
}

Test(image_api, stops_listing_paths_when_the_callback_stops)
{
	struct elf_builder_options options = { .build_id = 0x5a, .debug_link = "program.debug" };
	struct heard heard = { .most = 2 };
	char *directory;
	struct sym_image *image = open_made(options, &directory);

	cr_assert_null(sym_image_each_debug_path(image, hear, &heard));
	cr_expect_eq(heard.count, 2);
	forget(&heard);
	sym_image_close(image);
	scratch_remove(directory);
}

Test(image_api, lists_no_path_without_build_id_and_link)
{
	struct heard heard = { .most = 99 };
	char *directory;
	struct sym_image *image = open_made((struct elf_builder_options){ 0 }, &directory);

	cr_assert_null(sym_image_each_debug_path(image, hear, &heard));
	cr_expect_eq(heard.count, 0);
	sym_image_close(image);
	scratch_remove(directory);
}

Test(image_api, lists_no_debug_path_for_an_assembly)
{
	struct heard heard = { .most = 99 };
	struct sym_image *image;
	struct sym_error *error;

	cr_assert_null(sym_image_open("fixtures/prebuilt/sample.dll", &image));
	error = sym_image_each_debug_path(image, hear, &heard);
	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), SYM_ERROR_UNSUPPORTED);
	sym_error_destroy(error);
	sym_image_close(image);
}

Test(image_api, uses_a_debug_file_at_each_listed_path_beside_the_image)
{
	struct elf_builder_options options = { .build_id = 0x5a };
	size_t size_bytes;
	uint8_t *bytes = elf_builder_make(symbols, 2, options, &size_bytes);

	options.dynamic_only = true;
	options.debug_link = "program.debug";
	options.debug_link_sum = (uint32_t)crc32(0, bytes, (uInt)size_bytes);
	for (size_t i = 1; i < 3; i++) {
		struct heard heard = { .most = 99 };
		char *directory, *below;
		struct sym_image *image = open_made(options, &directory);

		cr_assert_null(sym_image_each_debug_path(image, hear, &heard));
		below = scratch_path(directory, ".debug");
		mkdir(below, 0755);
		free(below);
		scratch_write(heard.places[i], bytes, size_bytes);
		cr_assert_not_null(sym_image_symbol_file(image));
		cr_expect_str_eq(sym_image_symbol_file(image), heard.places[i]);
		forget(&heard);
		sym_image_close(image);
		scratch_remove(directory);
	}
	free(bytes);
}
