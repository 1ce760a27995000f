/* SPDX-License-Identifier: MIT */
/*
 * The last answers of a resolver, by address: profiles ask for the same few thousand addresses
 * again and again. A set-associative table of fixed size; an answer serves as long as what the
 * resolver answers from is in the same state. Several threads may look and put at once, without a
 * lock: who meets another at an entry does without it.
 */
#ifndef LIBSYM_ANSWER_CACHE_H
#define LIBSYM_ANSWER_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "libsym/libsym.h"

struct answer_cache;

/* What an answer was made from, counted; none of the numbers ever falls. */
struct answer_state {
	uint64_t changes;      /* of what the resolver holds */
	uint64_t live_changes; /* of what the snapshot has from the runtime */
};

/* NULL for want of memory. Takes memory for what is put only. */
struct answer_cache *answer_cache_create(void);
void answer_cache_destroy(struct answer_cache *cache);

/*
 * Writes all of an answer, as it was put but for what belongs to a result and not to an address
 * (`file` and what is behind it), which is blank. False when there is none of this address and
 * state; what is in `answer` then says nothing.
 */
bool answer_cache_find(struct answer_cache *cache, const struct answer_state *state,
		       uint64_t address, struct sym_answer *answer);

/* Tells the processor that this address will be looked for soon. */
void answer_cache_fetch(const struct answer_cache *cache, uint64_t address);

/* Addresses that never come again are mostly not put, once there have been many of them. */
void answer_cache_put(struct answer_cache *cache, const struct answer_state *state,
		      const struct sym_answer *answer);

#endif
