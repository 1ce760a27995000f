/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "libsym/clr/type_name.h"
#include "tests/support/clr_image.h"

/* A runtime with one module, and a reader of its types. */
struct fixture {
	struct clr_image image;
	struct remote_memory *memory;
	struct modules *modules;
	struct types *types;
	uint64_t module;
};

/* Rows of the module. */
enum {
	ROW_PLAIN = 2, /* 1 is <Module> */
	ROW_INNER,
	ROW_GENERIC,
	ROW_ODD,
};

static void build_metadata_of(struct metadata_builder *builder, const char *assembly)
{
	metadata_builder_init(builder);
	add_assembly(builder, assembly);
	add_type_def(builder, "", "<Module>");
	add_type_def(builder, "Ns", "Plain");
	add_type_def(builder, "", "Inner");
	add_type_def(builder, "Ns", "Pair`2");
	add_type_def(builder, "", "odd,[name]+");
	add_nested(builder, ROW_INNER, ROW_PLAIN);
}

static uint64_t add_module_of(struct fixture *fixture, const char *assembly,
			      enum clr_module_kind kind)
{
	struct metadata_builder builder;
	uint64_t module;

	build_metadata_of(&builder, assembly);
	module = clr_image_add_module(&fixture->image, &builder, kind);
	metadata_builder_deinit(&builder);
	return module;
}

static void begin(struct fixture *fixture)
{
	clr_image_init(&fixture->image);
	fixture->module = add_module_of(fixture, "App", CLR_MODULE_MAPPED);
	fixture->memory = fake_memory_open(&fixture->image.fake);
	cr_assert_null(modules_create(fixture->memory, &fixture->image.layout, &fixture->modules));
	cr_assert_null(types_create(fixture->memory, &fixture->image.layout, fixture->modules,
				    &fixture->types));
}

static void end(struct fixture *fixture)
{
	types_destroy(fixture->types);
	modules_destroy(fixture->modules);
	remote_memory_close(fixture->memory);
	clr_image_deinit(&fixture->image);
}

/* NULL when the type is inconsistent. Later changes of the test become visible. */
static const struct type *get(struct fixture *fixture, uint64_t address)
{
	const struct type *type;
	bool again = true;

	remote_memory_forget(fixture->memory);
	for (;;) {
		remote_begin(fixture->memory);
		type = types_get(fixture->types, address);
		if (type || remote_state(fixture->memory) == REMOTE_UNREADABLE)
			return type;
		cr_assert(again, "neither there nor refused");
		cr_assert_null(remote_memory_fetch(fixture->memory, &again));
	}
}

static void assert_named(struct fixture *fixture, uint64_t address, const char *name)
{
	const struct type *type = get(fixture, address);

	cr_assert_not_null(type, "%s is refused", name);
	cr_assert(type->name_bytes == strlen(name) && !memcmp(type->name, name, type->name_bytes),
		  "%.*s is not %s", (int)type->name_bytes, type->name, name);
}

static uint64_t add(struct fixture *fixture, uint32_t rid)
{
	return clr_image_add_type(&fixture->image, fixture->module, rid);
}

static uint64_t add_instance(struct fixture *fixture, uint64_t first, uint64_t second)
{
	uint64_t type = add(fixture, ROW_GENERIC), arguments[] = { first, second };

	clr_image_set_arguments(&fixture->image, type, arguments, 2);
	return type;
}

/* A TypeDesc, as a handle. */
static uint64_t add_type_desc(struct fixture *fixture, uint32_t element, uint64_t argument)
{
	uint64_t address = clr_image_room(&fixture->image, 16);

	fake_memory_put_u32(&fixture->image.fake, address + 4, element | 0x100);
	fake_memory_put_u64(&fixture->image.fake, address + 8, argument);
	return address | 2;
}

Test(type_name, writes_names_like_the_runtime)
{
	struct fixture fixture;
	uint64_t plain, inner;

	begin(&fixture);
	plain = add(&fixture, ROW_PLAIN);
	inner = add(&fixture, ROW_INNER);
	assert_named(&fixture, plain, "Ns.Plain");
	assert_named(&fixture, inner, "Ns.Plain+Inner");
	assert_named(&fixture, add(&fixture, ROW_ODD), "odd\\,\\[name\\]\\+");
	assert_named(&fixture, add_instance(&fixture, plain, inner),
		     "Ns.Pair`2[Ns.Plain,Ns.Plain+Inner]");
	assert_named(&fixture, clr_image_add_array(&fixture.image, fixture.module, plain, 0),
		     "Ns.Plain[]");
	assert_named(&fixture, clr_image_add_array(&fixture.image, fixture.module, plain, 1),
		     "Ns.Plain[*]");
	assert_named(&fixture, clr_image_add_array(&fixture.image, fixture.module, plain, 3),
		     "Ns.Plain[,,]");
	end(&fixture);
}

Test(type_name, counts_dimensions_by_the_size_of_an_array_without_elements)
{
	static const struct {
		uint32_t base_size;
		const char *name;
	} cases[] = {
		{ 32, "Ns.Plain[*]" },  { 40, "Ns.Plain[,]" }, { 24 + 32 * 8, NULL },
		{ 24 + 33 * 8, "bad" }, { 24, "bad" },         { 0, "bad" },
	};
	struct fixture fixture;
	uint64_t plain;

	begin(&fixture);
	fixture.image.layout.array.has_rank = false;
	fixture.image.layout.array.base_size = 12;
	fixture.image.layout.array.least_bytes = 24;
	plain = add(&fixture, ROW_PLAIN);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t array = clr_image_add_array(&fixture.image, fixture.module, plain, 3);
		const struct type *type;

		fake_memory_put_u32(&fixture.image.fake, array + 12, cases[i].base_size);
		type = get(&fixture, array);
		if (cases[i].name && !strcmp(cases[i].name, "bad"))
			cr_expect_null(type, "%u", cases[i].base_size);
		else
			cr_expect_not_null(type, "%u", cases[i].base_size);
		if (type && cases[i].name)
			assert_named(&fixture, array, cases[i].name);
	}
	end(&fixture);
}

Test(type_name, writes_the_owner_of_a_method_with_its_assembly)
{
	static const char owner[] = "[App] Ns.Plain::";
	struct fixture fixture;
	const struct type *type;

	begin(&fixture);
	type = get(&fixture, add(&fixture, ROW_PLAIN));
	cr_assert(type && type->owner_bytes == sizeof(owner) - 1 &&
		  !memcmp(type->owner, owner, sizeof(owner) - 1));
	cr_assert_eq(type->rid, ROW_PLAIN);
	cr_assert_not(type->is_volatile);
	end(&fixture);
}

Test(type_name, writes_pointers_references_and_function_pointers_as_arguments)
{
	struct fixture fixture;
	uint64_t plain, function;

	begin(&fixture);
	plain = add(&fixture, ROW_PLAIN);
	assert_named(&fixture,
		     add_instance(&fixture, add_type_desc(&fixture, 0x0f, plain),
				  add_type_desc(&fixture, 0x10, plain)),
		     "Ns.Pair`2[Ns.Plain*,Ns.Plain&]");
	function = clr_image_room(&fixture.image, 40);
	fake_memory_put_u32(&fixture.image.fake, function + 4, 0x1b);
	fake_memory_put_u32(&fixture.image.fake, function + 8, 2);
	for (unsigned int i = 0; i < 3; i++)
		fake_memory_put_u64(&fixture.image.fake, function + 16 + 8 * i, plain);
	assert_named(&fixture, add_instance(&fixture, function | 2, plain),
		     "Ns.Pair`2[Ns.Plain(Ns.Plain, Ns.Plain),Ns.Plain]");
	end(&fixture);
}

Test(type_name, ignores_arguments_of_an_open_definition)
{
	struct fixture fixture;
	uint64_t open;

	begin(&fixture);
	open = add(&fixture, ROW_GENERIC);
	fake_memory_put_u32(&fixture.image.fake, open + 4, 0x30);
	assert_named(&fixture, open, "Ns.Pair`2");
	end(&fixture);
}

Test(type_name, finds_the_class_through_the_canonical_type)
{
	struct fixture fixture;
	uint64_t canonical, instance;

	begin(&fixture);
	canonical = add(&fixture, ROW_PLAIN);
	instance = add(&fixture, ROW_PLAIN);
	fake_memory_put_u64(&fixture.image.fake, instance + 24, canonical | 1);
	assert_named(&fixture, instance, "Ns.Plain");
	end(&fixture);
}

Test(type_name, marks_collectible_types_and_their_instances_volatile)
{
	struct fixture fixture;
	uint64_t collectible, plain, of_plain;

	begin(&fixture);
	collectible = clr_image_add_type(&fixture.image,
					 add_module_of(&fixture, "Plugin", CLR_MODULE_COLLECTIBLE),
					 ROW_PLAIN);
	plain = add(&fixture, ROW_PLAIN);
	of_plain = add_instance(&fixture, plain, plain);
	cr_assert(get(&fixture, collectible)->is_volatile);
	cr_assert(get(&fixture, add_instance(&fixture, plain, collectible))->is_volatile);
	cr_assert(get(&fixture, clr_image_add_array(&fixture.image, fixture.module, collectible, 0))
			  ->is_volatile);
	cr_assert_not(get(&fixture, of_plain)->is_volatile);
	cr_assert(get(&fixture,
		      clr_image_add_type(&fixture.image,
					 add_module_of(&fixture, "Made", CLR_MODULE_EMITTED),
					 ROW_PLAIN))
			  ->is_volatile);
	end(&fixture);
}

Test(type_name, reads_many_types_in_few_calls)
{
	struct fixture fixture;
	uint64_t types[64];
	bool again = true;

	begin(&fixture);
	for (size_t i = 0; i < 64; i++) {
		types[i] = add(&fixture, ROW_PLAIN);
		clr_image_room(&fixture.image, 4096);
	}
	while (again) {
		for (size_t i = 0; i < 64; i++) {
			remote_begin(fixture.memory);
			types_get(fixture.types, types[i]);
		}
		cr_assert_null(remote_memory_fetch(fixture.memory, &again));
	}
	cr_assert_lt(fixture.image.fake.calls, 20);
	for (size_t i = 0; i < 64; i++) {
		remote_begin(fixture.memory);
		cr_assert_not_null(types_get(fixture.types, types[i]));
	}
	end(&fixture);
}

Test(type_name, rejects_a_type_with_the_class_of_another)
{
	struct fixture fixture;
	uint64_t plain, other;

	begin(&fixture);
	plain = add(&fixture, ROW_PLAIN);
	other = add(&fixture, ROW_INNER);
	/* The class of one, reached from the other. */
	fake_memory_put_u64(&fixture.image.fake, plain + 24, other + 48);
	cr_assert_null(get(&fixture, plain));
	cr_assert_not_null(get(&fixture, other));
	end(&fixture);
}

Test(type_name, rejects_pointers_to_unmapped_memory)
{
	static const uint64_t nowhere[] = { 0,          8,          0x666000,   0x666001,
					    0x10000003, 1ull << 63, UINT64_MAX, UINT64_MAX - 7 };

	for (size_t i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++) {
		struct fixture fixture;
		uint64_t plain;

		begin(&fixture);
		plain = add(&fixture, ROW_PLAIN);
		cr_assert_null(get(&fixture, nowhere[i]));
		cr_assert_null(get(&fixture, add_instance(&fixture, nowhere[i], plain)));
		cr_assert_null(
			get(&fixture, add_instance(&fixture, plain,
						   add_type_desc(&fixture, 0x0f, nowhere[i]))));
		for (unsigned int field = 16; field <= 24; field += 8) {
			uint64_t type = add(&fixture, ROW_PLAIN);

			fake_memory_put_u64(&fixture.image.fake, type + field, nowhere[i]);
			cr_assert_null(get(&fixture, type));
		}
		end(&fixture);
	}
}

Test(type_name, rejects_cyclic_types)
{
	struct fixture fixture;
	uint64_t first, second, plain, arguments[2];

	begin(&fixture);
	plain = add(&fixture, ROW_PLAIN);
	first = add(&fixture, ROW_GENERIC);
	second = add_instance(&fixture, plain, first);
	arguments[0] = second;
	arguments[1] = plain;
	clr_image_set_arguments(&fixture.image, first, arguments, 2);
	cr_assert_null(get(&fixture, first));
	cr_assert_null(get(&fixture, second));
	arguments[0] = first;
	clr_image_set_arguments(&fixture.image, first, arguments, 1);
	types_forget(fixture.types);
	remote_memory_forget(fixture.memory);
	cr_assert_null(get(&fixture, first));
	end(&fixture);
}

/* Arrays of arrays. */
static void add_chain(struct fixture *fixture, uint64_t *chain, size_t count)
{
	chain[0] = add(fixture, ROW_PLAIN);
	for (size_t i = 1; i < count; i++)
		chain[i] = clr_image_add_array(&fixture->image, fixture->module, chain[i - 1], 0);
}

Test(type_name, reads_nesting_up_to_the_limit_at_once)
{
	struct fixture fixture;
	uint64_t chain[65];

	begin(&fixture);
	add_chain(&fixture, chain, 65);
	cr_assert_not_null(get(&fixture, chain[63]));
	end(&fixture);
	begin(&fixture);
	add_chain(&fixture, chain, 65);
	cr_assert_null(get(&fixture, chain[64]));
	end(&fixture);
}

Test(type_name, rejects_nesting_past_the_limit_only)
{
	struct fixture fixture;
	uint64_t chain[100];

	begin(&fixture);
	add_chain(&fixture, chain, 100);
	cr_assert_null(get(&fixture, chain[99]));
	/* It failed because of its place only. */
	cr_assert_not_null(get(&fixture, chain[50]));
	cr_assert_not_null(get(&fixture, chain[99]), "shallow, now that its element is known");
	end(&fixture);
}

Test(type_name, rejects_invalid_counts_and_ranks)
{
	struct fixture fixture;
	uint64_t plain, instance, info;

	begin(&fixture);
	plain = add(&fixture, ROW_PLAIN);
	cr_assert_null(
		get(&fixture, clr_image_add_array(&fixture.image, fixture.module, plain, 200)));
	instance = add_instance(&fixture, plain, plain);
	memcpy(&info, fake_memory_at(&fixture.image.fake, instance + 32, 8), 8);
	fake_memory_put_u16(&fixture.image.fake, info - 8, UINT16_MAX);
	cr_assert_null(get(&fixture, instance));
	cr_assert_null(get(&fixture, add(&fixture, 77)), "no such row");
	cr_assert_null(
		get(&fixture, add_instance(&fixture, add_type_desc(&fixture, 0x13, 0), plain)),
		"a type parameter");
	end(&fixture);
}
