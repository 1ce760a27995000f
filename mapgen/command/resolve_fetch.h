/* SPDX-License-Identifier: MIT */
/*
 * Downloads the debug files that questions to resolve need, as the command fetch-symbols does for a
 * whole process.
 */
#ifndef MAPGEN_COMMAND_RESOLVE_FETCH_H
#define MAPGEN_COMMAND_RESOLVE_FETCH_H

#include "libsym/libsym.h"

/* Its context is a struct symbols_fetcher. For one thread. */
sym_fetch_fn resolve_fetch_file;

#endif
