/* SPDX-License-Identifier: MIT */
/* Calls in one module, and the methods of another one that they name. */
#include "libsym/format/dotnet/method_call.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "tests/support/metadata_builder.h"

enum {
	LIST = 2, /* TypeDef rows of the library */
	OTHER,
	ADD_INT = 1, /* MethodDef rows */
	ADD_TEXT,
	ADD_LIST,
	OTHER_ADD,
};

/* void (int32), void (string), void (class List) in the library; another token in the program. */
static const uint8_t of_int[] = { 0x20, 1, 0x01, 0x08 };
static const uint8_t of_text[] = { 0x20, 1, 0x01, 0x0e };
static const uint8_t of_list[] = { 0x20, 1, 0x01, 0x12, LIST << 2 };
static const uint8_t of_list_ref[] = { 0x20, 1, 0x01, 0x12, 1 << 2 | 1 };
/* List<int32>, of TypeRef 1. */
static const uint8_t instance[] = { 0x15, 0x12, 1 << 2 | 1, 1, 0x08 };

struct fixture {
	struct buf library_bytes, program_bytes, text;
	struct metadata *library, *program;
	uint32_t add_int, add_text, add_list, add_of_instance, other_add;
};

static struct metadata *open_built(struct metadata_builder *builder, struct buf *bytes)
{
	struct metadata *metadata;

	buf_init(bytes, 1 << 16);
	build_metadata(builder, bytes);
	metadata_builder_deinit(builder);
	cr_assert_null(metadata_open(bytes->data, bytes->size_bytes, &metadata));
	return metadata;
}

static void begin(struct fixture *fixture)
{
	struct metadata_builder builder;
	uint32_t list, other, spec;

	metadata_builder_init(&builder);
	add_assembly(&builder, "Library");
	add_type_def(&builder, "", "<Module>");
	add_type_def(&builder, "Ns", "List");
	add_method(&builder, "Add", of_int, sizeof(of_int));
	add_method(&builder, "Add", of_text, sizeof(of_text));
	add_method(&builder, "Add", of_list, sizeof(of_list));
	add_type_def(&builder, "Ns", "Other");
	add_method(&builder, "Add", of_int, sizeof(of_int));
	fixture->library = open_built(&builder, &fixture->library_bytes);
	metadata_builder_init(&builder);
	add_assembly(&builder, "Program");
	add_assembly_ref(&builder, "Library");
	add_type_def(&builder, "", "<Module>");
	list = add_type_ref(&builder, SCOPE_ASSEMBLY_REF, 1, "Ns", "List");
	other = add_type_ref(&builder, SCOPE_ASSEMBLY_REF, 1, "Ns", "Other");
	spec = add_type_spec(&builder, instance, sizeof(instance));
	fixture->add_int = 0x0a000000 | add_member_ref(&builder, PARENT_TYPE_REF, list, "Add",
						       of_int, sizeof(of_int));
	fixture->add_text = 0x0a000000 | add_member_ref(&builder, PARENT_TYPE_REF, list, "Add",
							of_text, sizeof(of_text));
	fixture->add_list = 0x0a000000 | add_member_ref(&builder, PARENT_TYPE_REF, list, "Add",
							of_list_ref, sizeof(of_list_ref));
	fixture->add_of_instance = 0x0a000000 | add_member_ref(&builder, PARENT_TYPE_SPEC, spec,
							       "Add", of_int, sizeof(of_int));
	fixture->other_add = 0x0a000000 | add_member_ref(&builder, PARENT_TYPE_REF, other, "Add",
							 of_int, sizeof(of_int));
	fixture->program = open_built(&builder, &fixture->program_bytes);
	buf_init(&fixture->text, 1 << 16);
}

static void end(struct fixture *fixture)
{
	metadata_close(fixture->library);
	metadata_close(fixture->program);
	buf_deinit(&fixture->library_bytes);
	buf_deinit(&fixture->program_bytes);
	buf_deinit(&fixture->text);
}

static enum method_call_match compare(struct fixture *fixture, uint32_t token, uint32_t rid,
				      bool is_constrained)
{
	const struct il_call call = { .token = token, .is_constrained = is_constrained };
	const struct called_method method = { fixture->library, rid == OTHER_ADD ? OTHER : LIST,
					      rid };

	return method_call_compare(fixture->program, &call, &method, &fixture->text);
}

Test(method_call, names_a_method_of_another_module_by_type_and_signature)
{
	struct fixture fixture;

	begin(&fixture);
	cr_expect(eq(int, compare(&fixture, fixture.add_int, ADD_INT, false), METHOD_CALL_SAME));
	cr_expect(eq(int, compare(&fixture, fixture.add_text, ADD_TEXT, false), METHOD_CALL_SAME));
	cr_expect(eq(int, compare(&fixture, fixture.add_list, ADD_LIST, false), METHOD_CALL_SAME));
	cr_expect(eq(int, compare(&fixture, fixture.add_of_instance, ADD_INT, false),
		     METHOD_CALL_SAME));
	cr_expect(eq(int, compare(&fixture, fixture.add_text, ADD_INT, false), METHOD_CALL_OTHER));
	cr_expect(eq(int, compare(&fixture, fixture.add_int, ADD_LIST, false), METHOD_CALL_OTHER));
	end(&fixture);
}

Test(method_call, of_another_type_is_certain_unless_the_receiver_decides)
{
	struct fixture fixture;

	begin(&fixture);
	cr_expect(eq(int, compare(&fixture, fixture.other_add, ADD_INT, false), METHOD_CALL_OTHER));
	cr_expect(
		eq(int, compare(&fixture, fixture.other_add, OTHER_ADD, false), METHOD_CALL_SAME));
	cr_expect(eq(int, compare(&fixture, fixture.other_add, ADD_INT, true), METHOD_CALL_MAYBE));
	end(&fixture);
}

Test(method_call, that_cannot_be_read_may_be_any)
{
	static const uint32_t tokens[] = { 0, 0x0a000000, 0x2b000001, 0x11000001, 0xff000001 };
	struct fixture fixture;

	begin(&fixture);
	for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++)
		cr_expect(eq(int, compare(&fixture, tokens[i], ADD_INT, false), METHOD_CALL_MAYBE));
	cr_expect(eq(int, compare(&fixture, 0x0a0000ff, ADD_INT, false), METHOD_CALL_OTHER));
	end(&fixture);
}
