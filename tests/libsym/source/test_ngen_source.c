/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include "libsym/source/source.h"
#include "tests/support/alloc_fail.h"

/* The sections of 2.1.8's core library: data, two with code, the rest. */
static struct image_segment segments[] = {
	{ .size_bytes = 0x22f000, .position = 0x10200, .position_size_bytes = 0x22f000 },
	{ .size_bytes = 0x29e00,
	  .position = 0x24e800,
	  .position_size_bytes = 0x29e00,
	  .executable = true },
	{ .size_bytes = 0x896200,
	  .position = 0x288600,
	  .position_size_bytes = 0x896200,
	  .executable = true },
};

static char assembly_name[] = "System.Private.CoreLib";

static struct image image = {
	.kind = SYM_IMAGE_NGEN,
	.segments = segments,
	.segment_count = 3,
	.identified = true,
	.assembly_name = assembly_name,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

static struct sym_error *open_source(enum sym_image_kind kind, void **ret)
{
	struct source_input input = { .image = &image };

	image.kind = kind;
	*ret = NULL;
	return source_ngen.open(&input, NULL, ret);
}

Test(ngen_source, answers_with_the_section_as_a_stub_and_with_nothing_beside_it)
{
	struct source_match match;
	void *source;

	cr_assert_null(open_source(SYM_IMAGE_NGEN, &source));
	cr_assert_not_null(source);
	cr_assert_eq(source_ngen.find(source, 0x288600 + 0x1234, &match), SOURCE_HIT);
	cr_expect_eq(match.start, 0x288600);
	cr_expect_eq(match.size_bytes, 0x896200);
	cr_expect_eq(match.kind, SYM_SYMBOL_STUB);
	cr_expect_null(match.tier);
	cr_expect_str_eq(match.name, "stub FragileNativeImage<System.Private.CoreLib>");
	cr_expect_eq(source_ngen.find(source, 0x10300, &match), SOURCE_MISS, "data");
	cr_expect_eq(source_ngen.find(source, 0x288600 + 0x896200, &match), SOURCE_MISS);
	source_ngen.close(source);
}

Test(ngen_source, declines_every_other_kind_of_image)
{
	void *source;

	cr_assert_null(open_source(SYM_IMAGE_READYTORUN, &source));
	cr_expect_null(source);
	cr_assert_null(open_source(SYM_IMAGE_IL, &source));
	cr_expect_null(source);
}

static bool open_and_close(void *context)
{
	void *source;
	struct sym_error *error = open_source(SYM_IMAGE_NGEN, &source);

	(void)context;
	cr_assert_eq(!error, source != NULL);
	sym_error_destroy(error);
	if (source)
		source_ngen.close(source);
	return source != NULL;
}

Test(ngen_source, survives_every_allocation_that_fails)
{
	cr_expect_gt(alloc_fail_each(open_and_close, NULL), 2);
}
