/* SPDX-License-Identifier: MIT */
#include "libsym/elf_function_glance.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsym/elf_functions.h"
#include "tests/support/elf_builder.h"
#include "tests/support/image_file.h"

enum {
	QUESTIONS = 4000
};

static const char *const libraries[] = { "libc.so.6", "libcrypto.so.3", "libdw.so.1" };

/* Path of a library that is there; NULL when it is not. */
static const char *path_of(const char *library)
{
	void *loaded = dlopen(library, RTLD_NOW);
	struct link_map *map;

	return loaded && !dlinfo(loaded, RTLD_DI_LINKMAP, &map) ? map->l_name : NULL;
}

static uint64_t any_vaddr(const struct elf_functions *functions)
{
	const struct elf_function_extent *last = &functions->items[functions->count - 1];

	return functions->base +
	       (uint64_t)random() % ((uint64_t)last->distance + last->size_bytes + 64);
}

/* Is that what all functions say? */
static bool is_same(const struct elf_functions *functions, uint64_t vaddr,
		    const struct eh_frame_function *found)
{
	size_t number = elf_functions_find(functions, vaddr);

	return number != ELF_FUNCTIONS_NONE &&
	       found->vaddr == functions->base + functions->items[number].distance &&
	       found->size_bytes == functions->items[number].size_bytes;
}

Test(elf_function_glance, says_what_all_functions_say)
{
	size_t known = 0, hits = 0;

	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		const char *path = path_of(libraries[i]);
		struct image *image AUTO_IMAGE = path ? image_file_open(path) : NULL;
		struct elf_function_glance *glance AUTO_ELF_FUNCTION_GLANCE = NULL;
		const struct elf_functions *functions;

		if (!path)
			continue;
		cr_assert_null(elf_function_glance_open(image, &glance));
		cr_assert_not_null(glance, "%s", path);
		functions = elf_functions_of(image);
		for (int j = 0; j < QUESTIONS; j++) {
			uint64_t vaddr = any_vaddr(functions);
			struct eh_frame_function found;

			known += elf_functions_find(functions, vaddr) != ELF_FUNCTIONS_NONE;
			if (!elf_function_glance_find(glance, vaddr, &found))
				continue;
			hits++;
			cr_assert(is_same(functions, vaddr, &found), "%s: 0x%lx", path,
				  (unsigned long)vaddr);
		}
	}
	cr_expect_gt(known, QUESTIONS / 2);
	cr_expect_gt(hits, known - known / 100, "%zu of %zu", hits, known);
}

/* Rows that lie: whatever is found begins where a record says so, and is as long. */
Test(elf_function_glance, believes_no_row_without_its_record)
{
	const char *path = path_of("libc.so.6");
	struct image *image AUTO_IMAGE = image_file_open(path);
	const struct elf_functions *functions = elf_functions_of(image);
	struct stat status;
	char *bytes;
	size_t hits = 0;

	cr_assert_eq(fstat(image->fd, &status), 0);
	bytes = malloc((size_t)status.st_size);
	for (int round = 0; round < 40; round++) {
		struct elf_function_glance *glance AUTO_ELF_FUNCTION_GLANCE = NULL;
		struct image *bad AUTO_IMAGE = NULL;

		cr_assert_eq(pread(image->fd, bytes, (size_t)status.st_size, 0), status.st_size);
		/* Its vaddr is its offset: it lies in the first segment that is read. */
		for (int i = 0; i < 2000; i++)
			bytes[image->unwind_vaddr + 12 +
			      (uint64_t)random() % (image->unwind_bytes - 12)] = (char)random();
		if (round % 4 == 0)
			bytes[image->unwind_vaddr + 11] = (char)random();
		cr_assert_null(image_open(elf_builder_file(bytes, (size_t)status.st_size), path, 0,
					  SPARSE_FILE_TO_END, &bad));
		cr_assert_null(elf_function_glance_open(bad, &glance));
		for (int i = 0; glance && i < 200; i++) {
			uint64_t vaddr = any_vaddr(functions);
			struct eh_frame_function found;
			size_t number;

			if (!elf_function_glance_find(glance, vaddr, &found))
				continue;
			hits++;
			number = elf_functions_find(functions, found.vaddr);
			cr_assert_neq(number, ELF_FUNCTIONS_NONE);
			cr_assert_eq(found.vaddr,
				     functions->base + functions->items[number].distance);
			cr_assert_leq(found.size_bytes, functions->items[number].size_bytes);
			cr_assert_lt(vaddr - found.vaddr, found.size_bytes);
		}
	}
	cr_expect_gt(hits, 100);
	free(bytes);
}

Test(elf_function_glance, tells_nothing_of_a_file_that_has_changed)
{
	const char *path = path_of("libcrypto.so.3");
	struct image *image AUTO_IMAGE = path ? image_file_open(path) : NULL;
	struct elf_function_glance *glance AUTO_ELF_FUNCTION_GLANCE = NULL;
	struct eh_frame_function found;
	const struct elf_functions *functions;
	uint64_t vaddr;
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (!path)
		cr_skip_test("there is no libcrypto");
	functions = elf_functions_of(image);
	vaddr = functions->base + functions->items[functions->count / 2].distance;
	cr_assert_null(elf_function_glance_open(image, &glance));
	cr_assert(elf_function_glance_find(glance, vaddr, &found));
	cr_expect_eq(found.vaddr, vaddr);
	cr_assert_eq(dup2(null, image->fd), image->fd);
	cr_expect_not(elf_function_glance_find(glance, vaddr, &found));
	close(null);
}
