/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "libsym/format/dotnet/perfinfo.h"

#define TEXT(literal) literal, sizeof(literal) - 1
#define MVID          "0bd8b2c1-7d0e-4f34-9f3b-0c2b3a5d6e7f"

static struct perfinfo_parser parser;

static void expect_line(const char *path, bool has_base, uint64_t base_address)
{
	struct perfinfo_line line;

	cr_assert(perfinfo_parser_next(&parser, &line), "no line for %s", path);
	cr_expect_eq(line.path_bytes, strlen(path));
	cr_expect(!memcmp(line.path, path, strlen(path)), "%.*s", (int)line.path_bytes, line.path);
	cr_expect_str_eq(line.mvid, MVID);
	cr_expect_eq(line.has_base, has_base);
	cr_expect_eq(line.base_address, base_address);
}

static void expect_end(uint64_t bad_lines)
{
	struct perfinfo_line line;

	cr_expect_not(perfinfo_parser_next(&parser, &line));
	cr_expect_eq(parser.bad_lines, bad_lines);
}

Test(perfinfo, reads_lines_without_a_base_as_2_1_writes_them)
{
	perfinfo_parser_init(&parser, TEXT("ImageLoad;/app/a.dll;{" MVID "};\n"));
	expect_line("/app/a.dll", false, 0);
	expect_end(0);
}

Test(perfinfo, reads_bases_as_3_1_writes_them)
{
	perfinfo_parser_init(&parser, TEXT("ImageLoad;/app/a.dll;{" MVID "};00007F3090E30000;\n"
					   "ImageLoad;/app/b.dll;{" MVID "};0000000000000000;\n"));
	expect_line("/app/a.dll", true, 0x7f3090e30000);
	expect_line("/app/b.dll", false, 0);
	expect_end(0);
}

Test(perfinfo, reads_bases_as_8_writes_them)
{
	perfinfo_parser_init(&parser, TEXT("ImageLoad;/app/a.dll;{" MVID "};0x7f3090e30000;\n"
					   "ImageLoad;/app/b.dll;{" MVID "};(nil);\n"));
	expect_line("/app/a.dll", true, 0x7f3090e30000);
	expect_line("/app/b.dll", false, 0);
	expect_end(0);
}

Test(perfinfo, accepts_semicolons_and_braces_in_a_path)
{
	perfinfo_parser_init(&parser, TEXT("ImageLoad;/a;b/{" MVID "};7;c.dll;{" MVID "};0x10;\n"
					   "ImageLoad;/a b;;{" MVID "};\n"));
	expect_line("/a;b/{" MVID "};7;c.dll", true, 0x10);
	expect_line("/a b;", false, 0);
	expect_end(0);
}

Test(perfinfo, writes_the_mvid_in_lower_case)
{
	perfinfo_parser_init(&parser,
			     TEXT("ImageLoad;/a;{0BD8B2C1-7D0E-4F34-9F3B-0C2B3A5D6E7F};\n"));
	expect_line("/a", false, 0);
}

Test(perfinfo, leaves_out_an_incomplete_last_line)
{
	perfinfo_parser_init(&parser,
			     TEXT("ImageLoad;/a;{" MVID "};\nImageLoad;/b;{" MVID "};7f30"));
	expect_line("/a", false, 0);
	expect_end(0);
}

Test(perfinfo, skips_and_counts_malformed_lines)
{
	perfinfo_parser_init(&parser, TEXT("\n"
					   "ImageUnload;/a;{" MVID "};\n"
					   "ImageLoad;\n"
					   "ImageLoad;;{" MVID "};\n"
					   "ImageLoad;/a;{" MVID "}\n"
					   "ImageLoad;/a;{0bd8b2c1};\n"
					   "ImageLoad;/a;{" MVID "};0x;\n"
					   "ImageLoad;/a;{" MVID "};10000000000000000;\n"
					   "ImageLoad;/a;{" MVID "};12 ;\n"
					   "ImageLoad;{" MVID "};10;\n"
					   "ImageLoad;/a;{" MVID "};1f;\n"));
	expect_line("/a", true, 0x1f);
	expect_end(9);
}

Test(perfinfo, has_no_lines_without_text)
{
	perfinfo_parser_init(&parser, NULL, 0);
	expect_end(0);
}
