/* SPDX-License-Identifier: MIT */
/* Names from the perf map that a process left when it ended. */
#ifndef MAPGEN_LIVE_EXITED_MAP_H
#define MAPGEN_LIVE_EXITED_MAP_H

#include "libsym/libsym.h"
#include "mapgen/stacktext/stack_filter.h"

/* How many queries got which answer: see struct process_names_counts. */
struct left_counts {
	uint64_t named, unmapped, gone;
};

/* The symbol that covers an address; NULL: none. */
const struct sym_symbol *exited_map_at(const struct sym_symbols *symbols, uint64_t address);

/* The names are in `left`, which may be NULL; the caller zeroes the answers. */
struct left_counts exited_map_find(const struct sym_symbols *left,
				   const struct stack_query *queries, size_t count,
				   struct stack_name *answers);

#endif
