/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "libsym/index.h"
#include "libsym/index_name_set.h"
#include "tests/support/alloc_fail.h"

static uint32_t add(struct index_name_set *set, const char *name)
{
	uint32_t offset = UINT32_MAX;

	cr_assert_null(index_name_set_add(set, name, strlen(name), &offset));
	return offset;
}

Test(index_name_set, has_each_name_once_and_none_ever_moves)
{
	enum {
		NAMES = 5000
	};
	static const char *where[NAMES];
	struct index_name_set *set AUTO_INDEX_NAME_SET = NULL;
	size_t bytes;
	char name[32];

	cr_assert_null(index_name_set_create(&set));
	for (int i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "method %d", i);
		where[i] = index_names_at(index_name_set_names(set), add(set, name));
	}
	bytes = index_name_set_bytes(set);
	for (int i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "method %d", i);
		cr_assert_eq(index_names_at(index_name_set_names(set), add(set, name)), where[i]);
		cr_assert_str_eq(where[i], name);
	}
	cr_assert_eq(index_name_set_bytes(set), bytes);
}

Test(index_name_set, takes_a_part_of_a_name_for_another_one)
{
	struct index_name_set *set AUTO_INDEX_NAME_SET = NULL;
	uint32_t whole, part, empty, offset;

	cr_assert_null(index_name_set_create(&set));
	whole = add(set, "method()");
	cr_assert_null(index_name_set_add(set, "method()", 6, &part));
	empty = add(set, "");
	cr_assert_null(index_name_set_add(set, "a\0b", 3, &offset));
	cr_assert_neq(whole, part);
	cr_assert_str_eq(index_names_at(index_name_set_names(set), part), "method");
	cr_assert_str_eq(index_names_at(index_name_set_names(set), empty), "");
	cr_assert_eq(memcmp(index_names_at(index_name_set_names(set), offset), "a\0b", 4), 0);
	cr_assert_eq(index_name_set_bytes(set), 9 + 7 + 1 + 4);
}

Test(index_name_set, outlives_an_index_that_was_made_over_it)
{
	struct index_name_set *set AUTO_INDEX_NAME_SET = NULL;
	struct index_name_set *user;
	const char *first = NULL;

	cr_assert_null(index_name_set_create(&set));
	user = index_name_set_share(set);
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
			first = index_names_at(index_name_set_names(user), entry.number);
		cr_assert_eq(index_names_at(index_name_set_names(user), entry.number), first);
		cr_assert_neq(index_look_up(index, 0x2000, &entry), INDEX_NONE);
		cr_assert_str_eq(index_names_at(index_name_set_names(user), entry.number),
				 i ? "new" : "old");
	}
	index_name_set_release(user);
	cr_assert_str_eq(first, "same");
}

Test(index_name_set, loses_nothing_when_memory_runs_out)
{
	struct index_name_set *set AUTO_INDEX_NAME_SET = NULL;
	uint32_t first = UINT32_MAX;
	char name[32];

	for (size_t allocations = 0; !set; allocations++) {
		struct sym_error *error;

		alloc_fail_after(allocations);
		error = index_name_set_create(&set);
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
			error = index_name_set_add(set, name, strlen(name), &offset);
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
