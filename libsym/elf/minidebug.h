/* SPDX-License-Identifier: MIT */
/* .gnu_debugdata: a small ELF file, compressed with xz, that Fedora and related distributions put
 * into stripped files. It has the function symbols that .dynsym lacks. */
#ifndef LIBSYM_ELF_MINIDEBUG_H
#define LIBSYM_ELF_MINIDEBUG_H

#include "libsym/elf/elf_sections.h"

/*
 * *ret is NULL if there is none that can be used. Errors: NO_MEMORY, and lack of file descriptors.
 */
struct sym_error *minidebug_open(struct elf_sections *sections, struct object_file **ret)
	__attribute__((warn_unused_result));

#endif
