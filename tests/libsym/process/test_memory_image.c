/* SPDX-License-Identifier: MIT */
/* Files rebuilt from the memory of a process, where the dynamic linker has changed parts. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/elf/elf_symbols.h"
#include "libsym/process/address_space.h"
#include "libsym/process/memory_image.h"

static struct object_file *open_file(int fd, const char *path)
{
	struct object_file *object = NULL;

	cr_assert_geq(fd, 0, "%s", path);
	cr_assert_null(object_file_open(NULL, fd, path, 0, SPARSE_FILE_TO_END, &object));
	return object;
}

/* Rebuilds a library from the memory of this process. */
static struct object_file *collect(const char *path)
{
	struct process *process AUTO_PROCESS = NULL;
	struct address_space *space AUTO_ADDRESS_SPACE = NULL;
	const struct address_space_file *file;
	uint64_t charged_bytes = 0;
	struct object_file *object;
	int fd = -1;

	cr_assert_null(process_open(getpid(), NULL, &process));
	cr_assert_null(address_space_read(process, &space));
	file = space->files;
	while (file < space->files + space->file_count && strcmp(file->path, path) != 0)
		file++;
	cr_assert_lt(file, space->files + space->file_count, "%s is not mapped", path);
	cr_assert_null(memory_image_collect(process, space->mappings, file->mapping_indexes,
					    file->mapping_count, path, &fd, &charged_bytes));
	object = open_file(fd, path);
	object->is_copy = true;
	return object;
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
	struct object_file *file AUTO_OBJECT_FILE =
		open_file(open(path, O_RDONLY | O_CLOEXEC), path);
	struct object_file *copy AUTO_OBJECT_FILE = collect(path);
	struct elf_symbols expected, found;

	cr_assert_null(elf_symbols_read(file, &expected));
	cr_assert_null(elf_symbols_read(copy, &found));
	/* A library with a symbol table has more than its loaded parts. */
	if (!expected.has_full_table)
		cr_expect_eq(found.count, expected.count, "%s", path);
	cr_expect_gt(found.count, 50, "%zu of %s", found.count, path);
	for (size_t i = 0; i < found.count; i += 17)
		cr_expect(has(&expected, &found.items[i]), "%s", found.items[i].name);
	elf_symbols_deinit(&expected);
	elf_symbols_deinit(&found);
}

Test(memory_image, has_the_exports_of_loaded_libraries)
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
