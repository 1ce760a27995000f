/* SPDX-License-Identifier: MIT */
#include "libsym/perf/jitdump_lines.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/perf/jitdump_source.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/elf_builder.h"
#include "tests/support/jitdump_builder.h"

enum {
	PID = JITDUMP_BUILDER_PID,
	HEADER = JITDUMP_ELF_BYTES
};

static struct jitdump_source *open_dump(void)
{
	struct jitdump_source *source = NULL;
	int fd = elf_builder_file((const char *)jitdump_dump, jitdump_bytes);

	cr_assert_null(jitdump_source_open(NULL, fd, "jit-4321.dump", PID, NULL,
					   (struct unflushed){ 0 }, &source));
	close(fd);
	return source;
}

/* "FILE:LINE" of named code at that time (0: now); "-" without a line. */
static const char *line_at_time(struct jitdump_source *source, uint64_t address, uint64_t time_ns)
{
	static char text[256];
	struct source_match match;
	struct source_line line;

	if (time_ns)
		cr_assert_eq(jitdump_source_find_at(source, address, time_ns, &match),
			     JITDUMP_THEN_NAMED);
	else
		cr_assert_eq(jitdump_source_find(source, address, &match), SOURCE_HIT);
	if (!jitdump_source_find_line(source, address, time_ns, match.name, &line))
		return "-";
	snprintf(text, sizeof(text), "%s:%u", line.file, line.line);
	return text;
}

static const char *line_at(struct jitdump_source *source, uint64_t address)
{
	return line_at_time(source, address, 0);
}

/* As perf's agent for Java: the pc of the first instruction. */
static void put_plain(uint64_t timestamp, uint64_t address, uint32_t line, const char *file)
{
	const struct jitdump_builder_line lines[] = {
		{ address + 4, line, file },
		{ address + 0x10, line + 1, "\xff" },
		{ address + 0x18, 7, "inlined.c" },
		{ address + 0x1c, line + 2, file },
		{ 0 },
	};

	jitdump_lines(timestamp, address, lines);
	jitdump_load(timestamp, address, 0x20, file);
}

Test(jitdump_lines, finds_the_line_of_the_instruction_at_or_before)
{
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;

	jitdump_begin(PID);
	put_plain(1, 0x1000, 100, "a b.c");
	jitdump_load(2, 0x2000, 0x20, "without lines");
	source = open_dump();
	cr_expect_str_eq(line_at(source, 0x1003), "-");
	cr_expect_str_eq(line_at(source, 0x1004), "a b.c:100");
	cr_expect_str_eq(line_at(source, 0x100f), "a b.c:100");
	cr_expect_str_eq(line_at(source, 0x1010), "a b.c:101");
	cr_expect_str_eq(line_at(source, 0x101b), "inlined.c:7");
	cr_expect_str_eq(line_at(source, 0x101f), "a b.c:102");
	cr_expect_str_eq(line_at(source, 0x2000), "-");
}

/* As Erlang: the first line is before the code, and one without information at its end. */
Test(jitdump_lines, begin_with_the_head_of_a_function)
{
	const struct jitdump_builder_line lines[] = {
		{ 0x1000 - 50, 3, "t.erl" }, { 0x1010, 4, "t.erl" }, { 0x1020, 0, "" }, { 0 }
	};
	const struct jitdump_builder_line far[] = { { 0x3000 - 65, 3, "t.erl" }, { 0 } };
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;

	jitdump_begin(PID);
	jitdump_lines(1, 0x1000, lines);
	jitdump_load(1, 0x1000, 0x20, "t:fib/1");
	jitdump_lines(2, 0x3000, far);
	jitdump_load(2, 0x3000, 0x20, "t:loop/1");
	source = open_dump();
	cr_expect_str_eq(line_at(source, 0x1000), "t.erl:3");
	cr_expect_str_eq(line_at(source, 0x100f), "t.erl:3");
	cr_expect_str_eq(line_at(source, 0x1010), "t.erl:4");
	cr_expect_str_eq(line_at(source, 0x101f), "t.erl:4");
	cr_expect_str_eq(line_at(source, 0x3000), "-");
}

Test(jitdump_lines, belong_to_the_next_code_loaded_at_their_address)
{
	const struct jitdump_builder_line lines[] = { { 0x1000, 5, "x.c" }, { 0 } };
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;

	jitdump_begin(PID);
	jitdump_lines(1, 0x1000, lines);
	jitdump_load(2, 0x3000, 0x20, "of another thread");
	jitdump_load(3, 0x1000, 0x20, "theirs");
	jitdump_load(4, 0x1000, 0x20, "without lines in the same place");
	source = open_dump();
	cr_expect_str_eq(line_at(source, 0x3000), "-");
	cr_expect_str_eq(line_at(source, 0x1000), "-");
	cr_expect_str_eq(line_at_time(source, 0x1008, 3), "x.c:5");
	cr_expect_str_eq(line_at_time(source, 0x1008, 4), "-");
}

Test(jitdump_lines, follow_moved_code)
{
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;

	jitdump_begin(PID);
	put_plain(1, 0x1000, 100, "old.c");
	jitdump_move(2, 0x1000, 0x5000, 0x20);
	put_plain(3, 0x1000, 200, "new.c");
	jitdump_move(4, 0x5000, 0x6000, 0x20);
	source = open_dump();
	cr_expect_str_eq(line_at(source, 0x6010), "old.c:101");
	cr_expect_str_eq(line_at(source, 0x1010), "new.c:201");
	cr_expect_str_eq(line_at_time(source, 0x5010, 3), "old.c:101");
	cr_expect_str_eq(line_at_time(source, 0x1010, 1), "old.c:101");
}

/* As V8: the first line of a function is that of its first byte, 0x40 later. */
static void put_of_v8(uint64_t timestamp, uint64_t address, uint32_t line, uint64_t first)
{
	const struct jitdump_builder_line lines[] = {
		{ address + HEADER + first, line, "/srv/app.js" },
		{ address + HEADER + 0x60, line + 1, "/srv/app.js" },
		{ 0 },
	};

	jitdump_lines(timestamp, address, lines);
	jitdump_load(timestamp, address, 0x80, "JS:^f");
}

Test(jitdump_lines, count_from_the_elf_header_for_v8)
{
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;

	jitdump_begin(PID);
	put_of_v8(1, 0x1000, 10, 0);
	put_of_v8(2, 0x2000, 20, 8);
	source = open_dump();
	cr_expect_str_eq(line_at(source, 0x1000), "/srv/app.js:10");
	cr_expect_str_eq(line_at(source, 0x105f), "/srv/app.js:10");
	cr_expect_str_eq(line_at(source, 0x1060), "/srv/app.js:11");
	cr_expect_str_eq(line_at(source, 0x2007), "-");
	cr_expect_str_eq(line_at(source, 0x2008), "/srv/app.js:20");
}

/* Neither the first byte nor the byte 0x40 after it has a line, so both bases are possible. */
Test(jitdump_lines, are_dropped_when_their_base_is_unknown)
{
	const struct jitdump_builder_line lines[] = { { 0x1050, 5, "x.c" }, { 0 } };
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;

	jitdump_begin(PID);
	jitdump_lines(1, 0x1000, lines);
	jitdump_load(1, 0x1000, 0x80, "x");
	source = open_dump();
	cr_expect_str_eq(line_at(source, 0x1060), "-");
	jitdump_source_close(source);
	put_plain(2, 0x3000, 1, "y.c");
	source = open_dump();
	cr_expect_str_eq(line_at(source, 0x1060), "x.c:5");
	cr_expect_str_eq(line_at(source, 0x104f), "-");
}

Test(jitdump_lines, are_dropped_when_invalid)
{
	static const struct jitdump_builder_line bad[][3] = {
		/*
		 * V8 20.20.2 wrote this as a name: bytes of a string that was moved during the
		 * writing.
		 */
		{ { 0x1000, 5, "\xdd\xb5\x03" }, { 0x1008, 6, "x.c" } },
		{ { 0x1000, 5, "x.c" }, { 0x1021, 6, "x.c" } },
		{ { 0x1000, 5, "x.c" }, { 0xfff, 6, "x.c" } },
		{ { 0x1000, 5, "x.c" }, { 0x9e0d000000001000, 6, "x.c" } },
		{ { 0x1000, 5, "\xff" }, { 0x1008, 6, "x.c" } },
		{ { 0x1000, 5, "" } },
		{ { 0x1000, 0, "x.c" } },
		{ { 0x1000, (uint32_t)-1, "x.c" } },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;

		jitdump_begin(PID);
		put_plain(1, 0x3000, 1, "good.c");
		jitdump_lines(2, 0x1000, bad[i]);
		jitdump_load(2, 0x1000, 0x20, "x");
		source = open_dump();
		cr_expect_str_eq(line_at(source, 0x1004), "-", "case %zu", i);
		cr_expect_str_eq(line_at(source, 0x3004), "good.c:1");
	}
}

Test(jitdump_lines, are_read_in_the_other_byte_order)
{
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;

	jitdump_big_endian = true;
	jitdump_begin(PID);
	put_plain(1, 0x7f0000001000, 100, "big.c");
	jitdump_big_endian = false;
	source = open_dump();
	cr_expect_str_eq(line_at(source, 0x7f0000001012), "big.c:101");
}

/* A record with a wrong size or count, wherever its bytes end. */
Test(jitdump_lines, read_no_further_than_the_record_goes)
{
	const struct jitdump_builder_line lines[] = { { 0x1000, 5, "x.c" },
						      { 0x1008, 6, "y.c" },
						      { 0 } };
	struct jitdump_line line;
	size_t bytes;

	jitdump_bytes = 0;
	jitdump_lines(1, 0x1000, lines);
	bytes = jitdump_bytes;
	cr_assert(jitdump_line_find(jitdump_dump, bytes, false, 0x20, 0, 9, &line));
	cr_expect_eq(line.line, 6);
	cr_expect_eq(line.file_bytes, 3);
	for (size_t size = 0; size < bytes; size++) {
		uint8_t *copy = malloc(size + 1);

		memcpy(copy, jitdump_dump, size);
		cr_expect_not(jitdump_line_find(copy, size, false, 0x20, 0, 9, &line));
		/* The record says so itself. */
		jitdump_dump[4] = (uint8_t)size;
		cr_expect_not(jitdump_line_find(jitdump_dump, bytes, false, 0x20, 0, 9, &line));
		jitdump_dump[4] = (uint8_t)bytes;
		free(copy);
	}
	memset(jitdump_dump + 24, 0xff, 8);
	cr_expect_not(jitdump_line_find(jitdump_dump, bytes, false, 0x20, 0, 9, &line));
}

Test(jitdump_lines, are_read_with_their_appended_code)
{
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;
	struct sym_error *error;
	enum jitdump_refresh found;
	size_t begin_bytes;
	int fd;

	jitdump_begin(PID);
	put_plain(1, 0x1000, 100, "a.c");
	fd = elf_builder_file((const char *)jitdump_dump, jitdump_bytes);
	cr_assert_null(jitdump_source_open(NULL, fd, "jit-4321.dump", PID, NULL,
					   (struct unflushed){ 0 }, &source));
	begin_bytes = jitdump_bytes;
	put_plain(2, 0x1000, 200, "b.c");
	/* Lines come first. They have no effect before the code is loaded. */
	for (size_t size = begin_bytes + 120; size <= jitdump_bytes;
	     size += jitdump_bytes - begin_bytes - 120) {
		cr_assert_eq(pwrite(fd, jitdump_dump, size, 0), (ssize_t)size);
		error = jitdump_source_refresh(source, &found);
		cr_assert_null(error);
		cr_expect_str_eq(line_at(source, 0x1010),
				 size == jitdump_bytes ? "b.c:201" : "a.c:101");
	}
	close(fd);
}

static bool open_and_ask(void *context)
{
	struct jitdump_source *source = NULL;
	int fd = elf_builder_file((const char *)jitdump_dump, jitdump_bytes);
	struct sym_error *error = jitdump_source_open(NULL, fd, "jit-4321.dump", PID, NULL,
						      (struct unflushed){ 0 }, &source);
	struct source_match match;
	struct source_line line;
	bool done = false;

	(void)context;
	close(fd);
	if (!error && jitdump_source_find(source, 0x1010, &match) == SOURCE_HIT &&
	    jitdump_source_find_line(source, 0x1010, 0, match.name, &line)) {
		cr_expect_str_eq(line.file, "a.c");
		done = true;
	}
	sym_error_destroy(error);
	jitdump_source_close(source);
	return done;
}

Test(jitdump_lines, are_missing_when_out_of_memory)
{
	jitdump_begin(PID);
	put_plain(1, 0x1000, 100, "a.c");
	cr_expect_gt(alloc_fail_each(open_and_ask, NULL), 5);
}
