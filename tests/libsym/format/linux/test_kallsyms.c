/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "libsym/format/linux/kallsyms.h"

static struct kallsyms_parser parser;
static struct kallsyms_line line;

static void read_text(const char *text)
{
	parser = (struct kallsyms_parser){ .next = text, .end = text + strlen(text) };
}

static void expect_name(const char *name)
{
	cr_assert_eq(line.name_bytes, strlen(name));
	cr_expect_arr_eq(line.name, name, line.name_bytes);
}

Test(kallsyms, reads_names_of_the_kernel_and_of_modules)
{
	read_text("ffffffff81000000 T _text\n"
		  "ffffffffc0001000 t nft_do_chain\t[nf_tables]\n");
	cr_assert(kallsyms_parser_next(&parser, &line));
	cr_expect_eq(line.address, 0xffffffff81000000);
	cr_expect_eq(line.type, 'T');
	cr_expect_null(line.module);
	expect_name("_text");
	cr_assert(kallsyms_parser_next(&parser, &line));
	expect_name("nft_do_chain");
	cr_assert_eq(line.module_bytes, 9);
	cr_expect_arr_eq(line.module, "nf_tables", 9);
	cr_expect_not(kallsyms_parser_next(&parser, &line));
	cr_expect_eq(parser.bad_lines, 0);
}

Test(kallsyms, skips_and_counts_only_bad_lines)
{
	read_text("\nxyz T a\nffffffff81000000\nffffffff81000000 T\nffffffff81000000 TT b\n"
		  "ffffffff81000000 T c [m]x\t\n10000000000000000 T d\nffffffff81000010 T good\n");
	cr_assert(kallsyms_parser_next(&parser, &line));
	expect_name("good");
	cr_expect_eq(parser.bad_lines, 6);
}

Test(kallsyms, leaves_a_line_without_newline)
{
	const char *text = "ffffffff81000000 T whole\nffffffff81000010 T tor";

	read_text(text);
	cr_assert(kallsyms_parser_next(&parser, &line));
	cr_expect_not(kallsyms_parser_next(&parser, &line));
	cr_expect_str_eq(parser.next, "ffffffff81000010 T tor");
}

Test(kallsyms, distinguishes_functions_from_data_and_marks)
{
	static const char text[] = "ffffffff81000000 T do_sys_open\nffffffff81000000 t local\n"
				   "ffffffff81000000 W weak\nffffffff81000000 D data\n"
				   "ffffffff81000000 R constant\nffffffff81000000 T _etext\n"
				   "ffffffff81000000 T __irqentry_text_end\n"
				   "ffffffff81000000 t .Lend\nffffffff81000000 A absolute\n";
	static const bool expected[] = {
		true, true, true, false, false, false, false, false, false
	};

	read_text(text);
	for (size_t i = 0; i < sizeof(expected); i++) {
		cr_assert(kallsyms_parser_next(&parser, &line));
		cr_expect_eq(kallsyms_is_function(&line), expected[i], "line %zu", i);
	}
}
