/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "libsym/format/linux/maps.h"
#include "libsym/libsym.h"

#define TEXT(literal) literal, sizeof(literal) - 1

static struct maps_parser parser;
static struct maps_line line;

static void expect_path(const char *path)
{
	cr_expect_eq(line.path_bytes, strlen(path), "%.*s", (int)line.path_bytes, line.path);
	cr_expect(!memcmp(line.path, path, line.path_bytes));
}

Test(maps, reads_every_field)
{
	maps_parser_init(&parser, TEXT("7f158e030000-7f158e051000 r-xp 00001200 fe:0a 16779 "
				       "               /usr/lib/X Y.dll\n"));
	cr_assert(maps_parser_next(&parser, &line));
	cr_expect_eq(line.start_address, 0x7f158e030000);
	cr_expect_eq(line.end_address, 0x7f158e051000);
	cr_expect_eq(line.protection, SYM_READ | SYM_EXECUTE);
	cr_expect_eq(line.offset, 0x1200);
	cr_expect_eq(line.device_major, 0xfe);
	cr_expect_eq(line.device_minor, 0x0a);
	cr_expect_eq(line.inode, 16779);
	cr_expect_not(line.deleted);
	expect_path("/usr/lib/X Y.dll");
	cr_expect_not(maps_parser_next(&parser, &line));
	cr_expect_eq(parser.bad_lines, 0);
}

Test(maps, reads_anonymous_memory_with_and_without_blanks_at_the_end)
{
	maps_parser_init(&parser,
			 TEXT("1000-2000 rwxp 00000000 00:00 0 \n2000-3000 ---s 0 00:00 0"));
	cr_assert(maps_parser_next(&parser, &line));
	expect_path("");
	cr_expect_eq(line.protection, SYM_READ | SYM_WRITE | SYM_EXECUTE);
	cr_assert(maps_parser_next(&parser, &line));
	expect_path("");
	cr_expect_eq(line.protection, SYM_SHARED);
}

Test(maps, removes_the_deleted_mark_from_a_path)
{
	maps_parser_init(&parser, TEXT("1000-2000 r-xs 0 00:01 9 /memfd:doublemapper (deleted)\n"
				       "2000-3000 r-xp 0 08:01 9 /tmp/a (deleted) b\n"));
	cr_assert(maps_parser_next(&parser, &line));
	cr_expect(line.deleted);
	expect_path("/memfd:doublemapper");
	cr_assert(maps_parser_next(&parser, &line));
	cr_expect_not(line.deleted);
	expect_path("/tmp/a (deleted) b");
}

Test(maps, unescapes_newlines_only)
{
	char room[32];

	cr_expect_eq(maps_unescape_path(TEXT("/a\\012b\\x\\01"), room), 9);
	cr_expect_str_eq(room, "/a\nb\\x\\01");
}

Test(maps, skips_and_counts_bad_lines)
{
	maps_parser_init(&parser, TEXT("9-3 r--p 0 0:0 0\n"
				       "1000-1000 r--p 0 0:0 0\n"
				       "1000 r--p 0 0:0 0\n"
				       "1000-2000 q--p 0 0:0 0\n"
				       "1000-2000 r--p 0 0:0 x\n"
				       "1000-2000 r--p 0 0:0 99999999999999999999999\n"
				       "1000-2000\n"
				       "1000-2000 r--p 0 0:0 1 /ok\n"));
	cr_assert(maps_parser_next(&parser, &line));
	expect_path("/ok");
	cr_expect_not(maps_parser_next(&parser, &line));
	cr_expect_eq(parser.bad_lines, 7);
}
