/* SPDX-License-Identifier: MIT */
/*
 * .gnu_debugdata: the small ELF file that Fedora and its kin put, compressed with
 * xz, into stripped files. It has the symbols of functions that .dynsym has not.
 * Knows how to unpack it, and to stop.
 */
#ifndef LIBSYM_MINIDEBUG_H
#define LIBSYM_MINIDEBUG_H

#include "libsym/elf_sections.h"

/*
 * *ret is NULL when there is none, or none that can be used. Errors: NO_MEMORY, and want of
 * descriptors.
 */
struct sym_error *minidebug_open(struct elf_sections *sections, struct image **ret)
	__attribute__((warn_unused_result));

#endif
