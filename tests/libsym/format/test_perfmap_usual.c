/* SPDX-License-Identifier: MIT */
/* Usual lines are taken many at a time: they are what reading one after another makes of them. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libsym/base/buf.h"
#include "libsym/format/perfmap.h"
#include "libsym/format/perfmap_usual.h"
#include "libsym/limits.h"

enum {
	MOST_LINES = 4000
};

static uint64_t next_random(void)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005u + 1442695040888963407u;
	return state >> 33;
}

static bool happens_once_in(unsigned int times)
{
	return next_random() % times == 0;
}

/* A number of up to 16 digits, now and then with more, with a prefix, or none at all. */
static void put_number(struct buf *text)
{
	uint64_t number = (next_random() << 33 | next_random() << 2) >> next_random() % 64;

	if (happens_once_in(4))
		buf_append(text, happens_once_in(8) ? "0X" : "0x", 2);
	if (happens_once_in(40))
		return;
	if (happens_once_in(4))
		buf_printf(text, "%0*" PRIx64, happens_once_in(8) ? 17 : 16, number);
	else
		buf_printf(text, happens_once_in(4) ? "%" PRIX64 : "%" PRIx64, number);
}

static void put_name(struct buf *text)
{
	static const char *const ends[] = { "[QuickJitted]",
					    "[OptimizedTier1OSR]",
					    "[PreJIT]",
					    "[Optimized]",
					    "[Unknown]",
					    "[Tier9]",
					    "[ReadyToRun",
					    "]",
					    "" };
	const char *end = ends[next_random() % 9];
	size_t name_bytes = next_random() % (happens_once_in(3) ? 8 : 150);

	for (size_t i = 0; i < name_bytes; i++)
		buf_append_char(text, (char)('!' + next_random() % 94));
	buf_append(text, end, strlen(end));
}

/* One byte of a line becomes one that is rare in it. */
static void spoil(struct buf *text, size_t begin)
{
	static const char odd[] = "\0\t\r\n \x01\x7f\x80\xff:gG/@`[]";

	text->data[begin + next_random() % (text->size_bytes - begin)] =
		odd[next_random() % (sizeof(odd) - 1)];
}

static void put_lines(struct buf *text, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t begin = text->size_bytes;

		put_number(text);
		buf_append_char(text, ' ');
		put_number(text);
		buf_append_char(text, ' ');
		put_name(text);
		if (happens_once_in(6))
			spoil(text, begin);
		if (happens_once_in(30))
			buf_append_char(text, '\r');
		if (!happens_once_in(60))
			buf_append_char(text, '\n');
	}
}

static size_t take_all(struct perfmap_parser *parser, struct perfmap_line *lines, size_t at_once)
{
	size_t count = 0, taken;

	while ((taken = perfmap_parser_take(parser, lines + count, at_once)))
		count += taken;
	return count;
}

static void expect_same(const struct perfmap_line *line, const struct perfmap_line *other)
{
	cr_assert_eq(line->name, other->name);
	cr_assert_eq(line->name_bytes, other->name_bytes);
	cr_assert_eq(line->start_address, other->start_address, "%.*s", (int)line->name_bytes,
		     line->name);
	cr_assert_eq(line->size_bytes, other->size_bytes, "%.*s", (int)line->name_bytes,
		     line->name);
	cr_assert_eq(line->bare_bytes, other->bare_bytes, "%.*s", (int)line->name_bytes,
		     line->name);
	cr_assert_eq(line->tier, other->tier, "%.*s", (int)line->name_bytes, line->name);
}

Test(perfmap_usual, gives_what_one_after_another_gives)
{
	static struct perfmap_line slow[MOST_LINES + 64], quick[MOST_LINES + 64];
	uint64_t usual_lines = 0;

	for (size_t round = 0; round < 100; round++) {
		struct perfmap_parser parser, other;
		struct buf text;
		size_t count;

		buf_init(&text, SIZE_MAX);
		put_lines(&text, 1 + next_random() % (MOST_LINES / 4));
		perfmap_parser_init(&parser, text.data, text.size_bytes);
		parser.is_quick = false;
		count = take_all(&parser, slow, 1);
		perfmap_parser_init(&other, text.data, text.size_bytes);
		cr_assert_eq(take_all(&other, quick, 1 + round % 40), count);
		for (size_t i = 0; i < count; i++)
			expect_same(&quick[i], &slow[i]);
		cr_expect_eq(other.next, parser.next);
		cr_expect_eq(other.good_lines, parser.good_lines);
		cr_expect_eq(other.bad_lines, parser.bad_lines);
		cr_expect_eq(other.glued_lines, parser.glued_lines);
		usual_lines += count;
		buf_deinit(&text);
	}
	cr_expect_gt(usual_lines, 20000);
}

Test(perfmap_usual, takes_what_runtimes_write)
{
	static struct perfmap_line lines[100];
	struct buf text;
	const char *next;

	if (!perfmap_usual_works())
		cr_skip_test("the processor does not have what it needs");
	buf_init(&text, SIZE_MAX);
	for (int i = 0; i < 40; i++)
		buf_printf(&text, "%s%016X %x void [App] App.Type%d::Run()[OptimizedTier1]\n",
			   i % 2 ? "0x" : "", 0x7f000000 + i * 64, i, i);
	for (int i = 0; i < 8; i++)
		buf_append(&text, "1 1 a line of which nothing is asked\n", 37);
	next = text.data;
	cr_assert_geq(perfmap_usual_take(&next, text.data + text.size_bytes, lines, 100), 40);
	for (int i = 0; i < 40; i++) {
		cr_expect_eq(lines[i].start_address, (uint64_t)(0x7f000000 + i * 64));
		cr_expect_eq(lines[i].size_bytes, (uint64_t)i);
		cr_expect_eq(lines[i].name_bytes - lines[i].bare_bytes, 16);
	}
	buf_deinit(&text);
}

Test(perfmap_usual, leaves_a_symbol_that_ends_behind_the_last_address)
{
	static const char text[256] = "fffffffffffffff0 f name\n"
				      "fffffffffffffff0 10 a name of more bytes\n";
	struct perfmap_line lines[3];
	const char *next = text;

	if (!perfmap_usual_works())
		cr_skip_test("the processor does not have what it needs");
	/* So that the line is not too near the beginning. */
	next = strchr(text, '\n') + 1;
	cr_expect_eq(perfmap_usual_take(&next, text + sizeof(text), lines, 3), 0);
}

/* Nothing in front of the text is looked at. */
Test(perfmap_usual, stays_inside_the_text)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, 3 * page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *text = pages + page_bytes;
	struct perfmap_line lines[64];
	struct perfmap_parser parser;
	size_t count = 0, taken;

	cr_assert_neq(pages, MAP_FAILED);
	cr_assert_eq(mprotect(text, page_bytes, PROT_READ | PROT_WRITE), 0);
	for (size_t i = 0; i + 7 <= page_bytes; i += 7)
		memcpy(text + i, "1 1 a]\n", 7);
	perfmap_parser_init(&parser, text, page_bytes / 7 * 7);
	while ((taken = perfmap_parser_take(&parser, lines, 64)))
		count += taken;
	cr_expect_eq(count, page_bytes / 7);
	/* And nothing behind it. */
	memmove(text + page_bytes % 7, text, page_bytes / 7 * 7);
	perfmap_parser_init(&parser, text + page_bytes % 7, page_bytes / 7 * 7);
	for (count = 0; (taken = perfmap_parser_take(&parser, lines, 64));)
		count += taken;
	cr_expect_eq(count, page_bytes / 7);
	munmap(pages, 3 * page_bytes);
}

/* Names as long as may be, and one byte longer. */
Test(perfmap_usual, leaves_a_name_above_the_limit)
{
	struct perfmap_line line;

	if (!perfmap_usual_works())
		cr_skip_test("the processor does not have what it needs");
	for (size_t more = 0; more < 2; more++) {
		const char *next;
		struct buf text;

		buf_init(&text, SIZE_MAX);
		buf_append(&text, "1000 8 ", 7);
		for (size_t i = 0; i < LIMIT_NAME_BYTES + more; i++)
			buf_append_char(&text, 'n');
		buf_append_char(&text, '\n');
		for (size_t i = 0; i < 200; i++)
			buf_append_char(&text, '1');
		next = text.data;
		cr_expect_eq(perfmap_usual_take(&next, text.data + text.size_bytes, &line, 1),
			     1 - more);
		buf_deinit(&text);
	}
}
