/* SPDX-License-Identifier: MIT */
/* Usual lines are taken many at a time: they are what reading one after another makes of them. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libsym/base/buf.h"
#include "libsym/format/perfmap_tier.h"
#include "libsym/format/perfmap_usual.h"
#include "libsym/limits.h"
#include "tests/support/perfmap_check.h"

enum {
	MOST_LINES = 1000
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

/* A number of up to so many bits and mostly fewer, now and then with more digits than that takes,
 * with a prefix, or none at all. */
static void put_number(struct buf *text, unsigned int bits)
{
	uint64_t number = (next_random() << 33 | next_random() << 2) >> next_random() % bits;

	if (!happens_once_in(20))
		number >>= 64 - bits;

	if (happens_once_in(4))
		buf_append(text, happens_once_in(8) ? "0X" : "0x", 2);
	if (happens_once_in(40))
		return;
	if (happens_once_in(4))
		buf_printf(text, "%0*" PRIx64, (int)bits / 4 + happens_once_in(8), number);
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

		put_number(text, 64);
		buf_append_char(text, ' ');
		put_number(text, 32);
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

Test(perfmap_usual, gives_what_one_after_another_gives)
{
	uint64_t usual_lines = 0;

	if (!perfmap_usual_works())
		cr_skip_test("the processor does not have what it needs");
	for (size_t round = 0; round < 100; round++) {
		struct buf text;

		buf_init(&text, SIZE_MAX);
		put_lines(&text, 1 + next_random() % MOST_LINES);
		usual_lines += perfmap_check_usual(text.data, text.size_bytes,
						   1 + round % PERFMAP_CHECK_LINES);
		buf_deinit(&text);
	}
	cr_expect_gt(usual_lines, 20000);
}

/* Lines of `text`, a string, with what is looked at behind a line added to it. */
static size_t take(const char *text, struct numbered_range *ranges, size_t count)
{
	static const char behind[256];
	uint32_t ends[64];
	struct perfmap_usual usual;
	const char *next;
	struct buf all;
	size_t taken;

	cr_assert_leq(count, 64);
	buf_init(&all, SIZE_MAX);
	buf_append(&all, text, strlen(text));
	buf_append(&all, behind, sizeof(behind));
	next = all.data;
	perfmap_usual_init(&usual, all.data, all.size_bytes, 0);
	taken = perfmap_usual_take(&usual, &next, ranges, ends, count);
	buf_deinit(&all);
	return taken;
}

Test(perfmap_usual, takes_what_runtimes_write)
{
	struct numbered_range lines[40];
	struct buf text;

	if (!perfmap_usual_works())
		cr_skip_test("the processor does not have what it needs");
	buf_init(&text, SIZE_MAX);
	for (int i = 0; i < 40; i++)
		buf_printf(&text, "%s%016X %x %s [App] App.Type%d::Run()[OptimizedTier1]\n",
			   i % 2 ? "0x" : "", 0x7f000000 + i * 64, i, i % 3 ? "void" : "stub<1>",
			   i);
	buf_append_char(&text, '\0');
	cr_assert_eq(take(text.data, lines, 40), 40);
	for (unsigned int i = 0; i < 40; i++) {
		cr_expect_eq(lines[i].start, 0x7f000000 + i * 64);
		cr_expect_eq(lines[i].size_bytes, i);
		cr_expect_str_eq(perfmap_tiers[perfmap_tier_of(lines[i].value)], "OptimizedTier1");
		cr_expect_eq(lines[i].value & PERFMAP_STUB_BIT, i % 3 ? 0 : PERFMAP_STUB_BIT);
		cr_expect_eq(text.data[lines[i].number - 1], ' ');
		cr_expect_eq(text.data[lines[i].number], i % 3 ? 'v' : 's');
	}
	buf_deinit(&text);
}

/* The second line is one that begins where an ending can be looked at. */
Test(perfmap_usual, leaves_what_is_not_usual)
{
	static const char *const second[] = {
		"fffffffffffffff0 10 a symbol that ends behind the last address\n",
		"1000 123456789 a symbol of 4 GiB\n",
		"10000000000000000 10 an address of 17 digits\n",
		"1000  10 two spaces\n",
		"1000 10 \n",
		"1000 10 a\tb\n",
		"1000 10 carriage return\r\n",
		"1000 10 \xc3\x9c\n",
		"1000 10 [Optimized]\n",
		"1000 10 [a name in brackets]\n",
		"1000 10\n",
		"\n",
	};
	struct numbered_range lines[2];

	if (!perfmap_usual_works())
		cr_skip_test("the processor does not have what it needs");
	for (size_t i = 0; i < sizeof(second) / sizeof(*second); i++) {
		char text[256];

		snprintf(text, sizeof(text), "1000 10 a method with a name of some length\n%s",
			 second[i]);
		cr_expect_eq(take(text, lines, 2), 1, "%s", second[i]);
	}
}

/* Nothing in front of the text is looked at, and nothing behind it. */
Test(perfmap_usual, stays_inside_the_text)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE), text_bytes = page_bytes / 7 * 7;
	char *pages = mmap(NULL, 3 * page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *text = pages + page_bytes;

	cr_assert_neq(pages, MAP_FAILED);
	cr_assert_eq(mprotect(text, page_bytes, PROT_READ | PROT_WRITE), 0);
	for (size_t i = 0; i < text_bytes; i += 7)
		memcpy(text + i, "1 1 a]\n", 7);
	perfmap_check_usual(text, text_bytes, PERFMAP_CHECK_LINES);
	memmove(text + page_bytes - text_bytes, text, text_bytes);
	perfmap_check_usual(text + page_bytes - text_bytes, text_bytes, PERFMAP_CHECK_LINES);
	munmap(pages, 3 * page_bytes);
}

/* Names as long as may be, and of one byte more; where they begin in what is scanned together. */
Test(perfmap_usual, agrees_on_names_of_the_longest)
{
	for (size_t more = 0; more < 20; more++) {
		struct buf text;

		buf_init(&text, SIZE_MAX);
		for (size_t lines = 0; lines < 3; lines++) {
			buf_append(&text, "1000 8 a method\n1000 8 ", 23);
			for (size_t i = 0; i < LIMIT_NAME_BYTES + more - 10; i++)
				buf_append_char(&text, 'n');
			buf_append_char(&text, '\n');
		}
		perfmap_check_usual(text.data, text.size_bytes, PERFMAP_CHECK_LINES);
		buf_deinit(&text);
	}
}
