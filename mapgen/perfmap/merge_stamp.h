/* SPDX-License-Identifier: MIT */
/*
 * The inputs of the last merge of a process, so that the next merge can see in milliseconds that
 * nothing has changed. A stamp is a digest over the process (identity, code mappings, jitted
 * methods, debug files), the options, and the map (inode, size, times). It is kept in the caller's
 * private cache. How a merge is done is not known here.
 */
#ifndef MAPGEN_PERFMAP_MERGE_STAMP_H
#define MAPGEN_PERFMAP_MERGE_STAMP_H

#include <sha2.h>
#include <stdbool.h>
#include <stdint.h>

#include "mapgen/cli/options.h"
#include "mapgen/perfmap/merge_lines.h"
#include "mapgen/perfmap/perfmap_file.h"

enum {
	RECEIPT_DIGITS = 64
};

/* Digest of all inputs of a map. */
struct merge_stamp {
	bool usable; /* false: nothing can be concluded */
	uint8_t digest[SHA512_DIGEST_LENGTH];
};

/* `info` and `location`: the process's perf map, and the map to complete. */
struct merge_stamp merge_stamp_of_inputs(struct sym_snapshot *snapshot,
					 const struct options *options,
					 const struct sym_perf_map_info *info,
					 const struct map_location *location);

/* True, with the counts of that merge, when the last merge had these inputs and left this file. */
bool merge_stamp_holds(const struct merge_stamp *inputs, int cache_fd, int32_t pid,
		       const struct map_location *location, struct merge_counts *ret);

/* Remembers a complete merge, and forgets processes that have ended. */
void merge_stamp_leave(const struct merge_stamp *inputs, int cache_fd, int32_t pid,
		       const struct map_location *location, const struct merge_counts *counts);

#endif
