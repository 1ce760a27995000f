/* SPDX-License-Identifier: MIT */
/*
 * Brings the debug files that questions to resolve need, as the command symbols
 * brings them for a whole process. Knows who is asked only through
 * symbols_choice.h.
 */
#ifndef MAPGEN_RESOLVE_FETCH_H
#define MAPGEN_RESOLVE_FETCH_H

#include "libsym/libsym.h"
#include "mapgen/options.h"

struct resolve_fetch;

/* NULL, said, on failure. */
struct resolve_fetch *resolve_fetch_create(const struct options *options);
void resolve_fetch_destroy(struct resolve_fetch *fetch);

/* A sym_fetch_fn; its context is a struct resolve_fetch. For one thread. */
sym_fetch_fn resolve_fetch_file;

#endif
