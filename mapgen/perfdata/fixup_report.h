/* SPDX-License-Identifier: MIT */
/*
 * The report of perf-fix: where the names of each process come from, and what is missing. Also
 * --undo, which needs only the undo record.
 */
#ifndef MAPGEN_PERFDATA_FIXUP_REPORT_H
#define MAPGEN_PERFDATA_FIXUP_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "mapgen/cli/message.h"
#include "mapgen/cli/options.h"
#include "mapgen/perfdata/fixup_plan.h"
#include "mapgen/perfdata/unrecorded_maps.h"

struct perf_fix_report {
	const struct fixup_plan *plan;
	const struct unrecorded_maps *unrecorded;
	const char *adding_trouble; /* NULL: mappings that were not recorded may be added */
	const char *cache;
	const char *output;
	size_t changed; /* records */
	uint64_t records;
	bool was_compressed;
	struct failures failures; /* in the data, not by process */
};

/* Prints the report and returns the exit code for it. */
int perf_fix_report_print(const struct perf_fix_report *report, const struct options *options,
			  FILE *to);

/* Reports that the process of the options has nothing to fix. */
void perf_fix_report_no_code(const struct options *options);

/* Restores what perf-fix changed in `path`, which must not have changed since, and reports it.
 * Returns the exit code. */
int perf_undo(const char *path, const struct options *options);

#endif
