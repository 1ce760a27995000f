/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "libsym/clr/runtime_source.h"

static const struct metadata *find_nothing(void *context, const char *path)
{
	(void)context;
	(void)path;
	return NULL;
}

static const struct runtime_assemblies nothing = { .find = find_nothing };

static struct rundown_method method(uint64_t start, uint32_t size, const char *name, bool is_gone)
{
	return (struct rundown_method){
		.module_id = 1,
		.start_address = start,
		.size_bytes = size,
		.token = 0x06000001,
		.flags = RUNDOWN_JITTED | 3 << 7,
		.owner = "N.T",
		.name = name,
		.is_gone = is_gone,
	};
}

static bool apply(struct reported_methods *told, struct rundown_method *methods, size_t count)
{
	struct rundown changes = { .methods = methods, .method_count = count };
	bool changed;

	cr_assert_null(reported_methods_apply(told, &changes, &nothing, &changed));
	return changed;
}

/* The name at an address; "" without one. */
static const char *name_at(const struct reported_methods *told, uint64_t address)
{
	static char name[256];
	struct runtime_source *source AUTO_RUNTIME_SOURCE = NULL;
	struct source_match match;
	bool yields;

	cr_assert_null(runtime_source_open_reported(told, NULL, &source));
	if (runtime_source_find(source, address, &match, &yields) != SOURCE_HIT)
		return "";
	snprintf(name, sizeof(name), "%s[%s]", match.name, match.tier);
	return name;
}

Test(reported_methods, replaces_methods_by_loaded_ones)
{
	struct rundown_method first[] = { method(0x1000, 0x40, "A", false),
					  method(0x2000, 0x40, "B", false) };
	struct rundown_method later[] = { method(0x2020, 0x10, "C", false),
					  method(0x1000, 0x40, "A", true),
					  method(0x1000, 0x20, "D", false) };
	struct rundown begin = { .methods = first, .method_count = 2 };
	struct reported_methods told;

	reported_methods_init(&told);
	cr_assert_null(reported_methods_begin(&told, &begin, &nothing));
	cr_assert_str_eq(name_at(&told, 0x103f), "N.T::A[QuickJitted]");
	cr_assert(apply(&told, later, 3));
	cr_assert_str_eq(name_at(&told, 0x1000), "N.T::D[QuickJitted]");
	cr_assert_str_eq(name_at(&told, 0x1020), "");
	cr_assert_str_eq(name_at(&told, 0x2020), "N.T::C[QuickJitted]");
	cr_assert_str_eq(name_at(&told, 0x2000), "", "what was overwritten is gone as a whole");
	reported_methods_deinit(&told);
}

Test(reported_methods, yields_without_signature_to_a_map_line_that_has_it)
{
	struct rundown_method first[] = { method(0x1000, 0x40, "A", false) };
	struct rundown begin = { .methods = first, .method_count = 1 };
	static const struct {
		struct source_match line;
		bool says_more;
	} lines[] = {
		{ { 0x1000, 0x40, "void [dyn] N.T::A(int32)", NULL, NULL, 0, NULL }, true },
		{ { 0x1000, 0x40, "void [dyn] N.T::AB(int32)", NULL, NULL, 0, NULL }, false },
		{ { 0x1000, 0x40, "void [dyn] N.T::B(int32)", NULL, NULL, 0, NULL }, false },
		{ { 0x1000, 0x40, "N.T::A", NULL, NULL, 0, NULL }, false },
		{ { 0x1000, 0x50, "void [dyn] N.T::A(int32)", NULL, NULL, 0, NULL }, false },
		{ { 0x0ff0, 0x40, "void [dyn] N.T::A(int32)", NULL, NULL, 0, NULL }, false },
	};
	struct runtime_source *source AUTO_RUNTIME_SOURCE = NULL;
	struct reported_methods told;
	struct source_match match;
	struct sym_symbol symbol;
	bool yields = false;

	reported_methods_init(&told);
	cr_assert_null(reported_methods_begin(&told, &begin, &nothing));
	cr_assert_null(runtime_source_open_reported(&told, NULL, &source));
	cr_assert_eq(runtime_source_find(source, 0x1010, &match, &yields), SOURCE_HIT);
	cr_expect(yields);
	cr_expect(runtime_source_at(source, 0, &symbol));
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		cr_expect_eq(runtime_source_yields_to(&match, &lines[i].line), lines[i].says_more,
			     "line %zu", i);
	reported_methods_deinit(&told);
}

static struct rundown_method at_time(uint64_t time, const char *name, bool is_gone)
{
	struct rundown_method one = method(0x1000, 0x40, name, is_gone);

	one.time = time;
	return one;
}

/*
 * Reports of the finalizer's thread and of another one about one place: "Old" is loaded at 10 and
 * unloaded at 20, "New" is loaded at 30, in any order of arrival.
 */
Test(reported_methods, keeps_the_newest_report_in_any_order)
{
	const struct rundown_method events[] = { at_time(10, "Old", false),
						 at_time(20, "Old", true),
						 at_time(30, "New", false) };
	static const uint8_t orders[][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
					     { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };

	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
		for (size_t first = 0; first <= 3; first++) {
			struct rundown_method told_so[3];
			struct reported_methods told;

			for (size_t j = 0; j < 3; j++)
				told_so[j] = events[orders[i][j]];
			reported_methods_init(&told);
			apply(&told, told_so, first);
			apply(&told, told_so + first, 3 - first);
			cr_expect_str_eq(name_at(&told, 0x1000), "N.T::New[QuickJitted]",
					 "order %zu, %zu at first", i, first);
			reported_methods_deinit(&told);
		}
}

Test(reported_methods, ignores_an_older_load_after_an_unload)
{
	struct rundown_method unloaded = at_time(20, "Old", true);
	struct rundown_method loaded = at_time(10, "Old", false), again = at_time(30, "Old", false);
	struct reported_methods told;

	reported_methods_init(&told);
	apply(&told, &unloaded, 1);
	cr_expect_not(apply(&told, &loaded, 1));
	cr_expect_str_eq(name_at(&told, 0x1000), "");
	cr_expect(apply(&told, &again, 1));
	cr_expect_str_eq(name_at(&told, 0x1000), "N.T::Old[QuickJitted]");
	reported_methods_deinit(&told);
}

/* Two at a time, from any of the reported places. */
Test(reported_methods, ignores_an_older_report_that_shares_a_byte_with_a_newer_one)
{
	enum {
		COUNT = 40,
		LATE = 400,
		PLACES = 600
	};
	struct rundown_method first[COUNT];
	struct reported_methods told;
	uint32_t random = 7;

	for (uint32_t i = 0; i < COUNT; i++) {
		first[i] = method(0x1000 + 15 * i, 1 + i % 14, "first", i % 4 == 3);
		first[i].time = 100 + i * 37 % COUNT;
	}
	for (int late = 0; late < LATE; late++) {
		struct rundown_method changes[2];
		bool expected = false;

		for (size_t j = 0; j < 2; j++) {
			bool overtaken = false;

			random = random * 1103515245 + 12345;
			changes[j] = method(0x1000 + (random >> 16) % PLACES,
					    1 + (random >> 8) % 40, "late", false);
			changes[j].time = 80 + (random >> 4) % 60;
			for (size_t i = 0; i < COUNT; i++)
				overtaken |=
					first[i].time > changes[j].time &&
					first[i].start_address <
						changes[j].start_address + changes[j].size_bytes &&
					changes[j].start_address <
						first[i].start_address + first[i].size_bytes;
			expected |= !overtaken;
		}
		reported_methods_init(&told);
		cr_assert(apply(&told, first, COUNT));
		cr_assert_eq(apply(&told, changes, 2), expected, "late change %d", late);
		reported_methods_deinit(&told);
	}
}

/* The session began before the rundown was made. */
Test(reported_methods, ignores_reports_from_before_the_rundown)
{
	struct rundown_method listed = at_time(50, "Listed", false);
	struct rundown_method before[] = { at_time(10, "Old", false), at_time(20, "Old", true),
					   at_time(30, "Listed", false) };
	struct rundown begin = { .methods = &listed, .method_count = 1 };
	struct reported_methods told;

	reported_methods_init(&told);
	cr_assert_null(reported_methods_begin(&told, &begin, &nothing));
	cr_expect_not(apply(&told, before, 3));
	cr_expect_str_eq(name_at(&told, 0x1000), "N.T::Listed[QuickJitted]");
	reported_methods_deinit(&told);
}

Test(reported_methods, reports_no_change_without_a_difference)
{
	struct rundown_method gone = method(0x5000, 0x10, "never was", true), precompiled = gone;
	struct reported_methods told;

	precompiled.flags = 0;
	precompiled.is_gone = false;
	reported_methods_init(&told);
	cr_assert(!apply(&told, NULL, 0));
	cr_assert(!apply(&told, &gone, 1));
	cr_assert(!apply(&told, &precompiled, 1));
	reported_methods_deinit(&told);
}

Test(reported_methods, keeps_methods_that_a_later_rundown_lacks)
{
	struct rundown_method first[] = { method(0x1000, 0x40, "Former", false),
					  method(0x2000, 0x40, "Overwritten", false),
					  method(0x3000, 0x40, "Same", false) };
	struct rundown_method second[] = { method(0x203f, 0x40, "B", false),
					   method(0x3000, 0x40, "Same", false) };
	struct rundown_method unloaded[] = { method(0x1000, 0x40, "Former", true) };
	struct rundown begin = { .methods = first, .method_count = 3 };
	struct rundown again = { .methods = second, .method_count = 2 };
	struct reported_methods before, told;

	reported_methods_init(&before);
	cr_assert_null(reported_methods_begin(&before, &begin, &nothing));
	reported_methods_init(&told);
	cr_assert_null(reported_methods_begin(&told, &again, &nothing));
	cr_assert_null(reported_methods_keep(&told, &before));
	reported_methods_deinit(&before);
	cr_assert_eq(told.count, 3);
	cr_assert_str_eq(name_at(&told, 0x103f), "N.T::Former[QuickJitted]");
	cr_assert_str_eq(name_at(&told, 0x2000), "");
	cr_assert_str_eq(name_at(&told, 0x2040), "N.T::B[QuickJitted]");
	cr_assert_str_eq(name_at(&told, 0x3000), "N.T::Same[QuickJitted]");
	cr_assert(apply(&told, unloaded, 1));
	cr_assert_str_eq(name_at(&told, 0x1000), "", "what is unloaded later is gone");
	reported_methods_deinit(&told);
}

static bool apply_modules(struct reported_methods *told, struct rundown_module *modules,
			  size_t count)
{
	struct rundown changes = { .modules = modules, .module_count = count };
	bool changed;

	cr_assert_null(reported_methods_apply(told, &changes, &nothing, &changed));
	return changed;
}

Test(reported_methods, keeps_one_module_for_each_id)
{
	struct rundown_module modules[] = { { .id = 7, .path = "/old" },
					    { .id = 7, .path = "/new" } };
	struct reported_methods told;

	reported_methods_init(&told);
	for (size_t i = 0; i < 1000; i++)
		cr_expect_not(apply_modules(&told, modules, 2));
	cr_assert_eq(HASH_COUNT(told.modules), 1);
	cr_expect_str_eq(told.modules->path, "/new");
	reported_methods_deinit(&told);
}

Test(reported_methods, drops_unloaded_modules)
{
	struct reported_methods told;

	reported_methods_init(&told);
	for (uint64_t i = 0; i < 1000; i++) {
		struct rundown_module modules[] = {
			{ .id = i + 1, .path = "/plugin", .time = 2 * i + 1 },
			{ .id = i, .path = "/plugin", .time = 2 * i + 2, .is_gone = true },
		};

		apply_modules(&told, modules, 2);
		cr_assert_eq(HASH_COUNT(told.modules), 1);
	}
	reported_methods_deinit(&told);
}

/* One thread unloads, another loads. */
Test(reported_methods, keeps_a_module_loaded_in_place_of_another)
{
	struct rundown_module modules[] = {
		{ .id = 7, .path = "/old", .time = 10 },
		{ .id = 7, .path = "/new", .time = 30 },
		{ .id = 7, .path = "/old", .time = 20, .is_gone = true },
		{ .id = 7, .path = "/old", .time = 10 },
	};
	struct reported_methods told;

	reported_methods_init(&told);
	apply_modules(&told, modules, sizeof(modules) / sizeof(modules[0]));
	cr_assert_eq(HASH_COUNT(told.modules), 1);
	cr_expect_str_eq(told.modules->path, "/new");
	reported_methods_deinit(&told);
}

Test(reported_methods, drops_names_of_unloaded_methods)
{
	char name[4096];
	struct reported_methods told;

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	reported_methods_init(&told);
	for (unsigned int i = 0; i < 5000; i++) {
		struct rundown_method one = method(0x1000, 0x10 + i, name, false);

		apply(&told, &one, 1);
	}
	cr_assert_eq(told.count, 1);
	cr_assert_lt(told.names.size_bytes, 4 << 20);
	cr_assert_eq(strlen(name_at(&told, 0x1000)), sizeof(name) > 256 ? 255 : sizeof(name));
	reported_methods_deinit(&told);
}

Test(reported_methods, names_only_the_remaining_of_several_changes)
{
	static struct rundown_method changes[1000];
	enum {
		COUNT = sizeof(changes) / sizeof(changes[0])
	};
	struct reported_methods told;

	for (size_t i = 0; i < COUNT; i++)
		changes[i] = method(0x1000 + i % 2 * 0x20, 0x40, "again", false);
	reported_methods_init(&told);
	cr_assert(apply(&told, changes, COUNT));
	cr_expect_eq(told.count, 1);
	cr_expect_eq(told.names.size_bytes, strlen("N.T::again"));
	cr_expect_str_eq(name_at(&told, 0x105f), "N.T::again[QuickJitted]");
	reported_methods_deinit(&told);
}

/* The oracle: applying the changes one by one. */
Test(reported_methods, gives_the_same_result_for_changes_together_and_one_by_one)
{
	enum {
		BATCHES = 40,
		CHANGES = 60,
		PLACES = 64
	};
	static char names[CHANGES][8];
	struct reported_methods together, single;
	uint32_t random = 1;

	reported_methods_init(&together);
	reported_methods_init(&single);
	for (int batch = 0; batch < BATCHES; batch++) {
		struct rundown_method changes[CHANGES];
		bool changed = false;

		for (int i = 0; i < CHANGES; i++) {
			random = random * 1103515245 + 12345;
			snprintf(names[i], sizeof(names[i]), "%d.%d", batch, i);
			changes[i] = method(0x1000 + 8 * (random >> 16) % (8 * PLACES),
					    8 + 8 * (random >> 8 & 3), names[i], random >> 30 == 0);
			changed |= apply(&single, &changes[i], 1);
		}
		cr_assert(apply(&together, changes, CHANGES) <= changed);
		cr_assert_eq(together.count, single.count);
		for (size_t i = 0; i < single.count; i++) {
			const struct reported_method *a = &together.items[i], *b = &single.items[i];

			cr_assert_eq(a->start_address, b->start_address);
			cr_assert_eq(a->size_bytes, b->size_bytes);
			cr_assert_eq(a->name_bytes, b->name_bytes);
			cr_assert_arr_eq(together.names.data + a->name_offset,
					 single.names.data + b->name_offset, a->name_bytes);
		}
	}
	reported_methods_deinit(&together);
	reported_methods_deinit(&single);
}
