/* SPDX-License-Identifier: MIT */
/* The oracle is libelf, which reads both files. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "libsym/format/elf/elf_names_only.h"
#include "libsym/format/elf/elf_outline.h"

/* The program of the tests: it has a symbol table and a build-id. */
static struct buf own_program(void)
{
	int fd AUTO_CLOSE = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct buf bytes;

	buf_init(&bytes, 1 << 30);
	cr_assert_eq(path_read_all(fd, &bytes), 0);
	return bytes;
}

static Elf_Scn *table_of(Elf *elf, GElf_Shdr *header)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, header) && header->sh_type == SHT_SYMTAB)
			return section;
	return NULL;
}

/* Lines "VADDR SIZE TYPE NAME" of all functions in sections of code, in order. */
static char **functions_of(const struct buf *bytes, size_t *count_ret)
{
	Elf *elf = elf_memory((char *)bytes->data, bytes->size_bytes);
	GElf_Shdr header, home;
	Elf_Scn *section = table_of(elf, &header);
	Elf_Data *data = elf_getdata(section, NULL);
	size_t total = header.sh_size / header.sh_entsize;
	char **lines = calloc(total + 1, sizeof(*lines));
	GElf_Sym symbol;

	*count_ret = 0;
	for (size_t i = 1; i < total; i++) {
		gelf_getsym(data, (int)i, &symbol);
		if (GELF_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF ||
		    symbol.st_shndx >= SHN_LORESERVE ||
		    !gelf_getshdr(elf_getscn(elf, symbol.st_shndx), &home) ||
		    !(home.sh_flags & SHF_EXECINSTR))
			continue;
		cr_assert(asprintf(&lines[(*count_ret)++], "%016llx %llx %d %s",
				   (unsigned long long)symbol.st_value,
				   (unsigned long long)symbol.st_size, GELF_ST_BIND(symbol.st_info),
				   elf_strptr(elf, header.sh_link, symbol.st_name)) > 0);
	}
	elf_end(elf);
	return lines;
}

static int compare_lines(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

static void free_lines(char **lines, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(lines[i]);
	free(lines);
}

Test(elf_names_only, has_each_function_of_the_file_and_nothing_else)
{
	struct buf whole = own_program(), names;
	struct byte_source source = byte_source_over_memory(whole.data, whole.size_bytes);
	struct elf_outline outline, original;
	const char *failure;
	size_t count, kept_count;
	char **lines, **kept;

	elf_version(EV_CURRENT);
	buf_init(&names, 1 << 30);
	cr_assert(elf_names_only_make(&source, &names, &failure), "%s", failure);
	lines = functions_of(&whole, &count);
	kept = functions_of(&names, &kept_count);
	cr_assert_gt(count, 1000);
	cr_assert_eq(kept_count, count);
	qsort(lines, count, sizeof(*lines), compare_lines);
	qsort(kept, count, sizeof(*kept), compare_lines);
	for (size_t i = 0; i < count; i++)
		cr_assert_str_eq(kept[i], lines[i]);
	cr_assert(elf_outline_read(&source, &original, &failure));
	source = byte_source_over_memory(names.data, names.size_bytes);
	cr_assert(elf_outline_read(&source, &outline, &failure));
	cr_expect_arr_eq(outline.build_id, original.build_id, original.build_id_bytes);
	cr_expect(outline.has_symbol_table && !outline.has_debug_info && !outline.has_code);
	cr_expect_lt(names.size_bytes, whole.size_bytes / 4);
	free_lines(lines, count);
	free_lines(kept, count);
	buf_deinit(&names);
	buf_deinit(&whole);
}

Test(elf_names_only, keeps_a_build_id_in_a_section_of_another_name)
{
	static const char usual[] = ".note.gnu.build-id";
	struct buf whole = own_program(), names;
	struct byte_source source = byte_source_over_memory(whole.data, whole.size_bytes);
	struct elf_outline outline, original;
	const char *failure;
	char *found = NULL;

	/* The last one is in the names of the sections. */
	for (size_t i = 0; i + sizeof(usual) <= whole.size_bytes; i++)
		if (!memcmp(whole.data + i, usual, sizeof(usual)))
			found = (char *)whole.data + i;
	cr_assert_not_null(found);
	found[sizeof(usual) - 2] = 'x';
	buf_init(&names, 1 << 30);
	cr_assert(elf_names_only_make(&source, &names, &failure), "%s", failure);
	cr_assert(elf_outline_read(&source, &original, &failure));
	source = byte_source_over_memory(names.data, names.size_bytes);
	cr_assert(elf_outline_read(&source, &outline, &failure));
	cr_assert_gt(outline.build_id_bytes, 0);
	cr_expect_arr_eq(outline.build_id, original.build_id, original.build_id_bytes);
	buf_deinit(&names);
	buf_deinit(&whole);
}

Test(elf_names_only, is_made_from_a_names_only_file_again)
{
	struct buf whole = own_program(), once, twice;
	struct byte_source source = byte_source_over_memory(whole.data, whole.size_bytes);
	const char *failure;

	buf_init(&once, 1 << 30);
	buf_init(&twice, 1 << 30);
	cr_assert(elf_names_only_make(&source, &once, &failure));
	source = byte_source_over_memory(once.data, once.size_bytes);
	cr_assert(elf_names_only_make(&source, &twice, &failure));
	cr_assert_eq(twice.size_bytes, once.size_bytes);
	cr_expect(!memcmp(twice.data, once.data, once.size_bytes));
	buf_deinit(&once);
	buf_deinit(&twice);
	buf_deinit(&whole);
}

Test(elf_names_only, is_not_made_from_what_is_no_such_file)
{
	struct buf whole = own_program(), names;
	const char *failure = NULL;

	buf_init(&names, 1 << 30);
	for (size_t cut = 0; cut < 600; cut += 7) {
		struct byte_source source = byte_source_over_memory(whole.data, cut);

		cr_expect(!elf_names_only_make(&source, &names, &failure));
		cr_expect_not_null(failure);
		buf_clear(&names);
	}
	/* Without memory for what it makes. */
	buf_deinit(&names);
	buf_init(&names, 4096);
	cr_expect(!elf_names_only_make(&(struct byte_source){ .read = byte_source_read_memory,
							      .data = whole.data,
							      .size_bytes = whole.size_bytes },
				       &names, &failure));
	cr_expect_eq(names.failure, BUF_TOO_BIG);
	buf_deinit(&names);
	buf_deinit(&whole);
}
