/* SPDX-License-Identifier: MIT */
/*
 * Samples of a perf.data that lie outside of all recorded mappings, so that perf cannot name them.
 * perf leaves mappings out with --synth=no, and those whose path has a byte that is not ASCII
 * (perf 6.1). Counts such samples, and adds the mappings that the process has now if they are those
 * of the recording: the process began before the recording ended, has neither run another program
 * nor ended since it began, and still has the recorded mappings.
 */
#ifndef MAPGEN_PERFDATA_UNRECORDED_MAPS_H
#define MAPGEN_PERFDATA_UNRECORDED_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/address_table.h"
#include "mapgen/cli/options.h"
#include "mapgen/perfdata/recorded_maps.h"
#include "mapgen/perfdata/sampled_pages.h"

/* Record types for unrecorded_note(). */
#define UNRECORDED_TYPES (1ull << PERF_RECORD_COMM | 1ull << PERF_RECORD_EXIT)

struct unrecorded_maps {
	struct address_table changed; /* processes that ended, or ran another program */
	size_t added;                 /* mappings */
	size_t processes;             /* with samples outside */
	uint64_t samples;             /* samples of user processes that could be looked at */
	uint64_t outside;             /* those outside of all mappings */
};

void unrecorded_maps_deinit(struct unrecorded_maps *unrecorded);

void unrecorded_maps_note(struct unrecorded_maps *unrecorded, const struct perf_record *record);

/* Adds to `maps`, which are sorted before and afterwards. `recorded_until` as in fixup_plan. False
 * when out of memory. */
bool unrecorded_maps_add(struct unrecorded_maps *unrecorded, const struct options *options,
			 const struct sampled_pages *hits, int64_t recorded_until,
			 struct recorded_maps *maps);

/* Counts samples outside of everything that was recorded, added, or extended. */
bool unrecorded_maps_count(struct unrecorded_maps *unrecorded, const struct options *options,
			   const struct sampled_pages *hits, const struct recorded_maps *maps);

#endif
