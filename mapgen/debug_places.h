/* SPDX-License-Identifier: MIT */
/*
 * Where the separate debug files of a process's native images would lie, and what
 * lies there: so that a map is known to be out of date once one is installed or
 * replaced. Looks at names and times only; where they lie and which is believed is libsym's.
 */
#ifndef MAPGEN_DEBUG_PLACES_H
#define MAPGEN_DEBUG_PLACES_H

#include "libsym/base/buf.h"
#include "libsym/libsym.h"

/*
 * Appends a text that is another one as soon as another debug file is there for
 * an image that has no symbol table of its own. `root_fd`: root directory of the process.
 */
void debug_places_append(struct sym_snapshot *snapshot, int root_fd, struct buf *text);

#endif
