/* SPDX-License-Identifier: MIT */
/*
 * Functions that a runtime names for debuggers, because no symbol table has them (.NET 11, contract
 * AuxiliarySymbols): JIT_WriteBarrier, which is copied to writable memory, and helpers of its
 * library.
 * The contract has their start, not their end.
 */
#ifndef LIBSYM_CLR_AUXILIARY_SYMBOLS_H
#define LIBSYM_CLR_AUXILIARY_SYMBOLS_H

#include <stddef.h>

#include "libsym/clr/layout.h"
#include "libsym/process/remote_memory.h"

struct auxiliary_symbol {
	uint64_t address;
	char name[56]; /* ASCII, not empty; longer names are left out */
};

struct auxiliary_symbols {
	struct auxiliary_symbol *items; /* ascending, one for each address */
	size_t count;
};

/* Reads the table. Invalid entries are left out. */
struct sym_error *auxiliary_symbols_read(struct remote_memory *memory,
					 const struct layout_auxiliary *layout,
					 struct auxiliary_symbols *ret);
void auxiliary_symbols_deinit(struct auxiliary_symbols *symbols);

#endif
