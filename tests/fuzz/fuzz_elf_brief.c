/* SPDX-License-Identifier: MIT */
/* Arbitrary bytes as the head of an ELF file, then as its dynamic section: no range overflows. */
#include <stdlib.h>

#include "libsym/format/elf/elf_brief.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t head = size < 512 ? size : 512;
	struct elf_range strings;
	struct elf_brief brief;

	if (!elf_brief_parse(data, head, &brief))
		return 0;
	if (!brief.load_count || brief.load_count > ELF_BRIEF_LOADS)
		abort();
	if (elf_brief_strings(&brief, data + head, size - head, &strings) && !strings.size_bytes)
		abort();
	return 0;
}
