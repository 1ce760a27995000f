/* SPDX-License-Identifier: MIT */
/*
 * Small images of every flavour, built in the test. Names are spelt out as crossgen v1 and
 * crossgen2 spell those of real images; that real ones come out the same is shown by
 * tests/dotnet/check-crossgen.sh.
 */
#include "libsym/format/r2r.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <strings.h>

#include "tests/support/byte_writer.h"
#include "tests/support/r2r_sample.h"

#define NO_ERROR 0

struct image {
	struct buf app, lib, manifest, file;
	struct metadata *app_metadata, *lib_metadata;
	bool lib_is_absent;
	const uint8_t *asked_mvid; /* of Lib, when the reader asked for it */
	struct pe pe;
	struct r2r_assemblies assemblies;
	struct r2r *r2r;
};

static const struct metadata *find_assembly(void *context, const char *name, const uint8_t *mvid)
{
	struct image *image = context;

	if (!strcasecmp(name, "App"))
		return image->app_metadata;
	if (!strcasecmp(name, "Lib") && !image->lib_is_absent) {
		image->asked_mvid = mvid;
		return image->lib_metadata;
	}
	return NULL;
}

static void prepare(struct image *image)
{
	*image = (struct image){ 0 };
	buf_init(&image->app, 1 << 16);
	buf_init(&image->lib, 1 << 16);
	buf_init(&image->manifest, 1 << 16);
	buf_init(&image->file, 1 << 20);
	build_app_metadata(&image->app);
	build_lib_metadata(&image->lib);
	build_manifest_metadata(&image->manifest);
	cr_assert(eq(ptr,
		     metadata_open(image->app.data, image->app.size_bytes, &image->app_metadata),
		     NULL));
	cr_assert(eq(ptr,
		     metadata_open(image->lib.data, image->lib.size_bytes, &image->lib_metadata),
		     NULL));
	image->assemblies = (struct r2r_assemblies){ image, find_assembly };
}

static void dismiss(struct image *image)
{
	r2r_close(image->r2r);
	metadata_close(image->app_metadata);
	metadata_close(image->lib_metadata);
	buf_deinit(&image->app);
	buf_deinit(&image->lib);
	buf_deinit(&image->manifest);
	buf_deinit(&image->file);
}

/* Builds, parses and opens; NO_ERROR or the code of the error. */
static int open_recipe(struct image *image, const struct r2r_recipe *recipe)
{
	struct sym_error *error;
	int code = NO_ERROR;

	r2r_close(image->r2r);
	image->r2r = NULL;
	buf_clear(&image->file);
	build_r2r(&image->file, recipe);
	error = pe_parse(&image->pe, image->file.data, image->file.size_bytes, PE_LAYOUT_FILE);
	cr_assert(eq(ptr, error, NULL));
	error = r2r_open(&image->pe, recipe->through_export ? NULL : image->app_metadata,
			 &image->assemblies, &image->r2r);
	if (error)
		code = (int)sym_error_code(error);
	sym_error_destroy(error);
	return code;
}

static void expect_name(const struct image *image, uint32_t entry, enum r2r_dialect dialect,
			const char *expected)
{
	const char *why = NULL;
	struct buf name;

	buf_init(&name, 1 << 17);
	if (expected) {
		cr_expect(r2r_name(image->r2r, entry, dialect, &name, &why), "%s", why);
		cr_expect_str_eq(buf_string(&name), expected);
	} else {
		cr_expect(not(r2r_name(image->r2r, entry, dialect, &name, &why)));
		cr_expect(eq(sz, name.size_bytes, 0));
		cr_expect(why != NULL);
	}
	buf_deinit(&name);
}

static void expect_range(const struct image *image, size_t index, uint32_t rva, uint32_t size_bytes,
			 enum r2r_range_kind kind, uint32_t entry)
{
	const struct r2r_range *ranges;
	size_t count;

	ranges = r2r_ranges(image->r2r, &count);
	cr_assert(lt(sz, index, count));
	cr_expect(eq(u32, ranges[index].rva, rva));
	cr_expect(eq(u32, ranges[index].size_bytes, size_bytes));
	cr_expect(eq(u32, ranges[index].kind, kind));
	if (kind != R2R_STUB)
		cr_expect(eq(u32, ranges[index].entry, entry));
}

/* ---- plain images ---------------------------------------------------------- */

Test(r2r, finds_every_method_and_its_extent)
{
	struct r2r_recipe recipe;
	struct image image;
	size_t count;

	prepare(&image);
	recipe = plain_recipe(&image.app);
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	cr_expect(eq(int, (int)r2r_flavour(&image.pe), R2R_PLAIN));
	cr_expect(eq(u16, r2r_major_version(image.r2r), 16));
	cr_expect(eq(sz, r2r_method_count(image.r2r), 6));
	cr_expect(eq(sz, r2r_undecodable_count(image.r2r), 0));
	cr_expect(eq(sz, r2r_ownerless_count(image.r2r), 0));
	r2r_ranges(image.r2r, &count);
	cr_assert(eq(sz, count, 6));
	expect_range(&image, 0, 0x10000, 0x10, R2R_METHOD, 2);
	/* With its funclet and the gap before that. */
	expect_range(&image, 1, 0x10010, 0x48, R2R_METHOD, 1);
	expect_range(&image, 2, 0x10060, 0x20, R2R_METHOD, 0);
	expect_range(&image, 3, 0x10080, 0x01, R2R_METHOD, 3);
	expect_range(&image, 5, 0x100a0, 0x10, R2R_METHOD, 5);
	dismiss(&image);
}

Test(r2r, names_methods_as_the_runtime_does)
{
	struct r2r_recipe recipe;
	struct image image;

	prepare(&image);
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
	dismiss(&image);
}

Test(r2r, names_methods_as_crossgen2_does)
{
	struct r2r_recipe recipe;
	struct image image;

	prepare(&image);
	recipe = plain_recipe(&image.app);
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	expect_name(&image, 0, R2R_NAME_CROSSGEN2, "Ns.Outer::Main()");
	expect_name(&image, 1, R2R_NAME_CROSSGEN2,
		    "System.Uri Ns.Outer::Get(System.Int32, System.String[])");
	expect_name(&image, 3, R2R_NAME_CROSSGEN2, "Ns.G`1[System.Uri]::Add(System.Uri)");
	expect_name(&image, 4, R2R_NAME_CROSSGEN2,
		    "System.__Canon[] Ns.G`1[System.__Canon]::Conv(System.Int32)");
	expect_name(&image, 5, R2R_NAME_CROSSGEN2, "Ns.G`1[System.Int32[]]::Add(System.Int32[])");
	dismiss(&image);
}

Test(r2r, finds_the_method_at_an_rva)
{
	struct r2r_recipe recipe;
	struct image image;

	prepare(&image);
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
	dismiss(&image);
}

Test(r2r, lists_every_alias_with_the_whole_extent)
{
	struct r2r_recipe recipe;
	struct image image;
	size_t count;

	prepare(&image);
	recipe = plain_recipe(&image.app);
	/* The last two instances share Get's code, which has a funclet behind it. */
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
	dismiss(&image);
}

Test(r2r, gives_thunks_one_range)
{
	struct r2r_recipe recipe;
	struct image image;
	size_t count;

	prepare(&image);
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
	dismiss(&image);
}

Test(r2r, accepts_an_image_without_methods)
{
	struct r2r_recipe recipe;
	struct image image;
	size_t count = 1;

	prepare(&image);
	recipe = plain_recipe(&image.app);
	recipe.function_count = 0;
	recipe.method_count = 0;
	recipe.instance_count = 0;
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	cr_expect(eq(sz, r2r_method_count(image.r2r), 0));
	r2r_ranges(image.r2r, &count);
	cr_expect(eq(sz, count, 0));
	cr_expect(eq(sz, r2r_find(image.r2r, 0), SIZE_MAX));
	dismiss(&image);
}

Test(r2r, reads_sparse_arrays_of_many_methods)
{
	struct r2r_recipe recipe;
	struct image image;

	prepare(&image);
	recipe = plain_recipe(&image.app);
	recipe.method_count = 2;
	recipe.methods[0] = (struct r2r_recipe_method){ 5, 0, FIXUPS_NONE };
	recipe.methods[1] = (struct r2r_recipe_method){ 2, 1, FIXUPS_NONE };
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	expect_range(&image, 0, 0x10000, 0x10, R2R_METHOD, 1);
	expect_name(&image, 0, R2R_NAME_CROSSGEN2,
		    "System.Uri Ns.Outer::Get(System.Int32, System.String[])");
	dismiss(&image);
}

Test(r2r, ignores_a_sentinel_that_is_counted)
{
	struct r2r_recipe recipe;
	struct image image;

	prepare(&image);
	recipe = plain_recipe(&image.app);
	recipe.with_sentinel = true;
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	expect_range(&image, 5, 0x100a0, 0x10, R2R_METHOD, 5);
	dismiss(&image);
}

Test(r2r, reads_the_lengths_of_other_machines)
{
	static const uint16_t machines[] = { 0xaa64, 0x01c4, 0x014c, 0x6264, 0x5064 };

	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		struct r2r_recipe recipe;
		struct image image;

		prepare(&image);
		recipe = plain_recipe(&image.app);
		recipe.machine = machines[i];
		recipe.functions[4].size_bytes = 4;
		cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
		expect_range(&image, 0, 0x10000, 0x10, R2R_METHOD, 2);
		expect_range(&image, 1, 0x10010, 0x48, R2R_METHOD, 1);
		expect_range(&image, 3, 0x10080, 0x04, R2R_METHOD, 3);
		dismiss(&image);
	}
}

/* ---- cold parts ------------------------------------------------------------ */

Test(r2r, gives_cold_parts_to_their_methods)
{
	struct r2r_recipe recipe;
	struct image image;
	size_t count;

	prepare(&image);
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
	dismiss(&image);
}

Test(r2r, counts_cold_parts_of_no_method)
{
	struct r2r_recipe recipe;
	struct image image;

	prepare(&image);
	recipe = plain_recipe(&image.app);
	recipe.instance_count = 1;
	recipe.cold_count = 1;
	recipe.cold_pairs[0][0] = 5;
	recipe.cold_pairs[0][1] = 2; /* a funclet, not a method */
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	cr_expect(eq(sz, r2r_ownerless_count(image.r2r), 2));
	dismiss(&image);
}

Test(r2r, refuses_a_hot_cold_map_that_goes_backwards)
{
	struct r2r_recipe recipe;
	struct image image;

	prepare(&image);
	recipe = plain_recipe(&image.app);
	recipe.cold_count = 2;
	recipe.cold_pairs[0][0] = 6;
	recipe.cold_pairs[1][0] = 5;
	cr_expect(eq(int, open_recipe(&image, &recipe), SYM_ERROR_FORMAT));
	recipe.cold_count = 1;
	recipe.cold_pairs[0][0] = 7;
	cr_expect(eq(int, open_recipe(&image, &recipe), SYM_ERROR_FORMAT));
	dismiss(&image);
}

/* ---- other assemblies ------------------------------------------------------ */

Test(r2r, reads_owners_of_another_assembly_in_its_metadata)
{
	struct r2r_recipe recipe;
	struct image image;

	prepare(&image);
	recipe = plain_recipe(&image.app);
	/* H`1 is TypeDef 3 of Lib, AssemblyRef 2 of App; its argument G`1's token is App's. */
	recipe.instance_count = 3;
	recipe.instances[0] =
		(struct r2r_recipe_instance)INSTANCE("\x40\x3f\x02\x15\x12\x0c\x01\x12\x10\x02", 4);
	recipe.instances[1] =
		(struct r2r_recipe_instance)INSTANCE("\x40\x15\x3f\x02\x12\x0c\x01\x08\x02", 5);
	/* Flags 0xc0 take two bytes. */
	recipe.instances[2] = (struct r2r_recipe_instance)INSTANCE(
		"\x80\xc0\x02\x15\x12\x0c\x01\x3f\x02\x12\x08\x02", 6);
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	cr_expect(eq(sz, r2r_undecodable_count(image.r2r), 0));
	expect_name(&image, 3, R2R_NAME_RUNTIME, "instance void [Lib] Lib.H`1[Ns.G`1]::Put(!0)");
	expect_name(&image, 4, R2R_NAME_CROSSGEN2, "Lib.H`1[System.Int32]::Put(System.Int32)");
	expect_name(&image, 5, R2R_NAME_CROSSGEN2, "Lib.H`1[Lib.L]::Put(Lib.L)");
	cr_expect_str_eq(r2r_entry_assembly(image.r2r, 5), "Lib");
	dismiss(&image);
}

Test(r2r, gives_no_name_when_the_other_assembly_is_absent)
{
	struct r2r_recipe recipe;
	struct image image;

	prepare(&image);
	image.lib_is_absent = true;
	recipe = plain_recipe(&image.app);
	recipe.instances[0] =
		(struct r2r_recipe_instance)INSTANCE("\x40\x3f\x02\x15\x12\x0c\x01\x12\x10\x02", 4);
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	expect_name(&image, 3, R2R_NAME_RUNTIME, NULL);
	expect_name(&image, 3, R2R_NAME_CROSSGEN2, NULL);
	cr_expect(eq(ptr, (void *)r2r_entry_assembly(image.r2r, 3), NULL));
	/* The others still have theirs. */
	expect_name(&image, 0, R2R_NAME_RUNTIME, "void [App] Ns.Outer::Main()");
	dismiss(&image);
}

/* Module numbers behind the image's own references (2 here): manifest rows, from 6.3 on one later.
 */
static void check_manifest_numbering(uint16_t major, uint16_t minor, char lib_number)
{
	char signature[] = "\x40\x3f?\x15\x12\x0c\x01\x08\x02";
	struct r2r_recipe recipe;
	struct image image;

	prepare(&image);
	signature[2] = lib_number;
	recipe = plain_recipe(&image.app);
	recipe.major_version = major;
	recipe.minor_version = minor;
	recipe.manifest = &image.manifest;
	recipe.instances[0] = (struct r2r_recipe_instance){ signature, sizeof(signature) - 1, 4 };
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	expect_name(&image, 3, R2R_NAME_RUNTIME,
		    "instance void [Lib] Lib.H`1[System.Int32]::Put(!0)");
	dismiss(&image);
}

Test(r2r, numbers_modules_by_the_rule_of_the_version)
{
	check_manifest_numbering(16, 0, 5);
	check_manifest_numbering(6, 3, 5);
	check_manifest_numbering(6, 2, 4);
	check_manifest_numbering(5, 4, 4);
}

/* ---- composites ------------------------------------------------------------ */

static struct r2r_recipe composite_recipe(struct image *image)
{
	struct r2r_recipe recipe = plain_recipe(&image->manifest);

	recipe.method_count = 0;
	recipe.manifest = &image->manifest;
	recipe.component_count = 2;
	recipe.components[0].method_count = 2;
	recipe.components[0].methods[0] = (struct r2r_recipe_method){ 1, 0, FIXUPS_NONE };
	recipe.components[0].methods[1] = (struct r2r_recipe_method){ 3, 1, FIXUPS_NONE };
	recipe.components[1].method_count = 1;
	recipe.components[1].methods[0] = (struct r2r_recipe_method){ 1, 3, FIXUPS_NONE };
	/* H<__Canon>.Put of Lib: module number 3. */
	recipe.instance_count = 1;
	recipe.instances[0] =
		(struct r2r_recipe_instance)INSTANCE("\x40\x3f\x03\x15\x12\x0c\x01\x3e\x02", 4);
	return recipe;
}

Test(r2r, names_methods_of_a_composite_by_component)
{
	struct r2r_recipe recipe;
	uint8_t mvids[2][16];
	struct image image;

	prepare(&image);
	memcpy(mvids[0], sample_app_mvid, 16);
	memcpy(mvids[1], sample_lib_mvid, 16);
	recipe = composite_recipe(&image);
	recipe.manifest_mvids = mvids;
	recipe.manifest_mvid_count = 2;
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	cr_expect(eq(int, (int)r2r_flavour(&image.pe), R2R_COMPOSITE));
	cr_expect(eq(sz, r2r_method_count(image.r2r), 4));
	expect_name(&image, 0, R2R_NAME_RUNTIME, "void [App] Ns.Outer::Main()");
	expect_name(&image, 1, R2R_NAME_RUNTIME, "instance void [App] Ns.Outer+Inner::.ctor()");
	expect_name(&image, 2, R2R_NAME_RUNTIME, "int32 [Lib] Lib.L::One()");
	expect_name(&image, 3, R2R_NAME_RUNTIME,
		    "instance void [Lib] Lib.H`1[System.__Canon]::Put(!0)");
	cr_expect_str_eq(r2r_entry_assembly(image.r2r, 2), "Lib");
	/* The component's MVID is asked for, so that another build of Lib is not taken. */
	cr_assert(image.asked_mvid != NULL);
	cr_expect(eq(int, memcmp(image.asked_mvid, sample_lib_mvid, 16), 0));
	dismiss(&image);
}

Test(r2r, finds_a_composite_through_its_export)
{
	struct r2r_recipe recipe;
	struct image image;

	prepare(&image);
	recipe = composite_recipe(&image);
	recipe.metadata = NULL;
	recipe.through_export = true;
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	cr_expect(eq(int, (int)r2r_flavour(&image.pe), R2R_COMPOSITE));
	expect_name(&image, 2, R2R_NAME_RUNTIME, "int32 [Lib] Lib.L::One()");
	dismiss(&image);
}

Test(r2r, reads_metadata_that_a_composite_embeds)
{
	struct r2r_recipe recipe;
	struct image image;

	prepare(&image);
	image.lib_is_absent = true;
	recipe = composite_recipe(&image);
	recipe.components[1].embedded_metadata = &image.lib;
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	expect_name(&image, 2, R2R_NAME_RUNTIME, "int32 [Lib] Lib.L::One()");
	dismiss(&image);
}

Test(r2r, names_only_components_that_are_there)
{
	struct r2r_recipe recipe;
	struct image image;

	prepare(&image);
	image.lib_is_absent = true;
	recipe = composite_recipe(&image);
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	expect_name(&image, 0, R2R_NAME_RUNTIME, "void [App] Ns.Outer::Main()");
	expect_name(&image, 2, R2R_NAME_RUNTIME, NULL);
	dismiss(&image);
}

Test(r2r, tells_the_composite_of_a_component)
{
	struct r2r_recipe recipe;
	struct image image;

	prepare(&image);
	recipe = plain_recipe(&image.app);
	recipe.function_count = 0;
	recipe.method_count = 0;
	recipe.instance_count = 0;
	recipe.flags = 0x24;
	recipe.owner_composite = "app.r2r.dll";
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	cr_expect(eq(int, (int)r2r_flavour(&image.pe), R2R_COMPONENT));
	cr_expect_str_eq(r2r_owner_composite(&image.pe), "app.r2r.dll");
	cr_expect(eq(sz, r2r_method_count(image.r2r), 0));
	recipe.owner_composite = "../app.r2r.dll";
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	cr_expect(eq(ptr, (void *)r2r_owner_composite(&image.pe), NULL));
	dismiss(&image);
}

/* ---- what is refused ------------------------------------------------------- */

Test(r2r, refuses_versions_it_does_not_know)
{
	struct r2r_recipe recipe;
	struct image image;

	prepare(&image);
	recipe = plain_recipe(&image.app);
	recipe.major_version = 17;
	cr_expect(eq(int, open_recipe(&image, &recipe), SYM_ERROR_UNSUPPORTED));
	recipe.major_version = 1;
	cr_expect(eq(int, open_recipe(&image, &recipe), SYM_ERROR_UNSUPPORTED));
	recipe.major_version = 2;
	cr_expect(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	dismiss(&image);
}

static uint32_t native_header_offset(const struct image *image)
{
	return image->pe.managed_native_header.rva - R2R_BUILDER_TABLES_RVA + 0x200;
}

Test(r2r, tells_fragile_images_and_foreign_headers)
{
	struct r2r_recipe recipe;
	struct sym_error *error;
	struct image image;
	struct r2r *r2r;

	prepare(&image);
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
	dismiss(&image);
}

Test(r2r, refuses_runtime_functions_out_of_order)
{
	struct r2r_recipe recipe;
	struct image image;

	prepare(&image);
	recipe = plain_recipe(&image.app);
	recipe.functions[3].begin_rva = 0x1000f;
	cr_expect(eq(int, open_recipe(&image, &recipe), SYM_ERROR_FORMAT));
	recipe = plain_recipe(&image.app);
	recipe.functions[6].size_bytes = 0xffff0000;
	cr_expect(eq(int, open_recipe(&image, &recipe), SYM_ERROR_FORMAT));
	recipe.functions[6].size_bytes = 0;
	cr_expect(eq(int, open_recipe(&image, &recipe), SYM_ERROR_FORMAT));
	dismiss(&image);
}

Test(r2r, counts_entries_that_point_at_no_function)
{
	struct r2r_recipe recipe;
	struct image image;

	prepare(&image);
	recipe = plain_recipe(&image.app);
	recipe.methods[0].function = 7;
	recipe.instances[2].function = 0x0fffffff >> 1;
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	cr_expect(eq(sz, r2r_undecodable_count(image.r2r), 2));
	cr_expect(eq(sz, r2r_method_count(image.r2r), 4));
	dismiss(&image);
}

Test(r2r, counts_instances_that_cannot_be_decoded)
{
	static char deep[300];
	struct r2r_recipe recipe;
	struct image image;

	memset(deep, 0x1d, sizeof(deep));
	deep[0] = 0x40;
	prepare(&image);
	recipe = plain_recipe(&image.app);
	recipe.instances[0] = (struct r2r_recipe_instance){ deep, sizeof(deep), 4 };
	recipe.instances[1] = (struct r2r_recipe_instance)INSTANCE("\x48\x08\x04", 4); /* slot */
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	cr_expect(eq(sz, r2r_undecodable_count(image.r2r), 2));
	cr_expect(eq(sz, r2r_method_count(image.r2r), 4));
	dismiss(&image);
}

Test(r2r, counts_functions_before_the_first_method)
{
	struct r2r_recipe recipe;
	struct image image;

	prepare(&image);
	recipe = plain_recipe(&image.app);
	recipe.methods[2].function = 2;
	recipe.methods[1].function = 3;
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	cr_expect(eq(sz, r2r_ownerless_count(image.r2r), 2));
	dismiss(&image);
}

Test(r2r, refuses_entries_for_methods_that_do_not_exist)
{
	struct r2r_recipe recipe;
	struct image image;

	prepare(&image);
	recipe = plain_recipe(&image.app);
	recipe.methods[0].rid = 6;
	cr_expect(eq(int, open_recipe(&image, &recipe), SYM_ERROR_FORMAT));
	dismiss(&image);
}

Test(r2r, survives_tables_that_lie_about_their_place)
{
	static const uint32_t lies[] = { 0, 1, 0x1000, 0xfff, 0x10fff, 0x7fffffff, 0xffffffff };
	struct r2r_recipe recipe;
	struct image image;
	uint32_t header;

	prepare(&image);
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
	dismiss(&image);
}

Test(r2r, appends_names_to_what_the_buffer_has)
{
	struct r2r_recipe recipe;
	struct image image;
	const char *why;
	struct buf name;

	prepare(&image);
	recipe = plain_recipe(&image.app);
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	buf_init(&name, 40);
	buf_append_string(&name, "10060 20 ");
	cr_assert(r2r_name(image.r2r, 0, R2R_NAME_CROSSGEN2, &name, &why));
	cr_expect(eq(int, memcmp(name.data, "10060 20 Ns.Outer::Main()", 25), 0));
	/* The next name does not fit: nothing of it stays. */
	cr_expect(not(r2r_name(image.r2r, 1, R2R_NAME_CROSSGEN2, &name, &why)));
	cr_expect(eq(sz, name.size_bytes, 25));
	buf_deinit(&name);
	dismiss(&image);
}
