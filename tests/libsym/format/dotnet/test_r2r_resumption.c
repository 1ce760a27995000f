/* SPDX-License-Identifier: MIT */
/* Runtime-async methods (.NET 11), and the stubs that resume them. Names are those that crossgen2
 * 11.0.0 writes for such methods; tests/dotnet/crossgen2_maps.py compares real ones. */
#include "libsym/format/dotnet/r2r.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "tests/support/byte_writer.h"
#include "tests/support/metadata_builder.h"
#include "tests/support/r2r_image.h"

static void open_awaiting(struct r2r_image *image, const struct r2r_recipe *recipe)
{
	cr_assert(eq(int, open_recipe(image, recipe), NO_ERROR));
	cr_expect(eq(sz, r2r_undecodable_count(image->r2r), 0));
	cr_expect(eq(sz, r2r_ownerless_count(image->r2r), 0));
}

/* The metadata in image->app. */
static void use_metadata(struct r2r_image *image)
{
	metadata_close(image->app_metadata);
	cr_assert(eq(ptr,
		     metadata_open(image->app.data, image->app.size_bytes, &image->app_metadata),
		     NULL));
}

static void prepare_awaiting(struct r2r_image *image)
{
	prepare_image(image);
	buf_clear(&image->app);
	build_runtime_async_metadata(&image->app);
	use_metadata(image);
}

Test(r2r_resumption, names_async_variants_by_their_return_type)
{
	struct r2r_recipe recipe;
	struct r2r_image image;

	prepare_awaiting(&image);
	recipe = runtime_async_recipe(&image.app);
	open_awaiting(&image, &recipe);
	expect_name(&image, 1, R2R_NAME_RUNTIME, "int64 [App] Ns.Outer::Count(int32)");
	expect_name(&image, 2, R2R_NAME_RUNTIME, "instance void [App] Ns.Outer::Plain()");
	expect_name(&image, 3, R2R_NAME_RUNTIME, "instance string[] [App] Ns.Outer::Lines()");
	expect_name(&image, 1, R2R_NAME_CROSSGEN2, "System.Int64 Ns.Outer::Count(System.Int32)");
	expect_name(&image, 2, R2R_NAME_CROSSGEN2, "Ns.Outer::Plain()");
	expect_name(&image, 3, R2R_NAME_CROSSGEN2, "System.String[] Ns.Outer::Lines()");
	dismiss_image(&image);
}

Test(r2r_resumption, assigns_stubs_to_the_methods_that_they_resume)
{
	struct r2r_recipe recipe;
	struct r2r_image image;
	size_t count;

	prepare_awaiting(&image);
	recipe = runtime_async_recipe(&image.app);
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

Test(r2r_resumption, does_not_accept_a_task_of_several_types)
{
	struct metadata_builder builder;
	struct r2r_recipe recipe;
	struct r2r_image image;

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
	use_metadata(&image);
	recipe = runtime_async_recipe(&image.app);
	recipe.instance_count = 1;
	open_awaiting(&image, &recipe);
	expect_name(&image, 1, R2R_NAME_RUNTIME, NULL);
	expect_name(&image, 1, R2R_NAME_CROSSGEN2, NULL);
	dismiss_image(&image);
}

/* Missing rows, cells and signatures; endless fixups. */
Test(r2r_resumption, survives_malformed_fixups)
{
	static const struct r2r_recipe_instance lying[] = {
		INSTANCE_WITH_FIXUPS("\x81\x00\x02", 1, "\xff\xff\xff\xff\xff\xff\xff\xff"),
		INSTANCE_WITH_FIXUPS("\x81\x00\x02", 1, "\xf0\xff\xff\xff\xff\xff\x07"),
		INSTANCE_WITH_FIXUPS("\x81\x00\x02", 1, "\x02\x00"),
		INSTANCE_WITH_FIXUPS("\x81\x00\x02", 1, "\x10\x11\x11\x11\x11"),
	};
	struct r2r_recipe recipe;
	struct r2r_image image;

	prepare_awaiting(&image);
	recipe = runtime_async_recipe(&image.app);
	recipe.instance_count = 1;
	for (size_t i = 0; i < sizeof(lying) / sizeof(lying[0]); i++) {
		recipe.instances[0] = lying[i];
		open_awaiting(&image, &recipe);
		expect_name(&image, 1, R2R_NAME_RUNTIME, "int64 [App] Ns.Outer::Count(int32)");
		/* Stubs that no method refers to. */
		expect_name(&image, 4, R2R_NAME_RUNTIME, NULL);
	}
	dismiss_image(&image);
}

Test(r2r_resumption, finds_no_stubs_in_older_images)
{
	struct r2r_recipe recipe;
	struct r2r_image image;

	prepare_awaiting(&image);
	recipe = runtime_async_recipe(&image.app);
	recipe.major_version = 16;
	open_awaiting(&image, &recipe);
	cr_expect(eq(sz, r2r_method_count(image.r2r), 4));
	dismiss_image(&image);
}

/* Such a size once caused a search through rows of the whole address space. */
Test(r2r_resumption, rejects_import_sections_beyond_the_image)
{
	static const uint32_t sizes[] = { 0xffffffff, 0x7fffffff, 0x00100000 };
	struct r2r_recipe recipe;
	struct sym_error *error;
	struct r2r_image image;
	uint32_t row;

	prepare_awaiting(&image);
	recipe = runtime_async_recipe(&image.app);
	open_awaiting(&image, &recipe);
	row = image.pe.managed_native_header.rva - R2R_BUILDER_TABLES_RVA + 0x200 + 16;
	cr_assert(eq(u32, (uint8_t)image.file.data[row], 101));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		patch_u32(&image.file, row + 8, sizes[i]);
		error = open_image(&image);
		cr_assert(error != NULL);
		cr_expect(eq(int, (int)sym_error_code(error), SYM_ERROR_FORMAT));
		sym_error_destroy(error);
	}
	dismiss_image(&image);
}
