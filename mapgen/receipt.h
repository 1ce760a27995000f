/* SPDX-License-Identifier: MIT */
/*
 * What the last merge of a process was made from, so that the next one can see
 * in milliseconds that nothing has changed. A receipt is a digest over the process
 * (its identity, its code mappings, its jitted methods, its debug files), the options, and the map
 * as it was left (inode, size, times). It lies in the caller's private cache. Knows
 * nothing of how a merge is done.
 */
#ifndef MAPGEN_RECEIPT_H
#define MAPGEN_RECEIPT_H

#include <stdbool.h>
#include <stdint.h>

#include "mapgen/merge_lines.h"
#include "mapgen/options.h"
#include "mapgen/perf_map_file.h"

enum {
	RECEIPT_DIGITS = 32
};

/* Digest of everything that goes into a map. */
struct receipt {
	bool usable; /* false: nothing may be concluded */
	uint64_t low, high;
};

/* `info` and `location`: the process's perf map, and the one that is to be made complete. */
struct receipt receipt_of_inputs(struct sym_snapshot *snapshot, const struct options *options,
				 const struct sym_perf_map_info *info,
				 const struct map_location *location);

/* True, with what was counted then, when the last merge had these inputs and left this very file.
 */
bool receipt_holds(const struct receipt *inputs, int cache_fd, int32_t pid,
		   const struct map_location *location, struct merge_counts *ret);

/* Remembers a merge that left nothing out, and forgets processes that are gone. */
void receipt_leave(const struct receipt *inputs, int cache_fd, int32_t pid,
		   const struct map_location *location, const struct merge_counts *counts);

#endif
