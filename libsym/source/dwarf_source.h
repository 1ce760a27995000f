/* SPDX-License-Identifier: MIT */
/*
 * What DWARF says beyond a name: the line of a vaddr, and what was inlined there.
 */
#ifndef LIBSYM_SOURCE_DWARF_SOURCE_H
#define LIBSYM_SOURCE_DWARF_SOURCE_H

#include "libsym/dwarf_info.h"

/* Longest chain of inlined functions that is told; compilers stop earlier. */
enum {
	DWARF_SOURCE_INLINED = 64
};

/* Is there DWARF on this machine, so that nobody is asked to bring it? */
bool dwarf_source_is_here(void *source);

/* `source` is what source_dwarf opened. As dwarf_info_find(). */
bool dwarf_source_describe(void *source, uint64_t vaddr, struct dwarf_place *ret,
			   struct sym_inlined inlined[DWARF_SOURCE_INLINED],
			   size_t *inlined_count_ret);

#endif
