/* SPDX-License-Identifier: MIT */
/* A recording as report reads it, before it is written, or while it goes on. */
#ifndef MAPGEN_COMMAND_RECORDING_PROFILE_H
#define MAPGEN_COMMAND_RECORDING_PROFILE_H

#include <stdio.h>

#include "mapgen/cli/options.h"
#include "mapgen/profile/profile.h"
#include "mapgen/record/recording_file.h"

/* Errors: those of profile_open(). */
struct sym_error *recording_profile_open(const struct options *options,
					 const struct recording_parts *parts, bool keeps_samples,
					 struct profile **ret) __attribute__((warn_unused_result));

/* Its CPU samples as perf script prints them: what PerfView reads in a .trace.zip. *ret: a file
 * without a name, at its beginning. Errors: IO, NO_MEMORY. */
struct sym_error *recording_profile_print(const struct options *options,
					  const struct recording_parts *parts, FILE **ret)
	__attribute__((warn_unused_result));

#endif
