/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "mapgen/view/event_origins.h"

#define NATIVE  "start_thread"
#define PROGRAM "void [app] Program::Work()"
#define NAMED   "void [System.Private.CoreLib] System.Threading.Thread::SetName()"
#define LISTED  "void [System.Private.CoreLib] System.Collections.List::Add()"
#define STUB    "event_stub"

/* Outermost first; names with a bracket are managed. */
static void expect_where(const char *const *names, size_t count, const char *expected)
{
	struct frame_table *table;
	uint32_t frames[8], where;

	cr_assert(eq(ptr, frame_table_create(&table), NULL));
	for (size_t i = 0; i < count; i++) {
		const struct profile_frame frame = {
			.name = names[i],
			.image = "",
			.tier = "",
			.reason = "",
			.kind = strchr(names[i], '[') ? FRAME_KIND_JITTED : FRAME_KIND_NATIVE,
			.is_named = true,
		};

		cr_assert(eq(ptr, frame_table_add(table, &frame, &frames[i]), NULL));
	}
	where = event_origins_where(table, frames, count);
	cr_expect(eq(str, (char *)frame_table_at(table, where)->name, (char *)expected));
	frame_table_destroy(table);
}

Test(event_origins, names_the_innermost_method_of_the_program)
{
	const char *const names[] = { NATIVE, PROGRAM, LISTED, NAMED, STUB };

	expect_where(names, 5, PROGRAM);
}

Test(event_origins, prefers_methods_of_dotnet_that_say_where)
{
	const char *const names[] = { NATIVE, LISTED, NAMED, STUB };

	expect_where(names, 4, LISTED);
}

Test(event_origins, names_any_method_before_native_code)
{
	const char *const names[] = { NATIVE, NAMED, STUB };

	expect_where(names, 3, NAMED);
}

Test(event_origins, names_native_code_where_there_is_no_other)
{
	const char *const names[] = { NATIVE, STUB };

	expect_where(names, 2, STUB);
}
