/* SPDX-License-Identifier: MIT */
/*
 * Functions that a runtime names for debuggers because no symbol table does (.NET 11, contract
 * AuxiliarySymbols): JIT_WriteBarrier, which it copies to where it may change it, and helpers of
 * its library. Knows where they begin, not where they end.
 */
#ifndef LIBSYM_CLR_AUXILIARY_SYMBOLS_H
#define LIBSYM_CLR_AUXILIARY_SYMBOLS_H

#include <stddef.h>

#include "libsym/clr/layout.h"
#include "libsym/clr/remote_memory.h"

struct auxiliary_symbol {
	uint64_t address;
	char name[56]; /* ASCII, not empty; what is longer is left out */
};

struct auxiliary_symbols {
	struct auxiliary_symbol *items; /* ascending; one for an address */
	size_t count;
};

/* What makes no sense is left out. */
struct sym_error *auxiliary_symbols_read(struct remote_memory *memory,
					 const struct layout_auxiliary *layout,
					 struct auxiliary_symbols *ret);
void auxiliary_symbols_deinit(struct auxiliary_symbols *symbols);

#endif
