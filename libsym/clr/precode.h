/* SPDX-License-Identifier: MIT */
/*
 * Precodes: the few instructions through which a method is called before it has code of its own,
 * and often after.
 * They are in sections that are range lists: a page of code, a page of data, and so on. The data of
 * an entry is one page after its code.
 * The runtime publishes their bytes and which of them vary.
 * Source: dotnet/runtime docs/design/datacontracts/PrecodeStubs.md, version 3.
 */
#ifndef LIBSYM_CLR_PRECODE_H
#define LIBSYM_CLR_PRECODE_H

#include "libsym/clr/code_heap.h"

struct precode {
	uint64_t address;
	uint32_t size_bytes;
	uint64_t method_desc; /* 0 for a page: code that belongs to no method */
};

struct precodes {
	struct precode *items; /* each page before the precodes in it */
	size_t count;
};

/*
 * Reads all precodes of a code map.
 * Errors: those of reading; NO_MEMORY; UNSUPPORTED when the machine's description is invalid.
 */
struct sym_error *precodes_read(struct remote_memory *memory, const struct layout_precodes *layout,
				const struct code_map *map, struct precodes *ret);
void precodes_deinit(struct precodes *precodes);

#endif
