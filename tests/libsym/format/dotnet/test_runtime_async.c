/* SPDX-License-Identifier: MIT */
#include "libsym/format/dotnet/runtime_async.h"

#include <criterion/criterion.h>

#include "tests/support/metadata_builder.h"

#define TASKS "System.Threading.Tasks."

/* The types of the tokens: System.Threading.Tasks.Task, Task`1, ValueTask`1, Other.Task */
enum {
	TASK = 0x05,
	TASK_OF = 0x09,
	VALUE_TASK_OF = 0x0d,
	OTHER_TASK = 0x11,
};

static struct metadata *make_metadata(struct buf *bytes)
{
	static const uint8_t mvid[16] = { 1 };
	struct metadata_builder builder;
	struct metadata *metadata;

	metadata_builder_init(&builder);
	add_module(&builder, "A.dll", mvid);
	add_assembly(&builder, "A");
	add_assembly_ref(&builder, "R");
	add_type_ref(&builder, SCOPE_ASSEMBLY_REF, 1, "System.Threading.Tasks", "Task");
	add_type_ref(&builder, SCOPE_ASSEMBLY_REF, 1, "System.Threading.Tasks", "Task`1");
	add_type_ref(&builder, SCOPE_ASSEMBLY_REF, 1, "System.Threading.Tasks", "ValueTask`1");
	add_type_ref(&builder, SCOPE_ASSEMBLY_REF, 1, "Other", "Task");
	add_type_def(&builder, "", "<Module>");
	buf_init(bytes, 1 << 16);
	build_metadata(&builder, bytes);
	metadata_builder_deinit(&builder);
	cr_assert_null(metadata_open(bytes->data, bytes->size_bytes, &metadata));
	return metadata;
}

struct form_case {
	const char *text;
	enum runtime_async_form form;
};

static void expect_forms(const uint8_t *row, size_t row_bytes, const struct form_case *cases,
			 size_t count)
{
	struct buf bytes;
	struct metadata *metadata = make_metadata(&bytes);

	for (size_t i = 0; i < count; i++) {
		struct runtime_async_text text = runtime_async_read_text(cases[i].text);

		cr_expect_eq(runtime_async_form_of(&text, metadata,
						   (struct metadata_blob){ row, row_bytes }),
			     cases[i].form, "%s", cases[i].text);
	}
	metadata_close(metadata);
	buf_deinit(&bytes);
}

#define EXPECT_FORMS(row, cases)                                                                   \
	expect_forms(row, sizeof(row), cases, sizeof(cases) / sizeof((cases)[0]))

Test(runtime_async, distinguishes_a_method_from_its_variant)
{
	static const uint8_t plain[] = { 0x00, 0, 0x12, TASK };
	static const struct form_case of_plain[] = {
		{ "class " TASKS "Task  ()", RUNTIME_ASYNC_NONE },
		{ "instance generic class " TASKS "Task  ()", RUNTIME_ASYNC_NONE },
		{ "void  ()", RUNTIME_ASYNC_VALUE },
		{ "required_modifier " TASKS "Task void  ()", RUNTIME_ASYNC_MODIFIED },
		{ "value class " TASKS "ValueTask  ()", RUNTIME_ASYNC_UNCLEAR },
		{ "", RUNTIME_ASYNC_NONE },
	};
	static const uint8_t value[] = { 0x30, 1, 0, 0x15, 0x11, VALUE_TASK_OF, 1, 0x1e, 0 };
	static const struct form_case of_value[] = {
		{ "instance generic value class " TASKS "ValueTask`1<!!0>  ()",
		  RUNTIME_ASYNC_NONE },
		{ "instance generic !!0  ()", RUNTIME_ASYNC_VALUE },
		{ "instance generic required_modifier " TASKS "ValueTask`1 !!0  ()",
		  RUNTIME_ASYNC_MODIFIED },
	};

	EXPECT_FORMS(plain, of_plain);
	EXPECT_FORMS(value, of_value);
}

Test(runtime_async, distinguishes_a_task_in_a_task_from_the_inner_one)
{
	static const uint8_t same[] = {
		0x00, 0, 0x15, 0x12, TASK_OF, 1, 0x15, 0x12, TASK_OF, 1, 8
	};
	static const struct form_case of_same[] = {
		{ "class " TASKS "Task`1<class " TASKS "Task`1<int32>>  ()", RUNTIME_ASYNC_NONE },
		{ "class " TASKS "Task`1<int32>  ()", RUNTIME_ASYNC_VALUE },
		{ "int32  ()", RUNTIME_ASYNC_UNCLEAR },
	};
	static const uint8_t mixed[] = { 0x00, 0, 0x15, 0x11, VALUE_TASK_OF, 1, 0x12, TASK };
	static const struct form_case of_mixed[] = {
		{ "value class " TASKS "ValueTask`1<class " TASKS "Task>  ()", RUNTIME_ASYNC_NONE },
		{ "class " TASKS "Task  ()", RUNTIME_ASYNC_VALUE },
	};

	EXPECT_FORMS(same, of_same);
	EXPECT_FORMS(mixed, of_mixed);
}

Test(runtime_async, leaves_other_return_types_alone)
{
	static const uint8_t other[] = { 0x00, 0, 0x12, OTHER_TASK };
	static const uint8_t modified[] = { 0x00, 0, 0x1f, TASK, 0x01 };
	static const uint8_t cut[] = { 0x00, 0, 0x15 };
	static const struct form_case cases[] = {
		{ "class Other.Task  ()", RUNTIME_ASYNC_NONE },
		{ "required_modifier " TASKS "Task void  ()", RUNTIME_ASYNC_NONE },
		{ "class " TASKS "TaskScheduler  ()", RUNTIME_ASYNC_NONE },
	};

	EXPECT_FORMS(other, cases);
	EXPECT_FORMS(modified, cases);
	EXPECT_FORMS(cut, cases);
}

/* Beyond the limit, both would look equal. */
Test(runtime_async, bounds_the_number_of_tasks)
{
	uint8_t row[2 + 4 * 9 + 1] = { 0, 0 };
	struct buf text, bytes;
	struct metadata *metadata = make_metadata(&bytes);
	struct runtime_async_text read;

	buf_init(&text, 1 << 12);
	for (size_t i = 0; i < 9; i++) {
		const uint8_t level[] = { 0x15, 0x12, TASK_OF, 1 };

		memcpy(row + 2 + 4 * i, level, sizeof(level));
		buf_append_string(&text, "class " TASKS "Task`1<");
	}
	row[sizeof(row) - 1] = 8;
	read = runtime_async_read_text(buf_string(&text));
	cr_expect_eq(
		runtime_async_form_of(&read, metadata, (struct metadata_blob){ row, sizeof(row) }),
		RUNTIME_ASYNC_UNCLEAR);
	buf_deinit(&text);
	metadata_close(metadata);
	buf_deinit(&bytes);
}

static void expect_modified(const uint8_t *row, size_t row_bytes, const uint8_t *expected,
			    size_t expected_bytes)
{
	struct buf out;
	bool good;

	buf_init(&out, 64);
	good = runtime_async_modify((struct metadata_blob){ row, row_bytes }, &out);
	cr_expect_eq(good, expected != NULL);
	if (expected)
		cr_expect_arr_eq(out.data, expected, expected_bytes);
	if (expected)
		cr_expect_eq(out.size_bytes, expected_bytes);
	buf_deinit(&out);
}

/* As 10.0.12 has them in memory. */
Test(runtime_async, makes_the_signature_of_the_variant_of_net_10)
{
	static const uint8_t of_value[] = { 0x10, 1, 2, 0x15, 0x12, TASK_OF, 1, 8, 0x1e, 0, 8 };
	static const uint8_t value[] = { 0x10, 1, 2, 0x1f, TASK_OF, 8, 0x1e, 0, 8 };
	static const uint8_t of_nothing[] = { 0x00, 1, 0x12, TASK, 0x0e };
	static const uint8_t nothing[] = { 0x00, 1, 0x1f, TASK, 0x01, 0x0e };
	static const uint8_t of_two[] = { 0x00, 0, 0x15, 0x12, TASK_OF, 2, 8, 8 };
	static const uint8_t primitive[] = { 0x00, 0, 0x08 };
	static const uint8_t cut[] = { 0x00, 0, 0x12 };

	expect_modified(of_value, sizeof(of_value), value, sizeof(value));
	expect_modified(of_nothing, sizeof(of_nothing), nothing, sizeof(nothing));
	expect_modified(of_two, sizeof(of_two), NULL, 0);
	expect_modified(primitive, sizeof(primitive), NULL, 0);
	expect_modified(cut, sizeof(cut), NULL, 0);
}
