/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include "libsym/source/source.h"
#include "libsym/symbols/symbols.h"
#include "tests/support/alloc_fail.h"

/* The sections of 2.1.8's core library: data, two with code, the rest. */
static struct object_segment segments[] = {
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

static struct object_file image = {
	.kind = SYM_IMAGE_NGEN,
	.segments = segments,
	.segment_count = 3,
	.identified = true,
	.assembly_name = assembly_name,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

static struct sym_error *open_source(enum sym_image_kind kind, void **ret)
{
	struct source_input input = { .object = &image };

	image.kind = kind;
	*ret = NULL;
	return source_ngen.open(&input, NULL, ret);
}

Test(ngen_source, covers_the_section_as_one_stub)
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

Test(ngen_source, lists_sections_with_code_among_the_stubs_only)
{
	for (int stubs = 0; stubs < 2; stubs++) {
		struct symbols_builder builder;
		const struct source_sink sink = { .builder = &builder,
						  .base = 0x7f0000000000,
						  .stubs = stubs };
		struct sym_symbols *list AUTO_SYMBOLS = NULL;
		void *source;

		symbols_builder_init(&builder);
		cr_assert_null(open_source(SYM_IMAGE_NGEN, &source));
		cr_assert_null(source_ngen.list(source, &sink));
		cr_assert_null(symbols_freeze(&builder, &list));
		source_ngen.close(source);
		symbols_builder_deinit(&builder);
		cr_assert_eq(sym_symbols_count(list), stubs ? 2 : 0);
		if (!stubs)
			continue;
		cr_expect_eq(sym_symbols_at(list, 0)->start, 0x7f000024e800);
		cr_expect_eq(sym_symbols_at(list, 1)->start, 0x7f0000288600);
		cr_expect_eq(sym_symbols_at(list, 1)->size_bytes, 0x896200);
		cr_expect_str_eq(sym_symbols_at(list, 1)->name,
				 "stub FragileNativeImage<System.Private.CoreLib>");
	}
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

Test(ngen_source, survives_every_failing_allocation)
{
	cr_expect_gt(alloc_fail_each(open_and_close, NULL), 2);
}
