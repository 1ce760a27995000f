/* SPDX-License-Identifier: MIT */
/*
 * Small images of every flavour, built in the test. Names are spelt out as crossgen v1 and
 * crossgen2 spell those of real images; that real ones come out the same is shown by
 * tests/dotnet/check-crossgen.sh.
 */
#include "libsym/format/dotnet/r2r.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "tests/support/alloc_fail.h"
#include "tests/support/byte_writer.h"
#include "tests/support/r2r_image.h"

/* ---- plain images ---------------------------------------------------------- */

Test(r2r, finds_every_method_and_its_extent)
{
	struct r2r_recipe recipe;
	struct r2r_image image;
	size_t count;

	prepare_image(&image);
	recipe = plain_recipe(&image.app);
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	cr_expect(eq(int, (int)r2r_flavour(&image.pe), R2R_PLAIN));
	cr_expect(eq(sz, r2r_method_count(image.r2r), 6));
	cr_expect(eq(sz, r2r_undecodable_count(image.r2r), 0));
	cr_expect(eq(sz, r2r_ownerless_count(image.r2r), 0));
	r2r_ranges(image.r2r, &count);
	cr_assert(eq(sz, count, 6));
	expect_range(&image, 0, 0x10000, 0x10, R2R_METHOD, 2);
	/* Includes its funclet and the gap before it. */
	expect_range(&image, 1, 0x10010, 0x48, R2R_METHOD, 1);
	expect_range(&image, 2, 0x10060, 0x20, R2R_METHOD, 0);
	expect_range(&image, 3, 0x10080, 0x01, R2R_METHOD, 3);
	expect_range(&image, 5, 0x100a0, 0x10, R2R_METHOD, 5);
	dismiss_image(&image);
}

Test(r2r, names_methods_as_the_runtime_does)
{
	struct r2r_recipe recipe;
	struct r2r_image image;

	prepare_image(&image);
	recipe = plain_recipe(&image.app);
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	expect_name(&image, 0, R2R_NAME_RUNTIME, "void [App] Ns.Outer::Main()");
	expect_name(&image, 1, R2R_NAME_RUNTIME,
		    "instance class [System.Runtime]System.Uri [App] "
		    "Ns.Outer::Get(int32,string[])");
	expect_name(&image, 2, R2R_NAME_RUNTIME, "instance void [App] Ns.Outer+Inner::.ctor()");
	expect_name(&image, 3, R2R_NAME_RUNTIME, "instance void [App] Ns.G`1[System.Uri]::Add(!0)");
	expect_name(&image, 4, R2R_NAME_RUNTIME, "!0[] [App] Ns.G`1[System.__Canon]::Conv(!!0)");
	expect_name(&image, 5, R2R_NAME_RUNTIME,
		    "instance void [App] Ns.G`1[System.Int32[]]::Add(!0)");
	expect_name(&image, 6, R2R_NAME_RUNTIME, NULL);
	expect_name(&image, UINT32_MAX, R2R_NAME_RUNTIME, NULL);
	cr_expect_str_eq(r2r_entry_assembly(image.r2r, 3), "App");
	dismiss_image(&image);
}

Test(r2r, names_methods_as_crossgen2_does)
{
	struct r2r_recipe recipe;
	struct r2r_image image;

	prepare_image(&image);
	recipe = plain_recipe(&image.app);
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	expect_name(&image, 0, R2R_NAME_CROSSGEN2, "Ns.Outer::Main()");
	expect_name(&image, 1, R2R_NAME_CROSSGEN2,
		    "System.Uri Ns.Outer::Get(System.Int32, System.String[])");
	expect_name(&image, 3, R2R_NAME_CROSSGEN2, "Ns.G`1[System.Uri]::Add(System.Uri)");
	expect_name(&image, 4, R2R_NAME_CROSSGEN2,
		    "System.__Canon[] Ns.G`1[System.__Canon]::Conv(System.Int32)");
	expect_name(&image, 5, R2R_NAME_CROSSGEN2, "Ns.G`1[System.Int32[]]::Add(System.Int32[])");
	dismiss_image(&image);
}

/* G with `count` arguments, all int32; its Add takes the first. */
static void check_arguments(uint32_t count, bool is_named)
{
	static const char head[] = "\x40\x15\x12\x10";
	struct r2r_recipe recipe;
	struct r2r_image image;
	struct buf signature, expected;

	prepare_image(&image);
	recipe = plain_recipe(&image.app);
	buf_init(&signature, 1 << 16);
	buf_init(&expected, 1 << 16);
	buf_append(&signature, head, sizeof(head) - 1);
	buf_append_char(&signature, (char)(0x80 | count >> 8));
	buf_append_char(&signature, (char)count);
	buf_append_string(&expected, "Ns.G`1[");
	for (uint32_t i = 0; i < count; i++) {
		buf_append_char(&signature, 0x08);
		buf_append_string(&expected, i ? ", System.Int32" : "System.Int32");
	}
	buf_append_char(&signature, 4);
	buf_append_string(&expected, "]::Add(System.Int32)");
	recipe.instance_count = 1;
	recipe.instances[0] = (struct r2r_recipe_instance){
		.signature = signature.data,
		.signature_bytes = signature.size_bytes,
		.function = 4,
	};
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	expect_name(&image, 3, R2R_NAME_CROSSGEN2, is_named ? buf_string(&expected) : NULL);
	buf_deinit(&expected);
	buf_deinit(&signature);
	dismiss_image(&image);
}

Test(r2r, names_instances_of_many_arguments_as_crossgen2_does)
{
	check_arguments(64, true);
	check_arguments(70, true);
	check_arguments(1024, true);
	check_arguments(1025, false);
}

Test(r2r, finds_the_method_at_an_rva)
{
	struct r2r_recipe recipe;
	struct r2r_image image;

	prepare_image(&image);
	recipe = plain_recipe(&image.app);
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	cr_expect(eq(sz, r2r_find(image.r2r, 0x0ffff), SIZE_MAX));
	cr_expect(eq(sz, r2r_find(image.r2r, 0x10000), 0));
	cr_expect(eq(sz, r2r_find(image.r2r, 0x1000f), 0));
	cr_expect(eq(sz, r2r_find(image.r2r, 0x10010), 1));
	cr_expect(eq(sz, r2r_find(image.r2r, 0x1004f), 1)); /* between body and funclet */
	cr_expect(eq(sz, r2r_find(image.r2r, 0x10058), SIZE_MAX));
	cr_expect(eq(sz, r2r_find(image.r2r, 0x10080), 3));
	cr_expect(eq(sz, r2r_find(image.r2r, 0x10081), SIZE_MAX));
	cr_expect(eq(sz, r2r_find(image.r2r, 0x100af), 5));
	cr_expect(eq(sz, r2r_find(image.r2r, 0x100b0), SIZE_MAX));
	cr_expect(eq(sz, r2r_find(image.r2r, UINT32_MAX), SIZE_MAX));
	dismiss_image(&image);
}

/* The last range that starts at or before the rva; the first of its aliases. */
static size_t by_looking_at_all(const struct r2r *r2r, uint32_t rva)
{
	const struct r2r_range *ranges;
	size_t count, found = SIZE_MAX;

	ranges = r2r_ranges(r2r, &count);
	for (size_t i = 0; i < count && ranges[i].rva <= rva; i++)
		if (!i || ranges[i].rva != ranges[i - 1].rva)
			found = i;
	return found == SIZE_MAX || rva - ranges[found].rva >= ranges[found].size_bytes ? SIZE_MAX
											: found;
}

Test(r2r, agrees_with_a_linear_search_at_every_rva)
{
	struct r2r_recipe recipe;
	struct r2r_image image;

	prepare_image(&image);
	recipe = plain_recipe(&image.app);
	/* Two aliases, and a range far after the others. */
	recipe.function_count = 5;
	recipe.instances[1].function = 1;
	recipe.instances[2].function = 1;
	recipe.thunks_rva = 0x10400;
	recipe.thunks_bytes = 0x10;
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	for (uint32_t rva = 0; rva < 0x10800; rva++)
		cr_assert(eq(sz, r2r_find(image.r2r, rva), by_looking_at_all(image.r2r, rva)));
	dismiss_image(&image);
}

Test(r2r, lists_every_alias_with_the_whole_extent)
{
	struct r2r_recipe recipe;
	struct r2r_image image;
	size_t count;

	prepare_image(&image);
	recipe = plain_recipe(&image.app);
	/* The last two instances share Get's code, which is followed by a funclet. */
	recipe.function_count = 5;
	recipe.instances[1].function = 1;
	recipe.instances[2].function = 1;
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	r2r_ranges(image.r2r, &count);
	cr_assert(eq(sz, count, 6));
	expect_range(&image, 1, 0x10010, 0x48, R2R_METHOD, 1);
	expect_range(&image, 2, 0x10010, 0x48, R2R_METHOD, 4);
	expect_range(&image, 3, 0x10010, 0x48, R2R_METHOD, 5);
	cr_expect(eq(sz, r2r_find(image.r2r, 0x10057), 1));
	dismiss_image(&image);
}

Test(r2r, gives_thunks_one_range)
{
	struct r2r_recipe recipe;
	struct r2r_image image;
	size_t count;

	prepare_image(&image);
	recipe = plain_recipe(&image.app);
	recipe.thunks_rva = 0x10040;
	recipe.thunks_bytes = 0x8;
	recipe.functions[2].begin_rva = 0x10048;
	recipe.methods[2].function = 2;
	recipe.functions[0].begin_rva = 0x10008;
	recipe.instances[0].function = 0;
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	r2r_ranges(image.r2r, &count);
	cr_assert(eq(sz, count, 7));
	expect_range(&image, 2, 0x10040, 0x8, R2R_STUB, 0);
	expect_range(&image, 3, 0x10048, 0x8, R2R_METHOD, 2);
	dismiss_image(&image);
}

Test(r2r, accepts_an_image_without_methods)
{
	struct r2r_recipe recipe;
	struct r2r_image image;
	size_t count = 1;

	prepare_image(&image);
	recipe = plain_recipe(&image.app);
	recipe.function_count = 0;
	recipe.method_count = 0;
	recipe.instance_count = 0;
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	cr_expect(eq(sz, r2r_method_count(image.r2r), 0));
	r2r_ranges(image.r2r, &count);
	cr_expect(eq(sz, count, 0));
	cr_expect(eq(sz, r2r_find(image.r2r, 0), SIZE_MAX));
	dismiss_image(&image);
}

Test(r2r, reads_sparse_arrays_of_many_methods)
{
	struct r2r_recipe recipe;
	struct r2r_image image;

	prepare_image(&image);
	recipe = plain_recipe(&image.app);
	recipe.method_count = 2;
	recipe.methods[0] = (struct r2r_recipe_method){ 5, 0, FIXUPS_NONE };
	recipe.methods[1] = (struct r2r_recipe_method){ 2, 1, FIXUPS_NONE };
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	expect_range(&image, 0, 0x10000, 0x10, R2R_METHOD, 1);
	expect_name(&image, 0, R2R_NAME_CROSSGEN2,
		    "System.Uri Ns.Outer::Get(System.Int32, System.String[])");
	dismiss_image(&image);
}

Test(r2r, ignores_a_sentinel_that_is_counted)
{
	struct r2r_recipe recipe;
	struct r2r_image image;

	prepare_image(&image);
	recipe = plain_recipe(&image.app);
	recipe.with_sentinel = true;
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	expect_range(&image, 5, 0x100a0, 0x10, R2R_METHOD, 5);
	dismiss_image(&image);
}

Test(r2r, reads_function_lengths_of_other_machines)
{
	static const uint16_t machines[] = { 0xaa64, 0x01c4, 0x014c, 0x6264, 0x5064 };

	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		struct r2r_recipe recipe;
		struct r2r_image image;

		prepare_image(&image);
		recipe = plain_recipe(&image.app);
		recipe.machine = machines[i];
		recipe.functions[4].size_bytes = 4;
		cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
		expect_range(&image, 0, 0x10000, 0x10, R2R_METHOD, 2);
		expect_range(&image, 1, 0x10010, 0x48, R2R_METHOD, 1);
		expect_range(&image, 3, 0x10080, 0x04, R2R_METHOD, 3);
		dismiss_image(&image);
	}
}

Test(r2r, reads_images_in_loaded_layout)
{
	struct r2r_recipe recipe;
	static char memory[0x20000];
	struct r2r_image image;

	prepare_image(&image);
	recipe = plain_recipe(&image.app);
	build_recipe(&image, &recipe);
	cr_assert(le(u32, image.pe.size_of_image_bytes, sizeof(memory)));
	memcpy(memory, image.file.data, 0x200);
	for (uint32_t i = 0; i < image.pe.section_count; i++)
		memcpy(memory + image.pe.sections[i].virtual_address,
		       image.file.data + image.pe.sections[i].raw_offset,
		       image.pe.sections[i].raw_size_bytes);
	cr_assert(eq(ptr,
		     pe_parse(&image.pe, memory, image.pe.size_of_image_bytes, PE_LAYOUT_LOADED),
		     NULL));
	cr_assert(eq(ptr, open_image(&image), NULL));
	expect_range(&image, 1, 0x10010, 0x48, R2R_METHOD, 1);
	expect_name(&image, 3, R2R_NAME_RUNTIME, "instance void [App] Ns.G`1[System.Uri]::Add(!0)");
	dismiss_image(&image);
}

/* ---- cold parts ------------------------------------------------------------ */

Test(r2r, gives_cold_parts_to_their_methods)
{
	struct r2r_recipe recipe;
	struct r2r_image image;
	size_t count;

	prepare_image(&image);
	recipe = plain_recipe(&image.app);
	recipe.instance_count = 1;
	recipe.function_count = 8;
	recipe.functions[7] = (struct r2r_recipe_function){ 0x100c0, 0x18 };
	recipe.cold_count = 2;
	recipe.cold_pairs[0][0] = 5;
	recipe.cold_pairs[0][1] = 0;
	recipe.cold_pairs[1][0] = 6;
	recipe.cold_pairs[1][1] = 4;
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	cr_expect(eq(sz, r2r_ownerless_count(image.r2r), 0));
	r2r_ranges(image.r2r, &count);
	cr_assert(eq(sz, count, 6));
	/* The last hot method ends before the first cold function. */
	expect_range(&image, 3, 0x10080, 0x01, R2R_METHOD, 3);
	expect_range(&image, 4, 0x10090, 0x10, R2R_COLD, 2);
	expect_range(&image, 5, 0x100a0, 0x38, R2R_COLD, 3);
	dismiss_image(&image);
}

Test(r2r, counts_cold_parts_of_no_method)
{
	struct r2r_recipe recipe;
	struct r2r_image image;

	prepare_image(&image);
	recipe = plain_recipe(&image.app);
	recipe.instance_count = 1;
	recipe.cold_count = 1;
	recipe.cold_pairs[0][0] = 5;
	recipe.cold_pairs[0][1] = 2; /* a funclet, not a method */
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	cr_expect(eq(sz, r2r_ownerless_count(image.r2r), 2));
	dismiss_image(&image);
}

Test(r2r, rejects_a_hot_cold_map_that_goes_backwards)
{
	struct r2r_recipe recipe;
	struct r2r_image image;

	prepare_image(&image);
	recipe = plain_recipe(&image.app);
	recipe.cold_count = 2;
	recipe.cold_pairs[0][0] = 6;
	recipe.cold_pairs[1][0] = 5;
	cr_expect(eq(int, open_recipe(&image, &recipe), SYM_ERROR_FORMAT));
	recipe.cold_count = 1;
	recipe.cold_pairs[0][0] = 7;
	cr_expect(eq(int, open_recipe(&image, &recipe), SYM_ERROR_FORMAT));
	dismiss_image(&image);
}

/* ---- what is rejected ------------------------------------------------------ */

Test(r2r, rejects_unknown_versions)
{
	struct r2r_recipe recipe;
	struct r2r_image image;

	prepare_image(&image);
	recipe = plain_recipe(&image.app);
	recipe.major_version = 27;
	cr_expect(eq(int, open_recipe(&image, &recipe), SYM_ERROR_UNSUPPORTED));
	recipe.major_version = 1;
	cr_expect(eq(int, open_recipe(&image, &recipe), SYM_ERROR_UNSUPPORTED));
	recipe.major_version = 2;
	cr_expect(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	dismiss_image(&image);
}

Test(r2r, names_the_unknown_version_that_it_rejects)
{
	struct r2r_recipe recipe;
	struct sym_error *error;
	struct r2r_image image;
	struct r2r *r2r;

	prepare_image(&image);
	recipe = plain_recipe(&image.app);
	recipe.major_version = 27;
	recipe.minor_version = 3;
	cr_assert(eq(int, open_recipe(&image, &recipe), SYM_ERROR_UNSUPPORTED));
	error = r2r_open(&image.pe, image.app_metadata, NULL, &r2r);
	cr_assert(error != NULL);
	cr_expect(strstr(sym_error_message(error), "ReadyToRun format 27.3 is not known") != NULL);
	sym_error_destroy(error);
	dismiss_image(&image);
}

/* The image ends with its code at 0x11000. */
Test(r2r, rejects_runtime_functions_beyond_the_image)
{
	static const struct r2r_recipe_function beyond[] = {
		{ 0x10ff0, 0x11 },    { 0x11000, 1 },       { 0x12000, 0x10 },
		{ 0x7fffffff, 0x10 }, { 0xfffffff0, 0x20 },
	};
	struct r2r_recipe recipe;
	struct r2r_image image;

	prepare_image(&image);
	recipe = plain_recipe(&image.app);
	recipe.functions[recipe.function_count - 1] = (struct r2r_recipe_function){ 0x10ff0, 0x10 };
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++) {
		recipe.functions[recipe.function_count - 1] = beyond[i];
		cr_expect(eq(int, open_recipe(&image, &recipe), SYM_ERROR_FORMAT));
	}
	dismiss_image(&image);
}

static uint32_t native_header_offset(const struct r2r_image *image)
{
	return image->pe.managed_native_header.rva - R2R_BUILDER_TABLES_RVA + 0x200;
}

Test(r2r, recognises_fragile_images_and_foreign_headers)
{
	struct r2r_recipe recipe;
	struct sym_error *error;
	struct r2r_image image;
	struct r2r *r2r;

	prepare_image(&image);
	recipe = plain_recipe(&image.app);
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	patch_u32(&image.file, native_header_offset(&image), 0x0045474e);
	cr_expect(eq(int, (int)r2r_flavour(&image.pe), R2R_NGEN));
	error = r2r_open(&image.pe, image.app_metadata, NULL, &r2r);
	cr_assert(error != NULL);
	cr_expect(eq(int, (int)sym_error_code(error), SYM_ERROR_UNSUPPORTED));
	sym_error_destroy(error);
	patch_u32(&image.file, native_header_offset(&image), 0x12345678);
	cr_expect(eq(int, (int)r2r_flavour(&image.pe), R2R_NONE));
	error = r2r_open(&image.pe, image.app_metadata, NULL, &r2r);
	cr_assert(error != NULL);
	cr_expect(eq(int, (int)sym_error_code(error), SYM_ERROR_UNSUPPORTED));
	sym_error_destroy(error);
	dismiss_image(&image);
}

Test(r2r, rejects_runtime_functions_out_of_order)
{
	struct r2r_recipe recipe;
	struct r2r_image image;

	prepare_image(&image);
	recipe = plain_recipe(&image.app);
	recipe.functions[3].begin_rva = 0x1000f;
	cr_expect(eq(int, open_recipe(&image, &recipe), SYM_ERROR_FORMAT));
	recipe = plain_recipe(&image.app);
	recipe.functions[6].size_bytes = 0xffff0000;
	cr_expect(eq(int, open_recipe(&image, &recipe), SYM_ERROR_FORMAT));
	recipe.functions[6].size_bytes = 0;
	cr_expect(eq(int, open_recipe(&image, &recipe), SYM_ERROR_FORMAT));
	dismiss_image(&image);
}

Test(r2r, counts_entries_that_point_at_no_function)
{
	struct r2r_recipe recipe;
	struct r2r_image image;

	prepare_image(&image);
	recipe = plain_recipe(&image.app);
	recipe.methods[0].function = 7;
	recipe.instances[2].function = 0x0fffffff >> 1;
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	cr_expect(eq(sz, r2r_undecodable_count(image.r2r), 2));
	cr_expect(eq(sz, r2r_method_count(image.r2r), 4));
	dismiss_image(&image);
}

Test(r2r, counts_instances_that_cannot_be_decoded)
{
	static char deep[300];
	struct r2r_recipe recipe;
	struct r2r_image image;

	memset(deep, 0x1d, sizeof(deep));
	deep[0] = 0x40;
	prepare_image(&image);
	recipe = plain_recipe(&image.app);
	recipe.instances[0] = (struct r2r_recipe_instance){ deep, sizeof(deep), 4 };
	recipe.instances[1] = (struct r2r_recipe_instance)INSTANCE("\x48\x08\x04", 4); /* slot */
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	cr_expect(eq(sz, r2r_undecodable_count(image.r2r), 2));
	cr_expect(eq(sz, r2r_method_count(image.r2r), 4));
	dismiss_image(&image);
}

Test(r2r, counts_functions_before_the_first_method)
{
	struct r2r_recipe recipe;
	struct r2r_image image;

	prepare_image(&image);
	recipe = plain_recipe(&image.app);
	recipe.methods[2].function = 2;
	recipe.methods[1].function = 3;
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	cr_expect(eq(sz, r2r_ownerless_count(image.r2r), 2));
	dismiss_image(&image);
}

Test(r2r, rejects_entries_for_missing_methods)
{
	struct r2r_recipe recipe;
	struct r2r_image image;

	prepare_image(&image);
	recipe = plain_recipe(&image.app);
	recipe.methods[0].rid = 6;
	cr_expect(eq(int, open_recipe(&image, &recipe), SYM_ERROR_FORMAT));
	dismiss_image(&image);
}

Test(r2r, survives_tables_at_wrong_positions)
{
	static const uint32_t lies[] = { 0, 1, 0x1000, 0xfff, 0x10fff, 0x7fffffff, 0xffffffff };
	struct r2r_recipe recipe;
	struct r2r_image image;
	uint32_t header;

	prepare_image(&image);
	recipe = plain_recipe(&image.app);
	recipe.thunks_rva = 0x10040;
	recipe.thunks_bytes = 8;
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	header = native_header_offset(&image);
	/* Every word of the section list in turn: type, rva, size. */
	for (uint32_t word = 0; word < 4 * 3; word++) {
		uint32_t position = header + 16 + word * 4, kept;

		memcpy(&kept, image.file.data + position, 4);
		for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
			struct sym_error *error;
			struct r2r *r2r = NULL;

			patch_u32(&image.file, position, lies[i]);
			error = r2r_open(&image.pe, image.app_metadata, NULL, &r2r);
			if (error)
				cr_expect(eq(int, (int)sym_error_code(error), SYM_ERROR_FORMAT));
			sym_error_destroy(error);
			r2r_close(r2r);
		}
		patch_u32(&image.file, position, kept);
	}
	dismiss_image(&image);
}

Test(r2r, appends_names_to_the_buffer)
{
	struct r2r_recipe recipe;
	struct r2r_image image;
	const char *why;
	struct buf name;

	prepare_image(&image);
	recipe = plain_recipe(&image.app);
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	buf_init(&name, 40);
	buf_append_string(&name, "10060 20 ");
	cr_assert(r2r_name(image.r2r, 0, R2R_NAME_CROSSGEN2, &name, &why));
	cr_expect(eq(int, memcmp(name.data, "10060 20 Ns.Outer::Main()", 25), 0));
	/* The next name does not fit; no part of it is appended. */
	cr_expect(not(r2r_name(image.r2r, 1, R2R_NAME_CROSSGEN2, &name, &why)));
	cr_expect(eq(sz, name.size_bytes, 25));
	buf_deinit(&name);
	dismiss_image(&image);
}

static bool open_under_pressure(void *context)
{
	struct sym_error *error = open_image(context);

	/* A failed allocation is never reported as a malformed image. */
	if (error)
		cr_expect(eq(int, (int)sym_error_code(error), SYM_ERROR_NO_MEMORY));
	sym_error_destroy(error);
	return !error;
}

Test(r2r, survives_every_failed_allocation)
{
	struct r2r_recipe recipe;
	struct r2r_image image;

	prepare_image(&image);
	recipe = plain_recipe(&image.app);
	build_recipe(&image, &recipe);
	cr_expect(gt(sz, alloc_fail_each(open_under_pressure, &image), 4));
	expect_name(&image, 0, R2R_NAME_RUNTIME, "void [App] Ns.Outer::Main()");
	buf_clear(&image.manifest);
	build_member_manifest(&image.manifest, "#:2");
	recipe.manifest = &image.manifest;
	recipe.instances[0] = (struct r2r_recipe_instance)INSTANCE("\x80\xd0\x03\x12\x0d\x04", 4);
	build_recipe(&image, &recipe);
	cr_expect(gt(sz, alloc_fail_each(open_under_pressure, &image), 10));
	expect_name(&image, 3, R2R_NAME_RUNTIME, "int32 [Lib] Lib.L::One()");
	dismiss_image(&image);
}
