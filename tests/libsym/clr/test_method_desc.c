/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/clr/method_desc.h"
#include "libsym/format/dotnet/il.h"
#include "tests/support/clr_image.h"

struct fixture {
	struct clr_image image;
	struct remote_memory *memory;
	struct modules *modules;
	struct types *types;
	struct methods *methods;
	struct buf name;
	uint64_t module;
};

enum {
	ROW_PLAIN = 2,
	ROW_OTHER,
	METHOD_RUN = 1,
	METHOD_ASK,
	METHOD_FAR = 1500, /* its row needs the bits in the chunk */
};

/* void Run(int32), class Ns.Plain Ask(), many void Far() of Ns.Other. */
static const uint8_t run_signature[] = { 0x20, 1, 0x01, 0x08 };
static const uint8_t ask_signature[] = { 0x00, 0, 0x12, ROW_PLAIN << 2 };
static const uint8_t far_signature[] = { 0x00, 0, 0x01 };

static void build_rows(struct metadata_builder *builder)
{
	metadata_builder_init(builder);
	add_assembly(builder, "App");
	add_type_def(builder, "", "<Module>");
	add_type_def(builder, "Ns", "Plain");
	add_method(builder, "Run", run_signature, sizeof(run_signature));
	add_method(builder, "Ask", ask_signature, sizeof(ask_signature));
	set_impl_flags(builder, 0x0048); /* NoInlining, NoOptimization */
	add_type_def(builder, "Ns", "Other");
	for (unsigned int rid = METHOD_ASK + 1; rid <= METHOD_FAR; rid++) {
		char name[16];

		snprintf(name, sizeof(name), "Far%u", rid);
		add_method(builder, name, far_signature, sizeof(far_signature));
	}
}

static void begin(struct fixture *fixture)
{
	struct metadata_builder builder;

	clr_image_init(&fixture->image);
	build_rows(&builder);
	fixture->module = clr_image_add_module(&fixture->image, &builder, CLR_MODULE_MAPPED);
	metadata_builder_deinit(&builder);
	fixture->memory = fake_memory_open(&fixture->image.fake);
	cr_assert_null(modules_create(fixture->memory, &fixture->image.layout, &fixture->modules));
	cr_assert_null(types_create(fixture->memory, &fixture->image.layout, fixture->modules,
				    &fixture->types));
	cr_assert_null(methods_create(fixture->memory, &fixture->image.layout,
				      &fixture->image.tiers, fixture->types, &fixture->methods));
	buf_init(&fixture->name, 1 << 20);
}

static void end(struct fixture *fixture)
{
	buf_deinit(&fixture->name);
	methods_destroy(fixture->methods);
	types_destroy(fixture->types);
	modules_destroy(fixture->modules);
	remote_memory_close(fixture->memory);
	clr_image_deinit(&fixture->image);
}

/* NULL: rejected. */
static const char *name_of(struct fixture *fixture, uint64_t method, bool *is_volatile)
{
	bool again = true;

	/* Later changes of the test become visible. */
	remote_memory_forget(fixture->memory);
	buf_clear(&fixture->name);
	for (;;) {
		enum method_outcome outcome =
			methods_write_name(fixture->methods, method, &fixture->name, is_volatile);

		if (outcome == METHOD_READ)
			return buf_string(&fixture->name);
		cr_assert_eq(fixture->name.size_bytes, 0, "nothing is written in part");
		if (outcome == METHOD_BAD)
			return NULL;
		cr_assert(again, "neither there nor refused");
		cr_assert_null(remote_memory_fetch(fixture->memory, &again));
	}
}

static void assert_named(struct fixture *fixture, uint64_t method, const char *expected)
{
	bool is_volatile;
	const char *name = name_of(fixture, method, &is_volatile);

	cr_assert_not_null(name, "%s is refused", expected);
	cr_assert_str_eq(name, expected);
}

static void assert_refused(struct fixture *fixture, uint64_t method)
{
	bool is_volatile;

	cr_assert_null(name_of(fixture, method, &is_volatile));
}

static uint64_t add_type(struct fixture *fixture, uint32_t rid)
{
	return clr_image_add_type(&fixture->image, fixture->module, rid);
}

static uint64_t add(struct fixture *fixture, uint64_t type, uint32_t rid)
{
	return clr_image_add_method(&fixture->image, type, rid, CLR_CLASS_ORDINARY, 5);
}

Test(method_desc, writes_names_as_in_the_runtimes_own_map)
{
	struct fixture fixture;
	uint64_t plain;

	begin(&fixture);
	plain = add_type(&fixture, ROW_PLAIN);
	assert_named(&fixture, add(&fixture, plain, METHOD_RUN),
		     "instance void [App] Ns.Plain::Run(int32)");
	assert_named(&fixture, add(&fixture, plain, METHOD_ASK),
		     "class Ns.Plain [App] Ns.Plain::Ask()");
	assert_named(&fixture, add(&fixture, add_type(&fixture, ROW_OTHER), METHOD_FAR),
		     "void [App] Ns.Other::Far1500()");
	end(&fixture);
}

Test(method_desc, writes_a_cached_signature_as_the_first_time)
{
	struct fixture fixture;
	uint64_t plain, array, generic;

	begin(&fixture);
	plain = add_type(&fixture, ROW_PLAIN);
	generic = add_type(&fixture, ROW_PLAIN);
	array = clr_image_add_array(&fixture.image, fixture.module, plain, 0);
	clr_image_set_arguments(&fixture.image, generic, &array, 1);
	for (unsigned int i = 0; i < 3; i++) {
		assert_named(&fixture, add(&fixture, plain, METHOD_ASK),
			     "class Ns.Plain [App] Ns.Plain::Ask()");
		assert_named(&fixture, add(&fixture, generic, METHOD_ASK),
			     "class Ns.Plain [App] Ns.Plain[Ns.Plain[]]::Ask()");
	}
	end(&fixture);
}

Test(method_desc, names_dynamic_methods_by_their_own_data)
{
	static const uint8_t signature[] = { 0x00, 1, 0x0e, 0x1c };
	struct fixture fixture;
	uint64_t method;
	bool is_volatile = false;

	begin(&fixture);
	method = clr_image_add_method(&fixture.image, add_type(&fixture, 0), 0, CLR_CLASS_DYNAMIC,
				      0);
	clr_image_set_stored(&fixture.image, method, "lambda method", signature, sizeof(signature));
	cr_assert_str_eq(name_of(&fixture, method, &is_volatile),
			 "string [App] dynamicClass::lambda method(object)");
	cr_assert(is_volatile);
	cr_assert(methods_last_was_dynamic(fixture.methods));
	end(&fixture);
}

Test(method_desc, accepts_long_names_of_dynamic_methods)
{
	static const uint8_t signature[] = { 0x00, 0, 0x01 };
	static const size_t lengths[] = { 4095, 4096, 60000, 65535, 65536 };
	static const char head[] = "void [App] dynamicClass::NNNN";
	char *name = malloc(65537);
	struct fixture fixture;

	begin(&fixture);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		uint64_t method = clr_image_add_method(&fixture.image, add_type(&fixture, 0), 0,
						       CLR_CLASS_DYNAMIC, 0);
		const char *text;
		bool is_volatile;

		memset(name, 'N', lengths[i]);
		name[lengths[i]] = '\0';
		clr_image_set_stored(&fixture.image, method, name, signature, sizeof(signature));
		text = name_of(&fixture, method, &is_volatile);
		if (lengths[i] > 60000) {
			cr_expect_null(text, "longer than any name");
			continue;
		}
		cr_assert_not_null(text, "%zu", lengths[i]);
		cr_expect(!strncmp(text, head, strlen(head)), "%.60s", text);
		cr_expect_eq(strlen(text), strlen("void [App] dynamicClass::()") + lengths[i]);
	}
	end(&fixture);
	free(name);
}

/* After the MethodDesc and other optional parts, as its flags select. */
Test(method_desc, names_async_variants_by_their_own_signature)
{
	static const uint8_t signature[] = { 0x20, 1, 0x0a, 0x0e };
	static const struct {
		uint16_t flags;
		uint32_t offset;
	} cases[] = {
		{ 0x40, 24 }, { 0x48, 32 }, { 0x50, 40 }, { 0x60, 26 }, { 0x78, 50 }, { 0x45, 30 },
	};
	struct fixture fixture;
	uint64_t plain, copy;

	begin(&fixture);
	fixture.image.layout.awaiting.is_known = true;
	fixture.image.layout.awaiting.desc_bytes[0] = 24;
	fixture.image.layout.awaiting.desc_bytes[5] = 30;
	fixture.image.layout.awaiting.slot_bytes[0] = 8;
	fixture.image.layout.awaiting.slot_bytes[1] = 16;
	fixture.image.layout.awaiting.slot_bytes[2] = 2;
	fixture.image.layout.awaiting.signature = 4;
	fixture.image.layout.awaiting.pointer = 4;
	fixture.image.layout.awaiting.length = 0;
	plain = add_type(&fixture, ROW_PLAIN);
	copy = clr_image_room(&fixture.image, sizeof(signature));
	fake_memory_put(&fixture.image.fake, copy, signature, sizeof(signature));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t method = add(&fixture, plain, METHOD_RUN);

		clr_image_room(&fixture.image, 64);
		fake_memory_put_u16(&fixture.image.fake, method, cases[i].flags);
		/* It is async, but not a variant of another method. */
		fake_memory_put_u32(&fixture.image.fake, method + cases[i].offset + 4, 0);
		assert_named(&fixture, method, "instance void [App] Ns.Plain::Run(int32)");
		fake_memory_put_u32(&fixture.image.fake, method + cases[i].offset + 4,
				    sizeof(signature));
		fake_memory_put_u64(&fixture.image.fake, method + cases[i].offset + 8, copy);
		assert_named(&fixture, method, "instance int64 [App] Ns.Plain::Run(string)");
		/* The other one still has the name of its row. */
		assert_named(&fixture, add(&fixture, plain, METHOD_RUN),
			     "instance void [App] Ns.Plain::Run(int32)");
		fake_memory_put_u64(&fixture.image.fake, method + cases[i].offset + 8, 8);
		assert_refused(&fixture, method);
		fake_memory_put_u32(&fixture.image.fake, method + cases[i].offset + 4, UINT32_MAX);
		assert_refused(&fixture, method);
	}
	end(&fixture);
}

/* .NET 10 does not publish where that is: the value found must be the one derived from the row. */
Test(method_desc, accepts_a_signature_that_follows_from_the_row)
{
	/* instance void modreq(Ns.Plain) Ask(), where the row says instance class Ns.Plain Ask() */
	uint8_t variant[] = { 0x00, 0, 0x1f, 0, 0x01 };
	struct fixture fixture;
	uint64_t plain, copy, method;

	begin(&fixture);
	fixture.image.layout.awaiting.is_known = true;
	fixture.image.layout.awaiting.is_by_row = true;
	fixture.image.layout.awaiting.desc_bytes[0] = 24;
	fixture.image.layout.awaiting.signature = 8;
	fixture.image.layout.awaiting.length = 8;
	variant[3] = ROW_PLAIN << 2;
	plain = add_type(&fixture, ROW_PLAIN);
	copy = clr_image_room(&fixture.image, sizeof(variant));
	fake_memory_put(&fixture.image.fake, copy, variant, sizeof(variant));
	for (uint32_t row = METHOD_RUN; row <= METHOD_ASK; row++) {
		method = add(&fixture, plain, row);
		clr_image_room(&fixture.image, 64);
		fake_memory_put_u16(&fixture.image.fake, method, 0x40);
		fake_memory_put_u64(&fixture.image.fake, method + 32, copy);
		fake_memory_put_u32(&fixture.image.fake, method + 40, sizeof(variant));
		if (row == METHOD_ASK)
			assert_named(&fixture, method,
				     "void modreq(Ns.Plain) [App] Ns.Plain::Ask()");
		else
			assert_refused(&fixture, method);
	}
	fake_memory_put_u32(&fixture.image.fake, method + 40, sizeof(variant) - 1);
	assert_refused(&fixture, method);
	fake_memory_put_u32(&fixture.image.fake, method + 40, 0);
	assert_named(&fixture, method, "class Ns.Plain [App] Ns.Plain::Ask()");
	end(&fixture);
}

Test(method_desc, names_the_methods_of_arrays_by_their_slot)
{
	static const uint8_t signature[] = { 0x20, 1, 0x08, 0x08 };
	static const char *const names[] = { "Get", "Set", "Address", ".ctor", ".ctor" };
	struct fixture fixture;
	uint64_t array;

	begin(&fixture);
	array = clr_image_add_array(&fixture.image, fixture.module, add_type(&fixture, ROW_PLAIN),
				    2);
	for (uint16_t i = 0; i < 5; i++) {
		uint64_t method =
			clr_image_add_method(&fixture.image, array, 0, CLR_CLASS_ARRAY, 0);
		char expected[80];

		/* After the four virtual methods. */
		fake_memory_put_u16(&fixture.image.fake, method + 6, (uint16_t)(4 + i));
		clr_image_set_stored(&fixture.image, method, NULL, signature, sizeof(signature));
		snprintf(expected, sizeof(expected), "instance int32 [App] Ns.Plain[,]::%s(int32)",
			 names[i]);
		assert_named(&fixture, method, expected);
	}
	end(&fixture);
}

Test(method_desc, writes_type_handles_in_a_stored_signature)
{
	uint8_t signature[] = { 0x00, 0, 0x21, 0, 0, 0, 0, 0, 0, 0, 0 };
	struct fixture fixture;
	uint64_t plain, method;
	char expected[120];

	begin(&fixture);
	plain = add_type(&fixture, ROW_PLAIN);
	memcpy(signature + 3, &plain, sizeof(plain));
	method = clr_image_add_method(&fixture.image, add_type(&fixture, 0), 0, CLR_CLASS_DYNAMIC,
				      0);
	clr_image_set_stored(&fixture.image, method, "M", signature, sizeof(signature));
	snprintf(expected, sizeof(expected), "Ns.Plain /* MT: 0x%llx */ [App] dynamicClass::M()",
		 (unsigned long long)plain);
	assert_named(&fixture, method, expected);
	end(&fixture);
}

Test(method_desc, writes_an_array_by_address_as_the_runtime_does)
{
	uint8_t signature[] = { 0x00, 0, 0x21, 0, 0, 0, 0, 0, 0, 0, 0 };
	struct fixture fixture;
	uint64_t array, method;
	char expected[120];

	begin(&fixture);
	array = clr_image_add_array(&fixture.image, fixture.module, add_type(&fixture, ROW_PLAIN),
				    0);
	memcpy(signature + 3, &array, sizeof(array));
	method = clr_image_add_method(&fixture.image, add_type(&fixture, 0), 0, CLR_CLASS_DYNAMIC,
				      0);
	clr_image_set_stored(&fixture.image, method, "M", signature, sizeof(signature));
	snprintf(expected, sizeof(expected),
		 " [ERROR: INVALID TOKEN 0x02000000]  /* MT: 0x%llx */ [App] dynamicClass::M()",
		 (unsigned long long)array);
	assert_named(&fixture, method, expected);
	end(&fixture);
}

Test(method_desc, writes_the_native_form_of_a_structure)
{
	static const uint32_t elements[] = { 0x11, 0x1b, 0x0f };
	uint8_t signature[] = { 0x00, 1, 0x01, 0x0f, 0x21, 0, 0, 0, 0, 0, 0, 0, 0 };
	struct fixture fixture;
	char expected[120];

	begin(&fixture);
	for (size_t i = 0; i < sizeof(elements) / sizeof(elements[0]); i++) {
		uint64_t plain = add_type(&fixture, ROW_PLAIN);
		uint64_t type_desc = clr_image_room(&fixture.image, 16), handle = type_desc | 2;
		uint64_t method = clr_image_add_method(&fixture.image, add_type(&fixture, 0), 0,
						       CLR_CLASS_DYNAMIC, 0);

		fake_memory_put_u32(&fixture.image.fake, type_desc + 4, elements[i] | 0x100);
		fake_memory_put_u64(&fixture.image.fake, type_desc + 8, plain);
		memcpy(signature + 5, &handle, sizeof(handle));
		clr_image_set_stored(&fixture.image, method, "M", signature, sizeof(signature));
		snprintf(expected, sizeof(expected),
			 "void [App] dynamicClass::M(Ns.Plain_NativeValueType /* MT: 0x%llx */*)",
			 (unsigned long long)plain);
		if (i)
			assert_refused(&fixture, method);
		else
			assert_named(&fixture, method, expected);
	}
	end(&fixture);
}

Test(method_desc, names_a_dynamic_method_with_an_empty_name)
{
	static const uint8_t signature[] = { 0x00, 0, 0x08 };
	struct fixture fixture;
	uint64_t method;

	begin(&fixture);
	method = clr_image_add_method(&fixture.image, add_type(&fixture, 0), 0, CLR_CLASS_DYNAMIC,
				      0);
	clr_image_set_stored(&fixture.image, method, "", signature, sizeof(signature));
	assert_named(&fixture, method, "int32 [App] dynamicClass::()");
	end(&fixture);
}

/* ---- tiers -------------------------------------------------------------------- */

static const char *tier_of(struct fixture *fixture, uint64_t method, uint64_t code)
{
	struct method_description description;
	enum method_outcome outcome = METHOD_PENDING;
	const char *tier = "none";
	bool again = true;

	remote_memory_forget(fixture->memory);
	while (methods_describe(fixture->methods, method, &description) == METHOD_PENDING)
		cr_assert_null(remote_memory_fetch(fixture->memory, &again));
	while (methods_find_row(fixture->methods, &description) == METHOD_PENDING)
		cr_assert_null(remote_memory_fetch(fixture->memory, &again));
	while (outcome == METHOD_PENDING) {
		outcome = methods_read_tier(fixture->methods, &description, code, &tier);
		cr_assert_null(remote_memory_fetch(fixture->memory, &again));
	}
	return tier;
}

/* Adds a version of a method before the existing ones. */
static uint64_t add_version(struct fixture *fixture, uint64_t method, uint64_t code, uint32_t tier)
{
	struct fake_memory *fake = &fixture->image.fake;
	uint64_t data, state, node = clr_image_room(&fixture->image, 40), next = 0;

	memcpy(&data, fake_memory_at(fake, method + 8, 8), 8);
	if (!data) {
		data = clr_image_room(&fixture->image, 16);
		fake_memory_put_u64(fake, method + 8, data);
		fake_memory_put_u64(fake, data + 8, clr_image_room(&fixture->image, 24));
	}
	memcpy(&state, fake_memory_at(fake, data + 8, 8), 8);
	memcpy(&next, fake_memory_at(fake, state + 16, 8), 8);
	fake_memory_put_u64(fake, state + 16, node);
	fake_memory_put_u64(fake, node + 8, code);
	fake_memory_put_u64(fake, node + 16, method);
	fake_memory_put_u64(fake, node + 24, next);
	fake_memory_put_u32(fake, node + 32, tier);
	return node;
}

Test(method_desc, finds_the_tier_of_the_version_of_the_code)
{
	struct fixture fixture;
	uint64_t method;

	begin(&fixture);
	method = add(&fixture, add_type(&fixture, ROW_PLAIN), METHOD_RUN);
	add_version(&fixture, method, 0x5000, 1);
	add_version(&fixture, method, 0x6000, 2);
	add_version(&fixture, method, 0x7000, 99);
	cr_assert_str_eq(tier_of(&fixture, method, 0x5000), "OptimizedTier1");
	cr_assert_str_eq(tier_of(&fixture, method, 0x6000), "OptimizedTier1OSR");
	cr_assert_null(tier_of(&fixture, method, 0x7000), "an unknown tier");
	cr_assert_str_eq(tier_of(&fixture, method, 0x8000), "Optimized", "the default version");
	end(&fixture);
}

Test(method_desc, derives_the_tier_of_the_default_version)
{
	struct fixture fixture;
	uint64_t method;

	begin(&fixture);
	method = add(&fixture, add_type(&fixture, ROW_PLAIN), METHOD_RUN);
	cr_assert_str_eq(tier_of(&fixture, method, 0x5000), "Optimized");
	fake_memory_put_u16(&fixture.image.fake, method + 2, 0x8000 | METHOD_RUN);
	cr_assert_str_eq(tier_of(&fixture, method, 0x5000), "QuickJitted");
	end(&fixture);
}

Test(method_desc, reads_the_recorded_tier_of_the_default_version)
{
	struct fixture fixture;
	uint64_t method, data;

	begin(&fixture);
	fixture.image.tiers.has_own = true;
	method = add(&fixture, add_type(&fixture, ROW_PLAIN), METHOD_RUN);
	fake_memory_put_u16(&fixture.image.fake, method + 2, 0x8000 | METHOD_RUN);
	cr_assert_str_eq(tier_of(&fixture, method, 0x6000), "QuickJitted");
	add_version(&fixture, method, 0x5000, 1);
	memcpy(&data, fake_memory_at(&fixture.image.fake, method + 8, 8), 8);
	fake_memory_put_u32(&fixture.image.fake, data, 0xffffffff);
	cr_assert_str_eq(tier_of(&fixture, method, 0x6000), "QuickJitted");
	fake_memory_put_u32(&fixture.image.fake, data, 3);
	cr_assert_str_eq(tier_of(&fixture, method, 0x6000), "Optimized");
	cr_assert_str_eq(tier_of(&fixture, method, 0x5000), "OptimizedTier1");
	end(&fixture);
}

Test(method_desc, reports_code_that_is_not_optimized)
{
	struct fixture fixture;
	uint64_t type, run, ask;

	begin(&fixture);
	type = add_type(&fixture, ROW_PLAIN);
	run = add(&fixture, type, METHOD_RUN);
	ask = add(&fixture, type, METHOD_ASK);
	cr_assert_str_eq(tier_of(&fixture, run, 0x5000), "Optimized");
	cr_assert_str_eq(tier_of(&fixture, ask, 0x5000), "MinOptJitted", "it says so itself");
	end(&fixture);
	begin(&fixture);
	fake_memory_put_u32(&fixture.image.fake, fixture.module + CLR_MODULE_FLAGS, 0);
	run = add(&fixture, add_type(&fixture, ROW_PLAIN), METHOD_RUN);
	cr_assert_str_eq(tier_of(&fixture, run, 0x5000), "MinOptJitted", "as its module was built");
	fake_memory_put_u16(&fixture.image.fake, run + 2, 0x8000 | METHOD_RUN);
	cr_assert_str_eq(tier_of(&fixture, run, 0x5000), "QuickJitted");
	end(&fixture);
}

/* A module of two methods: Run, whose call is marked "tail.", and Ask, whose is not. */
static void begin_with_calls(struct fixture *fixture, const char *reference)
{
	static const uint8_t tail[] = { 8 << 2 | 2, 0xfe, 0x14, 0x28, 1, 0, 0, 6, 0x2a };
	static const uint8_t fat[] = { 0x13, 0x30, 8, 0,    6, 0, 0, 0, 0,
				       0,    0,    0, 0x28, 1, 0, 0, 6, 0x2a };
	struct metadata_builder builder;

	begin(fixture);
	metadata_builder_init(&builder);
	add_assembly(&builder, "App");
	add_assembly_ref(&builder, reference);
	add_type_def(&builder, "", "<Module>");
	add_type_def(&builder, "Ns", "Plain");
	add_method(&builder, "Run", run_signature, sizeof(run_signature));
	set_method_rva(&builder, CLR_PE_FREE);
	add_method(&builder, "Ask", ask_signature, sizeof(ask_signature));
	set_method_rva(&builder, CLR_PE_FREE + 16);
	fixture->module = clr_image_add_module(&fixture->image, &builder, CLR_MODULE_MAPPED);
	metadata_builder_deinit(&builder);
	clr_image_put_at_rva(&fixture->image, fixture->module, CLR_PE_FREE, tail, sizeof(tail));
	clr_image_put_at_rva(&fixture->image, fixture->module, CLR_PE_FREE + 16, fat, sizeof(fat));
}

/* A method that may be compiled again. */
static uint64_t add_eligible(struct fixture *fixture, uint64_t type, uint32_t rid)
{
	uint64_t method = add(fixture, type, rid);

	fake_memory_put_u16(&fixture->image.fake, method + 2, (uint16_t)(0x8000 | rid));
	return method;
}

Test(method_desc, reports_code_optimized_at_once_for_its_tail_calls)
{
	struct fixture fixture;
	uint64_t type, run;

	begin_with_calls(&fixture, "FSharp.Core");
	type = add_type(&fixture, ROW_PLAIN);
	run = add_eligible(&fixture, type, METHOD_RUN);
	cr_assert_str_eq(tier_of(&fixture, run, 0x5000), "Optimized");
	cr_assert_str_eq(tier_of(&fixture, add_eligible(&fixture, type, METHOD_ASK), 0x5000),
			 "QuickJitted");
	add_version(&fixture, run, 0x6000, 1);
	cr_assert_str_eq(tier_of(&fixture, run, 0x5000), "QuickJitted",
			 "it was compiled again, so it was not optimized at first");
	end(&fixture);
	begin_with_calls(&fixture, "System.Runtime");
	run = add_eligible(&fixture, add_type(&fixture, ROW_PLAIN), METHOD_RUN);
	cr_assert_str_eq(tier_of(&fixture, run, 0x5000), "QuickJitted",
			 "no compiler of such calls");
	end(&fixture);
}

Test(method_desc, works_without_readable_il)
{
	static const uint8_t bodies[][IL_HEADER_BYTES] = {
		{ 0x13, 0x30, 8, 0, 0xff, 0xff, 0xff, 0xff }, /* larger than anything */
		{ 0x13, 0x30, 8, 0, 0, 0, 1, 0 }, /* as large as the limit, and unmapped */
		{ 0x11, 0x30, 8, 0, 4, 0, 0, 0 }, /* of no known format */
	};

	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		struct fixture fixture;
		uint64_t run;

		begin_with_calls(&fixture, "FSharp.Core");
		clr_image_put_at_rva(&fixture.image, fixture.module, CLR_PE_FREE, bodies[i],
				     sizeof(bodies[i]));
		run = add_eligible(&fixture, add_type(&fixture, ROW_PLAIN), METHOD_RUN);
		cr_assert_str_eq(tier_of(&fixture, run, 0x5000), "QuickJitted");
		assert_named(&fixture, run, "instance void [App] Ns.Plain::Run(int32)");
		end(&fixture);
	}
}

Test(method_desc, ends_on_a_cyclic_list_of_versions)
{
	struct fixture fixture;
	uint64_t method, node;

	begin(&fixture);
	method = add(&fixture, add_type(&fixture, ROW_PLAIN), METHOD_RUN);
	node = add_version(&fixture, method, 0x5000, 1);
	fake_memory_put_u64(&fixture.image.fake, node + 24, node);
	cr_assert_null(tier_of(&fixture, method, 0x9000));
	end(&fixture);
}

Test(method_desc, has_no_tier_without_versions)
{
	struct fixture fixture;
	uint64_t method;

	begin(&fixture);
	method = add(&fixture, add_type(&fixture, ROW_PLAIN), METHOD_RUN);
	fake_memory_put_u64(&fixture.image.fake, method + 8, 0xdead0000);
	cr_assert_null(tier_of(&fixture, method, 0x5000));
	assert_named(&fixture, method, "instance void [App] Ns.Plain::Run(int32)");
	end(&fixture);
}

/* ---- what contradicts itself ----------------------------------------------------- */

Test(method_desc, rejects_a_method_of_another_type)
{
	struct fixture fixture;
	uint64_t plain;

	begin(&fixture);
	plain = add_type(&fixture, ROW_PLAIN);
	assert_refused(&fixture, add(&fixture, plain, METHOD_ASK + 1));
	assert_refused(&fixture, add(&fixture, plain, METHOD_FAR + 1));
	assert_refused(&fixture, add(&fixture, plain, 0));
	assert_refused(&fixture, add(&fixture, add_type(&fixture, 0), METHOD_RUN));
	end(&fixture);
}

Test(method_desc, rejects_pointers_to_unmapped_memory)
{
	static const uint64_t nowhere[] = { 0, 4, 0xdead0000, UINT64_MAX - 7, 1ull << 62 };
	static const uint8_t signature[] = { 0x00, 0, 0x01 };

	for (size_t i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++) {
		struct fixture fixture;
		uint64_t method, field;

		begin(&fixture);
		assert_refused(&fixture, nowhere[i]);
		assert_refused(&fixture, add(&fixture, nowhere[i], METHOD_RUN));
		for (field = 24; field <= 40; field += 16) {
			method = clr_image_add_method(&fixture.image, add_type(&fixture, 0), 0,
						      CLR_CLASS_DYNAMIC, 0);
			clr_image_set_stored(&fixture.image, method, "M", signature, 3);
			fake_memory_put_u64(&fixture.image.fake, method + field, nowhere[i]);
			assert_refused(&fixture, method);
		}
		end(&fixture);
	}
}

Test(method_desc, rejects_signatures_and_names_without_an_end)
{
	static const uint8_t cut[] = { 0x00, 2, 0x01, 0x08 };
	struct fixture fixture;
	uint64_t method, name;

	begin(&fixture);
	method = clr_image_add_method(&fixture.image, add_type(&fixture, 0), 0, CLR_CLASS_DYNAMIC,
				      0);
	clr_image_set_stored(&fixture.image, method, "M", cut, sizeof(cut));
	assert_refused(&fixture, method);
	method = clr_image_add_method(&fixture.image, add_type(&fixture, 0), 0, CLR_CLASS_DYNAMIC,
				      0);
	clr_image_set_stored(&fixture.image, method, "M", far_signature, sizeof(far_signature));
	fake_memory_put_u32(&fixture.image.fake, method + 32, UINT32_MAX);
	assert_refused(&fixture, method);
	fake_memory_put_u32(&fixture.image.fake, method + 32, sizeof(far_signature));
	name = clr_image_room(&fixture.image, 70000);
	memset(fake_memory_at(&fixture.image.fake, name, 70000), 'x', 70000);
	fake_memory_put_u64(&fixture.image.fake, method + 40, name);
	assert_refused(&fixture, method);
	end(&fixture);
}
