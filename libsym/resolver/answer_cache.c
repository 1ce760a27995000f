/* SPDX-License-Identifier: MIT */
#include "libsym/resolver/answer_cache.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "libsym/base/sparse_memory.h"

enum {
	ENTRY_BITS = 14,
	ENTRIES = 1 << ENTRY_BITS,
	WAYS = 4, /* adjacent entries that can hold an address */
	WORDS = offsetof(struct sym_answer, file) / sizeof(uint64_t),
	/*
	 * Addresses that never repeat are not worth caching. `unused` grows with each put and falls
	 * with each find. At its limit only one address in several is cached.
	 */
	MOST_UNUSED = ENTRIES / 2,
	PUTS_A_FIND = 8,
	ONE_OF = 16,
	/* This many finds end that state. */
	UNUSED_LIMIT = MOST_UNUSED + 64 * PUTS_A_FIND
};

_Static_assert(offsetof(struct sym_answer, address) == 0, "the first word");

/*
 * A sequence lock: `turn` is odd during a write, 0 before the first one. Words read between two
 * equal even turns belong together. An answer is kept up to its `linkage_name`.
 */
struct entry {
	_Alignas(128) _Atomic(uint64_t) turn;
	_Atomic(uint64_t) changes, live_changes;
	_Atomic(uint64_t) words[WORDS];
};

_Static_assert(sizeof(struct entry) == 128, "two cache lines");

struct answer_cache {
	struct entry entries[ENTRIES];
	_Alignas(64) _Atomic(uint32_t)
		unused; /* an estimate: threads may overwrite each other's value */
};

struct answer_cache *answer_cache_create(void)
{
	return sparse_memory_create(sizeof(struct answer_cache));
}

void answer_cache_destroy(struct answer_cache *cache)
{
	sparse_memory_destroy(cache, sizeof(*cache));
}

/* The upper bits select the first of the entries that an address can have. */
static uint64_t hash_of(uint64_t address)
{
	return address * 0x9e3779b97f4a7c15u;
}

static size_t entry_of(uint64_t hash)
{
	return (size_t)(hash >> (64 - ENTRY_BITS));
}

static bool is_left_out(uint32_t unused, uint64_t hash)
{
	return __builtin_expect(unused >= MOST_UNUSED, 0) && (hash >> (60 - ENTRY_BITS)) % ONE_OF;
}

/* Ordered before every later read. */
static uint64_t get(const _Atomic(uint64_t) *word)
{
	return atomic_load_explicit(word, memory_order_acquire);
}

static bool is_of_state(const struct entry *entry, const struct answer_state *state)
{
	return get(&entry->changes) == state->changes &&
	       get(&entry->live_changes) == state->live_changes;
}

static inline bool read_entry(const struct entry *entry, const struct answer_state *state,
			      uint64_t address, struct sym_answer *answer)
{
	uint64_t turn = get(&entry->turn);

	if (!turn || turn & 1 || get(&entry->words[0]) != address || !is_of_state(entry, state))
		return false;
	for (size_t i = 0; i < WORDS; i++) {
		uint64_t word = get(&entry->words[i]);

		memcpy((char *)answer + i * sizeof(word), &word, sizeof(word));
	}
	memset((char *)answer + WORDS * sizeof(uint64_t), 0,
	       sizeof(*answer) - WORDS * sizeof(uint64_t));
	return atomic_load_explicit(&entry->turn, memory_order_relaxed) == turn;
}

bool answer_cache_find(struct answer_cache *cache, const struct answer_state *state,
		       uint64_t address, struct sym_answer *answer)
{
	uint32_t unused = atomic_load_explicit(&cache->unused, memory_order_relaxed);
	size_t first = entry_of(hash_of(address)), way = 0;

	if (is_left_out(unused, hash_of(address)))
		return false;
	while (!read_entry(&cache->entries[first ^ way], state, address, answer))
		if (++way == WAYS)
			return false;
	if (unused)
		atomic_store_explicit(&cache->unused,
				      unused > PUTS_A_FIND ? unused - PUTS_A_FIND : 0,
				      memory_order_relaxed);
	return true;
}

/* A free or outdated entry; else one selected by the address. */
static struct entry *choose_entry(struct answer_cache *cache, const struct answer_state *state,
				  uint64_t address)
{
	size_t first = entry_of(hash_of(address));

	for (size_t i = 0; i < WAYS; i++) {
		struct entry *entry = &cache->entries[first ^ i];

		if (!is_of_state(entry, state) || get(&entry->words[0]) == address ||
		    !get(&entry->turn))
			return entry;
	}
	return &cache->entries[first ^ (address >> 4 & (WAYS - 1))];
}

void answer_cache_put(struct answer_cache *cache, const struct answer_state *state,
		      const struct sym_answer *answer)
{
	uint32_t unused = atomic_load_explicit(&cache->unused, memory_order_relaxed);
	struct entry *entry;
	uint64_t turn;

	if (is_left_out(unused, hash_of(answer->address)))
		return;
	if (unused < UNUSED_LIMIT)
		atomic_store_explicit(&cache->unused, unused + 1, memory_order_relaxed);
	entry = choose_entry(cache, state, answer->address);
	turn = get(&entry->turn);
	if (turn & 1 || !atomic_compare_exchange_strong(&entry->turn, &turn, turn + 1))
		return;
	atomic_store_explicit(&entry->changes, state->changes, memory_order_release);
	atomic_store_explicit(&entry->live_changes, state->live_changes, memory_order_release);
	for (size_t i = 0; i < WORDS; i++) {
		uint64_t word;

		memcpy(&word, (const char *)answer + i * sizeof(word), sizeof(word));
		atomic_store_explicit(&entry->words[i], word, memory_order_release);
	}
	atomic_store_explicit(&entry->turn, turn + 2, memory_order_release);
}
