/* SPDX-License-Identifier: MIT */
#include "libsym/elf_glance.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/libsym.h"
#include "tests/support/elf_builder.h"
#include "tests/support/image_file.h"

enum {
	AT_A_TIME = 16, /* as few questions as never build an index */
	MOST_CHECKED = 1500
};

static const struct debugfile_roots here = { .fd = -1 };

/* What the table itself says of a position: the entry with the highest start that covers it. */
static bool covers(const struct elf_symbol *symbol, uint64_t position)
{
	return position >= symbol->vaddr && position - symbol->vaddr < symbol->reach_bytes;
}

static const struct elf_symbol *by_table(const struct elf_symbols *symbols, uint64_t position)
{
	const struct elf_symbol *found = NULL;

	for (size_t i = 0; i < symbols->count; i++) {
		const struct elf_symbol *symbol = &symbols->items[i];

		if (i && symbols->items[i - 1].vaddr == symbol->vaddr)
			continue;
		if (covers(symbol, position) &&
		    (!found || !found->size_bytes || symbol->size_bytes))
			found = symbol;
	}
	return found;
}

/* Is the nearest symbol below a label within a function? Where it ends is for the index to find. */
static bool is_behind_label(const struct elf_symbols *symbols, uint64_t position)
{
	const struct elf_symbol *last = NULL;

	for (size_t i = 0; i < symbols->count && symbols->items[i].vaddr <= position; i++)
		if (!last || symbols->items[i].vaddr != last->vaddr)
			last = &symbols->items[i];
	for (size_t i = 0; last && !last->size_bytes && &symbols->items[i] != last; i++)
		if (last->vaddr - symbols->items[i].vaddr < symbols->items[i].size_bytes)
			return true;
	return false;
}

static size_t compare(struct elf_glance *glance, const struct elf_symbols *symbols,
		      uint64_t position)
{
	const struct elf_symbol *expected = by_table(symbols, position);
	struct elf_symbol found = { 0 };
	enum elf_glance_outcome outcome = elf_glance_find(glance, position, &found);

	if (outcome == ELF_GLANCE_UNABLE) {
		cr_assert(is_behind_label(symbols, position), "0x%lx", (long)position);
		return 0;
	}
	cr_assert_eq(outcome == ELF_GLANCE_HIT, expected != NULL, "0x%lx", (long)position);
	if (!expected)
		return 0;
	cr_assert_eq(found.vaddr, expected->vaddr, "0x%lx: %s, %s", (long)position, found.name,
		     expected->name);
	cr_expect_eq(found.reach_bytes, expected->reach_bytes);
	cr_expect_eq(found.name_bytes, expected->name_bytes);
	cr_expect_str_eq(found.name, expected->name);
	return 1;
}

/* Around every so many symbols of a library that is there. */
static size_t compare_all(const char *path)
{
	struct image *image AUTO_IMAGE = image_file_open(path);
	struct elf_glance *glance AUTO_ELF_GLANCE = NULL;
	struct elf_symbols symbols;
	size_t checked = 0, step;

	cr_assert_null(elf_glance_open(image, &here, &glance));
	if (!glance)
		return 0;
	/* With a debug file the table is that of another image. */
	if (strcmp(elf_glance_path(glance), path) != 0) {
		image_close(image);
		image = image_file_open(elf_glance_path(glance));
	}
	cr_assert_null(elf_symbols_read(image, &symbols));
	cr_expect_eq(elf_glance_is_complete(glance), symbols.has_full_table);
	step = symbols.count / (MOST_CHECKED / 4) + 1;
	for (size_t i = 0; i < symbols.count; i += step) {
		const struct elf_symbol *symbol = &symbols.items[i];

		checked += compare(glance, &symbols, symbol->vaddr);
		checked += compare(glance, &symbols, symbol->vaddr - 1);
		checked += compare(glance, &symbols, symbol->vaddr + symbol->reach_bytes / 2);
		checked += compare(glance, &symbols, symbol->vaddr + symbol->reach_bytes);
	}
	elf_symbols_deinit(&symbols);
	return checked;
}

Test(elf_glance, says_what_the_whole_table_says)
{
	static const char *const libraries[] = { "libc.so.6", "libcrypto.so.3", "libdw.so.1" };
	size_t checked = 0;

	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		void *library = dlopen(libraries[i], RTLD_NOW);
		struct link_map *map;

		if (library && !dlinfo(library, RTLD_DI_LINKMAP, &map))
			checked += compare_all(map->l_name);
	}
	cr_expect_gt(checked, 1000);
}

/* The own program has local and nested symbols, aliases and some without a size. */
Test(elf_glance, says_what_a_full_table_says)
{
	cr_expect_gt(compare_all("/proc/self/exe"), 500);
}

/* What the public interface answers first is what it answers after an index was made. */
Test(elf_glance, is_no_other_answer_than_that_of_the_index)
{
	struct sym_image *once = NULL, *often = NULL;
	struct sym_symbols *symbols = NULL;
	struct sym_result *first = NULL, *later = NULL;
	size_t count, step;

	cr_assert_null(sym_result_create(&first));
	cr_assert_null(sym_result_create(&later));
	cr_assert_null(sym_image_open("/proc/self/exe", &often));
	cr_assert_null(sym_image_symbols(often, 0, &symbols));
	count = sym_symbols_count(symbols);
	step = count / 400 + 1;
	for (size_t i = 0; i < count; i += step) {
		uint64_t position = sym_symbols_at(symbols, i)->start +
				    sym_symbols_at(symbols, i)->size_bytes / 2;
		const struct sym_answer *a, *b;

		if (i / step % AT_A_TIME == 0) {
			sym_image_close(once);
			cr_assert_null(sym_image_open("/proc/self/exe", &once));
		}
		cr_assert_null(sym_image_resolve(once, SYM_POSITION_VADDR, &position, 1, first));
		cr_assert_null(sym_image_resolve(often, SYM_POSITION_VADDR, &position, 1, later));
		a = sym_result_at(first, 0);
		b = sym_result_at(later, 0);
		cr_assert_eq(a->status, b->status);
		if (a->status != SYM_RESOLVED)
			continue;
		cr_expect_str_eq(a->name, b->name);
		cr_expect_eq(a->offset_bytes, b->offset_bytes);
		cr_expect_eq(a->size_bytes, b->size_bytes);
		cr_expect_eq(!a->linkage_name, !b->linkage_name);
	}
	sym_image_close(once);
	sym_symbols_destroy(symbols);
	sym_image_close(often);
	sym_result_destroy(first);
	sym_result_destroy(later);
}

/* As many entries as are not left to the index, each place with two names. */
Test(elf_glance, knows_names_of_old_versions_by_the_table_of_versions)
{
	enum {
		PLACES = 300
	};
	struct elf_builder_symbol symbols[2 * PLACES];
	uint16_t versions[2 * PLACES];
	struct elf_glance *glance AUTO_ELF_GLANCE = NULL;
	struct image *image AUTO_IMAGE = NULL;
	struct elf_symbol found = { 0 };
	size_t size_bytes;
	uint8_t *bytes;

	for (size_t i = 0; i < 2 * PLACES; i++) {
		symbols[i] = (struct elf_builder_symbol){ i % 2 ? "free" : "cfree",
							  ELF_BUILDER_TEXT_VADDR + i / 2 * 8, 8,
							  STB_GLOBAL, STT_FUNC };
		versions[i] = i % 2 ? 2 : 0x8002;
	}
	bytes = elf_builder_make(
		symbols, 2 * PLACES,
		(struct elf_builder_options){ .dynamic_only = true, .versions = versions },
		&size_bytes);
	cr_assert_null(image_open(elf_builder_file(bytes, size_bytes), "old.so", 0,
				  SPARSE_FILE_TO_END, &image));
	cr_assert_null(elf_glance_open(image, &here, &glance));
	cr_assert_not_null(glance);
	for (size_t i = 0; i < PLACES; i += 13) {
		cr_assert_eq(elf_glance_find(glance, ELF_BUILDER_TEXT_VADDR + i * 8 + 3, &found),
			     ELF_GLANCE_HIT);
		cr_expect_str_eq(found.name, "free");
	}
	free(bytes);
}

/* Of 32-bit ARM: what the table has is not everywhere a vaddr. */
Test(elf_glance, leaves_tables_that_mark_thumb_to_the_index)
{
	struct elf_builder_symbol symbols[600];
	struct elf_glance *glance = NULL;
	size_t size_bytes;

	for (size_t i = 0; i < 600; i++)
		symbols[i] =
			(struct elf_builder_symbol){ "thumb", ELF_BUILDER_TEXT_VADDR + i * 4 + 1, 4,
						     STB_GLOBAL, STT_FUNC };
	for (int i = 0; i < 2; i++) {
		struct elf_builder_options options = { .machine = i ? EM_X86_64 : EM_ARM };
		uint8_t *bytes = elf_builder_make(symbols, 600, options, &size_bytes);
		struct image *image AUTO_IMAGE = NULL;

		cr_assert_null(image_open(elf_builder_file(bytes, size_bytes), "thumb", 0,
					  SPARSE_FILE_TO_END, &image));
		cr_assert_null(elf_glance_open(image, &here, &glance));
		cr_expect_eq(glance != NULL, i == 1);
		elf_glance_close(glance);
		free(bytes);
	}
}

/* Padding behind a function does not belong to the last label in it. */
Test(elf_glance, leaves_labels_within_functions_to_the_index)
{
	enum {
		FUNCTIONS = 300
	};
	struct elf_builder_symbol symbols[2 * FUNCTIONS];
	struct elf_glance *glance AUTO_ELF_GLANCE = NULL;
	struct image *image AUTO_IMAGE = NULL;
	struct elf_symbol found = { 0 };
	size_t size_bytes;
	uint8_t *bytes;

	for (size_t i = 0; i < FUNCTIONS; i++) {
		uint64_t start = ELF_BUILDER_TEXT_VADDR + i * 8;

		symbols[2 * i] =
			(struct elf_builder_symbol){ "function", start, 5, STB_GLOBAL, STT_FUNC };
		symbols[2 * i + 1] =
			(struct elf_builder_symbol){ "label", start + 4, 0, STB_LOCAL, STT_NOTYPE };
	}
	bytes = elf_builder_make(symbols, 2 * FUNCTIONS, (struct elf_builder_options){ 0 },
				 &size_bytes);
	cr_assert_null(image_open(elf_builder_file(bytes, size_bytes), "labels", 0,
				  SPARSE_FILE_TO_END, &image));
	cr_assert_null(elf_glance_open(image, &here, &glance));
	cr_assert_not_null(glance);
	cr_expect_eq(elf_glance_find(glance, ELF_BUILDER_TEXT_VADDR + 4, &found), ELF_GLANCE_HIT);
	cr_expect_str_eq(found.name, "function");
	cr_expect_eq(elf_glance_find(glance, ELF_BUILDER_TEXT_VADDR + 6, &found),
		     ELF_GLANCE_UNABLE);
	free(bytes);
}

Test(elf_glance, leaves_small_and_damaged_tables_to_the_index)
{
	struct elf_glance *glance = (struct elf_glance *)1;
	struct image *image = NULL;

	cr_assert_null(
		image_open(elf_builder_file("text", 4), "small", 0, SPARSE_FILE_TO_END, &image));
	cr_assert_null(elf_glance_open(image, &here, &glance));
	cr_expect_null(glance);
	image_close(image);
}
