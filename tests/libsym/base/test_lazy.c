/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include "libsym/base/lazy.h"

static int made_count, destroyed_count;

static void *make(const void *context)
{
	made_count++;
	return (void *)context;
}

static void *make_nothing(const void *context)
{
	(void)context;
	made_count++;
	return NULL;
}

static void destroy(void *made)
{
	(void)made;
	destroyed_count++;
}

Test(lazy, is_made_once_and_destroyed_by_its_owner)
{
	struct lazy lazy;
	int thing;

	lazy_init(&lazy);
	cr_assert_null(lazy_peek(&lazy));
	cr_assert_eq(lazy_get(&lazy, make, destroy, &thing), &thing);
	cr_assert_eq(lazy_get(&lazy, make, destroy, NULL), &thing);
	cr_assert_eq(made_count, 1);
	lazy_deinit(&lazy);
	cr_assert_eq(destroyed_count, 1);
}

Test(lazy, destroys_nothing_before_first_use)
{
	struct lazy lazy;

	lazy_init(&lazy);
	lazy_deinit(&lazy);
	cr_assert_eq(destroyed_count, 0);
}

Test(lazy, tries_again_after_out_of_memory)
{
	struct lazy lazy;
	int thing;

	lazy_init(&lazy);
	cr_assert_null(lazy_get(&lazy, make_nothing, destroy, NULL));
	cr_assert_eq(lazy_get(&lazy, make, destroy, &thing), &thing);
	lazy_deinit(&lazy);
	cr_assert_eq(destroyed_count, 1);
}
