/* SPDX-License-Identifier: MIT */
/*
 * The bounds of one function of an ELF file by the sorted rows of .eh_frame_hdr: a few pages are
 * read, where elf_functions.h reads and sorts all of .eh_frame. For the first few questions about
 * an image. What it answers, that one answers too; what it does not is left to it.
 */
#ifndef LIBSYM_ELF_FUNCTION_GLANCE_H
#define LIBSYM_ELF_FUNCTION_GLANCE_H

#include <stdbool.h>

#include "libsym/error.h"
#include "libsym/format/eh_frame.h"
#include "libsym/image.h"

struct elf_function_glance;

/* *ret is NULL where there are no such rows. Errors: NO_MEMORY. */
struct sym_error *elf_function_glance_open(const struct image *image,
					   struct elf_function_glance **ret)
	__attribute__((warn_unused_result));
void elf_function_glance_close(struct elf_function_glance *glance);

/* The function that covers `vaddr`; false: all of them have to be asked. Not for several threads at
 * once. */
bool elf_function_glance_find(struct elf_function_glance *glance, uint64_t vaddr,
			      struct eh_frame_function *ret);

DEFINE_GUARD(elf_function_glance, struct elf_function_glance *, elf_function_glance_close)
#define AUTO_ELF_FUNCTION_GLANCE GUARDED(elf_function_glance)

#endif
