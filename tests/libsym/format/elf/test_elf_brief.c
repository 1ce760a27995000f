/* SPDX-License-Identifier: MIT */
#include "libsym/format/elf/elf_brief.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "tests/support/runtime_elf.h"

static uint8_t *build(void)
{
	uint8_t *file = malloc(RUNTIME_ELF_BYTES);

	cr_assert_not_null(file);
	runtime_elf_build(file, "exported", NULL, 0);
	return file;
}

Test(elf_brief, finds_segments_and_dynamic_strings)
{
	uint8_t *file AUTO_FREE = build();
	struct elf_range strings;
	struct elf_brief brief;

	cr_assert(elf_brief_parse(file, ELF_BRIEF_HEAD_BYTES, &brief));
	cr_assert_eq(brief.load_count, 1);
	cr_expect(brief.loads[0].writable);
	cr_expect_eq(brief.loads[0].file.size_bytes, RUNTIME_ELF_BYTES);
	cr_expect_eq(brief.dynamic.offset, RUNTIME_ELF_DYNAMIC);
	cr_assert(elf_brief_strings(&brief, file + RUNTIME_ELF_DYNAMIC, brief.dynamic.size_bytes,
				    &strings));
	cr_expect_eq(strings.offset, RUNTIME_ELF_STRINGS);
	cr_expect_eq(strings.size_bytes, strlen("exported") + 2);
}

Test(elf_brief, ignores_surplus_segments)
{
	uint8_t *file AUTO_FREE = build();
	Elf64_Phdr segment = { .p_type = PT_LOAD, .p_filesz = 1 };
	uint16_t count = ELF_BRIEF_LOADS + 5, i;
	struct elf_brief brief;

	for (i = 0; i < count; i++)
		memcpy(file + sizeof(Elf64_Ehdr) + i * sizeof(segment), &segment, sizeof(segment));
	memcpy(file + 56, &count, sizeof(count));
	cr_assert(elf_brief_parse(file, ELF_BRIEF_HEAD_BYTES, &brief));
	cr_expect_eq(brief.load_count, ELF_BRIEF_LOADS);
}

Test(elf_brief, rejects_every_truncated_file)
{
	uint8_t *file AUTO_FREE = build();
	size_t whole_bytes = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr), length;
	struct elf_brief brief;

	for (length = 0; length < whole_bytes; length++) {
		uint8_t *cut = malloc(length + 1);

		cr_assert_not_null(cut);
		memcpy(cut, file, length);
		cr_expect_not(elf_brief_parse(cut, length, &brief), "%zu bytes", length);
		free(cut);
	}
	cr_expect(elf_brief_parse(file, whole_bytes, &brief));
}

Test(elf_brief, rejects_other_kinds_of_file)
{
	uint8_t *file AUTO_FREE = build();
	struct elf_brief brief;

	file[4] = ELFCLASS32;
	cr_expect_not(elf_brief_parse(file, ELF_BRIEF_HEAD_BYTES, &brief));
	file[4] = ELFCLASS64;
	file[5] = ELFDATA2MSB;
	cr_expect_not(elf_brief_parse(file, ELF_BRIEF_HEAD_BYTES, &brief));
	file[5] = ELFDATA2LSB;
	memset(file + 32, 0xff, 8);
	cr_expect_not(elf_brief_parse(file, ELF_BRIEF_HEAD_BYTES, &brief),
		      "e_phoff beyond the head");
}

Test(elf_brief, rejects_strings_outside_every_segment)
{
	Elf64_Dyn dynamic[2] = { { .d_tag = DT_STRTAB }, { .d_tag = DT_STRSZ, .d_un.d_val = 5 } };
	uint8_t *file AUTO_FREE = build();
	struct elf_range strings;
	struct elf_brief brief;

	cr_assert(elf_brief_parse(file, ELF_BRIEF_HEAD_BYTES, &brief));
	dynamic[0].d_un.d_ptr = RUNTIME_ELF_VADDR - 1;
	cr_expect_not(elf_brief_strings(&brief, dynamic, sizeof(dynamic), &strings));
	dynamic[0].d_un.d_ptr = RUNTIME_ELF_VADDR + RUNTIME_ELF_BYTES - 4;
	cr_expect_not(elf_brief_strings(&brief, dynamic, sizeof(dynamic), &strings));
	dynamic[0].d_un.d_ptr = RUNTIME_ELF_VADDR + RUNTIME_ELF_BYTES - 5;
	cr_expect(elf_brief_strings(&brief, dynamic, sizeof(dynamic), &strings));
	cr_expect_not(elf_brief_strings(&brief, dynamic, sizeof(dynamic) - 1, &strings),
		      "half an entry is none");
	dynamic[1].d_un.d_val = UINT64_MAX;
	cr_expect_not(elf_brief_strings(&brief, dynamic, sizeof(dynamic), &strings));
}

Test(elf_brief, rejects_an_offset_that_overflows)
{
	Elf64_Dyn dynamic[2] = { { .d_tag = DT_STRTAB, .d_un.d_ptr = 100 },
				 { .d_tag = DT_STRSZ, .d_un.d_val = 5 } };
	struct elf_brief brief = { .load_count = 1 };
	struct elf_range strings;

	brief.loads[0].file = (struct elf_range){ UINT64_MAX - 50, 1000 };
	cr_expect_not(elf_brief_strings(&brief, dynamic, sizeof(dynamic), &strings));
}
