/* SPDX-License-Identifier: MIT */
#include "libsym/symbols/demangle.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/limits.h"

static char *shown(const char *name)
{
	struct buf text;
	char *made;

	buf_init(&text, 2 * LIMIT_NAME_BYTES);
	made = demangle(name, &text) ? buf_steal(&text, NULL) : NULL;
	buf_deinit(&text);
	return made;
}

static void expect_shown(const char *name, const char *wanted)
{
	char *made = shown(name);

	cr_expect_not_null(made, "%s", name);
	if (made)
		cr_expect_str_eq(made, wanted);
	free(made);
}

/* From the Itanium C++ ABI, and gcc's output for obvious sources. */
Test(demangle, writes_cxx_names_as_in_the_source)
{
	expect_shown("_ZN5outer5innerEi", "outer::inner(int)");
	expect_shown("_ZNSt6vectorIiSaIiEE9push_backERKi",
		     "std::vector<int, std::allocator<int> >::push_back(int const&)");
	expect_shown("_ZN1AC1Ev", "A::A()");
	expect_shown("_Z3foov.cold", "foo() [clone .cold]");
	expect_shown("_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()() const");
}

Test(demangle, writes_rust_names_without_their_hash)
{
	expect_shown("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
		     "core::fmt::Write::write_fmt");
	expect_shown("_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$"
		     "3bar17h930b740aa94f1d3aE",
		     "<Test + 'static as foo::Bar<Test>>::bar");
}

/* From Rust RFC 2603. */
Test(demangle, writes_rust_names_of_version_0)
{
	expect_shown("_RNvCs15kBYyAo9fc_7mycrate7example", "mycrate::example");
	expect_shown("_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar");
	expect_shown("_RINvNtC3std3mem8align_ofdE", "std::mem::align_of::<f64>");
}

/* From the ABI specification of D. */
Test(demangle, writes_d_names)
{
	expect_shown("_D8demangle4testFaZv", "demangle.test(char)");
	expect_shown("_D8demangle4test6__ctorMFZv", "demangle.test.this()");
}

/* From Phobos, and c++filt. */
Test(demangle, writes_a_d_name_with_many_references)
{
	expect_shown("_D3std3uni__T16UnicodeSetParserTSQBf5regex8internal6parser__T6ParserTAyaTSQC"
		     "uQBpQBmQBg7CodeGenZQBiZQDi8parseSetMFZ__T11unrollWhileSQEz10functional__T8un"
		     "aryFunVQDma12_61203d3d20612e556e696f6eVQEsa1_61ZQBzZQDjFNfKSQIcQIb__T5StackT"
		     "SQItQIs__T13InversionListTSQJtQJs8GcPolicyZQBhZQCcKSQKsQKr__TQCqTEQLgQLf__TQ"
		     "LeTQKpZQLm8OperatorZQDzZb",
		     "std.uni.UnicodeSetParser!(std.regex.internal.parser.Parser!(immutable(char)["
		     "], std.regex.internal.parser.CodeGen).Parser).UnicodeSetParser.parseSet().un"
		     "rollWhile!(std.functional.unaryFun!(\"a == a.Union\", \"a\").unaryFun).unrol"
		     "lWhile(ref std.uni.Stack!(std.uni.InversionList!(std.uni.GcPolicy).Inversion"
		     "List).Stack, ref std.uni.Stack!(std.uni.UnicodeSetParser!(std.regex.internal"
		     ".parser.Parser!(immutable(char)[], std.regex.internal.parser.CodeGen).Parser"
		     ").UnicodeSetParser.Operator).Stack)");
}

/* Each argument is an array of the previous one by the previous one: in the end 2^26 copies of the
 * first. */
Test(demangle, bounds_the_references_of_a_d_name)
{
	char *made =
		shown("_D4test1fFHiiHQeQgHQgQiHQgQiHQgQiHQgQiHQgQiHQgQiHQgQiHQgQiHQgQiHQgQiHQgQiHQg"
		      "QiHQgQiHQgQiHQgQiHQgQiHQgQiHQgQiHQgQiHQgQiHQgQiHQgQiHQgQiHQgQiHQgQiZv");

	expect_shown(
		"_D4test1fFHiiHQeQgHQgQiZv",
		"test.f(int[int], int[int][int[int]], int[int][int[int]][int[int][int[int]]])");
	cr_expect_null(made);
	free(made);
}

/* From OCaml 4.13, which has such symbols in its standard library, and perf. */
Test(demangle, writes_ocaml_names_with_dots)
{
	expect_shown("camlStdlib__Map__add_200", "Stdlib.Map.add_200");
	expect_shown("camlTml__entry", "Tml.entry");
	expect_shown("camlStdlib__$40_180", "Stdlib.@_180");
	expect_shown("camlStdlib__$5e_136", "Stdlib.^_136");
	expect_shown("camlA__b_$zz_1__", "A.b_$zz_1__");
	expect_shown("camlA__b$", "A.b$");
}

Test(demangle, leaves_unmangled_names_alone)
{
	static const char *const names[] = {
		"",
		"main",
		"_start",
		"__libc_start_main",
		"_Z",
		"_Zfoo",
		"_R",
		"_Debug",
		"_D",
		"_DYNAMIC",
		"_GLOBAL_OFFSET_TABLE_",
		"__ZN1AC1Ev_",
		"_ZN5outer5inner",
		"caml_alloc_shr",
		"caml__frametable",
		"camlX",
		"caml",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *made = shown(names[i]);

		cr_expect_null(made, "%s became %s", names[i], made ? made : "");
		free(made);
	}
}

/* f(pair<int, int>, pair<1st, 1st>, pair<2nd, 2nd>, ...): each level doubles the text. */
Test(demangle, bounds_the_length_of_a_name)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	struct buf mangled, text;

	buf_init(&mangled, 4096);
	buf_init(&text, 2 * LIMIT_NAME_BYTES);
	buf_append_string(&mangled, "_Z1fSt4pairIiiE");
	for (size_t i = 0; i < 34; i++)
		buf_printf(&mangled, "S_IS%c_S%c_E", digits[i], digits[i]);
	buf_append_string(&text, "before");
	cr_assert_not(demangle(buf_string(&mangled), &text));
	cr_expect_str_eq(buf_string(&text), "before");
	buf_deinit(&text);
	buf_deinit(&mangled);
}

Test(demangle, fails_if_its_buffer_is_full)
{
	struct buf text;

	buf_init(&text, 8);
	cr_expect_not(demangle("_ZN5outer5innerEi", &text));
	cr_expect_not(demangle("camlStdlib__Map__add_200", &text));
	cr_expect_eq(text.size_bytes, 0);
	buf_deinit(&text);
}
