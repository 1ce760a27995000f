/* SPDX-License-Identifier: MIT */
#include "libsym/format/elf/dwarf_package.h"

#include <criterion/criterion.h>
#include <string.h>

enum {
	SLOTS = 4,
	COLUMNS = 3,
	UNITS = 2,
	WORDS = 4 + 3 * SLOTS + COLUMNS + 2 * UNITS * COLUMNS
};

/* Two units whose ids select the same slot, in the order that a packager would store them. */
static const uint64_t first_id = 0x0000000100000001, second_id = 0x0000000200000001;

static void put_id(uint32_t *words, uint32_t slot, uint64_t id, uint32_t row)
{
	words[4 + 2 * slot] = (uint32_t)id;
	words[5 + 2 * slot] = (uint32_t)(id >> 32);
	words[4 + 2 * SLOTS + slot] = row;
}

static void make(uint32_t version, uint32_t words[WORDS])
{
	static const uint32_t kinds[COLUMNS] = { 1, 3, 8 };
	uint32_t *row = words + 4 + 3 * SLOTS;

	memset(words, 0, WORDS * sizeof(*words));
	words[0] = version;
	words[1] = COLUMNS;
	words[2] = UNITS;
	words[3] = SLOTS;
	put_id(words, 1, first_id, 1);
	/* The step is (id >> 32 & 3) | 1 = 3. */
	put_id(words, 0, second_id, 2);
	memcpy(row, kinds, sizeof(kinds));
	for (uint32_t i = 0; i < UNITS * COLUMNS; i++) {
		row[COLUMNS + i] = 100 + i;
		row[COLUMNS + UNITS * COLUMNS + i] = 10 + i;
	}
}

Test(dwarf_package, finds_a_unit_after_a_collision)
{
	struct dwarf_package_extent parts[DWARF_PACKAGE_PARTS];
	uint32_t words[WORDS];

	make(5, words);
	cr_assert(dwarf_package_find(words, sizeof(words), second_id, parts));
	cr_expect_eq(parts[DWARF_PACKAGE_INFO].offset, 103);
	cr_expect_eq(parts[DWARF_PACKAGE_INFO].size_bytes, 13);
	cr_expect_eq(parts[DWARF_PACKAGE_ABBREV].offset, 104);
	cr_expect_eq(parts[DWARF_PACKAGE_RNGLISTS].offset, 105);
	cr_expect_eq(parts[DWARF_PACKAGE_STR_OFFSETS].size_bytes, 0);
	cr_assert(dwarf_package_find(words, sizeof(words), first_id, parts));
	cr_expect_eq(parts[DWARF_PACKAGE_INFO].offset, 100);
}

Test(dwarf_package, does_not_mix_up_section_kinds_of_the_versions)
{
	struct dwarf_package_extent parts[DWARF_PACKAGE_PARTS];
	uint32_t words[WORDS];

	make(2, words);
	cr_assert(dwarf_package_find(words, sizeof(words), first_id, parts));
	cr_expect_eq(parts[DWARF_PACKAGE_RNGLISTS].size_bytes, 0, "it is macros there");
}

Test(dwarf_package, does_not_find_missing_units)
{
	struct dwarf_package_extent parts[DWARF_PACKAGE_PARTS];
	uint32_t words[WORDS];

	make(5, words);
	cr_expect_not(dwarf_package_find(words, sizeof(words), 0x0000000300000001, parts));
	cr_expect_not(dwarf_package_find(words, sizeof(words), 2, parts));
	for (uint32_t slot = 0; slot < SLOTS; slot++)
		put_id(words, slot, first_id, 1);
	cr_expect_not(dwarf_package_find(words, sizeof(words), second_id, parts), "a full table");
}

Test(dwarf_package, rejects_every_truncation)
{
	struct dwarf_package_extent parts[DWARF_PACKAGE_PARTS];
	uint32_t words[WORDS];

	make(5, words);
	cr_expect_not(dwarf_package_find(NULL, 0, second_id, parts));
	for (size_t size = 0; size < sizeof(words); size++)
		cr_expect_not(dwarf_package_find(words, size, second_id, parts), "%zu bytes", size);
}

Test(dwarf_package, rejects_contradictions)
{
	static const struct {
		size_t word;
		uint32_t value;
	} lies[] = { { 0, 3 }, { 0, 5 << 16 }, { 1, 0 }, { 1, UINT32_MAX },
		     { 2, 1 }, { 3, 3 },       { 3, 0 }, { 3, 1u << 31 } };
	struct dwarf_package_extent parts[DWARF_PACKAGE_PARTS];
	uint32_t words[WORDS];

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		make(5, words);
		words[lies[i].word] = lies[i].value;
		cr_expect_not(dwarf_package_find(words, sizeof(words), second_id, parts),
			      "word %zu is %u", lies[i].word, lies[i].value);
	}
}
