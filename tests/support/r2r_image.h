/* SPDX-License-Identifier: MIT */
/* A built ReadyToRun image, opened, with the two sample assemblies that its reader may request, and
 * expectations about names and ranges. */
#ifndef TESTS_SUPPORT_R2R_IMAGE_H
#define TESTS_SUPPORT_R2R_IMAGE_H

#include "libsym/format/dotnet/r2r.h"
#include "tests/support/r2r_sample.h"

#define NO_ERROR 0

struct r2r_image {
	struct buf app, lib, manifest, file;
	struct metadata *app_metadata, *lib_metadata;
	bool lib_is_absent;
	const uint8_t *asked_mvid; /* of Lib, when the reader requested it */
	struct pe pe;
	bool has_no_cli_header;
	struct r2r_assemblies assemblies;
	struct r2r *r2r;
};

void prepare_image(struct r2r_image *image);
void dismiss_image(struct r2r_image *image);

/* Builds and parses; does not open. */
void build_recipe(struct r2r_image *image, const struct r2r_recipe *recipe);
/* Opens the built image (again). */
struct sym_error *open_image(struct r2r_image *image);
/* Builds, parses and opens. Returns NO_ERROR or the code of the error. */
int open_recipe(struct r2r_image *image, const struct r2r_recipe *recipe);

/* Without an expected name: expects a reason instead. */
void expect_name(const struct r2r_image *image, uint32_t entry, enum r2r_dialect dialect,
		 const char *expected);
void expect_range(const struct r2r_image *image, size_t index, uint32_t rva, uint32_t size_bytes,
		  enum r2r_range_kind kind, uint32_t entry);

#endif
