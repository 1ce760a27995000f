/* SPDX-License-Identifier: MIT */
/*
 * Objects that are fetched for no client, in the background: a bounded queue, of which a few
 * objects at a time are looked up as for a client. What does not fit is dropped and counted.
 */
#ifndef SYMSRV_LOOKUP_PREFETCH_H
#define SYMSRV_LOOKUP_PREFETCH_H

#include "symsrv/lookup/lookup.h"

struct prefetch;

/* `longest_ms`: for one object. Returns 0 or a negative errno. */
int prefetch_create(const struct holdings *holdings, int64_t longest_ms, struct prefetch **ret);
/* Starts nothing more; look-ups under way end as those of clients. NULL is allowed. */
void prefetch_stop(struct prefetch *prefetch);
/* Whether look-ups are under way. NULL is allowed. */
bool prefetch_is_running(struct prefetch *prefetch);
/* After the last look-up has ended. NULL is allowed. */
void prefetch_destroy(struct prefetch *prefetch);

/*
 * Takes a copy of the key into the queue. False: the queue is full, or memory is short.
 * `is_stranger`: others, who have a token, must find room behind it.
 */
bool prefetch_add(struct prefetch *prefetch, const struct key *key, bool is_stranger);

struct prefetch_counts {
	uint64_t found, missing, failed, dropped;
	size_t waiting; /* or under way */
};
void prefetch_counts(struct prefetch *prefetch, struct prefetch_counts *ret);

#endif
