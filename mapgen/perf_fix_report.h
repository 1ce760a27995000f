/* SPDX-License-Identifier: MIT */
/*
 * What perf-fix tells: of each process where its names come from, and what is
 * missing. And the way back, which needs nothing but the undo record.
 */
#ifndef MAPGEN_PERF_FIX_REPORT_H
#define MAPGEN_PERF_FIX_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "mapgen/message.h"
#include "mapgen/name_plan.h"
#include "mapgen/options.h"

struct perf_fix_report {
	const struct name_plan *plan;
	const char *cache;
	const char *output;
	size_t changed; /* records */
	uint64_t records;
	bool was_compressed;
	struct failures failures; /* of the data, not of a process */
};

/* Returns the exit code that goes with it. */
int perf_fix_report_print(const struct perf_fix_report *report, const struct options *options,
			  FILE *to);

/* Says that the process of the options is nothing that could be fixed. */
void perf_fix_report_no_code(const struct options *options);

/* Puts back what perf-fix changed in `path`, which must not have been changed since, and says so.
 * Returns the exit code. */
int perf_undo(const char *path, const struct options *options);

#endif
