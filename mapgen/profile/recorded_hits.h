/* SPDX-License-Identifier: MIT */
/*
 * The pages of code in which a sample's own address lies. perf marks a file as used
 * by these alone, not by call chains, and perf archive packs what is marked. Where
 * the address stands in a sample depends on its event; both places that are possible
 * are taken, so a page may be counted that was not hit, never the other way.
 */
#ifndef MAPGEN_PROFILE_RECORDED_HITS_H
#define MAPGEN_PROFILE_RECORDED_HITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mapgen/profile/perf_data.h"

struct recorded_hits {
	uint64_t *pages; /* open addressing; 0 is free */
	size_t count;
	size_t capacity; /* a power of two */
	uint64_t last;
	bool all; /* too many to tell, or no memory: everything counts as hit */
};

void recorded_hits_deinit(struct recorded_hits *hits);
void recorded_hits_add(struct recorded_hits *hits, const struct perf_record *sample);
/* Does any sample lie in [start_address, end_address)? By whole pages. */
bool recorded_hits_in(const struct recorded_hits *hits, uint64_t start_address,
		      uint64_t end_address);

#endif
