/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "libsym/index/index.h"
#include "libsym/index/string_interner.h"
#include "tests/support/alloc_fail.h"

static uint32_t add(struct string_interner *set, const char *name)
{
	uint32_t offset = UINT32_MAX;

	cr_assert_null(string_interner_add(set, name, strlen(name), &offset));
	return offset;
}

Test(string_interner, stores_each_name_once_and_never_moves_it)
{
	enum {
		NAMES = 5000
	};
	static const char *where[NAMES];
	struct string_interner *set AUTO_STRING_INTERNER = NULL;
	size_t bytes;
	char name[32];

	cr_assert_null(string_interner_create(&set));
	for (int i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "method %d", i);
		where[i] = string_pool_at(string_interner_names(set), add(set, name));
	}
	bytes = string_interner_bytes(set);
	for (int i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "method %d", i);
		cr_assert_eq(string_pool_at(string_interner_names(set), add(set, name)), where[i]);
		cr_assert_str_eq(where[i], name);
	}
	cr_assert_eq(string_interner_bytes(set), bytes);
}

Test(string_interner, distinguishes_a_name_from_its_prefix)
{
	struct string_interner *set AUTO_STRING_INTERNER = NULL;
	uint32_t whole, part, empty, offset;

	cr_assert_null(string_interner_create(&set));
	whole = add(set, "method()");
	cr_assert_null(string_interner_add(set, "method()", 6, &part));
	empty = add(set, "");
	cr_assert_null(string_interner_add(set, "a\0b", 3, &offset));
	cr_assert_neq(whole, part);
	cr_assert_str_eq(string_pool_at(string_interner_names(set), part), "method");
	cr_assert_str_eq(string_pool_at(string_interner_names(set), empty), "");
	cr_assert_eq(memcmp(string_pool_at(string_interner_names(set), offset), "a\0b", 4), 0);
	cr_assert_eq(string_interner_bytes(set), 9 + 7 + 1 + 4);
}

Test(string_interner, outlives_an_index_over_it)
{
	struct string_interner *set AUTO_STRING_INTERNER = NULL;
	struct string_interner *user;
	const char *first = NULL;

	cr_assert_null(string_interner_create(&set));
	user = string_interner_share(set);
	for (int i = 0; i < 3; i++) {
		struct index_builder *builder AUTO_INDEX_BUILDER = NULL;
		struct index *index AUTO_INDEX = NULL;
		struct index_entry entry;

		cr_assert_null(index_builder_create_numbered(&builder));
		index_builder_add_number(builder, 0x1000, 16, add(user, "same"), 7);
		index_builder_add_number(builder, 0x2000, 16, add(user, i ? "new" : "old"), 8);
		cr_assert_null(index_freeze(builder, &index));
		cr_assert_neq(index_look_up(index, 0x1008, &entry), INDEX_NONE);
		cr_assert_eq(entry.value, 7);
		if (!first)
			first = string_pool_at(string_interner_names(user), entry.number);
		cr_assert_eq(string_pool_at(string_interner_names(user), entry.number), first);
		cr_assert_neq(index_look_up(index, 0x2000, &entry), INDEX_NONE);
		cr_assert_str_eq(string_pool_at(string_interner_names(user), entry.number),
				 i ? "new" : "old");
	}
	string_interner_release(user);
	cr_assert_str_eq(first, "same");
}

Test(string_interner, keeps_its_names_when_memory_runs_out)
{
	struct string_interner *set AUTO_STRING_INTERNER = NULL;
	uint32_t first = UINT32_MAX;
	char name[32];

	for (size_t allocations = 0; !set; allocations++) {
		struct sym_error *error;

		alloc_fail_after(allocations);
		error = string_interner_create(&set);
		alloc_fail_stop();
		cr_assert(!error == (set != NULL));
		sym_error_destroy(error);
	}
	for (int i = 0; i < 2000; i++) {
		uint32_t offset = UINT32_MAX;

		snprintf(name, sizeof(name), "method %d", i);
		if (i % 400 == 0 || (i & (i - 1)) == 0) {
			struct sym_error *error;

			alloc_fail_after(0);
			error = string_interner_add(set, name, strlen(name), &offset);
			alloc_fail_stop();
			cr_assert(!error || sym_error_code(error) == SYM_ERROR_NO_MEMORY);
			sym_error_destroy(error);
		}
		offset = add(set, name);
		if (!i)
			first = offset;
	}
	cr_assert_eq(add(set, "method 0"), first);
}
