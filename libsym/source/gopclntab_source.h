/* SPDX-License-Identifier: MIT */
/*
 * What the function table of a Go program says beyond a name: the line of a vaddr, and
 * what was inlined there.
 */
#ifndef LIBSYM_SOURCE_GOPCLNTAB_SOURCE_H
#define LIBSYM_SOURCE_GOPCLNTAB_SOURCE_H

#include "libsym/go_functions.h"

/* `source` is what source_gopclntab opened. As go_functions_describe(). */
bool gopclntab_source_describe(void *source, uint64_t vaddr, struct gopclntab_line *ret,
			       struct sym_inlined *inlined, size_t inlined_max,
			       size_t *inlined_count_ret);

#endif
