/* SPDX-License-Identifier: MIT */
/* Line and inlined functions of a vaddr, from the function table of a Go program. */
#ifndef LIBSYM_SOURCE_GOPCLNTAB_SOURCE_H
#define LIBSYM_SOURCE_GOPCLNTAB_SOURCE_H

#include "libsym/elf/go_functions.h"

/* `source` was opened by source_gopclntab. As go_functions_describe(). */
bool gopclntab_source_describe(void *source, uint64_t vaddr, struct gopclntab_line *ret,
			       struct sym_inlined *inlined, size_t inlined_max,
			       size_t *inlined_count_ret);

#endif
