/* SPDX-License-Identifier: MIT */
#include "libsym/format/dotnet/r2r_unwind.h"

#include <criterion/criterion.h>

#include "tests/support/r2r_sample.h"

static void build(struct buf *file, const struct r2r_recipe *recipe, struct pe *ret)
{
	buf_init(file, 1 << 20);
	build_r2r(file, recipe);
	cr_assert_null(pe_parse(ret, file->data, file->size_bytes, PE_LAYOUT_FILE));
}

Test(r2r_unwind, finds_the_function_of_every_byte)
{
	struct pe_unwind_function function;
	struct r2r_recipe recipe;
	struct r2r_unwind table;
	struct buf metadata, file;
	uint32_t last = 0;
	struct pe pe;

	buf_init(&metadata, 1 << 20);
	build_app_metadata(&metadata);
	recipe = plain_recipe(&metadata);
	build(&file, &recipe, &pe);
	cr_assert(r2r_unwind_open(&pe, &table));
	cr_assert_geq(table.count, recipe.function_count);
	for (size_t i = 0; i < recipe.function_count; i++) {
		uint32_t begin = recipe.functions[i].begin_rva,
			 end = begin + recipe.functions[i].size_bytes;

		last = end > last ? end : last;
		for (uint32_t rva = begin; rva < end; rva++) {
			cr_assert(r2r_unwind_find(&table, rva, &function), "%#x", rva);
			cr_expect_eq(function.begin_rva, begin);
			cr_expect_eq(function.end_rva, end);
		}
	}
	cr_expect(!r2r_unwind_find(&table, recipe.functions[0].begin_rva - 1, &function));
	cr_expect(!r2r_unwind_find(&table, last, &function));
	buf_deinit(&file);
	recipe.machine = 0xaa64;
	build(&file, &recipe, &pe);
	cr_expect(!r2r_unwind_open(&pe, &table), "rows of ARM64 have another form");
	buf_deinit(&file);
	buf_deinit(&metadata);
}
