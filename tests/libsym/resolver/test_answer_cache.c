/* SPDX-License-Identifier: MIT */
#include "libsym/resolver/answer_cache.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/libsym.h"

/* All of its fields depend on its address and state. */
static struct sym_answer answer_of(uint64_t address, const struct answer_state *state)
{
	uint64_t mark = address * 31 + state->changes * 7 + state->live_changes;

	return (struct sym_answer){
		.address = address,
		.status = mark & 1 ? SYM_RESOLVED : SYM_BOUNDS_ONLY,
		.source = mark & 2 ? SYM_SOURCE_ELF : SYM_SOURCE_READYTORUN,
		.name = (const char *)(uintptr_t)(mark + 1),
		.tier = (const char *)(uintptr_t)(mark + 2),
		.offset_bytes = mark + 3,
		.size_bytes = mark + 4,
		.image = (const struct sym_image *)(uintptr_t)(mark + 5),
		.image_path = (const char *)(uintptr_t)(mark + 6),
		.image_position = mark + 7,
		.reason = (const char *)(uintptr_t)(mark + 8),
		.kind = mark & 4 ? SYM_SYMBOL_STUB : SYM_SYMBOL_FUNCTION,
		.linkage_name = (const char *)(uintptr_t)(mark + 9),
	};
}

static bool is_right(struct answer_cache *cache, const struct answer_state *state, uint64_t address,
		     bool *found)
{
	struct sym_answer answer, expected = answer_of(address, state);

	memset(&answer, 0x55, sizeof(answer));
	*found = answer_cache_find(cache, state, address, &answer);
	return !*found || !memcmp(&answer, &expected, sizeof(answer));
}

static void expect(struct answer_cache *cache, uint64_t changes, uint64_t live_changes,
		   uint64_t address, bool expected)
{
	const struct answer_state state = { changes, live_changes };
	bool found;

	cr_expect(is_right(cache, &state, address, &found), "%#lx", address);
	cr_expect_eq(found, expected, "%#lx of %lu, %lu", address, changes, live_changes);
}

static void put(struct answer_cache *cache, uint64_t changes, uint64_t live_changes,
		uint64_t address)
{
	const struct answer_state state = { changes, live_changes };
	struct sym_answer answer = answer_of(address, &state);

	/* A field of a result. */
	answer.file = "file.c";
	answer.line = 4;
	answer.inlined_count = 3;
	answer.component = "component";
	answer_cache_put(cache, &state, &answer);
}

Test(answer_cache, returns_an_answer_for_its_address_and_state_only)
{
	struct answer_cache *cache = answer_cache_create();

	cr_assert_not_null(cache);
	expect(cache, 0, 0, 0, false);
	expect(cache, 0, 0, 4096, false);
	put(cache, 0, 0, 4096);
	put(cache, 0, 0, 0);
	expect(cache, 0, 0, 0, true);
	expect(cache, 0, 0, 4096, true);
	expect(cache, 0, 0, 4097, false);
	expect(cache, 1, 0, 4096, false);
	expect(cache, 0, 1, 4096, false);
	put(cache, 1, 0, 4096);
	put(cache, 1, 0, UINT64_MAX);
	expect(cache, 1, 0, 4096, true);
	expect(cache, 1, 0, UINT64_MAX, true);
	answer_cache_destroy(cache);
	answer_cache_destroy(NULL);
}

Test(answer_cache, drops_answers_when_full_and_never_mixes_them)
{
	const struct answer_state state = { 3, 4 };
	struct answer_cache *cache = answer_cache_create();
	size_t found_count = 0;
	bool found;

	cr_assert_not_null(cache);
	for (uint64_t i = 0; i < 200000; i++) {
		put(cache, 3, 4, 0x7f0000000000 + i * 16);
		expect(cache, 3, 4, 0x7f0000000000 + i * 16, true);
	}
	for (uint64_t i = 0; i < 200000; i++) {
		cr_assert(is_right(cache, &state, 0x7f0000000000 + i * 16, &found));
		found_count += found;
	}
	cr_expect_geq(found_count, 10000);
	/* Entries of another state do not take room. */
	for (uint64_t i = 0; i < 1000; i++)
		put(cache, 4, 4, 0x100 + i * 5);
	for (uint64_t i = 0; i < 1000; i++)
		expect(cache, 4, 4, 0x100 + i * 5, true);
	answer_cache_destroy(cache);
}

/*
 * The two halves of an address are joined for the first comparison. Here the result is always the
 * same.
 */
Test(answer_cache, separates_similar_addresses)
{
	const struct answer_state state = { 0, 0 };
	struct answer_cache *cache = answer_cache_create();
	bool found;

	cr_assert_not_null(cache);
	for (uint64_t i = 0; i < 50000; i++) {
		put(cache, 0, 0, (0x1000 + i) << 32 | (0x55550000 ^ (0x1000 + i)));
		cr_assert(is_right(cache, &state,
				   (0x1000 + i / 2) << 32 | (0x55550000 ^ (0x1000 + i / 2)),
				   &found));
	}
	answer_cache_destroy(cache);
}

/* Puts many addresses that never repeat, then counts how many of another hundred are cached. */
static size_t kept_of_a_hundred(struct answer_cache *cache, uint64_t *next)
{
	const struct answer_state state = { 0, 0 };
	size_t count = 0;
	bool found;

	for (size_t i = 0; i < 100000; i++)
		put(cache, 0, 0, ++*next << 4);
	for (size_t i = 0; i < 100; i++)
		put(cache, 0, 0, (*next + i) << 4);
	for (size_t i = 0; i < 100; i++) {
		cr_assert(is_right(cache, &state, (*next + i) << 4, &found));
		count += found;
	}
	*next += 100;
	return count;
}

Test(answer_cache, keeps_repeated_addresses)
{
	struct answer_cache *cache = answer_cache_create();
	uint64_t next = 0;

	cr_assert_not_null(cache);
	cr_expect_leq(kept_of_a_hundred(cache, &next), 20);
	cr_expect_leq(kept_of_a_hundred(cache, &next), 20);
	/* Now a few that repeat. */
	for (size_t i = 0; i < 100000; i++) {
		const struct answer_state state = { 0, 0 };
		uint64_t address = (next + i % 1000) << 4;
		bool found;

		cr_assert(is_right(cache, &state, address, &found));
		if (!found)
			put(cache, 0, 0, address);
	}
	for (size_t i = 0; i < 1000; i++)
		expect(cache, 0, 0, (next + i) << 4, true);
	answer_cache_destroy(cache);
}

struct dense {
	struct answer_cache *cache;
	_Atomic(size_t) found, wrong;
};

static void *use(void *context)
{
	struct dense *dense = context;
	unsigned int seed = (unsigned int)(uintptr_t)&seed;

	for (size_t i = 0; i < 200000; i++) {
		/* Enough threads to meet, at the same addresses and entries. */
		const struct answer_state state = { i / 50000, 0 };
		uint64_t address = 0x1000 + (uint64_t)(rand_r(&seed) % 97) * 16;
		bool found;

		if (!is_right(dense->cache, &state, address, &found))
			dense->wrong++;
		dense->found += found;
		if (!found || !(i % 3))
			put(dense->cache, state.changes, 0, address);
	}
	return NULL;
}

Test(answer_cache, serves_four_threads_at_once)
{
	struct dense dense = { .cache = answer_cache_create() };
	pthread_t threads[4];

	cr_assert_not_null(dense.cache);
	for (size_t i = 0; i < 4; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, use, &dense), 0);
	for (size_t i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	cr_expect_eq(dense.wrong, 0);
	cr_expect_geq(dense.found, 100000);
	answer_cache_destroy(dense.cache);
}

/* ---- a resolver that has one ---------------------------------------------------------- */

static bool is_same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool is_same(const struct sym_answer *a, const struct sym_answer *b)
{
	return a->address == b->address && a->status == b->status && a->source == b->source &&
	       is_same_text(a->name, b->name) && is_same_text(a->linkage_name, b->linkage_name) &&
	       a->tier == b->tier && a->offset_bytes == b->offset_bytes &&
	       a->size_bytes == b->size_bytes && a->image == b->image &&
	       a->image_path == b->image_path && a->image_position == b->image_position &&
	       a->reason == b->reason && a->kind == b->kind && a->file == b->file &&
	       a->line == b->line && a->inlined_count == b->inlined_count;
}

/* Every function of this program and its libraries, and a byte in each of them. */
Test(answer_cache, repeats_the_answers_of_a_resolver)
{
	struct sym_snapshot *snapshot;
	struct sym_resolver *resolver, *other;
	struct sym_result *first, *again;
	struct sym_symbols *symbols;
	size_t count, named = 0;
	uint64_t *addresses;

	cr_assert_null(sym_snapshot_open(getpid(), NULL, &snapshot));
	cr_assert_null(sym_resolver_create(snapshot, &resolver));
	cr_assert_null(sym_resolver_create(snapshot, &other));
	cr_assert_null(sym_result_create(&first));
	cr_assert_null(sym_result_create(&again));
	cr_assert_null(
		sym_snapshot_symbols(snapshot, SYM_SYMBOLS_ELF | SYM_SYMBOLS_UNNAMED, &symbols));
	count = sym_symbols_count(symbols);
	count = count < 8000 ? count : 8000;
	addresses = calloc(count, sizeof(*addresses));
	for (size_t i = 0; i < count; i++)
		addresses[i] = sym_symbols_at(symbols, i)->start + i % 3;
	cr_assert_null(sym_resolver_resolve(resolver, addresses, count, first));
	for (int round = 0; round < 3; round++) {
		cr_assert_null(sym_resolver_resolve(resolver, addresses, count, again));
		for (size_t i = 0; i < count; i++)
			cr_assert(is_same(sym_result_at(first, i), sym_result_at(again, i)),
				  "%#lx, round %d", addresses[i], round);
	}
	for (size_t i = 0; i < count; i++) {
		struct sym_answer alone;

		cr_assert_null(sym_resolver_resolve(resolver, &addresses[i], 1, again));
		alone = *sym_result_at(again, 0);
		cr_assert(is_same(sym_result_at(first, i), &alone), "%#lx alone", addresses[i]);
		cr_assert_null(sym_resolver_resolve(other, &addresses[i], 1, again));
		cr_assert(is_same(sym_result_at(again, 0), &alone), "%#lx by another one",
			  addresses[i]);
		named += alone.status == SYM_RESOLVED;
	}
	cr_expect_geq(named, 1000);
	free(addresses);
	sym_symbols_destroy(symbols);
	sym_result_destroy(again);
	sym_result_destroy(first);
	sym_resolver_destroy(other);
	sym_resolver_destroy(resolver);
	sym_snapshot_close(snapshot);
}
