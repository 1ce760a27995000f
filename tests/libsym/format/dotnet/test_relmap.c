/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "libsym/format/dotnet/relmap.h"

#define TEXT(literal) literal, sizeof(literal) - 1

static struct relmap_parser parser;

static void expect_row(uint32_t rva, uint32_t size_bytes, const char *name)
{
	struct relmap_row row;

	cr_assert(relmap_parser_next(&parser, &row), "no row where \"%s\" was expected", name);
	cr_expect_eq(row.rva, rva);
	cr_expect_eq(row.size_bytes, size_bytes);
	cr_expect_eq(row.name_bytes, strlen(name));
	cr_expect(!memcmp(row.name, name, row.name_bytes), "%.*s", (int)row.name_bytes, row.name);
}

static void expect_end(void)
{
	struct relmap_row row;

	cr_expect_not(relmap_parser_next(&parser, &row));
}

Test(relmap, reads_the_rows_of_crossgen)
{
	relmap_parser_init(
		&parser, TEXT("00046da0 1d string [System.Linq] System.SR::get_EmptyEnumerable()\n"
			      "00001000 8 void [A] B::C(int32,bool)\n"));
	expect_row(0x46da0, 0x1d, "string [System.Linq] System.SR::get_EmptyEnumerable()");
	expect_row(0x1000, 8, "void [A] B::C(int32,bool)");
	expect_end();
	cr_expect_eq(parser.good_rows, 2);
}

Test(relmap, does_not_list_header_rows_of_crossgen2)
{
	static const uint8_t signature[16] = { 0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
					       0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff };

	relmap_parser_init(&parser, TEXT("FFFFFFFF 00 00112233445566778899AABBCCDDEEFF\n"
					 "FFFFFFFE 00 1\nFFFFFFFD 00 2\nFFFFFFFC 00 3\n"
					 "FFFFFFFB 00 1\n0011D1D0 23 Interop::CheckIo(A, B)\n"));
	expect_row(0x11d1d0, 0x23, "Interop::CheckIo(A, B)");
	expect_end();
	cr_expect(parser.header.has_signature);
	cr_expect(!memcmp(parser.header.signature, signature, 16));
	cr_expect(parser.header.has_version);
	cr_expect_eq(parser.header.version, 1);
	cr_expect_eq(parser.header.os, 2);
	cr_expect_eq(parser.header.architecture, 3);
	cr_expect_eq(parser.header.abi, 1);
}

Test(relmap, ignores_a_signature_of_wrong_length)
{
	relmap_parser_init(&parser, TEXT("FFFFFFFF 00 0011\n1 1 a\n"));
	expect_row(1, 1, "a");
	cr_expect_not(parser.header.has_signature);
}

/* crossgen v1 writes as many bytes as a name has characters. The bytes are those of a real map. */
Test(relmap, splits_a_row_that_is_joined_to_a_name)
{
	relmap_parser_init(&parser, TEXT("00083500 f0 instance string [a] b::Int\xce\x92"
					 "13(int64,bool)"
					 "000835f0 dc instance string [a] b::c()\n"));
	expect_row(0x83500, 0xf0,
		   "instance string [a] b::Int\xce\x92"
		   "13(int64,bool)");
	expect_row(0x835f0, 0xdc, "instance string [a] b::c()");
	expect_end();
	cr_expect_eq(parser.joined_rows, 1);
}

Test(relmap, splits_a_row_with_sixteen_digits)
{
	relmap_parser_init(&parser, TEXT("0000000000083500 F0 int32 [a] \xc3\xbc::c("
					 "00000000000835F0 DC int32 [a] b::d()\n"));
	expect_row(0x83500, 0xf0, "int32 [a] \xc3\xbc::c(");
	expect_row(0x835f0, 0xdc, "int32 [a] b::d()");
	expect_end();
}

Test(relmap, leaves_ascii_names_alone)
{
	const char name[] = "int32 [a] b::c(deadbeef 12 d)";
	char text[128];

	snprintf(text, sizeof(text), "00001000 8 %s\n00002000 8 %s\xc3\xbc\n", name, name);
	relmap_parser_init(&parser, text, strlen(text));
	expect_row(0x1000, 8, name);
	expect_row(0x2000, 8, "int32 [a] b::c(deadbeef 12 d)\xc3\xbc");
	expect_end();
}

/* As many rows in one line as a program in another script could have. */
Test(relmap, splits_any_number_of_rows_from_one_line)
{
	enum {
		ROWS = 20000
	};
	struct buf text;
	struct relmap_row row;
	uint32_t count = 0;

	buf_init(&text, SIZE_MAX);
	for (uint32_t i = 0; i < ROWS; i++)
		buf_printf(&text, "%08x 8 int32 [a] \xe5\x90\x8d::M%u(int3", i * 16, i);
	buf_append_char(&text, '\n');
	relmap_parser_init(&parser, text.data, text.size_bytes);
	for (; relmap_parser_next(&parser, &row); count++)
		cr_assert_eq(row.rva, count * 16);
	cr_expect_eq(count, ROWS);
	cr_expect_eq(parser.joined_rows, ROWS - 1);
	buf_deinit(&text);
}

Test(relmap, accepts_a_last_row_without_newline_and_carriage_returns)
{
	relmap_parser_init(&parser, TEXT("10 1 a\r\n\n20 2 b"));
	expect_row(0x10, 1, "a");
	expect_row(0x20, 2, "b");
	expect_end();
}

Test(relmap, counts_bad_rows_and_continues)
{
	relmap_parser_init(&parser, TEXT("nonsense\n10\n10 1\n10 1 \n100000000 1 too big\n"
					 "10 100000000 too big\n20 2 b\n"));
	expect_row(0x20, 2, "b");
	expect_end();
	cr_expect_eq(parser.bad_rows, 6);
}

Test(relmap, writes_rows_as_crossgen_does)
{
	struct buf buf;

	buf_init(&buf, 1024);
	relmap_write_row(&buf, 0x46DA0, 0x1D, TEXT("a\nb"));
	cr_expect_str_eq(buf_string(&buf), "00046da0 1d a?b\n");
	buf_deinit(&buf);
}

/* The first lines of a map of crossgen2 10.0.12 for linux-x64, with another signature. */
Test(relmap, writes_header_and_rows_as_crossgen2_does)
{
	struct relmap_header header = {
		.has_signature = true,
		.signature = { 0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa,
			       0xbb, 0xcc, 0xdd, 0xee, 0xff },
		.os = RELMAP_OS_LINUX,
		.architecture = RELMAP_ARCHITECTURE_X64,
		.abi = RELMAP_ABI_DEFAULT,
	};
	struct buf buf;

	buf_init(&buf, 1024);
	relmap_write_crossgen2_header(&buf, &header);
	relmap_write_crossgen2_row(&buf, 0x11d1d0, 5, TEXT("Interop::CheckIo(A, B)"));
	relmap_write_crossgen2_row(&buf, 0xabcdef01, 0x1abc, TEXT("a\nb"));
	cr_expect_str_eq(buf_string(&buf), "FFFFFFFF 00 00112233445566778899AABBCCDDEEFF\n"
					   "FFFFFFFE 00 1\nFFFFFFFD 00 2\nFFFFFFFC 00 3\n"
					   "FFFFFFFB 00 1\n0011D1D0 05 Interop::CheckIo(A, B)\n"
					   "ABCDEF01 1ABC a?b\n");
	buf_deinit(&buf);
}
