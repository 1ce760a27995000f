/* SPDX-License-Identifier: MIT */
/*
 * A profile from folded text, as stackcollapse-perf.pl and many profilers write it: a line each,
 * "PROCESS;FRAME;FRAME;... COUNT", outermost first. What a name ends with says its kind: _[k]
 * kernel, _[j] jitted. A line that makes no sense is skipped and counted.
 */
#ifndef MAPGEN_PROFILE_FOLDED_PROFILE_H
#define MAPGEN_PROFILE_FOLDED_PROFILE_H

#include <stdio.h>

#include "mapgen/profile/profile.h"

/* Errors: FORMAT when no line makes sense, LIMIT, IO, NO_MEMORY. */
struct sym_error *folded_profile_read(struct profile *profile, FILE *file)
	__attribute__((warn_unused_result));

#endif
