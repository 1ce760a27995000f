/* SPDX-License-Identifier: MIT */
/*
 * The paths of separate debug files for the native images of a process, and what lies there now: a
 * map is out of date when such a file is installed or replaced. Looks at names and times only;
 * libsym decides where debug files lie and which are used.
 */
#ifndef MAPGEN_PERFMAP_DEBUG_PATHS_H
#define MAPGEN_PERFMAP_DEBUG_PATHS_H

#include "libsym/base/buf.h"
#include "libsym/base/rights.h"
#include "libsym/libsym.h"

/*
 * Appends a text that changes when another debug file appears for an image without a symbol table.
 * `root_fd`: root directory of the process, whose paths are used with `rights`.
 */
void debug_paths_append(struct sym_snapshot *snapshot, int root_fd, const struct rights *rights,
			struct buf *text);

#endif
