/* SPDX-License-Identifier: MIT */
/*
 * The last answers of a resolver, by address: profiles look up the same few thousand addresses
 * again and again.
 * A set-associative table of fixed size. An answer is valid as long as the resolver's data are
 * unchanged.
 * Several threads may use it at once without a lock. A thread that meets another one at an entry
 * skips the entry.
 */
#ifndef LIBSYM_RESOLVER_ANSWER_CACHE_H
#define LIBSYM_RESOLVER_ANSWER_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "libsym/libsym.h"

struct answer_cache;

/* The data from which an answer was made, as counters of changes. */
struct answer_state {
	uint64_t changes;      /* of the resolver's data */
	uint64_t live_changes; /* of the runtime's data in the snapshot */
};

/* NULL when out of memory. Unused entries take no memory. */
struct answer_cache *answer_cache_create(void);
void answer_cache_destroy(struct answer_cache *cache);

/*
 * Copies an answer as it was put; fields that belong to a result (from `file` on) are blank.
 * False when there is none for this address and state; `answer` is undefined then.
 */
bool answer_cache_find(struct answer_cache *cache, const struct answer_state *state,
		       uint64_t address, struct sym_answer *answer);

/* After many addresses that never repeat, most are not put. */
void answer_cache_put(struct answer_cache *cache, const struct answer_state *state,
		      const struct sym_answer *answer);

#endif
