/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "mapgen/record/name_table.h"

static struct name_table *table;
static uint32_t process;

static void open_table(void)
{
	cr_assert(name_table_create(&table) == NULL);
	cr_assert(name_table_add_process(table, 7, 7, 1, 0, "dotnet", &process) == NULL);
}

static void close_table(void)
{
	name_table_destroy(table);
}

TestSuite(name_table, .init = open_table, .fini = close_table);

static void add(const struct sym_answer *answer, uint64_t time_ns)
{
	cr_assert(name_table_add_line(table, process, answer, time_ns) == NULL);
}

static void expect_text(const char *expected)
{
	struct buf copy;

	buf_init(&copy, 1 << 20);
	buf_append(&copy, name_table_text(table)->data, name_table_text(table)->size_bytes);
	cr_expect(eq(str, (char *)buf_string(&copy), (char *)expected));
	buf_deinit(&copy);
}

static const struct sym_answer plain = { .address = 0x1010,
					 .status = SYM_RESOLVED,
					 .file = "/src/Store.cs",
					 .line = 5,
					 .column = 2,
					 .line_quality = SYM_LINE_EXACT,
					 .il_offset = 31,
					 .method_token = 0x6000001 };

Test(name_table, writes_a_line_once)
{
	add(&plain, 10);
	add(&plain, 20);
	expect_text("P\t0\t7\t7\t1\t0\tdotnet\n"
		    "F\t0\t/src/Store.cs\n"
		    "L\t0\t1010\t0\t1\t5\t2\t31\t6000001\t-\t0\n");
}

Test(name_table, writes_inlined_methods_before_the_line_of_the_one_that_has_the_code)
{
	const struct sym_inlined chain[] = {
		{ .name = "Inner", .call_file = "/src/Other.cs", .call_line = 7, .call_column = 3 },
		{ .name = "Middle" },
	};
	struct sym_answer answer = plain;

	answer.inlined = chain;
	answer.inlined_count = 2;
	add(&answer, 10);
	add(&answer, 20);
	expect_text("P\t0\t7\t7\t1\t0\tdotnet\n"
		    "F\t0\t/src/Store.cs\n"
		    "M\t0\t1010\t0\t1\t5\t2\t31\t6000001\t-\t0\tInner\n"
		    "F\t1\t/src/Other.cs\n"
		    "M\t0\t1010\t0\t1\t7\t3\t4294967295\t0\t-\t1\tMiddle\n"
		    "L\t0\t1010\t0\t0\t0\t0\t4294967295\t0\t-\t-\n");
}

Test(name_table, writes_a_line_again_when_its_inlined_methods_change)
{
	const struct sym_inlined first = { .name = "First",
					   .call_file = "/src/Store.cs",
					   .call_line = 9 };
	const struct sym_inlined second = { .name = "Second",
					    .call_file = "/src/Store.cs",
					    .call_line = 9 };
	struct sym_answer answer = plain;

	answer.inlined = &first;
	answer.inlined_count = 1;
	add(&answer, 10);
	answer.inlined = &second;
	add(&answer, 20);
	add(&plain, 30);
	expect_text("P\t0\t7\t7\t1\t0\tdotnet\n"
		    "F\t0\t/src/Store.cs\n"
		    "M\t0\t1010\t0\t1\t5\t2\t31\t6000001\t-\t0\tFirst\n"
		    "L\t0\t1010\t0\t1\t9\t0\t4294967295\t0\t-\t0\n"
		    "M\t0\t1010\t20\t1\t5\t2\t31\t6000001\t-\t0\tSecond\n"
		    "L\t0\t1010\t20\t1\t9\t0\t4294967295\t0\t-\t0\n"
		    "L\t0\t1010\t30\t1\t5\t2\t31\t6000001\t-\t0\n");
}
