/* SPDX-License-Identifier: MIT */
/* Counts of a batch of addresses by what was found for them. */
#ifndef MAPGEN_LIVE_NAME_TALLY_H
#define MAPGEN_LIVE_NAME_TALLY_H

#include "libsym/libsym.h"
#include "mapgen/stacktext/stack_filter.h"

struct name_tally {
	uint64_t named, bounded, unmapped, nameless, unreadable, gone, early;
	bool stale; /* a refresh may name more */
};

void name_tally_add(enum sym_status status, struct name_tally *tally);

/* Number of queries that the text has no name for. */
uint64_t name_tally_nameless(const struct stack_query *queries, size_t count);

#endif
