/* SPDX-License-Identifier: MIT */
/* Indexes joined into one by index_builder_add_pieces(). */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/index/index.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/perfmap_check.h"

enum {
	POSITIONS = 2048,
	SYMBOLS = 40
};

/* The symbol at each position, painted symbol by symbol and byte by byte. */
struct painted {
	struct owner {
		int symbol; /* 0: none */
		uint64_t start, size_bytes;
	} at[POSITIONS];
};

static struct painted painted;
static struct index_builder *builder;
static struct index *joined;
static int added;

static void begin_builder(void)
{
	cr_assert_null(index_builder_create_numbered(&builder));
}

static void start(void)
{
	memset(&painted, 0, sizeof(painted));
	added = 0;
	joined = NULL;
	begin_builder();
}

static void finish(void)
{
	index_destroy(joined);
	index_builder_destroy(builder);
}

TestSuite(index_join, .init = start, .fini = finish);

static uint64_t first_position = 0x7f0000000000;

static void paint(uint64_t at, uint64_t size_bytes)
{
	for (uint64_t i = at; i < at + size_bytes && i < POSITIONS; i++)
		painted.at[i] = (struct owner){ added, at, size_bytes };
	if (!size_bytes && (!painted.at[at].symbol || !painted.at[at].size_bytes))
		painted.at[at] = (struct owner){ added, at, 0 };
}

static void add(uint64_t at, uint64_t size_bytes)
{
	added++;
	index_builder_add_number(builder, first_position + at, size_bytes, (uint32_t)added,
				 (uint32_t)added % 300);
	paint(at, size_bytes);
}

static struct index *freeze(void)
{
	struct index *index;

	cr_assert_null(index_freeze(builder, &index));
	index_builder_destroy(builder);
	begin_builder();
	return index;
}

/* As index_lsm.c does. */
static struct sym_error *try_join(struct index **indexes, size_t count, struct index **ret)
{
	struct index_builder *joining AUTO_INDEX_BUILDER = NULL;
	struct sym_error *error = index_builder_create_numbered(&joining);

	if (error)
		return error;
	for (size_t i = 0; i < count; i++)
		index_builder_add_pieces(joining, indexes[i]);
	return index_freeze(joining, ret);
}

static struct index *join(struct index **indexes, size_t count)
{
	struct index *ret;

	cr_assert_null(try_join(indexes, count, &ret));
	perfmap_check_index(ret);
	for (size_t i = 0; i < count; i++)
		index_destroy(indexes[i]);
	return ret;
}

/* Joins the newly added symbols with the existing ones. */
static void join_freshly_added(void)
{
	struct index *newer = freeze();

	joined = joined ? join((struct index *[]){ joined, newer }, 2) : newer;
}

static void expect_painted(void)
{
	for (uint64_t i = 0; i < POSITIONS; i++) {
		const struct owner *owner = &painted.at[i];
		struct index_entry entry;

		if (!owner->symbol) {
			cr_assert_eq(index_look_up(joined, first_position + i, &entry), INDEX_NONE,
				     "position %zu", (size_t)i);
			continue;
		}
		cr_assert_neq(index_look_up(joined, first_position + i, &entry), INDEX_NONE,
			      "position %zu", (size_t)i);
		cr_assert_eq(entry.number, (uint32_t)owner->symbol, "position %zu", (size_t)i);
		cr_assert_eq(entry.value, (uint32_t)owner->symbol % 300);
		cr_assert_eq(entry.symbol_start, first_position + owner->start);
		cr_assert_eq(entry.symbol_size_bytes, owner->size_bytes);
	}
}

Test(index_join, gives_shared_bytes_to_the_newer)
{
	add(100, 100);
	add(300, 10);
	join_freshly_added();
	add(140, 20);
	add(295, 10);
	join_freshly_added();
	cr_expect_eq(index_count(joined), 5);
	expect_painted();
}

Test(index_join, hides_what_a_newer_symbol_contains_and_keeps_what_contains_it)
{
	add(100, 10);
	add(120, 10);
	add(140, 10);
	join_freshly_added();
	add(90, 100);
	join_freshly_added();
	cr_expect_eq(index_count(joined), 1);
	expect_painted();
	add(100, 10);
	add(120, 10);
	join_freshly_added();
	cr_expect_eq(index_count(joined), 5);
	expect_painted();
}

Test(index_join, gives_a_sizeless_symbol_an_address_that_is_free)
{
	add(10, 0);
	add(20, 0);
	add(100, 50);
	join_freshly_added();
	add(10, 0);
	add(18, 4);
	add(120, 0);
	add(500, 0);
	join_freshly_added();
	cr_expect_eq(index_count(joined), 4);
	expect_painted();
}

Test(index_join, joins_with_an_empty_index)
{
	struct index *empty = freeze();

	add(10, 10);
	joined = join((struct index *[]){ empty, freeze(), freeze() }, 3);
	cr_expect_eq(index_count(joined), 1);
	expect_painted();
	index_destroy(joined);
	joined = join((struct index *[]){ freeze(), freeze() }, 2);
	cr_expect_eq(index_count(joined), 0);
}

/* Regions and leaves of both end at different places. */
Test(index_join, joins_symbols_gigabytes_apart)
{
	static const uint64_t heaps[] = { 0x1000, 0x10000000000, 0x7fffffff0000,
					  0xfffffffffff00000 };
	const uint64_t large_bytes = (uint64_t)5 << 32;

	for (int round = 0; round < 2; round++) {
		for (size_t heap = 0; heap < 4; heap++)
			for (uint64_t i = 0; i < 100; i++)
				index_builder_add_number(
					builder, heaps[heap] + i * 64 + (uint64_t)round * 32, 32,
					(uint32_t)round, (uint32_t)i);
		index_builder_add_number(builder, round ? 0x20000000000 : 0x30000000000,
					 large_bytes, 2, 0);
		join_freshly_added();
	}
	cr_assert_eq(index_count(joined), 802);
	for (size_t heap = 0; heap < 4; heap++)
		for (uint64_t i = 0; i < 200; i++) {
			struct index_entry entry;

			cr_assert_neq(index_look_up(joined, heaps[heap] + i * 32 + 31, &entry),
				      INDEX_NONE);
			cr_assert_eq(entry.start, heaps[heap] + i * 32);
			cr_assert_eq(entry.number, i % 2);
			cr_assert_eq(entry.value, i / 2);
		}
	cr_expect_neq(index_find(joined, 0x20000000000 + large_bytes - 1), INDEX_NONE);
	cr_expect_neq(index_find(joined, 0x30000000000 + large_bytes - 1), INDEX_NONE);
	cr_expect_eq(index_find(joined, 0x30000000000 + large_bytes), INDEX_NONE);
}

static void add_at_random(unsigned int seed)
{
	size_t count = (size_t)random() % SYMBOLS;

	for (size_t i = 0; i < count; i++) {
		uint64_t size_bytes = (uint64_t)random() % (seed % 2 ? 20 : 300);

		add((uint64_t)random() % (POSITIONS - size_bytes), size_bytes);
	}
}

Test(index_join, agrees_with_a_byte_map_on_random_overlaps)
{
	for (unsigned int seed = 1; seed <= 600; seed++) {
		struct index *indexes[9];
		size_t count;

		srandom(seed);
		finish();
		start();
		count = 2 + (size_t)random() % 8;
		for (size_t i = 0; i < count; i++) {
			add_at_random(seed);
			indexes[i] = freeze();
		}
		joined = join(indexes, count);
		expect_painted();
	}
}

static bool join_again(void *context)
{
	struct index *ret = NULL;
	struct sym_error *error = try_join(context, 2, &ret);

	if (error)
		cr_assert_eq(sym_error_code(error), SYM_ERROR_NO_MEMORY);
	else
		cr_assert_eq(index_count(ret), 5);
	index_destroy(ret);
	sym_error_destroy(error);
	return !error;
}

Test(index_join, reports_out_of_memory)
{
	struct index *indexes[2];

	add(100, 100);
	add(300, 10);
	indexes[0] = freeze();
	add(140, 20);
	add(295, 10);
	indexes[1] = freeze();
	cr_expect_gt(alloc_fail_each(join_again, indexes), 3);
	joined = join(indexes, 2);
	expect_painted();
}
