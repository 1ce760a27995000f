/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

#include "mapgen/profile/event_report.h"
#include "mapgen/view/event_view.h"

/* Each thread has its changes in order. */
Test(event_view, lists_changes_of_the_thread_pool_by_time)
{
	static const uint64_t times_ns[] = { 3000, 1000, 2000 };
	struct profile *profile;
	struct view view = { .kind = VIEW_THREADPOOL };
	json_t *summary, *rows;

	cr_assert(eq(ptr, profile_create(&profile), NULL));
	profile->report = calloc(1, sizeof(*profile->report));
	cr_assert(ne(ptr, profile->report, NULL));
	profile->report->pool = calloc(3, sizeof(*profile->report->pool));
	cr_assert(ne(ptr, profile->report->pool, NULL));
	for (size_t i = 0; i < 3; i++)
		profile->report->pool[profile->report->pool_count++] =
			(struct pool_change){ .time_ns = times_ns[i],
					      .workers = (uint32_t)(times_ns[i] / 1000) };
	view.profile = profile;
	cr_assert(eq(ptr, event_view_make(&view, &summary, &rows), NULL));
	for (size_t i = 0; i < 3; i++)
		cr_expect(eq(int,
			     (int)json_integer_value(
				     json_object_get(json_array_get(rows, i), "workers")),
			     (int)i + 1));
	json_decref(summary);
	json_decref(rows);
	profile_destroy(profile);
}

static void expect_events(const char *provider, const char *event, bool has_hint)
{
	struct profile *profile;
	struct view view = { .kind = VIEW_EVENTS, .input = "a.nettrace" };
	struct event_row *row;
	char *text = NULL;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);

	cr_assert(eq(ptr, profile_create(&profile), NULL));
	profile->report = calloc(1, sizeof(*profile->report));
	cr_assert(ne(ptr, profile->report, NULL));
	cr_assert(eq(ptr, event_rows_find(&profile->report->kinds, provider, event, &row), NULL));
	view.profile = profile;
	cr_assert(eq(ptr, event_view_write_text(&view, to), NULL));
	fclose(to);
	cr_expect(eq(int, strstr(text, "TplEventSource:80:4") != NULL, has_hint), "%s", text);
	free(text);
	profile_destroy(profile);
}

Test(event_view, says_what_activities_need)
{
	expect_events("Microsoft.AspNetCore.Hosting", "RequestStart", true);
	expect_events("Microsoft.AspNetCore.Hosting", "RequestStop", false);
	expect_events("Microsoft-Windows-DotNETRuntime", "ContentionStart", false);
}

/* Collections have numbers of their process. */
Test(event_view, counts_collections_without_events_of_each_process)
{
	static const struct gc_collection items[] = {
		{ .pid = 10, .number = 1, .stack = UINT32_MAX },
		{ .pid = 10, .number = 2, .stack = UINT32_MAX },
		{ .pid = 20, .number = 101, .stack = UINT32_MAX },
		{ .pid = 20, .number = 103, .stack = UINT32_MAX },
		{ .pid = 20, .number = 104, .stack = UINT32_MAX },
	};
	struct profile *profile;
	struct view view = { .kind = VIEW_GC };
	json_t *summary, *rows;
	size_t count = sizeof(items) / sizeof(*items);

	cr_assert(eq(ptr, profile_create(&profile), NULL));
	profile->report = calloc(1, sizeof(*profile->report));
	cr_assert(ne(ptr, profile->report, NULL));
	profile->report->gc.items = malloc(sizeof(items));
	cr_assert(ne(ptr, profile->report->gc.items, NULL));
	memcpy(profile->report->gc.items, items, sizeof(items));
	profile->report->gc.count = count;
	view.profile = profile;
	cr_assert(eq(ptr, event_view_make(&view, &summary, &rows), NULL));
	cr_expect(eq(int, (int)json_array_size(rows), (int)count));
	cr_expect(eq(int, (int)json_integer_value(json_object_get(summary, "without_events")), 1));
	json_decref(summary);
	json_decref(rows);
	profile_destroy(profile);
}
