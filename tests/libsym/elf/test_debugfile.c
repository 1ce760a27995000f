/* SPDX-License-Identifier: MIT */
#include "libsym/elf/debugfile.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsym/elf/elf_symbols.h"
#include "tests/support/elf_builder.h"
#include "tests/support/program.h"

#define DEBUG_FILE "usr/lib/debug/.build-id/11/11111111111111111111111111111111111111.debug"

static const struct elf_builder_symbol symbols[] = {
	{ "a_static_function", ELF_BUILDER_TEXT_VADDR, 0x20, STB_LOCAL, STT_FUNC },
};

/* A root directory with one debug file. Its path has the build-id 1111..., its content the given
 * one. */
static char *root_with(uint8_t build_id)
{
	static const char *const below[] = { "usr", "usr/lib", "usr/lib/debug",
					     "usr/lib/debug/.build-id",
					     "usr/lib/debug/.build-id/11" };
	struct elf_builder_options options = { .build_id = build_id };
	char *root = scratch_create(), *path;
	size_t size_bytes;
	uint8_t *bytes = elf_builder_make(symbols, 1, options, &size_bytes);

	for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
		path = scratch_path(root, below[i]);
		cr_assert_eq(mkdir(path, 0755), 0);
		free(path);
	}
	path = scratch_path(root, DEBUG_FILE);
	scratch_write(path, bytes, size_bytes);
	free(bytes);
	free(path);
	return root;
}

/* An image with this build-id, and the state for debugfile_find(). */
struct stripped {
	struct object_file *object;
	struct elf_sections sections;
	struct debugfile_roots roots;
};

static struct stripped open_stripped(const char *root, uint8_t build_id)
{
	struct elf_builder_options options = { .build_id = build_id, .dynamic_only = true };
	struct stripped ret = { .roots.fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC) };
	size_t size_bytes;
	uint8_t *bytes = elf_builder_make(symbols, 1, options, &size_bytes);

	cr_assert_geq(ret.roots.fd, 0);
	cr_assert_null(object_file_open(NULL, elf_builder_file(bytes, size_bytes), "/lib/image.so",
					0, SPARSE_FILE_TO_END, &ret.object));
	cr_assert_null(elf_sections_read(ret.object, &ret.sections));
	free(bytes);
	return ret;
}

static void close_stripped(struct stripped *stripped)
{
	elf_sections_deinit(&stripped->sections);
	object_file_close(stripped->object);
	close(stripped->roots.fd);
}

/* The debug file below `root` of an image with this build-id; NULL if there is none. */
static struct object_file *find_below(const char *root, uint8_t build_id)
{
	struct stripped stripped = open_stripped(root, build_id);
	struct object_file *found = NULL;
	uint64_t distance = 1;

	cr_assert_null(debugfile_find(&stripped.sections, &stripped.roots, &found, &distance));
	cr_expect_eq(distance, 0);
	close_stripped(&stripped);
	return found;
}

Test(debugfile, is_not_treated_as_missing_without_descriptors)
{
	char *root = root_with(0x11);
	struct stripped stripped = open_stripped(root, 0x11);
	struct object_file *found AUTO_OBJECT_FILE = NULL;
	struct rlimit limit, none;
	struct sym_error *error;
	uint64_t distance;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	error = debugfile_find(&stripped.sections, &stripped.roots, &found, &distance);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	cr_assert_not_null(error);
	cr_expect(strstr(sym_error_message(error), "Too many open files"), "%s",
		  sym_error_message(error));
	sym_error_destroy(error);
	cr_assert_null(debugfile_find(&stripped.sections, &stripped.roots, &found, &distance));
	cr_expect_not_null(found);
	close_stripped(&stripped);
	scratch_remove(root);
}

Test(debugfile, is_found_by_build_id)
{
	char *root = root_with(0x11);
	struct object_file *object AUTO_OBJECT_FILE = find_below(root, 0x11);
	struct elf_symbols table;

	cr_assert_not_null(object);
	cr_assert_null(elf_symbols_read(object, &table));
	cr_assert_eq(table.count, 1);
	cr_expect(table.has_full_table);
	cr_expect_eq(table.build_id.size_bytes, 20);
	cr_expect_str_eq(table.items[0].name, "a_static_function");
	elf_symbols_deinit(&table);
	scratch_remove(root);
}

Test(debugfile, is_rejected_with_another_build_id_or_none)
{
	static const uint8_t others[] = { 0x22, 0 };

	for (size_t i = 0; i < sizeof(others); i++) {
		char *root = root_with(others[i]);

		cr_expect_null(find_below(root, 0x11));
		scratch_remove(root);
	}
}

Test(debugfile, may_be_missing)
{
	char *root = root_with(0x11);

	cr_expect_null(find_below(root, 0x33));
	cr_expect_null(find_below(root, 0));
	scratch_remove(root);
}

Test(debugfile, is_not_used_if_damaged)
{
	char *root = root_with(0x11);
	char *path = scratch_path(root, DEBUG_FILE);

	scratch_write(path, "\177ELF\2\1", 6);
	cr_expect_null(find_below(root, 0x11));
	free(path);
	scratch_remove(root);
}
