/* SPDX-License-Identifier: MIT */
/*
 * Precompiled methods that a runtime has prepared for use: the map from entry points to MethodDescs
 * that it keeps for each ReadyToRun image. Knows the hash table; what is in an image nobody has
 * called is not in it.
 *
 * Module -> ReadyToRunInfo -> that of the composite, if there is one -> hash map: bucket 0 holds
 * the number of buckets behind it, each with a few keys (entry addresses; 0 and 1 are free) and
 * values (half the address of a MethodDesc, and a flag). Source: dotnet/runtime
 * docs/design/datacontracts/ExecutionManager.md, version 2.
 */
#ifndef LIBSYM_CLR_PREPARED_H
#define LIBSYM_CLR_PREPARED_H

#include "libsym/clr/code_heap.h"

struct prepared_entry {
	uint64_t entry_address;
	uint64_t method_desc;
};

struct prepared {
	struct prepared_entry *items;
	size_t count;
};

/* All images of a code map. Errors: those of reading, LIMIT, NO_MEMORY. */
struct sym_error *prepared_read(struct remote_memory *memory, const struct layout *layout,
				const struct layout_prepared *prepared_layout,
				const struct code_map *map, struct prepared *ret)
	__attribute__((warn_unused_result));
void prepared_deinit(struct prepared *prepared);

#endif
