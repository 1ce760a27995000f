/* SPDX-License-Identifier: MIT */
/* Files put together from what a process has of them, parts of which the dynamic linker changed. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/address_space.h"
#include "libsym/elf_symbols.h"
#include "libsym/memory_image.h"

static struct image *open_file(int fd, const char *path)
{
	struct image *image = NULL;

	cr_assert_geq(fd, 0, "%s", path);
	cr_assert_null(image_open(fd, path, 0, SPARSE_FILE_TO_END, &image));
	return image;
}

/* What this process has of a library. */
static struct image *collect(const char *path)
{
	struct process *process AUTO_PROCESS = NULL;
	struct address_space *space AUTO_ADDRESS_SPACE = NULL;
	const struct mapped_file *file;
	struct image *image;
	int fd = -1;

	cr_assert_null(process_open(getpid(), NULL, &process));
	cr_assert_null(address_space_read(process, &space));
	file = space->files;
	while (file < space->files + space->file_count && strcmp(file->path, path) != 0)
		file++;
	cr_assert_lt(file, space->files + space->file_count, "%s is not mapped", path);
	cr_assert_null(memory_image_collect(process, space->mappings, file->mapping_indexes,
					    file->mapping_count, path, &fd));
	image = open_file(fd, path);
	image->is_copy = true;
	return image;
}

static bool has(const struct elf_symbols *table, const struct elf_symbol *wanted)
{
	for (size_t i = 0; i < table->count; i++)
		if (table->items[i].vaddr == wanted->vaddr &&
		    table->items[i].size_bytes == wanted->size_bytes &&
		    !strcmp(table->items[i].name, wanted->name))
			return true;
	return false;
}

static void compare(const char *path)
{
	struct image *file AUTO_IMAGE = open_file(open(path, O_RDONLY | O_CLOEXEC), path);
	struct image *copy AUTO_IMAGE = collect(path);
	struct elf_symbols expected, found;

	cr_assert_null(elf_symbols_read(file, &expected));
	cr_assert_null(elf_symbols_read(copy, &found));
	/* With its symbol table a library has more than what is loaded. */
	if (!expected.has_full_table)
		cr_expect_eq(found.count, expected.count, "%s", path);
	cr_expect_gt(found.count, 50, "%zu of %s", found.count, path);
	for (size_t i = 0; i < found.count; i += 17)
		cr_expect(has(&expected, &found.items[i]), "%s", found.items[i].name);
	elf_symbols_deinit(&expected);
	elf_symbols_deinit(&found);
}

Test(memory_image, has_the_exports_of_libraries_that_are_loaded)
{
	static const char *const names[] = { "libm.so.6", "libstdc++.so.6", "libelf.so.1" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void *library = dlopen(names[i], RTLD_NOW);
		struct link_map *map;
		char path[PATH_MAX];

		cr_assert_not_null(library, "%s", dlerror());
		cr_assert_eq(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
		cr_assert_not_null(realpath(map->l_name, path));
		compare(path);
	}
}
