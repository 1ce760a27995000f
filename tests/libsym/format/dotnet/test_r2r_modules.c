/* SPDX-License-Identifier: MIT */
/*
 * Images that need the metadata of other assemblies: larger version bubbles, cross-module code,
 * composites and their components.
 */
#include "libsym/format/dotnet/r2r.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "tests/support/r2r_image.h"

/* ---- other assemblies ------------------------------------------------------ */

Test(r2r_modules, reads_owners_of_another_assembly_in_its_metadata)
{
	struct r2r_recipe recipe;
	struct r2r_image image;

	prepare_image(&image);
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
	dismiss_image(&image);
}

Test(r2r_modules, gives_no_name_without_the_other_assembly)
{
	struct r2r_recipe recipe;
	struct r2r_image image;

	prepare_image(&image);
	image.lib_is_absent = true;
	recipe = plain_recipe(&image.app);
	recipe.instances[0] =
		(struct r2r_recipe_instance)INSTANCE("\x40\x3f\x02\x15\x12\x0c\x01\x12\x10\x02", 4);
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	expect_name(&image, 3, R2R_NAME_RUNTIME, NULL);
	expect_name(&image, 3, R2R_NAME_CROSSGEN2, NULL);
	cr_expect(eq(ptr, (void *)r2r_entry_assembly(image.r2r, 3), NULL));
	/* The others still have names. */
	expect_name(&image, 0, R2R_NAME_RUNTIME, "void [App] Ns.Outer::Main()");
	dismiss_image(&image);
}

/* TypeDef 3 is H`1 in Lib, Inner in App. */
Test(r2r_modules, reads_method_arguments_by_the_rule_of_the_version)
{
	struct r2r_recipe recipe;
	struct r2r_image image;

	prepare_image(&image);
	recipe = plain_recipe(&image.app);
	/* Turn<TypeDef 3> of Lib. */
	recipe.instances[0] =
		(struct r2r_recipe_instance)INSTANCE("\x80\x84\x02\x03\x01\x12\x0c", 4);
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	expect_name(&image, 3, R2R_NAME_CROSSGEN2, "Lib.H`1 Lib.H`1::Turn(Lib.H`1)");
	recipe.major_version = 26;
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	expect_name(&image, 3, R2R_NAME_CROSSGEN2, "Ns.Outer+Inner Lib.H`1::Turn(Ns.Outer+Inner)");
	expect_name(&image, 3, R2R_NAME_RUNTIME, "instance !!0 [Lib] Lib.H`1::Turn(!!0)");
	dismiss_image(&image);
}

/* Module numbers after the image's own references (2 here): manifest rows, one later since 6.3. */
static void check_manifest_numbering(uint16_t major, uint16_t minor, char lib_number)
{
	char signature[] = "\x40\x3f?\x15\x12\x0c\x01\x08\x02";
	struct r2r_recipe recipe;
	struct r2r_image image;

	prepare_image(&image);
	signature[2] = lib_number;
	recipe = plain_recipe(&image.app);
	recipe.major_version = major;
	recipe.minor_version = minor;
	recipe.manifest = &image.manifest;
	recipe.instances[0] = (struct r2r_recipe_instance){ signature, sizeof(signature) - 1, 4 };
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	expect_name(&image, 3, R2R_NAME_RUNTIME,
		    "instance void [Lib] Lib.H`1[System.Int32]::Put(!0)");
	dismiss_image(&image);
}

Test(r2r_modules, numbers_modules_by_the_rule_of_the_version)
{
	check_manifest_numbering(16, 0, 5);
	check_manifest_numbering(6, 3, 5);
	check_manifest_numbering(6, 2, 4);
	check_manifest_numbering(5, 4, 4);
}

/* Instances of MemberRefs 1 to 4; the manifest is module 3 of App. */
static void check_members(const char *scope, const char *put_name, const char *one_name)
{
	struct r2r_recipe recipe;
	struct r2r_image image;

	prepare_image(&image);
	buf_clear(&image.manifest);
	build_member_manifest(&image.manifest, scope);
	recipe = plain_recipe(&image.app);
	recipe.manifest = &image.manifest;
	recipe.instance_count = 4;
	recipe.instances[0] =
		(struct r2r_recipe_instance)INSTANCE("\x80\xd0\x03\x15\x12\x05\x01\x08\x01", 4);
	recipe.instances[1] =
		(struct r2r_recipe_instance)INSTANCE("\x80\xd0\x03\x15\x12\x05\x01\x08\x02", 4);
	recipe.instances[2] = (struct r2r_recipe_instance)INSTANCE("\x80\xd0\x03\x12\x09\x03", 4);
	recipe.instances[3] = (struct r2r_recipe_instance)INSTANCE("\x80\xd0\x03\x12\x0d\x04", 4);
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	cr_expect(eq(sz, r2r_undecodable_count(image.r2r), 0));
	expect_name(&image, 3, R2R_NAME_RUNTIME, put_name);
	expect_name(&image, 4, R2R_NAME_RUNTIME, NULL);
	expect_name(&image, 5, R2R_NAME_RUNTIME, NULL);
	expect_name(&image, 6, R2R_NAME_RUNTIME, one_name);
	expect_name(&image, 3, R2R_NAME_CROSSGEN2, "Lib.H`1[System.Int32]::Put(System.Int32)");
	expect_name(&image, 6, R2R_NAME_CROSSGEN2, "System.Int32 Lib.L::One()");
	if (put_name)
		cr_expect_str_eq(r2r_entry_assembly(image.r2r, 3), "Lib");
	else
		cr_expect(eq(ptr, (void *)r2r_entry_assembly(image.r2r, 3), NULL));
	dismiss_image(&image);
}

Test(r2r_modules, names_code_of_other_assemblies_by_definition)
{
	check_members("#:2", "instance void [Lib] Lib.H`1[System.Int32]::Put(!0)",
		      "int32 [Lib] Lib.L::One()");
	check_members("#:4", "instance void [Lib] Lib.H`1[System.Int32]::Put(!0)",
		      "int32 [Lib] Lib.L::One()");
}

Test(r2r_modules, gives_no_name_without_a_definition)
{
	check_members("#:1", NULL, NULL);
	check_members("#:99", NULL, NULL);
	check_members("#:x", NULL, NULL);
	check_members("native", NULL, NULL);
	check_members("System.Private.CoreLib", NULL, NULL);
}

/* ---- composites ------------------------------------------------------------ */

static struct r2r_recipe composite_recipe(struct r2r_image *image)
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

Test(r2r_modules, names_methods_of_a_composite_by_component)
{
	struct r2r_recipe recipe;
	uint8_t mvids[2][16];
	struct r2r_image image;

	prepare_image(&image);
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
	/* The component's MVID is passed, so that another build of Lib is rejected. */
	cr_assert(image.asked_mvid != NULL);
	cr_expect(eq(int, memcmp(image.asked_mvid, sample_lib_mvid, 16), 0));
	dismiss_image(&image);
}

Test(r2r_modules, reads_zeros_as_no_mvid)
{
	static const uint8_t mvids[2][16];
	struct r2r_recipe recipe;
	struct r2r_image image;

	prepare_image(&image);
	recipe = composite_recipe(&image);
	recipe.manifest_mvids = mvids;
	recipe.manifest_mvid_count = 2;
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	cr_expect(eq(ptr, (void *)image.asked_mvid, NULL));
	expect_name(&image, 2, R2R_NAME_RUNTIME, "int32 [Lib] Lib.L::One()");
	dismiss_image(&image);
}

Test(r2r_modules, finds_a_composite_through_its_export)
{
	struct r2r_recipe recipe;
	struct r2r_image image;

	prepare_image(&image);
	recipe = composite_recipe(&image);
	recipe.metadata = NULL;
	recipe.through_export = true;
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	cr_expect(eq(int, (int)r2r_flavour(&image.pe), R2R_COMPOSITE));
	expect_name(&image, 2, R2R_NAME_RUNTIME, "int32 [Lib] Lib.L::One()");
	dismiss_image(&image);
}

Test(r2r_modules, reads_metadata_that_a_composite_embeds)
{
	struct r2r_recipe recipe;
	struct r2r_image image;

	prepare_image(&image);
	image.lib_is_absent = true;
	recipe = composite_recipe(&image);
	recipe.components[1].embedded_metadata = &image.lib;
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	expect_name(&image, 2, R2R_NAME_RUNTIME, "int32 [Lib] Lib.L::One()");
	dismiss_image(&image);
}

Test(r2r_modules, names_only_available_components)
{
	struct r2r_recipe recipe;
	struct r2r_image image;

	prepare_image(&image);
	image.lib_is_absent = true;
	recipe = composite_recipe(&image);
	cr_assert(eq(int, open_recipe(&image, &recipe), NO_ERROR));
	expect_name(&image, 0, R2R_NAME_RUNTIME, "void [App] Ns.Outer::Main()");
	expect_name(&image, 2, R2R_NAME_RUNTIME, NULL);
	dismiss_image(&image);
}

Test(r2r_modules, finds_the_composite_of_a_component)
{
	struct r2r_recipe recipe;
	struct r2r_image image;

	prepare_image(&image);
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
	dismiss_image(&image);
}
