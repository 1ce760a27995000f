/* SPDX-License-Identifier: MIT */
/* Chains of inlined methods in made-up memory of a runtime. */
#include "libsym/clr/inlined_methods.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>

#include "tests/support/clr_image.h"

enum {
	ROW_TYPE = 2,
	ROW_DERIVED,
	OUTER = 1, /* MethodDef rows */
	MIDDLE,
	INNER,
	DERIVED_INNER,
	MOST_FRAMES = 4,
	CALL = 0x28,
	CALLVIRT = 0x6f,
	RET = 0x2a,
};

static const uint8_t signature[] = { 0x00, 0, 0x01 };

struct fixture {
	struct clr_image image;
	struct remote_memory *memory;
	struct inlined_methods *inlined;
	struct buf names;
	uint64_t module, type, methods[DERIVED_INNER + 1];
	struct inlined_frame frames[MOST_FRAMES];
	struct inlined_chain chain;
};

static void build_rows(struct metadata_builder *builder)
{
	static const char *const names[] = { "Outer", "Middle", "Inner" };

	metadata_builder_init(builder);
	add_assembly(builder, "App");
	add_type_def(builder, "", "<Module>");
	add_type_def(builder, "Ns", "Type");
	for (unsigned int i = 0; i < 3; i++) {
		add_method(builder, names[i], signature, sizeof(signature));
		set_method_rva(builder, CLR_PE_FREE + 32 * i);
	}
	add_type_def(builder, "Ns", "Derived");
	add_method(builder, "Inner", signature, sizeof(signature));
}

/* The body of a method: a tiny header and the code. */
static void put_il(struct fixture *fixture, unsigned int method, const uint8_t *code,
		   size_t size_bytes)
{
	uint8_t body[32] = { (uint8_t)(size_bytes << 2 | 2) };

	memcpy(body + 1, code, size_bytes);
	clr_image_put_at_rva(&fixture->image, fixture->module, CLR_PE_FREE + 32 * (method - 1),
			     body, sizeof(body));
}

#define PUT_IL(fixture, method, ...)                                                               \
	put_il(fixture, method, (const uint8_t[]){ __VA_ARGS__ },                                  \
	       sizeof((const uint8_t[]){ __VA_ARGS__ }))

/* Outer calls Middle, which calls Inner. */
static void begin_of_kind(struct fixture *fixture, enum clr_module_kind kind)
{
	struct metadata_builder builder;
	uint64_t derived;

	*fixture = (struct fixture){ 0 };
	clr_image_init(&fixture->image);
	build_rows(&builder);
	fixture->module = clr_image_add_module(&fixture->image, &builder, kind);
	metadata_builder_deinit(&builder);
	fixture->type = clr_image_add_type(&fixture->image, fixture->module, ROW_TYPE);
	derived = clr_image_add_type(&fixture->image, fixture->module, ROW_DERIVED);
	for (unsigned int i = OUTER; i <= DERIVED_INNER; i++)
		fixture->methods[i] = clr_image_add_method(
			&fixture->image, i == DERIVED_INNER ? derived : fixture->type, i,
			CLR_CLASS_ORDINARY, 0);
	PUT_IL(fixture, OUTER, 0, CALL, MIDDLE, 0, 0, 6, RET);
	PUT_IL(fixture, MIDDLE, 0, 0, CALL, INNER, 0, 0, 6, RET);
	PUT_IL(fixture, INNER, 0, 0, 0, 0, RET);
	fixture->memory = fake_memory_open(&fixture->image.fake);
	cr_assert_null(
		inlined_methods_create(fixture->memory, &fixture->image.layout, &fixture->inlined));
	buf_init(&fixture->names, 1 << 20);
}

static void begin(struct fixture *fixture)
{
	begin_of_kind(fixture, CLR_MODULE_MAPPED);
}

static void end(struct fixture *fixture)
{
	buf_deinit(&fixture->names);
	inlined_methods_destroy(fixture->inlined);
	remote_memory_close(fixture->memory);
	clr_image_deinit(&fixture->image);
}

/* The chain Inner, Middle, Outer. */
static struct inlined_chain *set_chain(struct fixture *fixture)
{
	memset(fixture->frames, 0, sizeof(fixture->frames));
	for (unsigned int i = 0; i < 3; i++)
		fixture->frames[i] = (struct inlined_frame){
			.method_desc = fixture->methods[INNER - i],
			.same_count = 1,
		};
	fixture->chain =
		(struct inlined_chain){ .frames = fixture->frames, .count = 3, .il_offset = 4 };
	return &fixture->chain;
}

static void read_chain(struct fixture *fixture)
{
	remote_memory_forget(fixture->memory);
	cr_assert_null(inlined_methods_read(fixture->inlined, &fixture->chain, 1, &fixture->names));
}

Test(inlined_methods, have_names_and_the_places_of_their_calls)
{
	struct fixture fixture;

	begin(&fixture);
	set_chain(&fixture);
	read_chain(&fixture);
	cr_assert_null(fixture.chain.failure, "%s", fixture.chain.failure);
	cr_expect_str_eq(fixture.names.data + fixture.frames[0].name_offset,
			 "void [App] Ns.Type::Inner()");
	cr_expect_str_eq(fixture.names.data + fixture.frames[1].name_offset,
			 "void [App] Ns.Type::Middle()");
	cr_expect(eq(u32, fixture.frames[0].il_offset, 4));
	cr_expect(eq(u32, fixture.frames[1].il_offset, 2));
	cr_expect(eq(u32, fixture.frames[2].il_offset, 1));
	cr_expect(eq(u32, fixture.frames[2].rid, OUTER));
	cr_expect(eq(u64, fixture.frames[2].module, fixture.module));
	end(&fixture);
}

/* Two calls of Inner, of which the second is meant. */
Test(inlined_methods, are_distinguished_by_their_order_if_all_calls_were_inlined)
{
	struct fixture fixture;

	begin(&fixture);
	PUT_IL(&fixture, MIDDLE, CALL, INNER, 0, 0, 6, CALL, INNER, 0, 0, 6, RET);
	set_chain(&fixture);
	fixture.frames[0].number = 1;
	fixture.frames[0].same_count = 2;
	read_chain(&fixture);
	cr_expect(eq(u32, fixture.frames[1].il_offset, 5));
	set_chain(&fixture);
	read_chain(&fixture);
	cr_assert_null(fixture.chain.failure);
	cr_expect(eq(u32, fixture.frames[1].il_offset, UINT32_MAX), "one was not inlined");
	end(&fixture);
}

Test(inlined_methods, have_no_line_of_a_call_that_may_be_another)
{
	struct fixture fixture;

	begin(&fixture);
	PUT_IL(&fixture, MIDDLE, 0, CALL, OUTER, 0, 0, 6, RET);
	set_chain(&fixture);
	read_chain(&fixture);
	cr_expect(eq(u32, fixture.frames[1].il_offset, UINT32_MAX), "it does not call Inner");
	PUT_IL(&fixture, MIDDLE, 0xfe, 0x16, ROW_TYPE, 0, 0, 2, CALLVIRT, DERIVED_INNER, 0, 0, 6,
	       CALL, INNER, 0, 0, 6, RET);
	set_chain(&fixture);
	read_chain(&fixture);
	cr_expect(eq(u32, fixture.frames[1].il_offset, UINT32_MAX), "the receiver decides");
	PUT_IL(&fixture, MIDDLE, CALL, INNER, 0, 0, 6, 0x45, 0xff, 0xff, 0xff, 0xff, RET);
	set_chain(&fixture);
	read_chain(&fixture);
	cr_expect(eq(u32, fixture.frames[1].il_offset, UINT32_MAX), "malformed code");
	end(&fixture);
}

Test(inlined_methods, that_are_not_there_have_a_reason)
{
	static const uint64_t nowhere[] = { 0, 8, 0x7fffffffeff8, 1, UINT64_MAX };
	struct fixture fixture;

	begin(&fixture);
	for (size_t i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++) {
		for (unsigned int frame = 0; frame < 3; frame++) {
			set_chain(&fixture);
			fixture.frames[frame].method_desc = nowhere[i];
			read_chain(&fixture);
			cr_expect_not_null(fixture.chain.failure);
			cr_expect(eq(sz, fixture.names.size_bytes, 0));
		}
	}
	set_chain(&fixture);
	fixture.frames[1].method_desc = fixture.type;
	read_chain(&fixture);
	cr_expect_not_null(fixture.chain.failure, "a type is not a method");
	set_chain(&fixture)->il_offset = 5;
	read_chain(&fixture);
	cr_expect_not_null(fixture.chain.failure, "the offset is behind the IL");
	end(&fixture);
}

Test(inlined_methods, make_a_chain_of_a_place_in_a_tree)
{
	struct inline_node nodes[] = {
		{ 0x1000, 0, 3, 0, 0 }, { 0x2000, 0, 0, 0, 0 }, { 0x2000, 0, 0, 1, 0 },
		{ 0x2000, 0, 4, 2, 0 }, { 0x4000, 0, 0, 0, 3 },
	};
	struct inline_tree tree = { .nodes = nodes, .count = 5 };
	struct inline_place place = { .il_offset = 9, .count = 2, .nodes = { 4, 3 } };
	struct inlined_chain chain;

	cr_assert_null(inlined_chain_create(&tree, &place, &chain));
	cr_assert(eq(u32, chain.count, 3));
	cr_expect(eq(u64, chain.frames[0].method_desc, 0x4000));
	cr_expect(eq(u32, chain.frames[0].same_count, 1));
	cr_expect(eq(u32, chain.frames[1].number, 2));
	cr_expect(eq(u32, chain.frames[1].same_count, 3));
	cr_expect(eq(u64, chain.frames[2].method_desc, 0x1000));
	free(chain.frames);
	place.il_offset = -2;
	cr_assert_null(inlined_chain_create(&tree, &place, &chain));
	cr_expect(eq(u32, chain.count, 0), "a prolog");
}

/* At its second look the chain's first method is another. */
static void replace_method(struct fake_memory *fake, void *context)
{
	struct fixture *fixture = context;
	uint64_t method = fixture->methods[INNER];

	if (fixture->chain.is_volatile)
		fake_memory_put_u16(
			fake, method + fixture->image.layout.method_desc.flags3_and_token, MIDDLE);
}

Test(inlined_methods, that_can_be_unloaded_are_read_twice)
{
	struct fixture fixture;

	begin_of_kind(&fixture, CLR_MODULE_COLLECTIBLE);
	set_chain(&fixture);
	read_chain(&fixture);
	cr_expect_null(fixture.chain.failure, "%s", fixture.chain.failure);
	cr_expect_str_eq(fixture.names.data + fixture.frames[0].name_offset,
			 "void [App] Ns.Type::Inner()");
	cr_expect(eq(u32, fixture.frames[1].il_offset, 2));
	fixture.image.fake.before_read = replace_method;
	fixture.image.fake.context = &fixture;
	set_chain(&fixture);
	read_chain(&fixture);
	cr_expect_not_null(fixture.chain.failure, "it changed");
	end(&fixture);
}
