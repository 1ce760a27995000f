/* SPDX-License-Identifier: MIT */
/* Assertions are here, so a failure names this file. Its message contains the expectation. */
#include "tests/support/r2r_image.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <strings.h>

static const struct metadata *find_assembly(void *context, const char *name, const uint8_t *mvid)
{
	struct r2r_image *image = context;

	if (!strcasecmp(name, "App"))
		return image->app_metadata;
	if (!strcasecmp(name, "Lib") && !image->lib_is_absent) {
		image->asked_mvid = mvid;
		return image->lib_metadata;
	}
	return NULL;
}

void prepare_image(struct r2r_image *image)
{
	*image = (struct r2r_image){ 0 };
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

void dismiss_image(struct r2r_image *image)
{
	r2r_close(image->r2r);
	metadata_close(image->app_metadata);
	metadata_close(image->lib_metadata);
	buf_deinit(&image->app);
	buf_deinit(&image->lib);
	buf_deinit(&image->manifest);
	buf_deinit(&image->file);
}

void build_recipe(struct r2r_image *image, const struct r2r_recipe *recipe)
{
	r2r_close(image->r2r);
	image->r2r = NULL;
	image->has_no_cli_header = recipe->through_export;
	buf_clear(&image->file);
	build_r2r(&image->file, recipe);
	cr_assert(eq(ptr,
		     pe_parse(&image->pe, image->file.data, image->file.size_bytes, PE_LAYOUT_FILE),
		     NULL));
}

struct sym_error *open_image(struct r2r_image *image)
{
	r2r_close(image->r2r);
	image->r2r = NULL;
	return r2r_open(&image->pe, image->has_no_cli_header ? NULL : image->app_metadata,
			&image->assemblies, &image->r2r);
}

int open_recipe(struct r2r_image *image, const struct r2r_recipe *recipe)
{
	struct sym_error *error;
	int code = NO_ERROR;

	build_recipe(image, recipe);
	error = open_image(image);
	if (error)
		code = (int)sym_error_code(error);
	sym_error_destroy(error);
	return code;
}

void expect_name(const struct r2r_image *image, uint32_t entry, enum r2r_dialect dialect,
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

void expect_range(const struct r2r_image *image, size_t index, uint32_t rva, uint32_t size_bytes,
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
