/* SPDX-License-Identifier: MIT */
#include "libsym/symbols/symbols.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/alloc_fail.h"

static void add(struct symbols_builder *builder, uint64_t start, uint64_t size, const char *name)
{
	struct sym_symbol symbol = { .start = start, .size_bytes = size };

	symbols_builder_add(builder, &symbol, name, strlen(name));
}

static void expect(const struct sym_symbols *list, size_t i, uint64_t start, uint64_t size,
		   const char *name)
{
	const struct sym_symbol *symbol = sym_symbols_at(list, i);

	cr_assert_not_null(symbol);
	cr_expect_eq(symbol->start, start);
	cr_expect_eq(symbol->size_bytes, size);
	cr_expect_str_eq(symbol->name, name);
}

Test(symbols, are_sorted_by_start_then_size_then_name)
{
	struct symbols_builder builder AUTO_SYMBOLS_BUILDER = { 0 };
	struct sym_symbols *list AUTO_SYMBOLS = NULL;

	add(&builder, 30, 1, "d");
	add(&builder, 10, 2, "b");
	add(&builder, 10, 2, "a");
	add(&builder, 10, 1, "z");
	cr_assert_null(symbols_freeze(&builder, &list));
	cr_assert_eq(sym_symbols_count(list), 4);
	expect(list, 0, 10, 1, "z");
	expect(list, 1, 10, 2, "a");
	expect(list, 2, 10, 2, "b");
	expect(list, 3, 30, 1, "d");
	cr_expect_null(sym_symbols_at(list, 4));
}

Test(symbols, cut_an_earlier_one_by_a_later_one)
{
	struct symbols_builder builder AUTO_SYMBOLS_BUILDER = { 0 };
	struct sym_symbols *list AUTO_SYMBOLS = NULL;

	add(&builder, 100, 100, "outer");
	add(&builder, 150, 10, "inner");
	add(&builder, 190, 20, "behind");
	cr_assert_null(symbols_freeze_disjoint(&builder, &list));
	cr_assert_eq(sym_symbols_count(list), 4);
	expect(list, 0, 100, 50, "outer");
	expect(list, 1, 150, 10, "inner");
	expect(list, 2, 160, 30, "outer");
	expect(list, 3, 190, 20, "behind");
}

Test(symbols, disappear_under_a_later_one)
{
	struct symbols_builder builder AUTO_SYMBOLS_BUILDER = { 0 };
	struct sym_symbols *list AUTO_SYMBOLS = NULL;

	add(&builder, 100, 10, "old");
	add(&builder, 90, 30, "new");
	cr_assert_null(symbols_freeze_disjoint(&builder, &list));
	cr_assert_eq(sym_symbols_count(list), 1);
	expect(list, 0, 90, 30, "new");
}

Test(symbols, are_found_by_full_and_by_short_name_in_ascending_order)
{
	struct symbols_builder builder AUTO_SYMBOLS_BUILDER = { 0 };
	struct sym_symbols *list AUTO_SYMBOLS = NULL;
	size_t found;

	add(&builder, 100, 10, "void [A] N.T::M(int32)");
	add(&builder, 200, 10, "main");
	add(&builder, 300, 10, "void [A] N.T::M(string)");
	add(&builder, 400, 10, "main");
	cr_assert_null(symbols_freeze(&builder, &list));
	found = sym_symbols_find(list, "main", SYM_NONE);
	cr_expect_eq(found, 1);
	cr_expect_eq(sym_symbols_find(list, "main", found), 3);
	cr_expect_eq(sym_symbols_find(list, "main", 3), SYM_NONE);
	cr_expect_eq(sym_symbols_find(list, "void [A] N.T::M(string)", SYM_NONE), 2);
	cr_expect_eq(sym_symbols_find(list, "N.T::M", SYM_NONE), 0);
	cr_expect_eq(sym_symbols_find(list, "N.T::M", 0), 2);
	cr_expect_eq(sym_symbols_find(list, "N.T", SYM_NONE), SYM_NONE);
	cr_expect_eq(sym_symbols_find(list, "", SYM_NONE), SYM_NONE);
}

/* Like stubs of a runtime. A step must not walk through all earlier ones. */
Test(symbols, are_all_found_by_one_name)
{
	struct symbols_builder builder AUTO_SYMBOLS_BUILDER = { 0 };
	struct sym_symbols *list AUTO_SYMBOLS = NULL;
	const size_t count = 200000;
	size_t found = SYM_NONE, seen = 0;

	for (size_t i = 0; i < count; i++)
		add(&builder, 16 * i, 16,
		    i % 2   ? "stub"
		    : i % 4 ? "void [A] T::M()"
			    : "void [B] T::M()");
	cr_assert_null(symbols_freeze(&builder, &list));
	while ((found = sym_symbols_find(list, "stub", found)) != SYM_NONE)
		cr_assert_eq(found, 2 * seen++ + 1);
	cr_expect_eq(seen, count / 2);
	seen = 0;
	while ((found = sym_symbols_find(list, "T::M", found)) != SYM_NONE)
		cr_assert_eq(found, 2 * seen++);
	cr_expect_eq(seen, count / 2);
	/* After a symbol with another name. */
	cr_expect_eq(sym_symbols_find(list, "stub", 6), 7);
	cr_expect_eq(sym_symbols_find(list, "stub", count), SYM_NONE);
}

Test(symbols, are_found_by_a_long_short_name)
{
	struct symbols_builder builder AUTO_SYMBOLS_BUILDER = { 0 };
	struct sym_symbols *list AUTO_SYMBOLS = NULL;
	char type[2000], full[2100], shortened[2100];

	memset(type, 'x', sizeof(type) - 1);
	type[sizeof(type) - 1] = 0;
	snprintf(full, sizeof(full), "void [A] N.%s::M(int32)", type);
	add(&builder, 100, 10, full);
	cr_assert_null(symbols_freeze(&builder, &list));
	cr_assert_gt(sym_name_shorten(full, shortened, sizeof(shortened)), 2000);
	cr_expect_eq(sym_symbols_find(list, shortened, SYM_NONE), 0);
	cr_expect_eq(sym_symbols_find(list, full, SYM_NONE), 0);
	shortened[1000] = 'y';
	cr_expect_eq(sym_symbols_find(list, shortened, SYM_NONE), SYM_NONE);
}

Test(symbols, are_found_by_name_without_memory)
{
	struct symbols_builder builder AUTO_SYMBOLS_BUILDER = { 0 };
	struct sym_symbols *list AUTO_SYMBOLS = NULL;

	add(&builder, 100, 10, "a");
	add(&builder, 200, 10, "b");
	cr_assert_null(symbols_freeze(&builder, &list));
	alloc_fail_after(0);
	cr_expect_eq(sym_symbols_find(list, "b", SYM_NONE), 1);
	cr_expect_eq(sym_symbols_find(list, "c", SYM_NONE), SYM_NONE);
	cr_expect(alloc_fail_stop());
}

Test(symbols, can_be_none)
{
	struct symbols_builder builder AUTO_SYMBOLS_BUILDER = { 0 };
	struct sym_symbols *list AUTO_SYMBOLS = NULL;

	cr_assert_null(symbols_freeze_disjoint(&builder, &list));
	cr_expect_eq(sym_symbols_count(list), 0);
	cr_expect_null(sym_symbols_at(list, 0));
	sym_symbols_destroy(NULL);
}

Test(symbols, reach_the_last_address)
{
	struct symbols_builder builder AUTO_SYMBOLS_BUILDER = { 0 };
	struct sym_symbols *list AUTO_SYMBOLS = NULL;

	add(&builder, UINT64_MAX - 0x10, 0x10, "last");
	cr_assert_null(symbols_freeze_disjoint(&builder, &list));
	expect(list, 0, UINT64_MAX - 0x10, 0x10, "last");
}

Test(symbols, reject_a_symbol_beyond_the_last_address)
{
	struct symbols_builder builder AUTO_SYMBOLS_BUILDER = { 0 };
	struct sym_symbols *list AUTO_SYMBOLS = NULL;
	struct sym_error *error;

	add(&builder, UINT64_MAX - 0x10, 0x20, "too far");
	error = symbols_freeze_disjoint(&builder, &list);
	cr_expect_not_null(error);
	cr_expect_null(list);
	sym_error_destroy(error);
}

Test(symbols, keep_names_in_place_when_pools_are_joined)
{
	struct name_pool pool = { 0 }, other = { 0 };
	const char *first = name_pool_add(&pool, "first", 5);
	const char *second = name_pool_add(&other, "second", 6);
	const char *third;
	char large[10000];

	memset(large, 'x', sizeof(large));
	cr_assert_not_null(name_pool_add(&other, large, sizeof(large)));
	name_pool_absorb(&pool, &other);
	third = name_pool_add(&pool, "third", 5);
	name_pool_deinit(&other);
	cr_expect_str_eq(first, "first");
	cr_expect_str_eq(second, "second");
	cr_expect_str_eq(third, "third");
	name_pool_deinit(&pool);
}

/* Enough for several blocks of names and several reallocations of the list. */
static bool build(void *context)
{
	struct symbols_builder builder AUTO_SYMBOLS_BUILDER = { 0 };
	struct sym_symbols *list AUTO_SYMBOLS = NULL;
	struct sym_error *error;
	char name[200];

	(void)context;
	for (uint64_t i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "%0150d", (int)i);
		add(&builder, i * 5, 10, name);
	}
	error = symbols_freeze_disjoint(&builder, &list);
	if (!error) {
		cr_expect_eq(sym_symbols_count(list), 200);
		return true;
	}
	cr_expect_eq(sym_error_code(error), SYM_ERROR_NO_MEMORY);
	sym_error_destroy(error);
	return false;
}

Test(symbols, survive_every_failed_allocation)
{
	cr_expect_gt(alloc_fail_each(build, NULL), 5);
}
