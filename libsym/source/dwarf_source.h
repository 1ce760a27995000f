/* SPDX-License-Identifier: MIT */
/* Line and inlined functions of a vaddr, from DWARF. */
#ifndef LIBSYM_SOURCE_DWARF_SOURCE_H
#define LIBSYM_SOURCE_DWARF_SOURCE_H

#include "libsym/dwarf/dwarf_info.h"

/* True when there is DWARF on this machine, so that none needs to be fetched. */
bool dwarf_source_is_here(void *source);

/* `source` was opened by source_dwarf. As dwarf_info_find(). */
bool dwarf_source_describe(void *source, uint64_t vaddr, struct dwarf_place *ret,
			   struct sym_inlined inlined[DWARF_INFO_INLINED],
			   size_t *inlined_count_ret);

#endif
