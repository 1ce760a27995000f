/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "mapgen/events/event_table.h"

static struct event_table table;

static const char runtime[] = "Microsoft-Windows-DotNETRuntime";

static void begin(void)
{
	cr_assert(event_table_init(&table) == NULL);
}

static void end(void)
{
	event_table_deinit(&table);
}

/* How many bytes of zeros the fields take, and whether all fields were read. */
static size_t size_of(uint32_t id, uint32_t version)
{
	static const uint8_t zeros[1024];
	const struct native_event *event = event_table_find(&table, runtime, id, version);
	struct nettrace_walk walk;
	struct nettrace_value value;

	cr_assert(event != NULL, "no event %u", id);
	cr_assert_eq(event->version, version);
	nettrace_walk_begin(&walk, &event->fields, zeros, sizeof(zeros), 8);
	while (nettrace_walk_next(&walk, &value))
		continue;
	cr_assert_eq(walk.next, event->fields.count);
	return walk.reader.position;
}

/* Sizes of payloads that runtimes have sent; of those with texts or arrays the size when empty. */
Test(event_table, has_the_sizes_that_runtimes_send, .init = begin, .fini = end)
{
	static const struct {
		uint32_t id, version;
		size_t size_bytes;
	} sizes[] = {
		{ 1, 2, 26 },   { 2, 1, 10 },   { 3, 1, 2 },    { 4, 2, 110 },  { 9, 1, 10 },
		{ 55, 0, 18 },  { 81, 2, 27 },  { 85, 0, 30 },  { 90, 0, 18 },  { 91, 1, 11 },
		{ 54, 0, 10 },  { 146, 0, 46 }, { 202, 0, 18 }, { 204, 3, 86 }, { 205, 4, 50 },
		{ 301, 0, 11 }, { 302, 0, 2 },  { 58, 0, 18 },
	};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		cr_expect_eq(size_of(sizes[i].id, sizes[i].version), sizes[i].size_bytes,
			     "event %u", sizes[i].id);
}

Test(event_table, gives_the_newest_version_that_is_not_newer, .init = begin, .fini = end)
{
	cr_expect_str_eq(event_table_find(&table, runtime, 1, 1)->name, "GCStart_V1");
	cr_expect_str_eq(event_table_find(&table, runtime, 1, 99)->name, "GCStart_V2");
	cr_expect(event_table_find(&table, runtime, 64000, 0) == NULL);
	cr_expect(event_table_find(&table, "Contoso", 1, 1) == NULL);
}

Test(event_table, counts_the_elements_of_an_array_by_an_earlier_field, .init = begin, .fini = end)
{
	const struct native_event *event = event_table_find(&table, runtime, 204, 3);
	uint8_t payload[486] = { 0 };
	struct nettrace_walk walk;
	struct nettrace_value value = { 0 };

	payload[82] = 5; /* Count */
	nettrace_walk_begin(&walk, &event->fields, payload, sizeof(payload), 8);
	while (nettrace_walk_next(&walk, &value))
		continue;
	cr_expect_str_eq(value.field->name, "Generations");
	cr_expect_eq(value.count, 5);
	cr_expect_eq(walk.reader.position, sizeof(payload));
}
