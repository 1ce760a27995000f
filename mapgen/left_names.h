/* SPDX-License-Identifier: MIT */
/* Names out of the perf map that a process has left. */
#ifndef MAPGEN_LEFT_NAMES_H
#define MAPGEN_LEFT_NAMES_H

#include "libsym/libsym.h"
#include "mapgen/profile/stack_filter.h"

/* What became of the queries: see struct process_names_counts. */
struct left_counts {
	uint64_t named, unmapped, gone;
};

/* Names lie in `left`, which may be NULL; answers come zeroed. */
struct left_counts left_names_find(const struct sym_symbols *left,
				   const struct stack_query *queries, size_t count,
				   struct stack_name *answers);

#endif
