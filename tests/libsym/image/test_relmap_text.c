/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/libsym.h"
#include "libsym/symbols/symbols.h"
#include "tests/support/program.h"

static const char sample[] = "fixtures/recorded/opt/sample/sample.dll";

static void guard_image_here(struct sym_image **image)
{
	sym_image_close(*image);
}
#define AUTO_IMAGE_HERE __attribute__((cleanup(guard_image_here)))

static enum sym_error_code code_of(struct sym_error *error)
{
	enum sym_error_code code = error ? sym_error_code(error) : 0;

	sym_error_destroy(error);
	return code;
}

/*
 * The image was compiled without --perfmap and has no signature. The expected one is computed with
 * md5sum (coreutils 9.1) from the bytes of the MVID and 2, 3, 1 as u32, as crossgen2 does.
 */
Test(image_map, begins_with_the_header_rows_of_crossgen2)
{
	static const char expected[] = "FFFFFFFF 00 21F70BAEDCA430C7168691D78B7CA278\n"
				       "FFFFFFFE 00 1\nFFFFFFFD 00 2\nFFFFFFFC 00 3\n"
				       "FFFFFFFB 00 1\n";
	AUTO_IMAGE_HERE struct sym_image *image = NULL;
	char *text = NULL;
	size_t size_bytes;

	cr_assert_null(sym_image_open(sample, &image));
	cr_assert_null(sym_image_map(image, SYM_MAP_R2RMAP, &text, &size_bytes));
	cr_expect_eq(strlen(text), size_bytes);
	cr_expect(!strncmp(text, expected, strlen(expected)), "%.200s", text);
	free(text);
}

Test(image_map, has_a_row_for_each_method_in_the_order_of_rvas)
{
	AUTO_IMAGE_HERE struct sym_image *image = NULL;
	struct sym_symbols *methods AUTO_SYMBOLS = NULL;
	char *text = NULL, *line;
	size_t size_bytes, count = 0;

	cr_assert_null(sym_image_open(sample, &image));
	cr_assert_null(sym_image_symbols(image, 0, &methods));
	cr_assert_null(sym_image_map(image, SYM_MAP_R2RMAP, &text, &size_bytes));
	for (line = text; *line; line = strchr(line, '\n') + 1) {
		const struct sym_symbol *method;
		char start[64];

		if (!strncmp(line, "FFFFFF", 6))
			continue;
		method = sym_symbols_at(methods, count++);
		cr_assert_not_null(method);
		snprintf(start, sizeof(start), "%08" PRIX64 " %02" PRIX64 " ", method->start,
			 method->size_bytes);
		cr_expect(!strncmp(line, start, strlen(start)), "%.60s, not %s", line, start);
	}
	cr_expect_eq(count, sym_symbols_count(methods));
	free(text);
}

Test(image_map, equals_the_list_of_symbols_in_crossgens_format)
{
	AUTO_IMAGE_HERE struct sym_image *image = NULL;
	struct sym_symbols *methods AUTO_SYMBOLS = NULL;
	char *text = NULL, *expected = NULL;
	size_t size_bytes, expected_bytes;

	cr_assert_null(sym_image_open(sample, &image));
	cr_assert_null(sym_image_symbols(image, 0, &methods));
	cr_assert_null(sym_symbols_format(methods, 0, sym_symbols_count(methods), SYM_MAP_RELATIVE,
					  0, &expected, &expected_bytes));
	cr_assert_null(sym_image_map(image, SYM_MAP_RELATIVE, &text, &size_bytes));
	cr_expect_str_eq(text, expected);
	free(text);
	free(expected);
}

Test(image_map, reports_that_all_methods_have_names)
{
	AUTO_IMAGE_HERE struct sym_image *image = NULL;
	const char *why = "unset";
	uint64_t count = 1;

	cr_assert_null(sym_image_open(sample, &image));
	cr_assert_null(sym_image_unnamed_methods(image, SYM_MAP_RELATIVE, &count, &why));
	cr_expect_eq(count, 0);
	cr_expect_null(why);
	cr_expect_eq(code_of(sym_image_unnamed_methods(image, SYM_MAP_PERF, &count, &why)),
		     SYM_ERROR_ARGUMENT);
}

Test(image_map, has_the_names_that_tools_look_for)
{
	AUTO_IMAGE_HERE struct sym_image *image = NULL;
	char expected[128], *name = NULL;

	cr_assert_null(sym_image_open(sample, &image));
	cr_assert_null(sym_image_map_name(image, SYM_MAP_R2RMAP, &name));
	cr_expect_str_eq(name, "sample.ni.r2rmap");
	free(name);
	cr_assert_null(sym_image_map_name(image, SYM_MAP_RELATIVE, &name));
	snprintf(expected, sizeof(expected), "sample.ni.{%s}.map", sym_image_mvid(image));
	cr_expect_str_eq(name, expected);
	free(name);
}

Test(image_map, is_rejected_without_precompiled_code)
{
	AUTO_IMAGE_HERE struct sym_image *image = NULL;
	char *text = NULL;
	size_t size_bytes;

	cr_assert_null(sym_image_open("/proc/self/exe", &image));
	cr_expect_eq(code_of(sym_image_map(image, SYM_MAP_R2RMAP, &text, &size_bytes)),
		     SYM_ERROR_UNSUPPORTED);
	cr_expect_eq(code_of(sym_image_map(image, SYM_MAP_RELATIVE, &text, &size_bytes)),
		     SYM_ERROR_UNSUPPORTED);
	cr_expect_null(text);
}

Test(image_map, is_rejected_in_other_formats)
{
	AUTO_IMAGE_HERE struct sym_image *image = NULL;
	char *text = NULL;
	size_t size_bytes;

	cr_assert_null(sym_image_open(sample, &image));
	cr_expect_eq(code_of(sym_image_map(image, SYM_MAP_PERF, &text, &size_bytes)),
		     SYM_ERROR_ARGUMENT);
	cr_expect_eq(code_of(sym_image_map_name(image, SYM_MAP_PERF, &text)), SYM_ERROR_ARGUMENT);
	cr_expect_null(text);
}
