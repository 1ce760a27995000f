/* SPDX-License-Identifier: MIT */
#include "libsym/source/perfmap_names.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "libsym/base/buf.h"
#include "libsym/format/perfmap.h"
#include "libsym/format/perfmap_tier.h"
#include "libsym/format/perfmap_usual.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/elf_builder.h"

enum {
	MOST_NAMES = 4096
};

/* Names of a map as its reader tells them, and the numbers they got. */
struct told {
	struct perfmap_names *names;
	struct buf texts; /* with a NUL behind each */
	uint32_t numbers[MOST_NAMES];
	size_t count;
	int fd;
};

static void tell_name(struct told *told, const char *name, size_t name_bytes, uint32_t number)
{
	cr_assert_lt(told->count, MOST_NAMES);
	told->numbers[told->count++] = number;
	buf_append(&told->texts, name, name_bytes);
	buf_append_char(&told->texts, '\0');
}

static void add_usual(struct told *told, struct perfmap_parser *parser, const char *text,
		      uint32_t number)
{
	struct numbered_range ranges[50];
	struct perfmap_usual usual;
	uint32_t ends[50];
	size_t count;

	perfmap_usual_init(&usual, parser->next, (size_t)(parser->end - parser->next),
			   number + (uint32_t)(parser->next - text));
	while ((count = perfmap_usual_take(&usual, &parser->next, ranges, ends, 50))) {
		perfmap_names_add_lines(told->names, ranges, ends, count);
		for (size_t i = 0; i < count; i++) {
			size_t name_bytes = ends[i] - ranges[i].number;

			if (!told->names->tier_in_name)
				name_bytes -= perfmap_tier_bytes[perfmap_tier_of(ranges[i].value)];
			tell_name(told, text + (ranges[i].number - number), name_bytes,
				  ranges[i].number);
		}
	}
}

static bool add_line(struct told *told, const struct perfmap_line *line)
{
	size_t name_bytes = told->names->tier_in_name ? line->name_bytes : line->bare_bytes;
	uint32_t number;

	if (perfmap_names_add(told->names, line->name, name_bytes, line->name_bytes, &number) !=
	    PERFMAP_NAMES_ADDED)
		return false;
	tell_name(told, line->name, name_bytes, number);
	return true;
}

/* Adds `text`, which is at `offset` of the file, in the way a source does. */
static bool add_text(struct told *told, const char *text, size_t size_bytes, uint64_t offset)
{
	struct perfmap_parser parser;
	struct perfmap_line line;
	uint32_t number;

	perfmap_parser_init(&parser, text, size_bytes);
	perfmap_names_begin(told->names, told->fd, offset, text, size_bytes, false);
	if (!memrchr(text, '\n', size_bytes))
		return true;
	if (perfmap_names_number(told->names, &number) != PERFMAP_NAMES_ADDED)
		return false;
	for (;;) {
		if (perfmap_usual_works() && !parser.newline)
			add_usual(told, &parser, text, number);
		if (!perfmap_parser_next(&parser, &line))
			break;
		if (!add_line(told, &line))
			return false;
	}
	perfmap_names_end(told->names);
	return true;
}

static void tell_text(struct told *told, const char *text, size_t size_bytes, bool tier_in_name,
		      size_t most_kept_bytes)
{
	*told = (struct told){ .fd = elf_builder_file(text, size_bytes) };
	told->names = perfmap_names_create(tier_in_name, most_kept_bytes);
	cr_assert_not_null(told->names);
	buf_init(&told->texts, SIZE_MAX);
	cr_assert(add_text(told, text, size_bytes, 0));
}

static void tell(struct told *told, const char *text)
{
	tell_text(told, text, strlen(text), false, 0);
}

static void tell_lines(struct told *told, uint64_t count)
{
	struct buf text;

	buf_init(&text, SIZE_MAX);
	for (uint64_t i = 0; i < count; i++)
		buf_printf(&text, "%lx 10 method number %lu[QuickJitted]\n", i * 16, i);
	tell_text(told, text.data, text.size_bytes, false, 0);
	buf_deinit(&text);
}

static void forget(struct told *told)
{
	perfmap_names_destroy(told->names);
	buf_deinit(&told->texts);
	close(told->fd);
}

static void expect_all(const struct told *told)
{
	const char *expected = told->texts.data;

	for (size_t i = 0; i < told->count; i++, expected += strlen(expected) + 1)
		cr_assert_str_eq(perfmap_names_at(told->names, told->numbers[i]), expected,
				 "name %zu", i);
}

static size_t count_lost(const struct told *told)
{
	size_t lost = 0;

	for (size_t i = 0; i < told->count; i++)
		lost += !perfmap_names_at(told->names, told->numbers[i]);
	return lost;
}

Test(perfmap_names, tells_from_the_file_what_the_reader_told)
{
	struct told told;

	tell(&told, "1000 10 void [A] N.T::M()[OptimizedTier1]\n"
		    "2000 10 int32 [A] N.T::Item(int32[])[QuickJitted]\n"
		    "3000 10 plain name with blanks \n"
		    "nonsense\n\n"
		    "4000 10 [Unknown]\n"
		    "5000 10 [Unknown][Unknown]\n"
		    "6000 10 name]\n"
		    "7000 10 name of windows\r\n"
		    "8000 10 \xc3\xbc"
		    "ber[OptimizedTier1]\n"
		    "9000 10 a[ReadyToRun]\n");
	cr_expect_eq(told.count, 9);
	cr_expect_str_eq(perfmap_names_at(told.names, told.numbers[0]), "void [A] N.T::M()");
	cr_expect_str_eq(perfmap_names_at(told.names, told.numbers[3]), "[Unknown]");
	cr_expect_str_eq(perfmap_names_at(told.names, told.numbers[4]), "[Unknown]");
	cr_expect_str_eq(perfmap_names_at(told.names, told.numbers[6]), "name of windows");
	expect_all(&told);
	forget(&told);
}

/* As many as there can be in a block. */
Test(perfmap_names, tells_names_that_lie_side_by_side)
{
	for (size_t most_kept_bytes = 0; most_kept_bytes < 3; most_kept_bytes += 2) {
		struct told told;
		struct buf text;

		buf_init(&text, SIZE_MAX);
		for (int i = 0; i < MOST_NAMES; i++)
			buf_printf(&text, "0 0 %c\n", 'a' + i % 26);
		tell_text(&told, text.data, text.size_bytes, false, most_kept_bytes << 20);
		cr_expect_eq(told.count, MOST_NAMES);
		expect_all(&told);
		forget(&told);
		buf_deinit(&text);
	}
}

Test(perfmap_names, leaves_the_tier_to_who_wants_it)
{
	static const char text[] = "1000 10 M()[OptimizedTier1]\n2000 10 [Unknown]\n";
	struct told told;

	tell_text(&told, text, strlen(text), true, 0);
	cr_expect_str_eq(perfmap_names_at(told.names, told.numbers[0]), "M()[OptimizedTier1]");
	expect_all(&told);
	forget(&told);
}

/* Of two lines in one the first has lost its end. */
Test(perfmap_names, tells_lines_that_are_glued_together)
{
	struct told told;

	tell(&told, "1000 10 before[QuickJitted]\n"
		    "0x7f5e60c30000 20 int N::Gr\xc3\xb6\xc3\x9f"
		    "e()[MinOpt0x7f5e60c30150 8 "
		    "stub GenerateStub\n"
		    "3000 10 behind[QuickJitted]\n");
	cr_expect_eq(told.count, 4);
	expect_all(&told);
	forget(&told);
}

/* ---- whatever is in a map ---------------------------------------------------------------- */

static void append_line(struct buf *text, uint64_t number)
{
	static const char *const ends[] = { "\n",  "[OptimizedTier1]\n", "[Tier9]\n", "\r\n",
					    "]\n", " [Unknown]\n",       "\xff\n",    "[PreJIT]" };
	size_t letters = (size_t)random() % (random() % 50 ? 120 : 9000);

	switch (random() % 20) {
	case 0:
		buf_append_string(text, "no line at all\n");
		return;
	case 1:
		buf_printf(text, "%lx %x [ReadyToRun]\n", number * 64, 48);
		return;
	case 2:
		buf_printf(text, "0x%lx %x %s", 0x7f0000000000 + number * 64, 48, "cut \xc3");
		return;
	default:
		buf_printf(text, "%lx %x name %lu ", number * 64, 48, number);
	}
	for (size_t i = 0; i < letters; i++)
		buf_append_char(text, (char)('a' + i % 26));
	buf_append_string(text, ends[random() % 8]);
}

Test(perfmap_names, tells_the_same_of_any_map_wherever_the_names_are)
{
	for (unsigned int seed = 1; seed <= 60; seed++) {
		static const size_t kept[] = { 0, 20000, SIZE_MAX };
		struct told told;
		struct buf text;

		srandom(seed);
		buf_init(&text, SIZE_MAX);
		for (uint64_t i = 0; i < 600; i++)
			append_line(&text, i);
		tell_text(&told, text.data, text.size_bytes, seed % 2, kept[seed % 3]);
		cr_assert_gt(told.count, 300);
		expect_all(&told);
		expect_all(&told);
		forget(&told);
		buf_deinit(&text);
	}
}

/* Text comes in pieces, of which each begins where the last whole line of the one before ended. */
Test(perfmap_names, tells_what_came_in_pieces)
{
	struct told told;
	struct buf text;

	srandom(1);
	buf_init(&text, SIZE_MAX);
	for (uint64_t i = 0; i < 3000; i++)
		buf_printf(&text, "%lx 10 method number %lu[QuickJitted]\n", i * 16, i);
	tell_text(&told, text.data, text.size_bytes, false, 0);
	forget(&told);
	tell_text(&told, "", 0, false, 0);
	close(told.fd);
	told.fd = elf_builder_file(text.data, text.size_bytes);
	for (size_t at = 0; at < text.size_bytes;) {
		size_t end = at + (size_t)random() % 20000;

		if (end > text.size_bytes)
			end = text.size_bytes;
		while (end > at && text.data[end - 1] != '\n')
			end--;
		cr_assert(add_text(&told, text.data + at, end - at, at));
		at = end;
	}
	cr_expect_eq(told.count, 3000);
	expect_all(&told);
	forget(&told);
	buf_deinit(&text);
}

/* ---- a file that changes ------------------------------------------------------------------ */

Test(perfmap_names, loses_what_is_cut_off_and_keeps_what_was_asked_for)
{
	struct told told;
	const char *last;

	tell_lines(&told, 400);
	last = perfmap_names_at(told.names, told.numbers[told.count - 1]);
	cr_assert_str_eq(last, "method number 399");
	cr_assert_eq(ftruncate(told.fd, 5000), 0);
	cr_expect_str_eq(perfmap_names_at(told.names, told.numbers[0]), "method number 0");
	cr_expect_null(perfmap_names_at(told.names, told.numbers[told.count / 2]));
	cr_expect_eq(perfmap_names_at(told.names, told.numbers[told.count - 1]), last);
	cr_expect_str_eq(last, "method number 399");
	forget(&told);
}

Test(perfmap_names, never_tells_another_name)
{
	struct told told;
	char byte = 'N';

	tell_lines(&told, 400);
	/* One byte of one name is another one. */
	cr_assert_eq(pwrite(told.fd, &byte, 1, 7000), 1);
	cr_expect_gt(count_lost(&told), 0);
	cr_expect_lt(count_lost(&told), told.count / 2);
	for (size_t i = 0; i < told.count; i++) {
		const char *name = perfmap_names_at(told.names, told.numbers[i]);
		char expected[64];

		snprintf(expected, sizeof(expected), "method number %zu", i);
		if (name)
			cr_assert_str_eq(name, expected);
	}
	forget(&told);
}

Test(perfmap_names, loses_nothing_by_what_is_appended)
{
	struct told told;
	off_t end;

	tell_lines(&told, 400);
	end = lseek(told.fd, 0, SEEK_END);
	cr_assert_eq(pwrite(told.fd, "garbage", 7, end), 7);
	cr_expect_eq(count_lost(&told), 0);
	expect_all(&told);
	forget(&told);
}

Test(perfmap_names, keeps_what_it_was_told_to_keep)
{
	struct told told;

	tell_text(&told, "1000 10 kept\n", 13, false, 1);
	cr_assert_eq(ftruncate(told.fd, 0), 0);
	expect_all(&told);
	cr_assert(add_text(&told, "2000 10 in the file\n", 20, 0));
	cr_expect_null(perfmap_names_at(told.names, told.numbers[1]));
	told.count = 1;
	expect_all(&told);
	forget(&told);
}

Test(perfmap_names, says_when_there_are_no_more_numbers)
{
	struct told told;

	tell(&told, "");
	/* As if all were in use. */
	told.names->used_bytes = told.names->reserved_bytes;
	cr_expect(!perfmap_names_are_full(told.names));
	cr_expect(!add_text(&told, "2000 10 more\n", 13, 13));
	cr_expect(!add_text(&told, "2000 10 more\r\n", 14, 13));
	cr_expect(perfmap_names_are_full(told.names));
	forget(&told);
}

static size_t count_pages(const struct perfmap_names *names)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE), count = 0;
	unsigned char is_resident[256];

	cr_assert_leq(names->used_bytes, sizeof(is_resident) * page_bytes);
	cr_assert_eq(mincore(names->text, names->used_bytes, is_resident), 0);
	for (size_t i = 0; i < (names->used_bytes + page_bytes - 1) / page_bytes; i++)
		count += is_resident[i] & 1;
	return count;
}

Test(perfmap_names, takes_memory_for_what_is_asked_for)
{
	struct told told;

	tell_lines(&told, MOST_NAMES);
	cr_assert_gt(told.names->used_bytes, 128 << 10);
	cr_expect_eq(count_pages(told.names), 0);
	cr_expect_not_null(perfmap_names_at(told.names, told.numbers[MOST_NAMES / 2]));
	/* The last name of a block may end in the next page. */
	cr_expect_leq(count_pages(told.names), 2);
	forget(&told);
}

/* Lets this process have so many bytes more of what `resource` limits. `field`: of it in
 * /proc/self/statm, from 0 on. */
static void limit_more(int resource, int field, rlim_t more_bytes)
{
	struct rlimit limit;
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	cr_assert_not_null(file);
	for (int i = 0; i <= field; i++)
		cr_assert_eq(fscanf(file, "%lu", &pages), 1);
	fclose(file);
	limit.rlim_cur = limit.rlim_max = pages * (rlim_t)sysconf(_SC_PAGESIZE) + more_bytes;
	cr_assert_eq(setrlimit(resource, &limit), 0);
}

Test(perfmap_names, makes_do_with_few_addresses)
{
	struct told told;

	limit_more(RLIMIT_AS, 0, (rlim_t)100 << 20);
	tell_lines(&told, MOST_NAMES);
	cr_expect_lt(told.names->reserved_bytes, (uint64_t)100 << 20);
	expect_all(&told);
	forget(&told);
}

/* As where the system counts all memory that may be written. */
Test(perfmap_names, makes_do_with_little_memory_that_may_be_written)
{
	static const char text[] = "1000 10 one\n2000 10 another\n";
	struct told told;

	tell(&told, "");
	close(told.fd);
	told.fd = elf_builder_file(text, strlen(text));
	limit_more(RLIMIT_DATA, 5, (rlim_t)64 << 20);
	perfmap_names_expect(told.names, 1 << 30);
	cr_assert(add_text(&told, text, strlen(text), 0));
	cr_expect_lt(told.names->open_bytes, (uint64_t)64 << 20);
	expect_all(&told);
	forget(&told);
}

/* Of what was added before the failure nothing is in the way of what is added again. */
Test(perfmap_names, go_on_after_a_failure)
{
	static char letters[3000];
	struct told told;
	struct buf text;
	bool added = false;

	memset(letters, 'x', sizeof(letters) - 1);
	buf_init(&text, SIZE_MAX);
	for (uint64_t i = 0; i < 1200; i++)
		buf_printf(&text, "%lx 10 method number %lu %s%s", i * 16, i, letters,
			   i % 100 ? "[QuickJitted]\n" : "\r\n");
	for (size_t allocations = 0; !added; allocations++) {
		tell_text(&told, "", 0, false, 8192);
		close(told.fd);
		told.fd = elf_builder_file(text.data, text.size_bytes);
		alloc_fail_after(allocations);
		added = add_text(&told, text.data, text.size_bytes, 0);
		alloc_fail_stop();
		told.count = 0;
		buf_clear(&told.texts);
		cr_assert(add_text(&told, text.data, text.size_bytes, 0));
		cr_assert_eq(told.count, 1200);
		expect_all(&told);
		forget(&told);
		cr_assert_lt(allocations, 100);
	}
	buf_deinit(&text);
}

static bool tell_and_ask(void *context)
{
	struct told told = { .fd = *(const int *)context };
	char text[128];
	ssize_t size_bytes = pread(told.fd, text, sizeof(text), 0);
	bool done = false;

	buf_init(&told.texts, SIZE_MAX);
	told.names = perfmap_names_create(false, 1);
	if (told.names && add_text(&told, text, (size_t)size_bytes, 0) && told.count == 3)
		done = perfmap_names_at(told.names, told.numbers[2]) != NULL;
	perfmap_names_destroy(told.names);
	buf_deinit(&told.texts);
	return done;
}

Test(perfmap_names, survives_the_lack_of_memory_anywhere)
{
	static const char text[] = "1000 10 a[QuickJitted]\n2000 10 b\r\n3000 10 c\n";
	int fd = elf_builder_file(text, strlen(text));

	cr_expect_gt(alloc_fail_each(tell_and_ask, &fd), 3);
	close(fd);
}
