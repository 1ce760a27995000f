/* SPDX-License-Identifier: MIT */
/* Names from the perf map that a process left when it ended. */
#ifndef MAPGEN_LIVE_EXITED_MAP_H
#define MAPGEN_LIVE_EXITED_MAP_H

#include "libsym/libsym.h"
#include "mapgen/live/process_names.h"

/* The symbol that covers an address; NULL: none. */
const struct sym_symbol *exited_map_at(const struct sym_symbols *symbols, uint64_t address);

/* The names are in `left`, which may be NULL; the caller zeroes the answers. Adds to `counts`. */
void exited_map_find(const struct sym_symbols *left, const struct stack_query *queries,
		     size_t count, struct stack_name *answers, struct process_names_counts *counts);

#endif
