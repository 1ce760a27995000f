/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/index/index.h"
#include "libsym/limits.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/perfmap_check.h"

static struct index_builder *builder;
static struct index *frozen;

static void start(void)
{
	cr_assert_null(index_builder_create(&builder));
}

static void finish(void)
{
	index_destroy(frozen);
	index_builder_destroy(builder);
}

TestSuite(index, .init = start, .fini = finish);

static void add(uint64_t start_at, uint64_t size_bytes, const char *name)
{
	index_builder_add(builder, start_at, size_bytes, name, strlen(name), 7);
}

static void freeze(void)
{
	cr_assert_null(index_freeze(builder, &frozen));
	perfmap_check_index(frozen);
}

static void expect_piece(size_t i, uint64_t start_at, uint64_t size_bytes, const char *name)
{
	struct index_entry entry;

	cr_assert_lt(i, index_count(frozen));
	index_at(frozen, i, &entry);
	cr_expect_eq(entry.start, start_at, "piece %zu", i);
	cr_expect_eq(entry.size_bytes, size_bytes, "piece %zu", i);
	cr_expect_str_eq(entry.name, name, "piece %zu", i);
	cr_expect_eq(entry.value, 7);
}

static void find_all(const uint64_t *positions, size_t count, size_t *ret)
{
	for (size_t i = 0; i < count; i++)
		ret[i] = index_find(frozen, positions[i]);
}

Test(index, finds_added_symbols_and_nothing_else)
{
	add(0x100, 0x10, "a");
	add(0x120, 0x10, "b");
	freeze();
	cr_expect_eq(index_count(frozen), 2);
	cr_expect_eq(index_find(frozen, 0xff), INDEX_NONE);
	cr_expect_eq(index_find(frozen, 0x100), 0);
	cr_expect_eq(index_find(frozen, 0x10f), 0);
	cr_expect_eq(index_find(frozen, 0x110), INDEX_NONE);
	cr_expect_eq(index_find(frozen, 0x12f), 1);
	cr_expect_eq(index_find(frozen, 0x130), INDEX_NONE);
}

Test(index, sorts_symbols_added_in_any_order)
{
	add(0x300, 0x10, "c");
	add(0x100, 0x10, "a");
	add(0x200, 0x10, "b");
	freeze();
	expect_piece(0, 0x100, 0x10, "a");
	expect_piece(1, 0x200, 0x10, "b");
	expect_piece(2, 0x300, 0x10, "c");
}

Test(index, lets_the_later_of_two_at_one_start_win)
{
	add(0x100, 0x10, "old");
	add(0x100, 0x10, "new");
	freeze();
	cr_expect_eq(index_count(frozen), 1);
	expect_piece(0, 0x100, 0x10, "new");
}

Test(index, keeps_front_and_back_around_a_later_symbol)
{
	struct index_entry entry;

	add(0x100, 0x100, "outer");
	add(0x140, 0x10, "inner");
	freeze();
	expect_piece(0, 0x100, 0x40, "outer");
	expect_piece(1, 0x140, 0x10, "inner");
	expect_piece(2, 0x150, 0xb0, "outer");
	index_at(frozen, 2, &entry);
	cr_expect_eq(entry.symbol_start, 0x100);
	cr_expect_eq(entry.symbol_size_bytes, 0x100);
}

Test(index, hides_an_earlier_symbol_under_a_later_one_that_contains_it)
{
	add(0x140, 0x10, "inner");
	add(0x100, 0x100, "outer");
	freeze();
	cr_expect_eq(index_count(frozen), 1);
	expect_piece(0, 0x100, 0x100, "outer");
}

Test(index, keeps_the_last_of_equal_starts_and_the_rest_of_others)
{
	add(0x100, 0x40, "block");
	add(0x108, 0x8, "first");
	add(0x108, 0x8, "again");
	add(0x110, 0x10, "longer");
	add(0x110, 0x8, "shorter");
	add(0x130, 0, "sizeless");
	add(0x130, 0x4, "sized");
	add(0x138, 0x4, "sized too");
	add(0x138, 0, "sizeless too");
	freeze();
	cr_assert_eq(index_count(frozen), 9);
	expect_piece(0, 0x100, 0x8, "block");
	expect_piece(1, 0x108, 0x8, "again");
	expect_piece(2, 0x110, 0x8, "shorter");
	expect_piece(3, 0x118, 0x8, "longer");
	expect_piece(4, 0x120, 0x10, "block");
	expect_piece(5, 0x130, 0x4, "sized");
	expect_piece(6, 0x134, 0x4, "block");
	expect_piece(7, 0x138, 0x4, "sized too");
	expect_piece(8, 0x13c, 0x4, "block");
}

Test(index, clips_an_earlier_symbol_that_a_later_one_overlaps_in_part)
{
	add(0x100, 0x20, "old");
	add(0x110, 0x20, "new");
	freeze();
	expect_piece(0, 0x100, 0x10, "old");
	expect_piece(1, 0x110, 0x20, "new");
}

Test(index, gives_a_sizeless_symbol_an_address_that_is_free)
{
	struct index_entry entry;

	add(0x100, 0, "label");
	add(0x200, 0x10, "sized");
	add(0x208, 0, "hidden");
	add(0x300, 0, "first");
	add(0x300, 0, "second");
	freeze();
	cr_expect_eq(index_count(frozen), 3);
	expect_piece(0, 0x100, 1, "label");
	expect_piece(1, 0x200, 0x10, "sized");
	expect_piece(2, 0x300, 1, "second");
	index_at(frozen, 0, &entry);
	cr_expect_eq(entry.symbol_size_bytes, 0);
}

Test(index, is_empty_without_symbols)
{
	freeze();
	cr_expect_eq(index_count(frozen), 0);
	cr_expect_eq(index_find(frozen, 0), INDEX_NONE);
	cr_expect_eq(index_find(frozen, UINT64_MAX), INDEX_NONE);
}

Test(index, works_at_both_ends_of_the_address_space)
{
	add(0, 1, "zero");
	add(UINT64_MAX - 0x10, 0x10, "last");
	freeze();
	cr_expect_eq(index_find(frozen, 0), 0);
	cr_expect_eq(index_find(frozen, UINT64_MAX - 1), 1);
	cr_expect_eq(index_find(frozen, UINT64_MAX), INDEX_NONE);
}

/* Modulo 2^64 they are neighbours. */
Test(index, keeps_its_order_when_the_lowest_addresses_come_after_the_highest)
{
	add(UINT64_MAX - 0x10, 8, "highest");
	add(0x10, 8, "lowest");
	add(UINT64_MAX - 0x3000000, 8, "high");
	add(0x200000, 8, "low");
	freeze();
	expect_piece(0, 0x10, 8, "lowest");
	expect_piece(1, 0x200000, 8, "low");
	expect_piece(2, UINT64_MAX - 0x3000000, 8, "high");
	expect_piece(3, UINT64_MAX - 0x10, 8, "highest");
	cr_expect_eq(index_find(frozen, 0x10), 0);
	cr_expect_eq(index_find(frozen, UINT64_MAX - 0x10), 3);
}

Test(index, gives_the_last_address_to_the_latest_sizeless_symbol)
{
	add(UINT64_MAX, 0, "first");
	add(UINT64_MAX, 0, "second");
	freeze();
	cr_expect_eq(index_count(frozen), 1);
	expect_piece(0, UINT64_MAX, 1, "second");
}

/* Each piece is farther from the previous one than 32 bits can express. */
Test(index, finds_symbols_at_any_distance)
{
	enum {
		COUNT = 300
	};
	const uint64_t step = ((uint64_t)1 << 32) - 3;
	uint64_t positions[2 * COUNT];
	size_t found[2 * COUNT];

	for (size_t i = COUNT; i-- > 0;) {
		add(i * (i + 1) / 2 * step, 4, "far");
		positions[2 * i] = i * (i + 1) / 2 * step + 3;
		positions[2 * i + 1] = positions[2 * i] + 1;
	}
	freeze();
	find_all(positions, 2 * COUNT, found);
	for (size_t i = 0; i < COUNT; i++) {
		cr_expect_eq(found[2 * i], i);
		cr_expect_eq(found[2 * i + 1], INDEX_NONE);
		cr_expect_eq(index_find(frozen, positions[2 * i]), i);
		cr_expect_eq(index_find(frozen, positions[2 * i + 1]), INDEX_NONE);
	}
}

/* Most symbols lie in a small part of the range. */
Test(index, finds_dense_symbols)
{
	enum {
		COUNT = 20000
	};

	add(0x1000, 8, "first");
	add(0x1000 + 0xfffffff0ull - 8, 8, "last");
	for (uint64_t i = 0; i < COUNT; i++)
		add(0x80000000 + 2 * i, 1, "crowded");
	freeze();
	cr_assert_eq(index_count(frozen), COUNT + 2);
	for (uint64_t i = 0; i < COUNT; i++) {
		cr_assert_eq(index_find(frozen, 0x80000000 + 2 * i), i + 1);
		cr_assert_eq(index_find(frozen, 0x80000000 + 2 * i + 1), INDEX_NONE);
	}
	cr_expect_eq(index_find(frozen, 0x1007), 0);
	cr_expect_eq(index_find(frozen, 0x1000 + 0xfffffff0ull - 1), COUNT + 1);
}

/* Each at its first byte, at its last, and after it. */
static void expect_each(const uint64_t *starts, size_t count, uint64_t size_bytes)
{
	uint64_t positions[3];
	size_t found[3];

	cr_assert_eq(index_count(frozen), count);
	for (size_t i = 0; i < count; i++) {
		positions[0] = starts[i];
		positions[1] = starts[i] + size_bytes - 1;
		positions[2] = starts[i] + size_bytes;
		find_all(positions, 3, found);
		cr_assert_eq(found[0], i);
		cr_assert_eq(found[1], i);
		cr_assert_eq(found[2], INDEX_NONE);
		for (size_t j = 0; j < 3; j++)
			cr_assert_eq(index_find(frozen, positions[j]), found[j]);
	}
}

/* So many heaps that later ones share a region, then few symbols far apart with many close together
 * among them: buckets are wide, and many symbols start in one. */
static void check_dense_among_sparse(size_t dense, uint64_t step)
{
	enum {
		HEAPS = 40,
		SPARSE = 100
	};
	uint64_t *starts = malloc((HEAPS + 2 * SPARSE + dense) * sizeof(*starts));
	uint64_t at = 0x10000;
	size_t count = 0;

	for (size_t i = 0; i < HEAPS + SPARSE; i++, at += 8 << 20)
		starts[count++] = at;
	for (size_t i = 0; i < dense; i++, at += step)
		starts[count++] = at;
	for (size_t i = 0; i < SPARSE; i++, at += 8 << 20)
		starts[count++] = at;
	for (size_t i = 0; i < count; i++)
		add(starts[i], 8, "symbol");
	freeze();
	expect_each(starts, count, 8);
	free(starts);
}

Test(index, finds_symbols_that_share_a_bucket)
{
	check_dense_among_sparse(30, 12);
}

Test(index, finds_thousands_of_symbols_in_one_bucket)
{
	check_dense_among_sparse(5000, 9);
}

/* Like code of a runtime beside native code: runs of small functions without gaps, and of large
 * ones. */
Test(index, finds_symbols_with_dense_parts)
{
	enum {
		COUNT = 20000
	};
	uint64_t *starts = malloc(COUNT * sizeof(*starts)), at = 0x7f0000000000;

	for (size_t i = 0; i < COUNT; i++) {
		starts[i] = at;
		at += (uint64_t)9 << (i / 100 * 2654435761u >> 7) % 9;
	}
	for (size_t i = 0; i < COUNT; i++)
		add(starts[i], 8, "symbol");
	freeze();
	expect_each(starts, COUNT, 8);
	free(starts);
}

Test(index, finds_symbols_on_both_sides_of_two_gigabytes)
{
	uint64_t starts[4096];
	size_t count = 0;

	/* Steps just below the gap limit, slightly farther than 31 bits reach. */
	for (uint64_t at = 0x1000; count < 2200; at += (1 << 20) - 16)
		starts[count++] = at;
	for (uint64_t at = ((uint64_t)1 << 31) + ((uint64_t)1 << 30); count < 4096; at += 9)
		starts[count++] = at;
	for (size_t i = 0; i < count; i++)
		add(starts[i], 8, "symbol");
	freeze();
	expect_each(starts, count, 8);
}

Test(index, finds_the_rest_of_a_large_symbol_after_all_others)
{
	add(0x1000, 16, "small");
	add(0x2000, 3ull << 30, "large");
	add(1ull << 40, 16, "far");
	freeze();
	cr_expect_eq(index_find(frozen, 0x2000 + 0xfffe), 1);
	cr_expect_eq(index_find(frozen, 0x2000 + 0xffff), 1);
	cr_expect_eq(index_find(frozen, 0x2000 + (3ull << 30) - 1), 1);
	cr_expect_eq(index_find(frozen, 0x2000 + (3ull << 30)), INDEX_NONE);
	cr_expect_eq(index_find(frozen, 1ull << 40), 2);
	cr_expect_eq(index_find(frozen, UINT64_MAX), INDEX_NONE);
}

Test(index, is_the_same_whatever_was_reserved)
{
	static const size_t reserved[] = { 0, 1, 1000, (size_t)1 << 20, SIZE_MAX };

	for (size_t i = 0; i < sizeof(reserved) / sizeof(*reserved); i++) {
		finish();
		frozen = NULL;
		start();
		index_builder_reserve(builder, reserved[i], reserved[i]);
		for (uint64_t at = 0; at < 3000; at++)
			add(at * 16, 8, at % 2 ? "odd" : "even");
		freeze();
		cr_assert_eq(index_count(frozen), 3000);
		expect_piece(2999, 2999 * 16, 8, "odd");
	}
}

Test(index, keeps_sizes_of_four_gigabytes_and_more)
{
	struct index_entry entry;

	add(0x1000, (uint64_t)5 << 32, "huge");
	add((uint64_t)6 << 32, 0x80000000u, "two gigabytes");
	freeze();
	cr_expect_eq(index_find(frozen, 0x1000 + ((uint64_t)5 << 32) - 1), 0);
	cr_expect_eq(index_find(frozen, 0x1000 + ((uint64_t)5 << 32)), INDEX_NONE);
	index_at(frozen, 1, &entry);
	cr_expect_eq(entry.size_bytes, 0x80000000u);
}

/* Leaves hold 16-bit sizes: values just within and just beyond that. */
Test(index, keeps_distances_and_sizes_around_64_kilobytes)
{
	static const uint64_t steps[] = { 0xfffd, 0xfffe, 0xffff, 0x10000, 0x10001 };
	uint64_t at = 0x1000;
	size_t count = 0;

	for (size_t i = 0; i < 5; i++)
		for (uint64_t less = 0; less < 3; less++) {
			add(at, steps[i] - less, "large");
			at += steps[i];
		}
	freeze();
	cr_assert_eq(index_count(frozen), 15);
	at = 0x1000;
	for (size_t i = 0; i < 5; i++)
		for (uint64_t less = 0; less < 3; less++) {
			expect_piece(count, at, steps[i] - less, "large");
			cr_expect_eq(index_find(frozen, at + steps[i] - less - 1), count);
			cr_expect_eq(index_find(frozen, at + steps[i] - 1),
				     less ? INDEX_NONE : count);
			at += steps[i];
			count++;
		}
}

/* An item holds 16-bit sizes; the largest value means "larger". */
Test(index, keeps_a_large_symbol_before_a_symbol_at_the_end_of_its_area)
{
	for (uint64_t size_bytes = 0xfffe; size_bytes <= 0x100000; size_bytes += 1 + size_bytes / 9)
		for (int large_last = 0; large_last < 2; large_last++) {
			finish();
			frozen = NULL;
			start();
			add(0x8000, 0x10, "before");
			if (!large_last)
				add(0x10000, size_bytes, "large");
			add(0x1ffff, 1, "small");
			if (large_last)
				add(0x10000, size_bytes, "large");
			freeze();
			if (large_last && size_bytes > 0xffff) {
				cr_assert_eq(index_count(frozen), 2);
				expect_piece(1, 0x10000, size_bytes, "large");
				continue;
			}
			expect_piece(1, 0x10000, size_bytes < 0xffff ? size_bytes : 0xffff,
				     "large");
			expect_piece(2, 0x1ffff, 1, "small");
			cr_assert_eq(index_count(frozen), size_bytes > 0x10000 ? 4 : 3);
			if (size_bytes > 0x10000)
				expect_piece(3, 0x20000, size_bytes - 0x10000, "large");
		}
}

Test(index, keeps_more_values_than_there_are_codes)
{
	struct index_entry entry;

	for (uint32_t i = 0; i < 1000; i++)
		index_builder_add(builder, i * 16, 16, "v", 1, i * 0x10001);
	for (uint32_t i = 0; i < 1000; i++)
		index_builder_add(builder, (1000 + i) * 16, 16, "v", 1, (999 - i) * 0x10001);
	freeze();
	for (uint32_t i = 0; i < 2000; i++) {
		cr_assert_eq(index_look_up(frozen, i * 16 + 15, &entry), i);
		cr_assert_eq(entry.value, (i < 1000 ? i : 1999 - i) * 0x10001);
		cr_assert_eq(entry.size_bytes, 16);
	}
}

Test(index, keeps_numbers_in_place_of_names)
{
	struct index_entry entry;

	index_builder_destroy(builder);
	cr_assert_null(index_builder_create_numbered(&builder));
	for (uint32_t i = 0; i < 100; i++)
		index_builder_add_number(builder, i * 16, 24, UINT32_MAX - i, i);
	cr_assert_null(index_freeze(builder, &frozen));
	cr_assert_eq(index_count(frozen), 100);
	for (uint32_t i = 0; i < 100; i++) {
		index_at(frozen, i, &entry);
		cr_expect_eq(entry.number, UINT32_MAX - i);
		cr_expect_eq(entry.value, i);
		cr_expect_eq(entry.start, i * 16);
		cr_expect_eq(entry.size_bytes, i < 99 ? 16 : 24);
		cr_expect_str_eq(entry.name, "");
	}
	cr_expect_eq(index_find(frozen, 16), 1);
}

/* A simple model: every position is painted by the symbols in turn. */
enum {
	WORLD = 600,
	MODEL_SYMBOLS = 60
};

static void expect_model(unsigned int seed)
{
	int owner[WORLD], label[WORLD];
	size_t found[WORLD], i;
	uint64_t positions[WORLD];

	srandom(seed);
	memset(owner, -1, sizeof(owner));
	memset(label, -1, sizeof(label));
	finish();
	frozen = NULL;
	start();
	for (i = 0; i < MODEL_SYMBOLS; i++) {
		uint64_t at = (uint64_t)random() % (WORLD - 50), p;
		uint64_t size_bytes = random() % 4 ? (uint64_t)random() % 50 : 0;
		char name[16];

		snprintf(name, sizeof(name), "s%zu", i);
		add(at, size_bytes, name);
		for (p = at; p < at + size_bytes; p++)
			owner[p] = (int)i;
		if (!size_bytes)
			label[at] = (int)i;
	}
	freeze();
	for (i = 0; i < WORLD; i++)
		positions[i] = i;
	find_all(positions, WORLD, found);
	for (i = 0; i < WORLD; i++) {
		int expected = owner[i] >= 0 ? owner[i] : label[i];
		struct index_entry entry = { .name = "-" };
		char name[16] = "-";

		cr_assert_eq(found[i], index_find(frozen, i));
		if (found[i] != INDEX_NONE)
			index_at(frozen, found[i], &entry);
		if (expected >= 0)
			snprintf(name, sizeof(name), "s%d", expected);
		cr_assert_str_eq(entry.name, name, "seed %u position %zu", seed, i);
	}
}

Test(index, agrees_with_a_byte_map_on_random_overlaps)
{
	unsigned int seed;

	for (seed = 1; seed <= 200; seed++)
		expect_model(seed);
}

/* Enough symbols for the radix sort and for several levels of the tree. */
Test(index, agrees_with_arithmetic_on_many_symbols_in_scattered_order)
{
	const uint64_t base = 0x7f0000000000, step = 0x40, count = 100003;
	uint64_t i;

	for (i = 0; i < count; i++) {
		uint64_t at = i * 7919 % count;
		char name[24];

		snprintf(name, sizeof(name), "m%llu", (unsigned long long)at);
		add(base + at * step, step - 8, name);
	}
	freeze();
	cr_assert_eq(index_count(frozen), count);
	for (i = 0; i < count; i++) {
		struct index_entry entry;
		char name[24];
		size_t found = index_find(frozen, base + i * step + step - 9);

		cr_assert_eq(found, i);
		index_at(frozen, found, &entry);
		snprintf(name, sizeof(name), "m%llu", (unsigned long long)i);
		cr_assert_str_eq(entry.name, name);
		cr_assert_eq(index_find(frozen, base + i * step + step - 8), INDEX_NONE);
	}
}

/* Alternating heaps. A symbol that comes later in another heap's range wins. */
Test(index, lets_the_later_symbol_win_in_any_order_of_heaps)
{
	enum {
		HEAPS = 40,
		EACH = 300
	};
	const uint64_t apart = (uint64_t)1 << 28;

	for (uint64_t i = 0; i < EACH; i++)
		for (uint64_t heap = 0; heap < HEAPS; heap++)
			add((HEAPS - heap) * apart + i * 0x20, 0x20, i % 2 ? "odd" : "even");
	/* Over the middle of every pair, from last to first. */
	for (uint64_t i = EACH; i > 0; i--)
		add(3 * apart + (i - 1) * 0x20 + 0x10, 0x8, "patch");
	freeze();
	cr_assert_eq(index_count(frozen), HEAPS * EACH + 2 * EACH);
	expect_piece(0, apart, 0x20, "even");
	for (uint64_t i = 0; i < EACH; i++) {
		expect_piece(2 * EACH + 3 * i, 3 * apart + i * 0x20, 0x10, i % 2 ? "odd" : "even");
		expect_piece(2 * EACH + 3 * i + 1, 3 * apart + i * 0x20 + 0x10, 0x8, "patch");
		expect_piece(2 * EACH + 3 * i + 2, 3 * apart + i * 0x20 + 0x18, 0x8,
			     i % 2 ? "odd" : "even");
	}
}

Test(index, rejects_a_symbol_whose_end_overflows)
{
	struct sym_error *error;

	add(UINT64_MAX, 2, "beyond");
	add(0x100, 1, "after");
	error = index_freeze(builder, &frozen);
	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), SYM_ERROR_ARGUMENT);
	sym_error_destroy(error);
}

static bool build_and_freeze(void *context)
{
	AUTO_INDEX_BUILDER struct index_builder *built = NULL;
	AUTO_INDEX struct index *index = NULL;
	struct sym_error *error = index_builder_create(&built);

	(void)context;
	if (!error) {
		index_builder_add(built, 0x200, 0x10, "b", 1, 0);
		index_builder_add(built, 0x100, 0x200, "a", 1, 0);
		index_builder_add(built, 0x50, 0, "c", 1, 0);
		error = index_freeze(built, &index);
	}
	cr_assert_eq(!error, index != NULL);
	if (error)
		cr_assert_eq(sym_error_code(error), SYM_ERROR_NO_MEMORY);
	sym_error_destroy(error);
	return index != NULL;
}

Test(index, survives_every_failed_allocation)
{
	cr_expect_gt(alloc_fail_each(build_and_freeze, NULL), 10);
	cr_expect(build_and_freeze(NULL));
}
