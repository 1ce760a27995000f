/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/symbols/symbols.h"

static struct sym_symbols *make(const struct sym_symbol *symbols, size_t count)
{
	struct symbols_builder builder AUTO_SYMBOLS_BUILDER = { 0 };
	struct sym_symbols *list = NULL;

	for (size_t i = 0; i < count; i++)
		symbols_builder_add(&builder, &symbols[i], symbols[i].name,
				    strlen(symbols[i].name));
	cr_assert_null(symbols_freeze(&builder, &list));
	return list;
}

static const struct sym_symbol usual[] = {
	{ .start = 0x7f0000001000,
	  .size_bytes = 0x20,
	  .name = "void [A] N.T::M(int32)",
	  .tier = "PreJIT" },
	{ .start = 0x7f0000001040,
	  .size_bytes = 0x21,
	  .name = "stub DelayLoadMethodCallThunks<A>",
	  .kind = SYM_SYMBOL_STUB },
	{ .start = 0x7f0000002000, .size_bytes = 0, .name = "of unknown size" },
	{ .start = 0x7f0000003000,
	  .size_bytes = 1,
	  .name = "torn\nname",
	  .tier = "PreJIT",
	  .kind = SYM_SYMBOL_COLD },
};

static void expect_text(const struct sym_symbols *list, size_t first, size_t count,
			enum sym_map_format format, uint32_t flags, const char *expected)
{
	char *text = NULL;
	size_t size_bytes = 0;

	cr_assert_null(sym_symbols_format(list, first, count, format, flags, &text, &size_bytes));
	cr_expect_str_eq(text, expected);
	cr_expect_eq(size_bytes, strlen(expected));
	free(text);
}

Test(symbols_format, writes_a_perf_map)
{
	struct sym_symbols *list AUTO_SYMBOLS = make(usual, 4);

	expect_text(list, 0, 4, SYM_MAP_PERF, 0,
		    "7f0000001000 20 void [A] N.T::M(int32)[PreJIT]\n"
		    "7f0000001040 21 stub DelayLoadMethodCallThunks<A>\n"
		    "7f0000003000 1 torn?name[PreJIT]\n");
}

Test(symbols_format, writes_names_as_in_csharp_on_request)
{
	struct sym_symbols *list AUTO_SYMBOLS = make(usual, 2);

	expect_text(list, 0, 2, SYM_MAP_PERF, SYM_WRITE_CSHARP_NAMES,
		    "7f0000001000 20 N.T.M(int)[PreJIT]\n"
		    "7f0000001040 21 stub DelayLoadMethodCallThunks<A>\n");
}

Test(symbols_format, names_one_method_as_in_csharp)
{
	char room[32];

	cr_expect_eq(sym_name_csharp(usual[0].name, SYM_CSHARP_NO_NAMESPACES, room, sizeof(room)),
		     strlen("T.M(int)"));
	cr_expect_str_eq(room, "T.M(int)");
	sym_name_csharp("N.T::M", SYM_CSHARP_IS_MANAGED, room, sizeof(room));
	cr_expect_str_eq(room, "N.T.M");
}

Test(symbols_format, omits_tiers_on_request)
{
	struct sym_symbols *list AUTO_SYMBOLS = make(usual, 4);

	expect_text(list, 0, 2, SYM_MAP_PERF, SYM_WRITE_NO_TIERS,
		    "7f0000001000 20 void [A] N.T::M(int32)\n"
		    "7f0000001040 21 stub DelayLoadMethodCallThunks<A>\n");
}

Test(symbols_format, shortens_names_on_request)
{
	struct sym_symbols *list AUTO_SYMBOLS = make(usual, 4);

	expect_text(list, 0, 2, SYM_MAP_PERF, SYM_WRITE_SHORT_NAMES,
		    "7f0000001000 20 N.T::M[PreJIT]\n"
		    "7f0000001040 21 stub DelayLoadMethodCallThunks<A>\n");
}

Test(symbols_format, writes_a_relative_map_of_methods_only)
{
	static const struct sym_symbol symbols[] = {
		{ .start = 0x10200,
		  .size_bytes = 0x2a,
		  .name = "void [A] N.T::M()",
		  .tier = "PreJIT" },
		{ .start = 0x20000, .size_bytes = 0x21, .name = "stub", .kind = SYM_SYMBOL_STUB },
		{ .start = 0x30000, .size_bytes = 5, .name = "cold", .kind = SYM_SYMBOL_COLD },
		{ .start = (uint64_t)1 << 32, .size_bytes = 5, .name = "no rva" },
	};
	struct sym_symbols *list AUTO_SYMBOLS = make(symbols, 4);

	expect_text(list, 0, 4, SYM_MAP_RELATIVE, 0, "00010200 2a void [A] N.T::M()\n");
}

Test(symbols_format, writes_nothing_for_an_empty_list)
{
	struct sym_symbols *list AUTO_SYMBOLS = make(usual, 4);

	expect_text(list, 4, 0, SYM_MAP_PERF, 0, "");
}

Test(symbols_format, rejects_a_range_outside_the_list)
{
	struct sym_symbols *list AUTO_SYMBOLS = make(usual, 4);
	struct sym_error *error;
	size_t size_bytes;
	char *text;

	error = sym_symbols_format(list, 3, 2, SYM_MAP_PERF, 0, &text, &size_bytes);
	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), SYM_ERROR_ARGUMENT);
	sym_error_destroy(error);
	error = sym_symbols_format(list, 1, SIZE_MAX, SYM_MAP_PERF, 0, &text, &size_bytes);
	cr_assert_not_null(error);
	cr_expect_str_eq(sym_error_message(error),
			 "18446744073709551615 symbols from number 1 on of a list that has 4");
	sym_error_destroy(error);
}

Test(symbols_format, rejects_unknown_flags)
{
	struct sym_symbols *list AUTO_SYMBOLS = make(usual, 4);
	struct sym_error *error;
	size_t size_bytes;
	char *text;

	error = sym_symbols_format(list, 0, 4, SYM_MAP_PERF, 0x80, &text, &size_bytes);
	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), SYM_ERROR_ARGUMENT);
	sym_error_destroy(error);
}
