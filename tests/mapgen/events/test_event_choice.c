/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "mapgen/events/event_choice.h"

/* A choice points into itself, so it cannot be copied. */
static void read_choice(const char *text, int major, struct event_choice *ret)
{
	cr_assert_null(event_choice_read(text, major, ret));
}

static bool has_id(const struct sym_event_provider *provider, uint32_t id)
{
	for (size_t i = 0; i < provider->id_count; i++)
		if (provider->ids[i] == id)
			return true;
	return false;
}

Test(event_choice, joins_groups_of_the_runtime_to_one_provider)
{
	struct event_choice choice;
	const struct sym_event_provider *provider = &choice.providers[0];

	read_choice("exceptions,gc,exceptions", 10, &choice);
	cr_assert_eq(choice.provider_count, 1);
	cr_expect_str_eq(provider->name, "Microsoft-Windows-DotNETRuntime");
	cr_expect_eq(provider->keywords, 0x8001);
	cr_expect_eq(provider->level, 4);
	cr_expect(has_id(provider, 80) && has_id(provider, 1));
	cr_expect_eq(choice.probe_count, 3);
	cr_expect_not(choice.has_sources);
	event_choice_deinit(&choice);
}

Test(event_choice, samples_allocations_as_the_version_can)
{
	struct event_choice choice;

	read_choice("alloc", 10, &choice);
	cr_expect_eq(choice.providers[0].keywords, 0x80000000000);
	cr_expect_str_eq(choice.probes[0], "AllocationSampled");
	event_choice_deinit(&choice);
	read_choice("alloc", 9, &choice);
	cr_expect_eq(choice.providers[0].level, 5);
	cr_expect(has_id(&choice.providers[0], 10));
	event_choice_deinit(&choice);
}

/* The verbose events of the collector would come with them. */
Test(event_choice, has_no_allocations_by_default_before_dotnet_10)
{
	struct event_choice choice;

	read_choice(EVENT_CHOICE_DEFAULT, 8, &choice);
	cr_expect_eq(choice.providers[0].level, 4);
	cr_expect_not(has_id(&choice.providers[0], 10));
	event_choice_deinit(&choice);
	read_choice(EVENT_CHOICE_DEFAULT, 10, &choice);
	cr_expect(has_id(&choice.providers[0], 303));
	event_choice_deinit(&choice);
}

Test(event_choice, takes_any_event_source)
{
	struct event_choice choice;
	const struct sym_event_provider *source = &choice.providers[1];

	read_choice("gc,My-Source:3f:5:A=1;B=2,Other.Source", 10, &choice);
	cr_assert_eq(choice.provider_count, 3);
	cr_expect_str_eq(source->name, "My-Source");
	cr_expect_eq(source->keywords, 0x3f);
	cr_expect_eq(source->level, 5);
	cr_expect_str_eq(source->arguments, "A=1;B=2");
	cr_expect_eq(choice.providers[2].keywords, UINT64_MAX);
	cr_expect_eq(choice.providers[2].level, 4);
	cr_expect(choice.has_sources);
	event_choice_deinit(&choice);
}

/* The runtime's own provider by its name: all that the caller's keywords select. */
Test(event_choice, filters_nothing_where_the_caller_names_the_provider)
{
	static const char *const texts[] = { "gc,Microsoft-Windows-DotNETRuntime:8:5",
					     "Microsoft-Windows-DotNETRuntime:8:5,gc" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct event_choice choice;

		read_choice(texts[i], 10, &choice);
		cr_assert_eq(choice.provider_count, 1);
		cr_expect_eq(choice.providers[0].keywords, 9);
		cr_expect_eq(choice.providers[0].id_count, 0);
		event_choice_deinit(&choice);
	}
}

Test(event_choice, keeps_commas_in_quotes)
{
	struct event_choice choice;

	read_choice("My-Source:2:4:Metrics=\"A,B\";X=1,gc", 10, &choice);
	cr_assert_eq(choice.provider_count, 2);
	cr_expect_str_eq(choice.providers[0].arguments, "Metrics=\"A,B\";X=1");
	cr_expect_str_eq(choice.providers[1].name, "Microsoft-Windows-DotNETRuntime");
	event_choice_deinit(&choice);
}

Test(event_choice, is_an_error_where_the_version_has_no_such_events)
{
	struct event_choice choice;
	struct sym_error *error = event_choice_read("waits", 8, &choice);

	cr_assert_eq(sym_error_code(error), SYM_ERROR_UNSUPPORTED);
	sym_error_destroy(error);
}

Test(event_choice, names_a_group_that_the_version_does_not_have)
{
	struct event_choice choice;

	read_choice("gc,waits", 8, &choice);
	cr_assert_not_null(choice.missing);
	cr_expect_str_eq(choice.missing, "waits");
	event_choice_deinit(&choice);
	read_choice("gc,waits", 9, &choice);
	cr_expect_null(choice.missing);
	event_choice_deinit(&choice);
}

Test(event_choice, rejects_what_is_malformed)
{
	static const char *const bad[] = {
		"", "gc,", ",gc", "gcc", "My-Source:xyz", "My-Source:1:6", "My-Source:1:-1", ":3"
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		cr_expect_not_null(event_choice_problem(bad[i]), "%s", bad[i]);
	cr_expect_null(event_choice_problem("gc,alloc,My-Source"));
}

Test(event_choice, has_a_limit_of_providers)
{
	char text[4096] = "A.0";
	size_t length = 3;
	struct event_choice choice;

	for (int i = 1; i <= EVENT_CHOICE_PROVIDERS; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, ",A.%d", i);
	cr_expect_not_null(event_choice_problem(text));
	*strrchr(text, ',') = '\0';
	read_choice(text, 10, &choice);
	cr_expect_eq(choice.provider_count, EVENT_CHOICE_PROVIDERS);
	event_choice_deinit(&choice);
}
