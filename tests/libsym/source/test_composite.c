/* SPDX-License-Identifier: MIT */
/* Composite images and their component files: which method belongs to which assembly. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/format/dotnet/metadata.h"
#include "libsym/libsym.h"
#include "libsym/symbols/symbols.h"
#include "tests/support/program.h"
#include "tests/support/r2r_sample.h"

static void guard_image_here(struct sym_image **image)
{
	sym_image_close(*image);
}
#define AUTO_IMAGE_HERE __attribute__((cleanup(guard_image_here)))

/* A directory with App.dll and Lib.dll, which are components of app.r2r.dll. */
struct place {
	char *directory;
	struct buf app, lib, manifest;
};

static void write_image(const struct place *place, const char *name,
			const struct r2r_recipe *recipe)
{
	char *path = scratch_path(place->directory, name);
	struct buf file;

	buf_init(&file, 1 << 20);
	build_r2r(&file, recipe);
	scratch_write(path, file.data, file.size_bytes);
	buf_deinit(&file);
	free(path);
}

static void write_component(const struct place *place, const char *name, const struct buf *metadata,
			    const char *owner)
{
	struct r2r_recipe recipe = plain_recipe(metadata);

	recipe.function_count = 0;
	recipe.method_count = 0;
	recipe.instance_count = 0;
	recipe.flags = 0x24;
	recipe.owner_composite = owner;
	write_image(place, name, &recipe);
}

/*
 * Main and Inner::.ctor belong to App, One to Lib. `lib_mvid` is the MVID of Lib in the composite
 * image.
 */
static void write_composite(const struct place *place, const uint8_t *lib_mvid)
{
	struct r2r_recipe recipe = plain_recipe(&place->manifest);
	uint8_t mvids[2][16];

	memcpy(mvids[0], sample_app_mvid, 16);
	memcpy(mvids[1], lib_mvid, 16);
	recipe.method_count = 0;
	recipe.instance_count = 0;
	recipe.manifest = &place->manifest;
	recipe.manifest_mvids = mvids;
	recipe.manifest_mvid_count = 2;
	recipe.component_count = 2;
	recipe.components[0].method_count = 2;
	recipe.components[0].methods[0] = (struct r2r_recipe_method){ 1, 0, FIXUPS_NONE };
	recipe.components[0].methods[1] = (struct r2r_recipe_method){ 3, 1, FIXUPS_NONE };
	recipe.components[1].method_count = 1;
	recipe.components[1].methods[0] = (struct r2r_recipe_method){ 1, 3, FIXUPS_NONE };
	write_image(place, "app.r2r.dll", &recipe);
}

static void create_place(struct place *place)
{
	*place = (struct place){ .directory = scratch_create() };
	buf_init(&place->app, 1 << 16);
	buf_init(&place->lib, 1 << 16);
	buf_init(&place->manifest, 1 << 16);
	build_app_metadata(&place->app);
	build_lib_metadata(&place->lib);
	build_manifest_metadata(&place->manifest);
	write_component(place, "App.dll", &place->app, "app.r2r.dll");
	write_component(place, "Lib.dll", &place->lib, "app.r2r.dll");
}

static void destroy_place(struct place *place)
{
	scratch_remove(place->directory);
	buf_deinit(&place->app);
	buf_deinit(&place->lib);
	buf_deinit(&place->manifest);
}

static struct sym_image *open_in(const struct place *place, const char *name)
{
	char *path = scratch_path(place->directory, name);
	struct sym_image *image = NULL;
	struct sym_error *error = sym_image_open(path, &image);

	cr_assert_null(error, "%s", error ? sym_error_message(error) : "");
	free(path);
	return image;
}

static void expect_names(const struct place *place, const char *const *names)
{
	AUTO_IMAGE_HERE struct sym_image *image = open_in(place, "app.r2r.dll");
	struct sym_symbols *symbols AUTO_SYMBOLS = NULL;
	size_t i;

	cr_expect_eq(sym_image_kind(image), SYM_IMAGE_COMPOSITE);
	cr_assert_null(sym_image_symbols(image, 0, &symbols));
	for (i = 0; names[i]; i++) {
		cr_assert_lt(i, sym_symbols_count(symbols), "%s is missing", names[i]);
		cr_expect_str_eq(sym_symbols_at(symbols, i)->name, names[i]);
	}
	cr_expect_eq(sym_symbols_count(symbols), i);
}

Test(composite, assigns_each_method_to_its_component)
{
	static const char *const names[] = { "void [App] Ns.Outer::Main()",
					     "instance void [App] Ns.Outer+Inner::.ctor()",
					     "int32 [Lib] Lib.L::One()", NULL };
	struct place place;

	create_place(&place);
	write_composite(&place, sample_lib_mvid);
	expect_names(&place, names);
	destroy_place(&place);
}

/*
 * The fourth runtime function is Lib's, the first App's. At first the component is not requested.
 */
Test(composite, reports_the_component_of_a_method_on_request)
{
	static const char *const names[] = { "App", "Lib" };
	const uint8_t *mvids[] = { sample_app_mvid, sample_lib_mvid };
	struct place place;
	AUTO_IMAGE_HERE struct sym_image *image = NULL;
	struct sym_symbols *symbols AUTO_SYMBOLS = NULL;
	struct sym_result *result;
	uint64_t rvas[2];

	create_place(&place);
	write_composite(&place, sample_lib_mvid);
	image = open_in(&place, "app.r2r.dll");
	cr_assert_null(sym_image_symbols(image, 0, &symbols));
	rvas[0] = sym_symbols_at(symbols, 0)->start;
	rvas[1] = sym_symbols_at(symbols, 2)->start;
	cr_assert_null(sym_result_create(&result));
	cr_assert_null(sym_image_resolve(image, SYM_POSITION_RVA, rvas, 2, result));
	cr_expect_null(sym_result_at(result, 0)->component);
	cr_assert_null(sym_result_set_fields(result, SYM_FIELD_COMPONENT));
	cr_assert_null(sym_image_resolve(image, SYM_POSITION_RVA, rvas, 2, result));
	for (size_t i = 0; i < 2; i++) {
		const struct sym_answer *answer = sym_result_at(result, i);
		char mvid[37];

		metadata_format_guid(mvids[i], mvid);
		cr_assert_not_null(answer->component);
		cr_expect_str_eq(answer->component, names[i]);
		cr_expect_str_eq(answer->component_mvid, mvid);
	}
	sym_result_destroy(result);
	destroy_place(&place);
}

Test(composite, names_nothing_of_another_build_of_a_component)
{
	static const char *const names[] = { "void [App] Ns.Outer::Main()",
					     "instance void [App] Ns.Outer+Inner::.ctor()", NULL };
	static const uint8_t other_mvid[16] = { 0xee, 1, 2, 3 };
	struct place place;

	create_place(&place);
	write_composite(&place, other_mvid);
	expect_names(&place, names);
	destroy_place(&place);
}

Test(composite, names_nothing_of_a_missing_component)
{
	static const char *const names[] = { "int32 [Lib] Lib.L::One()", NULL };
	struct place place;
	char *path;

	create_place(&place);
	write_composite(&place, sample_lib_mvid);
	path = scratch_path(place.directory, "App.dll");
	cr_assert_eq(remove(path), 0);
	free(path);
	expect_names(&place, names);
	destroy_place(&place);
}

Test(composite, is_named_by_its_components)
{
	struct place place;
	struct sym_image *image;

	create_place(&place);
	write_composite(&place, sample_lib_mvid);
	image = open_in(&place, "Lib.dll");
	cr_expect_eq(sym_image_kind(image), SYM_IMAGE_COMPONENT);
	cr_expect_str_eq(sym_image_composite(image), "app.r2r.dll");
	cr_expect_str_eq(sym_image_mvid(image), "030201b0-0504-0706-0809-0a0b0c0d0e0f");
	sym_image_close(image);
	image = open_in(&place, "app.r2r.dll");
	cr_expect_null(sym_image_composite(image));
	sym_image_close(image);
	image = NULL;
	cr_assert_null(sym_image_open("/proc/self/exe", &image));
	cr_expect_null(sym_image_composite(image));
	sym_image_close(image);
	destroy_place(&place);
}

Test(composite, is_not_named_by_a_component_that_points_elsewhere)
{
	static const char *const lies[] = { "../app.r2r.dll", "/app.r2r.dll", "..", "" };
	struct place place;

	create_place(&place);
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		AUTO_IMAGE_HERE struct sym_image *image = NULL;

		write_component(&place, "Lib.dll", &place.lib, lies[i]);
		image = open_in(&place, "Lib.dll");
		cr_expect_null(sym_image_composite(image), "%s", lies[i]);
	}
	destroy_place(&place);
}

/* Its own section is mapped executable although it has no code. */
Test(composite, leaves_its_components_a_reason_when_it_is_missing)
{
	static const uint64_t positions[] = { 0x1000, 0x10000, 0x10010, 0xffffffff };
	struct sym_symbols *symbols AUTO_SYMBOLS = NULL;
	AUTO_IMAGE_HERE struct sym_image *image = NULL;
	struct sym_result *result = NULL;
	struct place place;

	create_place(&place);
	image = open_in(&place, "App.dll");
	cr_assert_null(sym_image_symbols(image, 0, &symbols));
	cr_expect_eq(sym_symbols_count(symbols), 0);
	cr_assert_null(sym_result_create(&result));
	cr_assert_null(sym_image_resolve(image, SYM_POSITION_RVA, positions, 4, result));
	for (size_t i = 0; i < 4; i++) {
		const struct sym_answer *answer = sym_result_at(result, i);

		cr_expect_eq(answer->status, SYM_NO_SYMBOLS);
		cr_expect_str_eq(answer->reason, "its code is in a composite image");
	}
	sym_result_destroy(result);
	destroy_place(&place);
}

Test(composite, has_no_method_beyond_its_end)
{
	static const uint64_t positions[] = { 0xffffffff, 0x100000000, UINT64_MAX };
	AUTO_IMAGE_HERE struct sym_image *image = NULL;
	struct sym_result *result = NULL;
	struct place place;

	create_place(&place);
	write_composite(&place, sample_lib_mvid);
	image = open_in(&place, "app.r2r.dll");
	cr_assert_null(sym_result_create(&result));
	cr_assert_null(sym_image_resolve(image, SYM_POSITION_RVA, positions, 3, result));
	for (size_t i = 0; i < 3; i++)
		cr_expect_eq(sym_result_at(result, i)->status, SYM_NO_MATCH);
	sym_result_destroy(result);
	destroy_place(&place);
}
