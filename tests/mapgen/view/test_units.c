/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include "mapgen/view/units.h"

Test(units, name_one_thing_and_several)
{
	char room[UNITS_ROOM];

	cr_expect_str_eq(units_things(1, "wait", "waits", room), "1 wait");
	cr_expect_str_eq(units_things(0, "wait", "waits", room), "0 waits");
	cr_expect_str_eq(units_things(UINT64_MAX, "collection", "collections", room),
			 "18,446,744,073,709,551,615 collections");
}
