/* SPDX-License-Identifier: MIT */
/* A small ELF file like one that contains a .NET runtime: one writable segment over the whole file,
 * a dynamic section, dynamic strings and data. */
#ifndef TESTS_SUPPORT_RUNTIME_ELF_H
#define TESTS_SUPPORT_RUNTIME_ELF_H

#include <stddef.h>
#include <stdint.h>

enum {
	RUNTIME_ELF_BYTES = 1 << 18,
	RUNTIME_ELF_VADDR = 0x400000,
	RUNTIME_ELF_DYNAMIC = 0x200,
	RUNTIME_ELF_STRINGS = 0x300,
};

/* `exported` is a symbol's name or NULL; `ident` goes to offset `mapped_file_check_offset` unless
 * NULL. */
void runtime_elf_build(uint8_t room[RUNTIME_ELF_BYTES], const char *exported, const char *ident,
		       size_t mapped_file_check_offset);

#endif
