/* SPDX-License-Identifier: MIT */
#include "libsym/perf/jitdump_source.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/format/perf/jitdump.h"
#include "libsym/limits.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/elf_builder.h"
#include "tests/support/jitdump_builder.h"

enum {
	PID = JITDUMP_BUILDER_PID
};

static struct sym_error *open_cut(size_t bytes, struct jitdump_source **ret)
{
	int fd = elf_builder_file((const char *)jitdump_dump, bytes);
	struct sym_error *error = jitdump_source_open(NULL, fd, "jit-4321.dump", PID, NULL,
						      (struct unflushed){ 0 }, ret);

	close(fd);
	return error;
}

static struct jitdump_source *open_dump(void)
{
	struct jitdump_source *source = NULL;

	cr_assert_null(open_cut(jitdump_bytes, &source));
	return source;
}

static void expect_name(const struct jitdump_source *source, uint64_t address, const char *name)
{
	struct source_match match = { .name = "-" };

	jitdump_source_find(source, address, &match);
	cr_assert_str_eq(match.name, name, "at %llx", (unsigned long long)address);
}

Test(jitdump_source, names_loaded_code_with_its_tier)
{
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;
	struct source_match match;

	jitdump_begin(PID);
	jitdump_load(1, 0x1000, 0x20, "void [A] N.T::M()[PreJIT]");
	jitdump_load(2, 0x2000, 0x20, "stub GenerateLookupStub");
	source = open_dump();
	cr_assert_eq(jitdump_source_find(source, 0x1008, &match), SOURCE_HIT);
	cr_expect_str_eq(match.name, "void [A] N.T::M()");
	cr_expect_str_eq(match.tier, "PreJIT");
	cr_expect_eq(match.start, 0x1000);
	cr_expect_eq(match.size_bytes, 0x20);
	cr_assert_eq(jitdump_source_find(source, 0x2000, &match), SOURCE_HIT);
	cr_expect_eq(match.kind, SYM_SYMBOL_STUB);
	expect_name(source, 0x1020, "-");
	cr_expect_not(jitdump_source_is_cut(source));
}

Test(jitdump_source, lets_the_later_time_stamp_win_in_any_order)
{
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;

	jitdump_begin(PID);
	jitdump_load(9, 0x1000, 0x40, "newest");
	jitdump_load(3, 0x1000, 0x80, "older");
	jitdump_load(1, 0x1060, 0x80, "oldest");
	source = open_dump();
	expect_name(source, 0x103f, "newest");
	expect_name(source, 0x1040, "older");
	expect_name(source, 0x107f, "older");
	expect_name(source, 0x1080, "oldest");
}

Test(jitdump_source, follows_code_that_moves)
{
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;

	jitdump_begin(PID);
	jitdump_load(1, 0x1000, 0x40, "wanderer");
	jitdump_move(2, 0x1000, 0x3000, 0x40);
	jitdump_load(3, 0x1000, 0x10, "heir");
	jitdump_move(4, 0x3000, 0x5000, 0x40);
	jitdump_move(5, 0x9000, 0x1008, 0x4);
	source = open_dump();
	expect_name(source, 0x5020, "wanderer");
	expect_name(source, 0x3000, "-");
	expect_name(source, 0x1000, "heir");
	expect_name(source, 0x1008, "-");
	expect_name(source, 0x100c, "heir");
	expect_name(source, 0x1020, "-");
}

/* As many moves as in a process whose code is compacted again and again. */
Test(jitdump_source, follows_code_however_often_it_moves)
{
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;
	const uint64_t count = 30000;

	jitdump_begin(PID);
	jitdump_load(1, 0x100000, 0x20, "wanderer");
	jitdump_load(2, 0x100000 + count / 2 * 0x40, 0x20, "in its way");
	for (uint64_t i = 0; i < count; i++)
		jitdump_move(3 + i, 0x100000 + i * 0x40, 0x100000 + (i + 1) * 0x40, 0x20);
	source = open_dump();
	expect_name(source, 0x100010 + count * 0x40, "wanderer");
	expect_name(source, 0x100010 + count / 2 * 0x40, "-");
	expect_name(source, 0x100010, "-");
}

/* The code that a move names is wrong once other code has covered it, or it has left. */
/* A dump that another process began: 0x1000 to 0x3000 is memory of both. */
Test(jitdump_source, is_used_for_memory_that_processes_share)
{
	struct address_range shared = { 0x1000, 0x3000 };
	struct address_ranges only = { &shared, 1 };
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;
	struct sym_error *error;
	int fd;

	jitdump_begin(PID - 1);
	jitdump_load(1, 0x1000, 0x40, "of a child");
	jitdump_load(2, 0x1800, 0x40, "that moves out");
	jitdump_load(3, 0x5000, 0x40, "elsewhere");
	jitdump_load(4, 0x2ff0, 0x40, "half");
	jitdump_load(5, 0x2000, 0x40, "what comes over it");
	jitdump_move(6, 0x1800, 0x6000, 0x40);
	jitdump_move(7, 0x5000, 0x2000, 0x40);
	fd = elf_builder_file((const char *)jitdump_dump, jitdump_bytes);
	error = jitdump_source_open(NULL, fd, "jit-4320.dump", PID, &only, (struct unflushed){ 0 },
				    &source);
	cr_assert_eq(sym_error_code(error), SYM_ERROR_FORMAT, "another process began it");
	sym_error_destroy(error);
	cr_assert_null(jitdump_source_open(NULL, fd, "jit-4320.dump", PID - 1, &only,
					   (struct unflushed){ 0 }, &source));
	close(fd);
	expect_name(source, 0x1000, "of a child");
	expect_name(source, 0x1800, "-");
	expect_name(source, 0x6000, "-");
	expect_name(source, 0x5000, "-");
	expect_name(source, 0x2ff0, "-");
	expect_name(source, 0x2000, "-");
}

Test(jitdump_source, does_not_name_code_moved_from_a_place_used_by_other_code)
{
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;

	jitdump_begin(PID);
	jitdump_load(1, 0x1000, 0x40, "gone");
	jitdump_move(2, 0x1000, 0x2000, 0x40);
	jitdump_move(3, 0x1000, 0x3000, 0x40); /* unknown code */
	jitdump_load(4, 0x4000, 0x40, "below");
	jitdump_load(5, 0x3ff0, 0x40, "over it");
	jitdump_move(6, 0x4000, 0x5000, 0x40);
	jitdump_load(7, 0x6000, 0x40, "named");
	jitdump_load(8, 0x6000, 0x40, "");
	jitdump_move(9, 0x6000, 0x7000, 0x40);
	jitdump_move(10, 0x2000, 0x2000, 0x40); /* stays */
	jitdump_move(11, 0x2000, 0x8000, 0x40);
	source = open_dump();
	expect_name(source, 0x3000, "-");
	expect_name(source, 0x5000, "-");
	expect_name(source, 0x3ff8, "over it");
	expect_name(source, 0x7000, "-");
	expect_name(source, 0x2000, "-");
	expect_name(source, 0x8010, "gone");
}

/* As .NET 10.0.12 leaves it: cut inside the code of the second record. */
Test(jitdump_source, reads_a_record_with_truncated_code)
{
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;

	jitdump_begin(PID);
	jitdump_load(1, 0x1000, 0x20, "first");
	jitdump_load(2, 0x10000, 0x4000, "stub ReportStubBlock<Unknown>");
	cr_assert_null(open_cut(jitdump_bytes - 0x2000, &source));
	expect_name(source, 0x1000, "first");
	expect_name(source, 0x13fff, "stub ReportStubBlock<Unknown>");
	cr_expect(jitdump_source_is_cut(source));
}

Test(jitdump_source, reads_a_truncated_file_up_to_its_end)
{
	size_t second, name_end;

	jitdump_begin(PID);
	jitdump_load(1, 0x1000, 0x20, "first");
	second = jitdump_bytes;
	name_end = second + 56 + sizeof("second");
	jitdump_load(2, 0x2000, 0x20, "second");
	for (size_t bytes = JITDUMP_HEADER_BYTES; bytes <= jitdump_bytes; bytes++) {
		struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;

		cr_assert_null(open_cut(bytes, &source));
		expect_name(source, 0x2000, bytes >= name_end ? "second" : "-");
		cr_expect_eq(jitdump_source_is_cut(source),
			     bytes != jitdump_bytes && bytes != second &&
				     bytes != JITDUMP_HEADER_BYTES,
			     "%zu bytes", bytes);
	}
}

Test(jitdump_source, skips_unknown_records_and_stops_at_invalid_ones)
{
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;

	jitdump_begin(PID);
	jitdump_put(2, 4);
	jitdump_put(48, 4);
	jitdump_put(1, 8);
	jitdump_bytes += 32;
	jitdump_load(2, 0x1000, 0x20, "good");
	jitdump_put(JITDUMP_LOAD, 4);
	jitdump_put(3, 4);
	jitdump_put(3, 8);
	jitdump_load(4, 0x2000, 0x20, "behind nonsense");
	source = open_dump();
	expect_name(source, 0x1000, "good");
	expect_name(source, 0x2000, "-");
	cr_expect(jitdump_source_is_cut(source));
}

static char *make_name(size_t bytes)
{
	char *name = malloc(bytes + 1);

	memset(name, 'n', bytes);
	name[bytes] = '\0';
	return name;
}

Test(jitdump_source, drops_a_name_above_the_limit)
{
	static const size_t too_long[] = { LIMIT_NAME_BYTES + 1, LIMIT_NAME_BYTES + 4096, 1 << 20 };
	char *longest = make_name(LIMIT_NAME_BYTES);

	for (size_t i = 0; i < sizeof(too_long) / sizeof(too_long[0]); i++) {
		struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;
		char *name = make_name(too_long[i]);

		jitdump_begin(PID);
		jitdump_load(1, 0x1000, 0x40, "first");
		jitdump_load(2, 0x1020, 0x20, name);
		jitdump_load(3, 0x2000, 0x20, longest);
		jitdump_load_without_code(4, 0x3000, 0x20, "last");
		source = open_dump();
		expect_name(source, 0x1000, "first");
		expect_name(source, 0x1020, "-");
		expect_name(source, 0x2000, longest);
		expect_name(source, 0x3000, "last");
		cr_expect_not(jitdump_source_is_cut(source), "%zu bytes", too_long[i]);
		free(name);
	}
	free(longest);
}

Test(jitdump_source, skips_an_inconsistent_record_only)
{
	enum {
		NAME_BYTES = sizeof("liar")
	};
	static const struct {
		uint8_t record_bytes;
		uint64_t code_bytes;
	} lies[] = {
		{ JITDUMP_LOAD_BYTES, 0x20 },                  /* no room for a name */
		{ JITDUMP_LOAD_BYTES + NAME_BYTES - 1, 0x20 }, /* for its NUL */
		{ JITDUMP_LOAD_BYTES + NAME_BYTES + 1, 0x20 }, /* for the code */
		{ JITDUMP_LOAD_BYTES + NAME_BYTES, UINT64_MAX },
	};

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;
		size_t begin_bytes;

		jitdump_begin(PID);
		jitdump_load(1, 0x1000, 0x20, "first");
		begin_bytes = jitdump_bytes;
		jitdump_load(2, 0x2000, 0x20, "liar");
		jitdump_dump[begin_bytes + 4] = lies[i].record_bytes;
		memcpy(jitdump_dump + begin_bytes + 40, &lies[i].code_bytes, 8);
		jitdump_bytes = begin_bytes + lies[i].record_bytes;
		jitdump_load(3, 0x3000, 0x20, "last");
		source = open_dump();
		expect_name(source, 0x1000, "first");
		expect_name(source, 0x2000, "-");
		expect_name(source, 0x3000, "last");
		cr_expect_not(jitdump_source_is_cut(source), "lie %zu", i);
	}
}

Test(jitdump_source, skips_records_of_other_processes)
{
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;

	jitdump_begin(PID);
	jitdump_load(1, 0x1000, 0x20, "foreign");
	jitdump_dump[JITDUMP_HEADER_BYTES + 16] ^= 1;
	source = open_dump();
	expect_name(source, 0x1000, "-");
}

Test(jitdump_source, reads_the_other_byte_order)
{
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;
	struct source_match match;

	jitdump_big_endian = true;
	jitdump_begin(PID);
	jitdump_load(2, 0x7f0000001000, 0x20, "T::M()[PreJIT]");
	jitdump_move(3, 0x7f0000001000, 0x7f0000002000, 0x20);
	jitdump_big_endian = false;
	source = open_dump();
	cr_assert_eq(jitdump_source_find(source, 0x7f0000002010, &match), SOURCE_HIT);
	cr_expect_str_eq(match.name, "T::M()");
	cr_expect_str_eq(match.tier, "PreJIT");
	cr_expect_eq(match.start, 0x7f0000002000);
	expect_name(source, 0x7f0000001000, "-");
	cr_expect_not(jitdump_source_is_cut(source));
}

Test(jitdump_source, reads_records_without_code)
{
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;

	jitdump_begin(PID);
	jitdump_load_without_code(1, 0x1000, 0x20, "small");
	jitdump_load_without_code(2, 0x2000, 0x4000, "larger than its record");
	jitdump_load(3, 0x8000, 0x20, "with code");
	source = open_dump();
	expect_name(source, 0x101f, "small");
	expect_name(source, 0x5fff, "larger than its record");
	expect_name(source, 0x8000, "with code");
	cr_expect_not(jitdump_source_is_cut(source));
}

Test(jitdump_source, keeps_names_unchanged)
{
	static const char *const names[] = {
		"Lcom/example/Outer$Inner;lambda$0([Ljava/lang/String;J)V",
		"LambdaForm(0x7f) with  two blanks ",
		"_ZN4llvm3orcL1fEv",
		"JS:*\xd1\x80\xd0\xb0\xd0\xb1\xd0\xbe\xd1\x82\xd0\xb0 file:///a b.js:3:5",
		"$'Elixir.Enum':'-map/2-fun-0-'/2",
		"\xff\xfe not UTF-8",
		"zdfShowInteger_zdcshow_info",
	};
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;

	jitdump_begin(PID);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		jitdump_load(i, 0x1000 * (i + 1), 0x20, names[i]);
	source = open_dump();
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		expect_name(source, 0x1000 * (i + 1) + 7, names[i]);
}

/* ---- at a time ---- */

static void expect_then(struct jitdump_source *source, uint64_t address, uint64_t time_ns,
			enum jitdump_then then, const char *name)
{
	struct source_match match = { .name = "-" };
	enum jitdump_then found = jitdump_source_find_at(source, address, time_ns, &match);

	cr_expect_eq(found, then, "%d at %llx, %llu", found, (unsigned long long)address,
		     (unsigned long long)time_ns);
	cr_expect_str_eq(match.name, name, "%s at %llx, %llu", match.name,
			 (unsigned long long)address, (unsigned long long)time_ns);
}

Test(jitdump_source, finds_the_code_at_a_time)
{
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;

	jitdump_begin(PID);
	jitdump_load(10, 0x9000, 0x10, "first of all");
	jitdump_load(20, 0x1000, 0x40, "first");
	jitdump_load(40, 0x1020, 0x40, "third");
	jitdump_load(30, 0x1000, 0x80, "second");
	source = open_dump();
	expect_then(source, 0x1000, 20, JITDUMP_THEN_NAMED, "first");
	expect_then(source, 0x1000, 29, JITDUMP_THEN_NAMED, "first");
	expect_then(source, 0x1000, 30, JITDUMP_THEN_NAMED, "second");
	expect_then(source, 0x1020, 39, JITDUMP_THEN_NAMED, "second");
	expect_then(source, 0x1020, 40, JITDUMP_THEN_NAMED, "third");
	expect_then(source, 0x105f, UINT64_MAX, JITDUMP_THEN_NAMED, "third");
	expect_then(source, 0x1060, UINT64_MAX, JITDUMP_THEN_NAMED, "second");
	expect_then(source, 0x1080, UINT64_MAX, JITDUMP_THEN_UNKNOWN, "-");
	expect_then(source, 0xfff, UINT64_MAX, JITDUMP_THEN_UNKNOWN, "-");
	/*
	 * A time before the dump began is from another clock; a time before the record of the code
	 * is not.
	 */
	expect_then(source, 0x1000, 9, JITDUMP_THEN_UNKNOWN, "-");
	expect_then(source, 0x1000, 19, JITDUMP_THEN_LATER, "first");
	expect_then(source, 0x1050, 19, JITDUMP_THEN_LATER, "second");
}

Test(jitdump_source, finds_code_before_its_move)
{
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;

	jitdump_begin(PID);
	jitdump_load(10, 0x1000, 0x40, "wanderer");
	jitdump_move(20, 0x1000, 0x3000, 0x40);
	jitdump_load(30, 0x1000, 0x10, "heir");
	jitdump_move(40, 0x9000, 0x1008, 0x4);
	source = open_dump();
	expect_then(source, 0x1000, 19, JITDUMP_THEN_NAMED, "wanderer");
	expect_then(source, 0x1000, 20, JITDUMP_THEN_GONE, "-");
	expect_then(source, 0x3000, 20, JITDUMP_THEN_NAMED, "wanderer");
	expect_then(source, 0x3000, 19, JITDUMP_THEN_LATER, "wanderer");
	expect_then(source, 0x1008, 39, JITDUMP_THEN_NAMED, "heir");
	expect_then(source, 0x1008, 40, JITDUMP_THEN_GONE, "-");
}

Test(jitdump_source, ignores_times_when_it_counts_cycles)
{
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;

	jitdump_begin(PID);
	jitdump_dump[32] = JITDUMP_CYCLES;
	jitdump_load(10, 0x1000, 0x40, "counted");
	source = open_dump();
	expect_then(source, 0x1000, 20, JITDUMP_THEN_UNKNOWN, "-");
	expect_name(source, 0x1000, "counted");
}

static void expect_refused(const char *why)
{
	struct jitdump_source *source = NULL;
	struct sym_error *error = open_cut(jitdump_bytes, &source);

	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), SYM_ERROR_FORMAT);
	cr_expect_not_null(strstr(sym_error_message(error), why), "%s", sym_error_message(error));
	sym_error_destroy(error);
}

Test(jitdump_source, rejects_what_is_not_a_jitdump_of_the_process)
{
	jitdump_begin(PID + 1);
	expect_refused("another process");
	jitdump_begin(PID);
	jitdump_dump[4] = 2;
	expect_refused("version");
	jitdump_begin(PID);
	jitdump_dump[0] = 'x';
	expect_refused("not a jitdump");
	jitdump_begin(PID);
	jitdump_dump[8] = 39;
	expect_refused("contradicts");
	jitdump_begin(PID);
	jitdump_bytes = 39;
	expect_refused("truncated");
}

/* ---- growing ---- */

static int growing_fd;
static size_t written_bytes;

/* As a JIT does: writes the rest, up to `bytes` in all. */
static void write_up_to(size_t bytes)
{
	cr_assert_eq(pwrite(growing_fd, jitdump_dump + written_bytes, bytes - written_bytes,
			    (off_t)written_bytes),
		     (ssize_t)(bytes - written_bytes));
	written_bytes = bytes;
}

static struct jitdump_source *open_growing(void)
{
	struct jitdump_source *source = NULL;

	growing_fd = elf_builder_file("", 0);
	written_bytes = 0;
	write_up_to(jitdump_bytes);
	cr_assert_null(jitdump_source_open(NULL, growing_fd, "jit-4321.dump", PID, NULL,
					   (struct unflushed){ 0 }, &source));
	return source;
}

static void expect_refresh(struct jitdump_source *source, enum jitdump_refresh expected)
{
	enum jitdump_refresh found;

	cr_assert_null(jitdump_source_refresh(source, &found));
	cr_assert_eq(found, expected, "%d instead of %d", found, expected);
	jitdump_source_collect(source);
}

Test(jitdump_source, reads_appended_records)
{
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;
	struct source_match first, later;

	jitdump_begin(PID);
	jitdump_load(1, 0x1000, 0x20, "first[PreJIT]");
	source = open_growing();
	expect_refresh(source, JITDUMP_UNCHANGED);
	cr_assert_eq(jitdump_source_find(source, 0x1000, &first), SOURCE_HIT);
	for (uint64_t i = 2; i < 100; i++) {
		char name[32];

		snprintf(name, sizeof(name), "method %d[OptimizedTier1]", (int)i);
		jitdump_load(i, i * 0x1000, 0x20, name);
		write_up_to(jitdump_bytes);
		expect_refresh(source, JITDUMP_APPENDED);
	}
	expect_refresh(source, JITDUMP_UNCHANGED);
	expect_name(source, 0x1000, "first");
	expect_name(source, 0x2010, "method 2");
	expect_name(source, 0x63000, "method 99");
	cr_expect_eq(jitdump_source_records(source), 99);
	/* Returned names stay, and readers from before see the old data. */
	cr_assert_eq(jitdump_source_find(source, 0x1000, &later), SOURCE_HIT);
	cr_expect_eq(first.name, later.name);
	cr_expect_str_eq(first.tier, "PreJIT");
	close(growing_fd);
}

Test(jitdump_source, keeps_an_incomplete_record_for_the_next_refresh)
{
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;
	size_t second, name_end;

	jitdump_begin(PID);
	jitdump_load(1, 0x1000, 0x20, "first");
	source = open_growing();
	second = jitdump_bytes;
	name_end = second + 56 + sizeof("second");
	jitdump_load(2, 0x2000, 0x20, "second");
	while (written_bytes < jitdump_bytes) {
		write_up_to(written_bytes + 1);
		expect_refresh(source,
			       written_bytes == name_end ? JITDUMP_APPENDED : JITDUMP_UNCHANGED);
		expect_name(source, 0x2000, written_bytes >= name_end ? "second" : "-");
		expect_name(source, 0x1000, "first");
		cr_expect_eq(jitdump_source_is_cut(source), written_bytes != jitdump_bytes);
	}
	jitdump_load(3, 0x2000, 0x10, "third");
	write_up_to(jitdump_bytes);
	expect_refresh(source, JITDUMP_APPENDED);
	expect_name(source, 0x2000, "third");
	expect_name(source, 0x2010, "second");
	cr_expect_eq(jitdump_source_records(source), 3);
	close(growing_fd);
}

Test(jitdump_source, finds_code_at_a_time_after_a_refresh)
{
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;

	jitdump_begin(PID);
	jitdump_load(10, 0x1000, 0x20, "before");
	source = open_growing();
	expect_then(source, 0x1000, 50, JITDUMP_THEN_NAMED, "before");
	jitdump_load(40, 0x1000, 0x20, "after");
	write_up_to(jitdump_bytes);
	expect_refresh(source, JITDUMP_APPENDED);
	expect_then(source, 0x1000, 39, JITDUMP_THEN_NAMED, "before");
	expect_then(source, 0x1000, 50, JITDUMP_THEN_NAMED, "after");
	close(growing_fd);
}

Test(jitdump_source, follows_moves_and_late_records_after_a_refresh)
{
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;

	jitdump_begin(PID);
	jitdump_load(1, 0x1000, 0x40, "wanderer");
	jitdump_load(10, 0x8000, 0x40, "newest");
	source = open_growing();
	jitdump_move(11, 0x1000, 0x3000, 0x40);
	write_up_to(jitdump_bytes);
	expect_refresh(source, JITDUMP_APPENDED);
	expect_name(source, 0x3000, "wanderer");
	expect_name(source, 0x1000, "-");
	jitdump_load(12, 0x1000, 0x10, "heir");
	jitdump_load(5, 0x8000, 0x80, "late record of older code");
	write_up_to(jitdump_bytes);
	expect_refresh(source, JITDUMP_APPENDED);
	expect_name(source, 0x1000, "heir");
	expect_name(source, 0x3000, "wanderer");
	expect_name(source, 0x8000, "newest");
	expect_name(source, 0x8040, "late record of older code");
	jitdump_move(13, 0x3000, 0x5000, 0x40);
	write_up_to(jitdump_bytes);
	expect_refresh(source, JITDUMP_APPENDED);
	expect_name(source, 0x5000, "wanderer");
	expect_name(source, 0x3000, "-");
	close(growing_fd);
}

Test(jitdump_source, detects_an_overwritten_dump)
{
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;

	jitdump_begin(PID);
	jitdump_load(1, 0x1000, 0x20, "first");
	source = open_growing();
	cr_assert_eq(ftruncate(growing_fd, 0), 0);
	expect_refresh(source, JITDUMP_REPLACED);
	expect_name(source, 0x1000, "first");
	jitdump_begin(PID);
	jitdump_dump[24] ^= 1; /* another time of its beginning */
	jitdump_load(1, 0x1000, 0x2000, "another");
	written_bytes = 0;
	write_up_to(jitdump_bytes);
	expect_refresh(source, JITDUMP_REPLACED);
	expect_name(source, 0x1000, "first");
	close(growing_fd);
}

/* So that a cut dump is not reported any more once it is complete. */
Test(jitdump_source, must_be_opened_again_once_it_is_complete)
{
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;
	size_t whole;

	jitdump_begin(PID);
	jitdump_load(1, 0x1000, 0x20, "first");
	whole = jitdump_bytes;
	jitdump_bytes -= 8;
	source = open_growing();
	cr_expect(jitdump_source_is_cut(source));
	write_up_to(whole);
	expect_refresh(source, JITDUMP_REPLACED);
	close(growing_fd);
}

static bool refresh_once(void *context)
{
	struct jitdump_source *source = context;
	enum jitdump_refresh found;
	struct sym_error *error = jitdump_source_refresh(source, &found);

	if (error)
		cr_assert_eq(sym_error_code(error), SYM_ERROR_NO_MEMORY);
	else
		cr_assert_eq(found, JITDUMP_APPENDED);
	sym_error_destroy(error);
	expect_name(source, 0x1000, "first");
	expect_name(source, 0x2000, error ? "-" : "second");
	return !error;
}

Test(jitdump_source, keeps_known_code_when_out_of_memory)
{
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;

	jitdump_begin(PID);
	jitdump_load(1, 0x1000, 0x20, "first");
	source = open_growing();
	jitdump_load(2, 0x2000, 0x20, "second");
	write_up_to(jitdump_bytes);
	cr_expect_gt(alloc_fail_each(refresh_once, source), 4);
	cr_expect_eq(jitdump_source_records(source), 2);
	close(growing_fd);
}

static bool open_once(void *context)
{
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;
	struct sym_error *error = open_cut(jitdump_bytes, &source);

	(void)context;
	if (error)
		cr_assert_eq(sym_error_code(error), SYM_ERROR_NO_MEMORY);
	sym_error_destroy(error);
	return source != NULL;
}

Test(jitdump_source, survives_every_failing_allocation)
{
	jitdump_begin(PID);
	jitdump_load(1, 0x1000, 0x20, "first");
	jitdump_move(2, 0x1000, 0x3000, 0x20);
	cr_expect_gt(alloc_fail_each(open_once, NULL), 6);
}
