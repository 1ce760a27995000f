/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "libsym/source/runtime_source.h"

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

static bool apply(struct told_methods *told, struct rundown_method *methods, size_t count)
{
	struct rundown changes = { .methods = methods, .method_count = count };
	bool changed;

	cr_assert_null(told_methods_apply(told, &changes, &nothing, &changed));
	return changed;
}

/* The name at an address, "" for none. */
static const char *name_at(const struct told_methods *told, uint64_t address)
{
	static char name[256];
	struct runtime_source *source AUTO_RUNTIME_SOURCE = NULL;
	struct source_match match;
	bool yields;

	cr_assert_null(runtime_source_open_told(told, NULL, &source));
	if (runtime_source_find(source, address, &match, &yields) != SOURCE_HIT)
		return "";
	snprintf(name, sizeof(name), "%s[%s]", match.name, match.tier);
	return name;
}

Test(told_methods, what_is_loaded_takes_the_place_of_what_was_there)
{
	struct rundown_method first[] = { method(0x1000, 0x40, "A", false),
					  method(0x2000, 0x40, "B", false) };
	struct rundown_method later[] = { method(0x2020, 0x10, "C", false),
					  method(0x1000, 0x40, "A", true),
					  method(0x1000, 0x20, "D", false) };
	struct rundown begin = { .methods = first, .method_count = 2 };
	struct told_methods told;

	told_methods_init(&told);
	cr_assert_null(told_methods_begin(&told, &begin, &nothing));
	cr_assert_str_eq(name_at(&told, 0x103f), "N.T::A[QuickJitted]");
	cr_assert(apply(&told, later, 3));
	cr_assert_str_eq(name_at(&told, 0x1000), "N.T::D[QuickJitted]");
	cr_assert_str_eq(name_at(&told, 0x1020), "");
	cr_assert_str_eq(name_at(&told, 0x2020), "N.T::C[QuickJitted]");
	cr_assert_str_eq(name_at(&told, 0x2000), "", "what was overwritten is gone as a whole");
	told_methods_deinit(&told);
}

Test(told_methods, one_without_its_signature_yields_to_a_line_of_the_same_code_that_has_it)
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
	struct told_methods told;
	struct source_match match;
	struct sym_symbol symbol;
	bool yields = false;

	told_methods_init(&told);
	cr_assert_null(told_methods_begin(&told, &begin, &nothing));
	cr_assert_null(runtime_source_open_told(&told, NULL, &source));
	cr_assert_eq(runtime_source_find(source, 0x1010, &match, &yields), SOURCE_HIT);
	cr_expect(yields);
	cr_expect(runtime_source_at(source, 0, &symbol));
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		cr_expect_eq(runtime_source_yields_to(&match, &lines[i].line), lines[i].says_more,
			     "line %zu", i);
	told_methods_deinit(&told);
}

static struct rundown_method at_time(uint64_t time, const char *name, bool is_gone)
{
	struct rundown_method one = method(0x1000, 0x40, name, is_gone);

	one.time = time;
	return one;
}

/* What the finalizer's thread and another have to tell of one place: "Old" is loaded at 10 and
 * unloaded at 20, "New" is loaded at 30, however these are told. */
Test(told_methods, of_one_place_the_newest_holds_in_whatever_order_it_is_told)
{
	const struct rundown_method events[] = { at_time(10, "Old", false),
						 at_time(20, "Old", true),
						 at_time(30, "New", false) };
	static const uint8_t orders[][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
					     { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };

	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
		for (size_t first = 0; first <= 3; first++) {
			struct rundown_method told_so[3];
			struct told_methods told;

			for (size_t j = 0; j < 3; j++)
				told_so[j] = events[orders[i][j]];
			told_methods_init(&told);
			apply(&told, told_so, first);
			apply(&told, told_so + first, 3 - first);
			cr_expect_str_eq(name_at(&told, 0x1000), "N.T::New[QuickJitted]",
					 "order %zu, %zu at first", i, first);
			told_methods_deinit(&told);
		}
}

Test(told_methods, what_was_unloaded_is_not_loaded_by_what_is_told_later)
{
	struct rundown_method unloaded = at_time(20, "Old", true);
	struct rundown_method loaded = at_time(10, "Old", false), again = at_time(30, "Old", false);
	struct told_methods told;

	told_methods_init(&told);
	apply(&told, &unloaded, 1);
	cr_expect_not(apply(&told, &loaded, 1));
	cr_expect_str_eq(name_at(&told, 0x1000), "");
	cr_expect(apply(&told, &again, 1));
	cr_expect_str_eq(name_at(&told, 0x1000), "N.T::Old[QuickJitted]");
	told_methods_deinit(&told);
}

/* Two at a time, of any of the places that were told of before. */
Test(told_methods, what_is_told_late_is_passed_over_where_something_newer_shares_a_byte_with_it)
{
	enum {
		COUNT = 40,
		LATE = 400,
		PLACES = 600
	};
	struct rundown_method first[COUNT];
	struct told_methods told;
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
		told_methods_init(&told);
		cr_assert(apply(&told, first, COUNT));
		cr_assert_eq(apply(&told, changes, 2), expected, "late change %d", late);
		told_methods_deinit(&told);
	}
}

/* The session that goes on began before the list was made. */
Test(told_methods, what_was_before_the_list_does_not_touch_what_is_in_it)
{
	struct rundown_method listed = at_time(50, "Listed", false);
	struct rundown_method before[] = { at_time(10, "Old", false), at_time(20, "Old", true),
					   at_time(30, "Listed", false) };
	struct rundown begin = { .methods = &listed, .method_count = 1 };
	struct told_methods told;

	told_methods_init(&told);
	cr_assert_null(told_methods_begin(&told, &begin, &nothing));
	cr_expect_not(apply(&told, before, 3));
	cr_expect_str_eq(name_at(&told, 0x1000), "N.T::Listed[QuickJitted]");
	told_methods_deinit(&told);
}

Test(told_methods, what_makes_no_difference_is_no_change)
{
	struct rundown_method gone = method(0x5000, 0x10, "never was", true), precompiled = gone;
	struct told_methods told;

	precompiled.flags = 0;
	precompiled.is_gone = false;
	told_methods_init(&told);
	cr_assert(!apply(&told, NULL, 0));
	cr_assert(!apply(&told, &gone, 1));
	cr_assert(!apply(&told, &precompiled, 1));
	told_methods_deinit(&told);
}

Test(told_methods, what_a_later_list_lacks_stays_where_nothing_else_is)
{
	struct rundown_method first[] = { method(0x1000, 0x40, "Former", false),
					  method(0x2000, 0x40, "Overwritten", false),
					  method(0x3000, 0x40, "Same", false) };
	struct rundown_method second[] = { method(0x203f, 0x40, "B", false),
					   method(0x3000, 0x40, "Same", false) };
	struct rundown_method unloaded[] = { method(0x1000, 0x40, "Former", true) };
	struct rundown begin = { .methods = first, .method_count = 3 };
	struct rundown again = { .methods = second, .method_count = 2 };
	struct told_methods before, told;

	told_methods_init(&before);
	cr_assert_null(told_methods_begin(&before, &begin, &nothing));
	told_methods_init(&told);
	cr_assert_null(told_methods_begin(&told, &again, &nothing));
	cr_assert_null(told_methods_keep(&told, &before));
	told_methods_deinit(&before);
	cr_assert_eq(told.count, 3);
	cr_assert_str_eq(name_at(&told, 0x103f), "N.T::Former[QuickJitted]");
	cr_assert_str_eq(name_at(&told, 0x2000), "");
	cr_assert_str_eq(name_at(&told, 0x2040), "N.T::B[QuickJitted]");
	cr_assert_str_eq(name_at(&told, 0x3000), "N.T::Same[QuickJitted]");
	cr_assert(apply(&told, unloaded, 1));
	cr_assert_str_eq(name_at(&told, 0x1000), "", "what is unloaded later is gone");
	told_methods_deinit(&told);
}

static bool apply_modules(struct told_methods *told, struct rundown_module *modules, size_t count)
{
	struct rundown changes = { .modules = modules, .module_count = count };
	bool changed;

	cr_assert_null(told_methods_apply(told, &changes, &nothing, &changed));
	return changed;
}

Test(told_methods, keeps_one_module_of_each_number)
{
	struct rundown_module modules[] = { { .id = 7, .path = "/old" },
					    { .id = 7, .path = "/new" } };
	struct told_methods told;

	told_methods_init(&told);
	for (size_t i = 0; i < 1000; i++)
		cr_expect_not(apply_modules(&told, modules, 2));
	cr_assert_eq(HASH_COUNT(told.modules), 1);
	cr_expect_str_eq(told.modules->path, "/new");
	told_methods_deinit(&told);
}

Test(told_methods, forgets_modules_that_are_unloaded)
{
	struct told_methods told;

	told_methods_init(&told);
	for (uint64_t i = 0; i < 1000; i++) {
		struct rundown_module modules[] = {
			{ .id = i + 1, .path = "/plugin", .time = 2 * i + 1 },
			{ .id = i, .path = "/plugin", .time = 2 * i + 2, .is_gone = true },
		};

		apply_modules(&told, modules, 2);
		cr_assert_eq(HASH_COUNT(told.modules), 1);
	}
	told_methods_deinit(&told);
}

/* Who unloads is another thread than who loads. */
Test(told_methods, does_not_forget_a_module_that_was_loaded_in_the_place_of_another)
{
	struct rundown_module modules[] = {
		{ .id = 7, .path = "/old", .time = 10 },
		{ .id = 7, .path = "/new", .time = 30 },
		{ .id = 7, .path = "/old", .time = 20, .is_gone = true },
		{ .id = 7, .path = "/old", .time = 10 },
	};
	struct told_methods told;

	told_methods_init(&told);
	apply_modules(&told, modules, sizeof(modules) / sizeof(modules[0]));
	cr_assert_eq(HASH_COUNT(told.modules), 1);
	cr_expect_str_eq(told.modules->path, "/new");
	told_methods_deinit(&told);
}

Test(told_methods, lets_go_of_names_that_are_gone)
{
	char name[4096];
	struct told_methods told;

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	told_methods_init(&told);
	for (unsigned int i = 0; i < 5000; i++) {
		struct rundown_method one = method(0x1000, 0x10 + i, name, false);

		apply(&told, &one, 1);
	}
	cr_assert_eq(told.count, 1);
	cr_assert_lt(told.names.size_bytes, 4 << 20);
	cr_assert_eq(strlen(name_at(&told, 0x1000)), sizeof(name) > 256 ? 255 : sizeof(name));
	told_methods_deinit(&told);
}

Test(told_methods, names_only_what_stays_of_what_is_told_together)
{
	static struct rundown_method changes[1000];
	enum {
		COUNT = sizeof(changes) / sizeof(changes[0])
	};
	struct told_methods told;

	for (size_t i = 0; i < COUNT; i++)
		changes[i] = method(0x1000 + i % 2 * 0x20, 0x40, "again", false);
	told_methods_init(&told);
	cr_assert(apply(&told, changes, COUNT));
	cr_expect_eq(told.count, 1);
	cr_expect_eq(told.names.size_bytes, strlen("N.T::again"));
	cr_expect_str_eq(name_at(&told, 0x105f), "N.T::again[QuickJitted]");
	told_methods_deinit(&told);
}

/* What a batch of changes leads to is what they lead to one by one. */
Test(told_methods, changes_come_to_the_same_together_and_one_by_one)
{
	enum {
		BATCHES = 40,
		CHANGES = 60,
		PLACES = 64
	};
	static char names[CHANGES][8];
	struct told_methods together, single;
	uint32_t random = 1;

	told_methods_init(&together);
	told_methods_init(&single);
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
			const struct told_method *a = &together.items[i], *b = &single.items[i];

			cr_assert_eq(a->start_address, b->start_address);
			cr_assert_eq(a->size_bytes, b->size_bytes);
			cr_assert_eq(a->name_bytes, b->name_bytes);
			cr_assert_arr_eq(together.names.data + a->name_offset,
					 single.names.data + b->name_offset, a->name_bytes);
		}
	}
	told_methods_deinit(&together);
	told_methods_deinit(&single);
}
