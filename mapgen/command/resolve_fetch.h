/* SPDX-License-Identifier: MIT */
/*
 * Downloads the debug files that questions to resolve need, as the command fetch-symbols does for a
 * whole process. symbol_servers.h decides which servers are asked.
 */
#ifndef MAPGEN_COMMAND_RESOLVE_FETCH_H
#define MAPGEN_COMMAND_RESOLVE_FETCH_H

#include "libsym/libsym.h"
#include "mapgen/cli/options.h"

struct resolve_fetch;

/* NULL, with a message, on failure. */
struct resolve_fetch *resolve_fetch_create(const struct options *options);
void resolve_fetch_destroy(struct resolve_fetch *fetch);

/* A sym_fetch_fn; its context is a struct resolve_fetch. For one thread. */
sym_fetch_fn resolve_fetch_file;

#endif
