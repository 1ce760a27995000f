/* SPDX-License-Identifier: MIT */
/* A file that belongs to an image: its PDB, or what several debug files share. */
#ifndef SYMSRV_RESOLVE_WANTED_OBJECT_H
#define SYMSRV_RESOLVE_WANTED_OBJECT_H

#include <jansson.h>

#include "symsrv/lookup/lookup.h"

/*
 * Looks for the file that `wanted` describes (resolve_request_parse_file()), and waits. `as`: who
 * asks, how far and how long. Returns a descriptor of a copy in memory, or -1. For a thread that
 * look-ups do not run on.
 */
int wanted_object_open(const struct lookup *as, const json_t *wanted);

#endif
