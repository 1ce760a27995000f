/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "libsym/format/perf/perfmap.h"
#include "libsym/limits.h"

#define TEXT(literal) literal, sizeof(literal) - 1

static struct perfmap_parser parser;

static void given(const char *text, size_t size_bytes)
{
	perfmap_parser_init(&parser, text, size_bytes);
}

static void expect_line(uint64_t start_address, uint64_t size_bytes, const char *name)
{
	struct perfmap_line line;

	cr_assert(perfmap_parser_next(&parser, &line), "no line where \"%s\" was expected", name);
	cr_expect_eq(line.start_address, start_address, "%s", name);
	cr_expect_eq(line.size_bytes, size_bytes, "%s", name);
	cr_expect_eq(line.name_bytes, strlen(name), "%.*s", (int)line.name_bytes, line.name);
	cr_expect(!memcmp(line.name, name, line.name_bytes), "%.*s", (int)line.name_bytes,
		  line.name);
}

static void expect_end(uint64_t good_lines, uint64_t bad_lines)
{
	struct perfmap_line line;

	cr_expect_not(perfmap_parser_next(&parser, &line));
	cr_expect_eq(parser.good_lines, good_lines);
	cr_expect_eq(parser.bad_lines, bad_lines);
}

Test(perfmap, reads_the_dialects_of_all_runtimes)
{
	given(TEXT("00007F1484588100 2b object& [A] B::C()[OptimizedTier1]\n"
		   "0x7fe5f4160000 d8 void [A] B::D()[QuickJitted]\n"
		   "7fe5f4160100 0x10 node:fn\n"
		   "0X7FE5F4160200 0X10 upper\n"));
	expect_line(0x7f1484588100, 0x2b, "object& [A] B::C()[OptimizedTier1]");
	expect_line(0x7fe5f4160000, 0xd8, "void [A] B::D()[QuickJitted]");
	expect_line(0x7fe5f4160100, 0x10, "node:fn");
	expect_line(0x7fe5f4160200, 0x10, "upper");
	expect_end(4, 0);
}

Test(perfmap, keeps_spaces_and_odd_bytes_in_names)
{
	given(TEXT("1000 8 a b  c \xff\x80 d\n"));
	expect_line(0x1000, 8, "a b  c \xff\x80 d");
	expect_end(1, 0);
}

Test(perfmap, strips_carriage_returns)
{
	given(TEXT("1000 8 a\r\n2000 8 b\r\n"));
	expect_line(0x1000, 8, "a");
	expect_line(0x2000, 8, "b");
	expect_end(2, 0);
}

Test(perfmap, skips_empty_lines_without_counting_them)
{
	given(TEXT("\n\r\n1000 8 a\n\n"));
	expect_line(0x1000, 8, "a");
	expect_end(1, 0);
}

Test(perfmap, keeps_address_zero_and_size_zero)
{
	given(TEXT("0 8 null\n1000 0 label\n"));
	expect_line(0, 8, "null");
	expect_line(0x1000, 0, "label");
	expect_end(2, 0);
}

Test(perfmap, leaves_an_incomplete_last_line)
{
	const char whole[] = "1000 8 a\n2000 8 torn\n";
	const size_t torn_bytes = sizeof(whole) - 4;

	given(whole, torn_bytes);
	expect_line(0x1000, 8, "a");
	expect_end(1, 0);
	cr_expect_eq(parser.next - whole, 9, "the parser stands before the torn line");
	given(parser.next, sizeof(whole) - 1 - 9);
	expect_line(0x2000, 8, "torn");
}

Test(perfmap, cuts_a_name_at_a_nul_byte)
{
	given(TEXT("1000 8 a\0b\n"));
	expect_line(0x1000, 8, "a");
	expect_end(1, 0);
}

Test(perfmap, skips_and_counts_only_bad_lines)
{
	given(TEXT("1000 8 a\n"
		   "hello\n"
		   "1000\n"
		   "1000 8\n"
		   "1000 8 \n"
		   "xyz 8 name\n"
		   "1000 xyz name\n"
		   "0x 8 name\n"
		   "-1000 8 name\n"
		   "1000  8 name\n"
		   "2000 8 b\n"));
	expect_line(0x1000, 8, "a");
	expect_line(0x2000, 8, "b");
	expect_end(2, 9);
}

/* /proc/kallsyms, read by mistake as a map, has such lines; b, d and a are types there. */
Test(perfmap, rejects_addresses_of_the_kernel)
{
	given(TEXT("ffffffff81000000 b secret_of_the_kernel\n"
		   "ffff800080010000 d another_one\n"
		   "8000000000000000 10 lowest\n"
		   "7f0000001000 ffffffffffff0000 up to there\n"
		   "7ffffffff000 1000 last page of a process\n"));
	expect_line(0x7ffffffff000, 0x1000, "last page of a process");
	expect_end(1, 4);
}

Test(perfmap, rejects_numbers_that_overflow)
{
	given(TEXT("11112222333344445 8 seventeen digits\n"
		   "ffffffffffffffff 2 end beyond the last address\n"
		   "ffffffffffffff00 100 end is 2 to the 64\n"
		   "7ffffffffffffff0 f last\n"));
	expect_line(0x7ffffffffffffff0, 0xf, "last");
	expect_end(1, 3);
}

/* A line whose name has `name_bytes` bytes. */
static size_t put_long_line(char *room, size_t name_bytes)
{
	memcpy(room, "1000 8 ", 7);
	memset(room + 7, 'n', name_bytes);
	room[7 + name_bytes] = '\n';
	return name_bytes + 8;
}

Test(perfmap, rejects_only_names_above_the_limit)
{
	static char text[2 * (1 << 16) + 64];
	struct perfmap_line line;
	char *next = text;

	next += put_long_line(next, LIMIT_NAME_BYTES);
	next += put_long_line(next, LIMIT_NAME_BYTES + 1);
	given(text, (size_t)(next - text));
	cr_assert(perfmap_parser_next(&parser, &line));
	cr_expect_eq(line.name_bytes, LIMIT_NAME_BYTES);
	expect_end(1, 1);
}

/* Bytes that .NET Core 3.1.2 wrote: the line itself is right up to the cut. */
Test(perfmap, recovers_both_lines_where_3_1_lost_a_newline)
{
	given(TEXT("00007F5E60C30110 2c int32 [n] \xe5\x90\x8d::\xe5\xae\x9f(int"
		   "00007F5E60C30150 8 stub<364> AllocateTemporaryEntryPoints<PRECODE_FIXUP>\n"
		   "00007F5E60C30000 57 !0 [n] Gr\xc3\xb6\xc3\x9f"
		   "e::\xc3\x9cn(!0,int32)[MinOptJi"
		   "00007F5E60C2F640 18 stub<362> X<Y>\n"));
	expect_line(0x7f5e60c30110, 0x2c, "int32 [n] \xe5\x90\x8d::\xe5\xae\x9f(int");
	expect_line(0x7f5e60c30150, 8, "stub<364> AllocateTemporaryEntryPoints<PRECODE_FIXUP>");
	expect_line(0x7f5e60c30000, 0x57,
		    "!0 [n] Gr\xc3\xb6\xc3\x9f"
		    "e::\xc3\x9cn(!0,int32)");
	expect_line(0x7f5e60c2f640, 0x18, "stub<362> X<Y>");
	expect_end(4, 0);
	cr_expect_eq(parser.joined_lines, 2);
}

/* Bytes that .NET 10.0.12 wrote: sixteen bytes of garbage replace the address. */
Test(perfmap, recovers_the_joined_line_where_10_0_lost_the_address)
{
	given(TEXT("2\x19\x1d\x42\x1d\x16\0\0\xf0\x60\x6a\x85\xcb\x74\xf0\xee"
		   "6 void [n] Q::\xc3\x9c()[MinOptJitted]"
		   "0x7f0d51a91aa0 16 void [n] Plain::Next2()[MinOptJitted]\n"));
	expect_line(0x7f0d51a91aa0, 0x16, "void [n] Plain::Next2()[MinOptJitted]");
	expect_end(1, 1);
	cr_expect_eq(parser.joined_lines, 1);
}

/* Bytes that .NET 10.0.12 wrote: the first half of the line as UTF-16. */
Test(perfmap, recovers_the_joined_line_after_utf_16)
{
	given(TEXT(
		"0\0x\0007\0f\0e\0d\0004\0c\0004\0009\0002\0000\0009\0000\0 \0001\0009\0 \0i\0n\0"
		"t\0003\0002\0 \0[\0n\0o\0n\0]\0"
		"0x7fed4c4920c0 1d int32 [nonascii] P::Next2(int32)[QuickJitted]\n"));
	expect_line(0x7fed4c4920c0, 0x1d, "int32 [nonascii] P::Next2(int32)[QuickJitted]");
	expect_end(1, 1);
}

/* The garbage can contain a newline. */
Test(perfmap, recovers_the_joined_line_after_two_lines_of_garbage)
{
	given(TEXT("2\x19\x1d\x42\n\x16\0\0\xf0\x60\x6a\x85\xcb\x74\xf0\xee"
		   "6 void [n] Q::\xc3\x9c()[MinOptJitted]"
		   "0x7f0d51a91aa0 16 void [n] Plain::Next2()[MinOptJitted]\n"));
	expect_line(0x7f0d51a91aa0, 0x16, "void [n] Plain::Next2()[MinOptJitted]");
	expect_end(1, 2);
}

/* As many lines without a newline as a program in another script could have. */
Test(perfmap, splits_any_number_of_lines_from_one)
{
	enum {
		LINES = 20000
	};
	struct perfmap_line line;
	uint64_t count = 0;
	struct buf text;

	buf_init(&text, SIZE_MAX);
	for (uint64_t i = 0; i < LINES; i++)
		buf_printf(&text, "%016llX 8 int32 [a] \xe5\x90\x8d::M(int3",
			   0x7f0000000000ull + i * 16);
	buf_append_char(&text, '\n');
	given(text.data, text.size_bytes);
	for (; perfmap_parser_next(&parser, &line); count++)
		cr_assert_eq(line.start_address, 0x7f0000000000 + count * 16);
	cr_expect_eq(count, LINES);
	expect_end(LINES, 0);
	buf_deinit(&text);
}

/* A dynamic method can have any name. The observed damage always follows a non-ASCII byte. */
Test(perfmap, keeps_a_method_name_that_looks_like_a_line)
{
	const char name[] = "int32 [n] dynamicClass::0x7f7480c0a0b0 dc spoof(int32)";
	char text[256];

	snprintf(text, sizeof(text), "1000 8 %s\n2000 8 %s\xc3\x9c\n", name, name);
	given(text, strlen(text));
	expect_line(0x1000, 8, name);
	expect_line(0x2000, 8, "int32 [n] dynamicClass::0x7f7480c0a0b0 dc spoof(int32)\xc3\x9c");
	expect_end(2, 0);
}

/* Lines are read 16 bytes at a time: places a newline and a non-ASCII byte at every position. */
Test(perfmap, reads_the_same_at_every_alignment)
{
	for (size_t before = 0; before < 40; before++) {
		for (size_t odd = 0; odd <= before; odd++) {
			char name[64], text[128];

			memset(name, 'n', before + 1);
			name[before + 1] = '\0';
			name[odd] = '\xff';
			snprintf(text, sizeof(text), "1000 8 %s\n2000 8 b\n3000 8 c\xff", name);
			given(text, strlen(text));
			expect_line(0x1000, 8, name);
			expect_line(0x2000, 8, "b");
			expect_end(2, 0);
		}
	}
}

Test(perfmap, keeps_names_that_only_look_joined)
{
	const char mt[] = "class X /* MT: 0x00007F48104F5E20 */ [a] B\xc3\xbc::M()";
	const char hash[] = "a\xc3\xbc 0123456789abcdef end";
	const char ascii[] = "f(0x7f0d51a91aa0 16 x)";
	char text[512];

	snprintf(text, sizeof(text), "1000 8 %s\n2000 8 %s\n3000 8 %s\n", mt, hash, ascii);
	given(text, strlen(text));
	expect_line(0x1000, 8, mt);
	expect_line(0x2000, 8, hash);
	expect_line(0x3000, 8, ascii);
	expect_end(3, 0);
}

Test(perfmap, writes_lower_case_hex_one_space_and_no_control_characters)
{
	struct buf buf;

	buf_init(&buf, 1024);
	perfmap_write_line(&buf, 0x7F00ABC0, 0x1F, TEXT("a\tb\nc\x7f"), "PreJIT");
	perfmap_write_line(&buf, 0, 0, TEXT("z"), NULL);
	cr_expect_str_eq(buf_string(&buf), "7f00abc0 1f a?b?c?[PreJIT]\n0 0 z\n");
	buf_deinit(&buf);
}

Test(perfmap, replaces_control_characters_at_every_position)
{
	char name[40], expected[64];

	for (int byte = 1; byte < 256; byte++) {
		for (size_t at = 0; at < sizeof(name); at += 3) {
			struct buf buf;
			char is_control = byte < 0x20 || byte == 0x7f;

			memset(name, at % 2 ? 'x' : '\x80', sizeof(name));
			name[at] = (char)byte;
			buf_init(&buf, 1024);
			perfmap_write_line(&buf, 1, 2, name, sizeof(name) - at % 8, NULL);
			if (is_control && at < sizeof(name) - at % 8)
				name[at] = '?';
			snprintf(expected, sizeof(expected), "1 2 %.*s\n",
				 (int)(sizeof(name) - at % 8), name);
			cr_assert_str_eq(buf_string(&buf), expected, "byte %d at %zu", byte, at);
			buf_deinit(&buf);
		}
	}
}

Test(perfmap, writes_nothing_to_a_buffer_that_is_full)
{
	struct buf buf;

	buf_init(&buf, 8);
	perfmap_write_line(&buf, 0x7f00, 1, TEXT("long enough"), NULL);
	cr_expect_eq(buf.size_bytes, 0);
	cr_expect_eq(buf.failure, BUF_TOO_BIG);
	buf_deinit(&buf);
}
