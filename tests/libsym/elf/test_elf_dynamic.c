/* SPDX-License-Identifier: MIT */
/* Files without section headers: the output of sstrip, and files in the memory of a process. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsym/elf/elf_symbols.h"
#include "tests/support/elf_builder.h"

/* The C library of this process. */
static uint8_t *read_library(size_t *size_bytes_ret)
{
	struct stat status;
	uint8_t *bytes;
	Dl_info info;
	int fd;

	cr_assert(dladdr((void *)(uintptr_t)&qsort, &info));
	fd = open(info.dli_fname, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	cr_assert_eq(fstat(fd, &status), 0);
	*size_bytes_ret = (size_t)status.st_size;
	bytes = malloc(*size_bytes_ret);
	cr_assert_not_null(bytes);
	cr_assert_eq(read(fd, bytes, *size_bytes_ret), status.st_size);
	close(fd);
	return bytes;
}

static struct object_file *open_bytes(const uint8_t *bytes, size_t size_bytes)
{
	struct object_file *object = NULL;

	cr_assert_null(object_file_open(NULL, elf_builder_file(bytes, size_bytes), "libc.so", 0,
					SPARSE_FILE_TO_END, &object));
	return object;
}

static bool has(const struct elf_symbols *table, const struct elf_symbol *wanted)
{
	for (size_t i = 0; i < table->count; i++)
		if (table->items[i].vaddr == wanted->vaddr &&
		    table->items[i].size_bytes == wanted->size_bytes &&
		    table->items[i].traits == wanted->traits &&
		    !strcmp(table->items[i].name, wanted->name))
			return true;
	return false;
}

Test(elf_dynamic, has_the_exports_of_a_file_without_section_headers)
{
	size_t size_bytes, compared = 0;
	uint8_t *bytes = read_library(&size_bytes);
	struct object_file *whole AUTO_OBJECT_FILE = open_bytes(bytes, size_bytes),
				  *cut AUTO_OBJECT_FILE = NULL;
	struct elf_symbols expected, found;

	((Elf64_Ehdr *)bytes)->e_shoff = 0;
	((Elf64_Ehdr *)bytes)->e_shnum = 0;
	cut = open_bytes(bytes, size_bytes);
	free(bytes);
	cr_assert_null(elf_symbols_read(whole, &expected));
	cr_assert_null(elf_symbols_read(cut, &found));
	cr_assert_gt(found.count, 1000);
	for (size_t i = 0; i < found.count; i += 17, compared++)
		cr_expect(has(&expected, &found.items[i]), "%s", found.items[i].name);
	cr_expect_gt(compared, 50);
	cr_expect_eq(found.build_id.size_bytes, expected.build_id.size_bytes);
	elf_symbols_deinit(&expected);
	elf_symbols_deinit(&found);
}

/* Malformed values yield at most fewer symbols (run with SAN=1). */
Test(elf_dynamic, survives_every_changed_word_of_the_dynamic_segment)
{
	size_t size_bytes;
	uint8_t *bytes = read_library(&size_bytes);
	Elf64_Ehdr *header = (Elf64_Ehdr *)bytes;
	Elf64_Phdr *dynamic = (Elf64_Phdr *)(bytes + header->e_phoff);

	header->e_shoff = 0;
	header->e_shnum = 0;
	while (dynamic->p_type != PT_DYNAMIC)
		dynamic++;
	for (size_t i = 0; i < dynamic->p_filesz / sizeof(Elf64_Dyn); i++) {
		Elf64_Dyn *entry = (Elf64_Dyn *)(bytes + dynamic->p_offset) + i;
		const uint64_t lies[] = { 0, 1, entry->d_un.d_val + 8, 1 << 20, UINT64_MAX };
		uint64_t truth = entry->d_un.d_val;

		for (size_t k = 0; k < 5 && entry->d_tag != DT_NULL; k++) {
			struct object_file *object AUTO_OBJECT_FILE = NULL;
			struct elf_symbols table = { 0 };

			entry->d_un.d_val = lies[k];
			object = open_bytes(bytes, size_bytes);
			sym_error_destroy(elf_symbols_read(object, &table));
			elf_symbols_deinit(&table);
		}
		entry->d_un.d_val = truth;
	}
	free(bytes);
}
