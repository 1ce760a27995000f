/* SPDX-License-Identifier: MIT */
/* The sections that the dynamic linker needs, for a file whose section headers were removed
 * (sstrip): .dynsym, its names and versions, from PT_DYNAMIC. Code is described by segments. */
#ifndef LIBSYM_ELF_ELF_DYNAMIC_H
#define LIBSYM_ELF_ELF_DYNAMIC_H

#include "libsym/elf/elf_sections.h"
#include "libsym/error.h"

/* Adds what exists; nothing if the file contradicts itself. Errors: IO, STALE, NO_MEMORY. */
struct sym_error *elf_dynamic_read(struct elf_sections *sections)
	__attribute__((warn_unused_result));

#endif
