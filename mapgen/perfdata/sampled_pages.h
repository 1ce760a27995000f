/* SPDX-License-Identifier: MIT */
/*
 * The addresses of the samples themselves. perf marks a file as used by the pages of these, not by
 * call chains, and perf archive packs marked files. The event of a sample decides where its address
 * stands: in one of two places. For pages both places are read, so a page may count as hit that was
 * not, but never the other way round. To count samples, the place is used that has more addresses
 * in recorded mappings.
 */
#ifndef MAPGEN_PERFDATA_SAMPLED_PAGES_H
#define MAPGEN_PERFDATA_SAMPLED_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/address_table.h"
#include "mapgen/perfdata/perf_data.h"
#include "mapgen/perfdata/recorded_maps.h"

/*
 * The values in one place of the samples that can be addresses of a program: each value once, with
 * the number of samples. sampled_pages_settle() sorts the slots, which ends the hash table, and
 * adds to each number those before it.
 */
struct recorded_words {
	struct address_table table;
	/* Numbers of samples by process and page; the key is recorded_page_key(). */
	struct address_table pages;
	uint64_t with_process; /* samples whose next word may be the ids of a process and a
				  thread */
};

struct sampled_pages {
	struct recorded_words places[2];
	bool all; /* too many values, or out of memory: everything counts as hit */
	struct recorded_words *addresses; /* one of the places; NULL before it is known */
};

void sampled_pages_deinit(struct sampled_pages *hits);
void sampled_pages_add(struct sampled_pages *hits, const struct perf_record *sample);
/* Call this after the last sample, before any query. */
void sampled_pages_settle(struct sampled_pages *hits, const struct recorded_maps *maps);
/* Number of samples there; fewer when there were too many values. */
uint64_t sampled_pages_count(const struct sampled_pages *hits, uint64_t start_address,
			     uint64_t end_address);
/* A page with samples of a process. */
struct recorded_page {
	int32_t pid;
	uint64_t address;
	uint64_t samples;
};

/* All pages of user processes with samples, by process and address; heap, owned by the caller. NULL
 * when out of memory, or when there were too many. */
struct recorded_page *sampled_pages_pages(const struct sampled_pages *hits, size_t *count_ret);

/* Whether a sample lies in [start_address, end_address), by whole pages. */
bool sampled_pages_in(const struct sampled_pages *hits, uint64_t start_address,
		      uint64_t end_address);

#endif
