/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>

#include "mapgen/view/frame_groups.h"

static uint32_t add(struct frame_table *table, const char *name, const char *image,
		    enum frame_kind kind)
{
	const struct profile_frame frame = { .name = name,
					     .image = image,
					     .tier = "",
					     .reason = "",
					     .kind = kind,
					     .is_named = true };
	uint32_t number;

	cr_assert(eq(ptr, frame_table_add(table, &frame, &number), NULL));
	return number;
}

Test(frame_groups, have_a_managed_method_once_and_native_functions_by_image)
{
	static const char method[] = "void [app] Store::Find()";
	struct frame_table *table;
	uint32_t precompiled, jitted, first, second, *groups;

	cr_assert(eq(ptr, frame_table_create(&table), NULL));
	first = add(table, "free", "/lib/libc.so.6", FRAME_KIND_NATIVE);
	precompiled = add(table, method, "/app/app.dll", FRAME_KIND_PRECOMPILED);
	second = add(table, "free", "/lib/libother.so", FRAME_KIND_NATIVE);
	jitted = add(table, method, "", FRAME_KIND_JITTED);
	groups = frame_groups_make(table);
	cr_assert(ne(ptr, groups, NULL));
	cr_expect(eq(u32, groups[jitted], precompiled));
	cr_expect(eq(u32, groups[precompiled], precompiled));
	cr_expect(eq(u32, groups[first], first));
	cr_expect(eq(u32, groups[second], second));
	free(groups);
	frame_table_destroy(table);
}
