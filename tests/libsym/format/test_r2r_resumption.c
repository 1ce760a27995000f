/* SPDX-License-Identifier: MIT */
/*
 * Methods that await (.NET 11), and the stubs that resume them. Names are as crossgen2 11.0.0
 * writes them of such methods; the comparison with real ones is tests/dotnet/crossgen2_maps.py.
 */
#include "libsym/format/r2r.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "tests/support/metadata_builder.h"
#include "tests/support/r2r_image.h"

enum {
	STUB = 0x38,
	OTHER = 0x10
};

static void build_awaiting_metadata(struct buf *out)
{
	struct metadata_builder builder;

	metadata_builder_init(&builder);
	add_module(&builder, "App.dll", sample_app_mvid);
	add_assembly(&builder, "App");
	add_assembly_ref(&builder, "System.Runtime");
	add_type_ref(&builder, SCOPE_ASSEMBLY_REF, 1, "Tasks", "Task");
	add_type_ref(&builder, SCOPE_ASSEMBLY_REF, 1, "Tasks", "Task`1");
	add_type_def(&builder, "", "<Module>");
	add_type_def(&builder, "Ns", "Outer");
	add_method(&builder, "Main", "\x00\x00\x01", 3);
	/* Task<long> Count(int), static; Task Plain(); Task<string[]> Lines() */
	add_method(&builder, "Count", "\x00\x01\x15\x12\x09\x01\x0a\x08", 8);
	add_method(&builder, "Plain", "\x20\x00\x12\x05", 4);
	add_method(&builder, "Lines", "\x20\x00\x15\x12\x09\x01\x1d\x0e", 8);
	build_metadata(&builder, out);
	metadata_builder_deinit(&builder);
}

/* Functions 2 and 5 are stubs of Plain (4) and Count (1); 3 is the stub of nobody, 6 awaits and
 * is never resumed. */
static struct r2r_recipe awaiting_recipe(const struct buf *metadata)
{
	return (struct r2r_recipe){
		.machine = 0xfd1d,
		.major_version = 26,
		.metadata = metadata,
		.function_count = 7,
		.functions = {
			{ 0x10000, 0x10 },
			{ 0x10010, 0x30 },
			{ 0x10040, 0x08 },
			{ 0x10050, 0x08 },
			{ 0x10060, 0x20 },
			{ 0x10080, 0x01 },
			{ 0x10090, 0x10 },
		},
		.method_count = 1,
		.methods = { { 1, 0, FIXUPS_BEHIND } },
		.instance_count = 3,
		.instances = {
			/* Row 0, cell 0; row 1, cell 9. */
			INSTANCE_WITH_FIXUPS("\x81\x00\x02", 1, "\x00\x10\x19\x00"),
			/* Row 0, cells 1 and 2. */
			INSTANCE_WITH_FIXUPS("\x81\x00\x03", 4, "\x10\x01\x00"),
			INSTANCE("\x81\x00\x04", 6),
		},
		.import_count = 2,
		.imports = {
			{ 3, { { OTHER, 0x10080 }, { OTHER, 5 }, { STUB, 0x10040 } } },
			{ 11, { [7] = { STUB, 0x10050 }, [9] = { STUB, 0x10080 }, [10] = { STUB, 0x10081 } } },
		},
	};
}

static void open_awaiting(struct image *image, const struct r2r_recipe *recipe)
{
	cr_assert(eq(int, open_recipe(image, recipe), NO_ERROR));
	cr_expect(eq(sz, r2r_undecodable_count(image->r2r), 0));
	cr_expect(eq(sz, r2r_ownerless_count(image->r2r), 0));
}

static void prepare_awaiting(struct image *image)
{
	prepare_image(image);
	buf_clear(&image->app);
	build_awaiting_metadata(&image->app);
	metadata_close(image->app_metadata);
	cr_assert(eq(ptr,
		     metadata_open(image->app.data, image->app.size_bytes, &image->app_metadata),
		     NULL));
}

Test(r2r_resumption, names_methods_that_await_by_what_they_return_then)
{
	struct r2r_recipe recipe;
	struct image image;

	prepare_awaiting(&image);
	recipe = awaiting_recipe(&image.app);
	open_awaiting(&image, &recipe);
	expect_name(&image, 1, R2R_NAME_RUNTIME, "int64 [App] Ns.Outer::Count(int32)");
	expect_name(&image, 2, R2R_NAME_RUNTIME, "instance void [App] Ns.Outer::Plain()");
	expect_name(&image, 3, R2R_NAME_RUNTIME, "instance string[] [App] Ns.Outer::Lines()");
	expect_name(&image, 1, R2R_NAME_CROSSGEN2, "System.Int64 Ns.Outer::Count(System.Int32)");
	expect_name(&image, 2, R2R_NAME_CROSSGEN2, "Ns.Outer::Plain()");
	expect_name(&image, 3, R2R_NAME_CROSSGEN2, "System.String[] Ns.Outer::Lines()");
	dismiss_image(&image);
}

Test(r2r_resumption, gives_stubs_to_the_methods_that_they_resume)
{
	struct r2r_recipe recipe;
	struct image image;
	size_t count;

	prepare_awaiting(&image);
	recipe = awaiting_recipe(&image.app);
	open_awaiting(&image, &recipe);
	cr_expect(eq(sz, r2r_method_count(image.r2r), 7));
	r2r_ranges(image.r2r, &count);
	cr_assert(eq(sz, count, 7));
	expect_range(&image, 1, 0x10010, 0x30, R2R_METHOD, 1);
	expect_range(&image, 2, 0x10040, 0x08, R2R_METHOD, 4);
	expect_range(&image, 3, 0x10050, 0x08, R2R_METHOD, 5);
	expect_range(&image, 4, 0x10060, 0x20, R2R_METHOD, 2);
	expect_range(&image, 5, 0x10080, 0x01, R2R_METHOD, 6);
	expect_name(&image, 4, R2R_NAME_RUNTIME, "object [App] Ns.Outer::Plain(object,uint8&)");
	expect_name(&image, 6, R2R_NAME_RUNTIME, "object [App] Ns.Outer::Count(object,uint8&)");
	expect_name(&image, 4, R2R_NAME_CROSSGEN2,
		    "System.Object Ns.Outer::Plain(System.Object, System.Byte&)");
	expect_name(&image, 6, R2R_NAME_CROSSGEN2,
		    "System.Object Ns.Outer::Count(System.Object, System.Byte&)");
	expect_name(&image, 5, R2R_NAME_RUNTIME, NULL);
	cr_expect_str_eq(r2r_entry_assembly(image.r2r, 6), "App");
	cr_expect(eq(ptr, (void *)r2r_entry_assembly(image.r2r, 5), NULL));
	dismiss_image(&image);
}

Test(r2r_resumption, takes_a_task_of_several_types_for_no_task)
{
	struct metadata_builder builder;
	struct r2r_recipe recipe;
	struct image image;

	prepare_image(&image);
	buf_clear(&image.app);
	metadata_builder_init(&builder);
	add_module(&builder, "App.dll", sample_app_mvid);
	add_assembly(&builder, "App");
	add_type_def(&builder, "", "<Module>");
	add_type_def(&builder, "Ns", "Outer");
	add_method(&builder, "Main", "\x00\x00\x01", 3);
	add_method(&builder, "Count", "\x00\x00\x15\x12\x08\x02\x0a\x08", 8);
	build_metadata(&builder, &image.app);
	metadata_builder_deinit(&builder);
	metadata_close(image.app_metadata);
	cr_assert(eq(ptr, metadata_open(image.app.data, image.app.size_bytes, &image.app_metadata),
		     NULL));
	recipe = awaiting_recipe(&image.app);
	recipe.instance_count = 1;
	open_awaiting(&image, &recipe);
	expect_name(&image, 1, R2R_NAME_RUNTIME, NULL);
	expect_name(&image, 1, R2R_NAME_CROSSGEN2, NULL);
	dismiss_image(&image);
}

/* Rows, cells and signatures that are not there; fixups without an end. */
Test(r2r_resumption, survives_fixups_that_lie)
{
	static const struct r2r_recipe_instance lying[] = {
		INSTANCE_WITH_FIXUPS("\x81\x00\x02", 1, "\xff\xff\xff\xff\xff\xff\xff\xff"),
		INSTANCE_WITH_FIXUPS("\x81\x00\x02", 1, "\xf0\xff\xff\xff\xff\xff\x07"),
		INSTANCE_WITH_FIXUPS("\x81\x00\x02", 1, "\x02\x00"),
		INSTANCE_WITH_FIXUPS("\x81\x00\x02", 1, "\x10\x11\x11\x11\x11"),
	};
	struct r2r_recipe recipe;
	struct image image;

	prepare_awaiting(&image);
	recipe = awaiting_recipe(&image.app);
	recipe.instance_count = 1;
	for (size_t i = 0; i < sizeof(lying) / sizeof(lying[0]); i++) {
		recipe.instances[0] = lying[i];
		open_awaiting(&image, &recipe);
		expect_name(&image, 1, R2R_NAME_RUNTIME, "int64 [App] Ns.Outer::Count(int32)");
		/* Stubs of no method that tells so. */
		expect_name(&image, 4, R2R_NAME_RUNTIME, NULL);
	}
	dismiss_image(&image);
}

Test(r2r_resumption, looks_for_no_stubs_in_older_images)
{
	struct r2r_recipe recipe;
	struct image image;

	prepare_awaiting(&image);
	recipe = awaiting_recipe(&image.app);
	recipe.major_version = 16;
	open_awaiting(&image, &recipe);
	cr_expect(eq(sz, r2r_method_count(image.r2r), 4));
	dismiss_image(&image);
}
