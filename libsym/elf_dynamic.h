/* SPDX-License-Identifier: MIT */
/*
 * Sections of a file whose section headers were cut off (sstrip), as far as the dynamic linker has
 * to know them: .dynsym, its names and versions, by PT_DYNAMIC; code by segment.
 */
#ifndef LIBSYM_ELF_DYNAMIC_H
#define LIBSYM_ELF_DYNAMIC_H

#include "libsym/elf_sections.h"
#include "libsym/error.h"

/* What there is of them; nothing where the file contradicts itself. Errors: IO, STALE, NO_MEMORY.
 */
struct sym_error *elf_dynamic_read(struct elf_sections *sections)
	__attribute__((warn_unused_result));

#endif
