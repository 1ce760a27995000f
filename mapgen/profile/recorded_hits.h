/* SPDX-License-Identifier: MIT */
/*
 * The samples' own addresses. perf marks a file as used by the pages of these alone, not by call
 * chains, and perf archive packs what is marked. Where the address stands in a sample depends on
 * its event: in one of two places. Of pages both are taken, so one may be counted that was not hit,
 * never the other way; to count samples the place serves in which more of them lie in what was
 * mapped.
 */
#ifndef MAPGEN_PROFILE_RECORDED_HITS_H
#define MAPGEN_PROFILE_RECORDED_HITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/address_table.h"
#include "mapgen/profile/perf_data.h"
#include "mapgen/profile/recorded_maps.h"

enum {
	RECORDED_WORDS_WAITING = 32
};

/*
 * What stands in one place of samples, as far as it may be an address of a program: each once, its
 * value the number of samples. recorded_hits_settle() puts the slots in ascending order, so it is
 * no table any more, and adds to each number those before it.
 */
struct recorded_words {
	struct address_table table;
	/* Not in the table yet, so that the processor fetches their slots meanwhile. A sample often
	 * repeats a word of the one before. */
	struct recorded_word {
		uint64_t address, samples;
	} waiting[RECORDED_WORDS_WAITING];
	size_t waiting_count;
};

struct recorded_hits {
	struct recorded_words places[2];
	bool all; /* too many to keep, or no memory: everything counts as hit */
	struct recorded_words *addresses; /* one of the places; NULL before it is known which */
};

void recorded_hits_deinit(struct recorded_hits *hits);
void recorded_hits_add(struct recorded_hits *hits, const struct perf_record *sample);
/* After the last one, and before anything is asked. */
void recorded_hits_settle(struct recorded_hits *hits, const struct recorded_maps *maps);
/* How many samples lie there; fewer where there were too many to keep. */
uint64_t recorded_hits_count(const struct recorded_hits *hits, uint64_t start_address,
			     uint64_t end_address);
/* Does any sample lie in [start_address, end_address)? By whole pages. */
bool recorded_hits_in(const struct recorded_hits *hits, uint64_t start_address,
		      uint64_t end_address);

#endif
