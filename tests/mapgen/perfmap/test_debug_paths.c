/* SPDX-License-Identifier: MIT */
/* The text about debug files changes when one is put beside a mapped image, and only then. */
#include "mapgen/perfmap/debug_paths.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/elf_builder.h"
#include "tests/support/program.h"

static const struct elf_builder_symbol symbols[] = {
	{ "exported", ELF_BUILDER_TEXT_VADDR, 0x20, STB_GLOBAL, STT_FUNC },
};

/* A library in a directory of its own, mapped as a process maps it. */
static char *map_library(struct elf_builder_options options)
{
	char *directory = scratch_create(), *path = scratch_path(directory, "libmapped.so");
	size_t size_bytes;
	uint8_t *bytes = elf_builder_make(symbols, 1, options, &size_bytes);
	int fd;

	scratch_write(path, bytes, size_bytes);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	cr_assert_neq(mmap(NULL, 0x1000, PROT_READ, MAP_PRIVATE, fd, 0), MAP_FAILED);
	cr_assert_neq(mmap(NULL, ELF_BUILDER_TEXT_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
			   ELF_BUILDER_TEXT_OFFSET),
		      MAP_FAILED);
	close(fd);
	free(bytes);
	free(path);
	return directory;
}

static char *describe_own_process(void)
{
	struct sym_snapshot *snapshot = NULL;
	int root_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct buf text;
	char *made;

	cr_assert_null(sym_snapshot_open(getpid(), NULL, &snapshot));
	buf_init(&text, 1 << 20);
	debug_paths_append(snapshot, root_fd, NULL, &text);
	made = buf_steal(&text, NULL);
	cr_assert_not_null(made);
	sym_snapshot_close(snapshot);
	close(root_fd);
	return made;
}

static void expect_change(const char *name, struct elf_builder_options options, bool expected)
{
	char *directory = map_library(options);
	char *below = scratch_path(directory, ".debug"), *path = scratch_path(directory, name);
	char *first = describe_own_process(), *second = describe_own_process(), *third;

	cr_expect_str_eq(first, second);
	cr_assert_eq(mkdir(below, 0755), 0);
	scratch_write(path, "not an ELF file", 11);
	third = describe_own_process();
	cr_expect_eq(!!strcmp(second, third), expected, "%s", third);
	free(third);
	free(second);
	free(first);
	free(path);
	free(below);
	scratch_remove(directory);
}

Test(debug_places, sees_a_debug_file_beside_the_image)
{
	expect_change("libmapped.so.dbg",
		      (struct elf_builder_options){ .dynamic_only = true,
						    .debug_link = "libmapped.so.dbg" },
		      true);
}

Test(debug_places, sees_a_debug_file_in_the_debug_directory_beside_the_image)
{
	expect_change(".debug/libmapped.so.dbg",
		      (struct elf_builder_options){ .dynamic_only = true,
						    .debug_link = "libmapped.so.dbg" },
		      true);
}

Test(debug_places, does_not_mind_other_files)
{
	expect_change("libmapped.log",
		      (struct elf_builder_options){ .dynamic_only = true,
						    .debug_link = "libmapped.so.dbg" },
		      false);
}

Test(debug_places, does_not_mind_debug_files_of_images_with_symbols)
{
	expect_change("libmapped.so.dbg",
		      (struct elf_builder_options){ .debug_link = "libmapped.so.dbg" }, false);
}

Test(debug_places, is_not_misled_by_links_that_are_no_file_names)
{
	expect_change("libmapped.so.dbg",
		      (struct elf_builder_options){ .dynamic_only = true,
						    .debug_link = "../../../etc/./" },
		      false);
}
