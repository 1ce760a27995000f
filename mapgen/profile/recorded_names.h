/* SPDX-License-Identifier: MIT */
/*
 * Names for a plain perf.data: from a process while it lives and is the one that was recorded, else
 * from the files that it had mapped and the perf map that it has left, each only if it is what was
 * recorded. What has no name is shown as file and offset, with the reason.
 */
#ifndef MAPGEN_PROFILE_RECORDED_NAMES_H
#define MAPGEN_PROFILE_RECORDED_NAMES_H

#include "mapgen/cli/options.h"
#include "mapgen/profile/address_names.h"

struct recorded_names;
struct symbolize_client;

/*
 * Reads the mappings of a whole perf.data. `lines`: frames have source lines. `options` is
 * borrowed: root, debug_dirs, map_dirs, jit, budget. `recorded_until`: seconds since 1970;
 * INT64_MAX when unknown. Errors: FORMAT, LIMIT, IO, NO_MEMORY.
 */
struct sym_error *recorded_names_open(int fd, const char *path, const struct options *options,
				      int64_t recorded_until, bool lines,
				      struct recorded_names **ret)
	__attribute__((warn_unused_result));
void recorded_names_close(struct recorded_names *names);

/*
 * With lines: how many places in managed code got none, and why one of them did not; heap, NULL
 * when there is no reason.
 */
uint64_t recorded_names_lineless(const struct recorded_names *names, char **reason_ret);

/* Asks a server for the names of frames of stripped images. Call it when no further frame is asked
 * for. Errors: NO_MEMORY. */
struct sym_error *recorded_names_symbolize(struct recorded_names *names,
					   struct symbolize_client *client,
					   struct frame_table *frames)
	__attribute__((warn_unused_result));

/* Borrows `names`. */
struct address_names recorded_names_interface(struct recorded_names *names);

#endif
