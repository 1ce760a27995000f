/* SPDX-License-Identifier: MIT */
/* Refreshes of a resolver while a jitdump of this process grows. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libsym/libsym.h"
#include "tests/support/program.h"

enum {
	CODE_BYTES = 0x10000
};

static char *directory, *path, *map_path;
static int dump_fd;
static uint64_t code, timestamp;
static struct sym_snapshot *snapshot;
static struct sym_resolver *resolver;
static struct sym_result *result;

static FILE *stream; /* NULL: the dump is written without stdio */

static void put(const void *bytes, size_t count)
{
	if (stream)
		cr_assert_eq(fwrite(bytes, 1, count, stream), count);
	else
		cr_assert_eq(write(dump_fd, bytes, count), (ssize_t)count);
}

/* jitdump-specification.txt of perf: magic, version, size, machine, pad, pid, time, flags. */
static void put_header(void)
{
	const uint32_t words[] = { 0x4a695444, 1, 40, 62, 0, (uint32_t)getpid(), 1, 0, 0, 0 };

	put(words, sizeof(words));
}

static void put_load(uint64_t offset, const char *name)
{
	static const uint8_t bytes[0x20];
	const uint32_t head[] = { 0, (uint32_t)(56 + strlen(name) + 1 + sizeof(bytes)) };
	const uint32_t ids[] = { (uint32_t)getpid(), (uint32_t)getpid() };
	const uint64_t rest[] = { code + offset, code + offset, sizeof(bytes), timestamp };

	timestamp++;
	put(head, sizeof(head));
	put(&timestamp, sizeof(timestamp));
	put(ids, sizeof(ids));
	put(rest, sizeof(rest));
	put(name, strlen(name) + 1);
	put(bytes, sizeof(bytes));
}

/* Two lines of the code that will be loaded there. */
static void put_lines(uint64_t offset, uint32_t line)
{
	const uint32_t head[] = { 2, 32 + 16 + sizeof("a.js") + 16 + 2 };
	const uint64_t begin[] = { timestamp, code + offset, 2 };
	const uint64_t places[] = { code + offset, code + offset + 8 };
	const uint32_t first[] = { line, 0 }, second[] = { line + 1, 0 };

	put(head, sizeof(head));
	put(begin, sizeof(begin));
	put(&places[0], sizeof(places[0]));
	put(first, sizeof(first));
	put("a.js", sizeof("a.js"));
	put(&places[1], sizeof(places[1]));
	put(second, sizeof(second));
	put("\xff", 2);
}

static void start(void)
{
	char name[64];
	void *memory =
		mmap(NULL, CODE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(memory, MAP_FAILED);
	code = (uintptr_t)memory;
	snprintf(name, sizeof(name), "jit-%d.dump", (int)getpid());
	directory = scratch_create();
	path = scratch_path(directory, name);
	dump_fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	cr_assert_geq(dump_fd, 0);
	cr_assert_geq(asprintf(&map_path, "/tmp/perf-%d.map", (int)getpid()), 0);
	unlink(map_path);
	put_header();
}

static void look(void)
{
	struct sym_snapshot_opts opts = { .size = sizeof(opts), .jit = SYM_JIT_PERF_MAP };

	cr_assert_null(sym_snapshot_open(getpid(), &opts, &snapshot));
	cr_assert_null(sym_resolver_create(snapshot, &resolver));
	cr_assert_null(sym_result_create(&result));
}

/* As a mark for perf. */
static void map_dump(void)
{
	cr_assert_neq(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, dump_fd, 0), MAP_FAILED);
}

static void finish(void)
{
	sym_result_destroy(result);
	sym_resolver_destroy(resolver);
	sym_snapshot_close(snapshot);
	unlink(map_path);
	close(dump_fd);
	free(map_path);
	free(path);
	scratch_remove(directory);
}

TestSuite(refresh_jitdump, .init = start, .fini = finish);

static const struct sym_answer *ask(uint64_t offset)
{
	uint64_t address = code + offset;

	cr_assert_null(sym_resolver_resolve(resolver, &address, 1, result));
	return sym_result_at(result, 0);
}

static const char *name_at(uint64_t offset)
{
	const struct sym_answer *answer = ask(offset);

	return answer->status == SYM_RESOLVED ? answer->name : "-";
}

static void expect_refresh(enum sym_refresh expected)
{
	enum sym_refresh found;

	cr_assert_null(sym_resolver_refresh(resolver, &found));
	cr_assert_eq(found, expected, "%d instead of %d", found, expected);
}

Test(refresh_jitdump, names_new_code_and_keeps_old_names)
{
	const char *old;

	put_load(0, "before");
	map_dump();
	look();
	old = name_at(0);
	cr_assert_str_eq(old, "before");
	cr_expect_eq(ask(0)->source, SYM_SOURCE_JITDUMP);
	/* The mappings of the resolver itself come first. */
	cr_assert_null(sym_resolver_refresh(resolver, NULL));
	expect_refresh(SYM_REFRESH_UNCHANGED);
	for (uint64_t i = 1; i < 50; i++) {
		char name[32];

		snprintf(name, sizeof(name), "method %d", (int)i);
		put_load(i * 0x40, name);
		cr_expect_str_eq(name_at(i * 0x40), "-");
		expect_refresh(SYM_REFRESH_EXTENDED);
		cr_expect_str_eq(name_at(i * 0x40 + 0x1f), name);
	}
	expect_refresh(SYM_REFRESH_UNCHANGED);
	cr_expect_eq(name_at(0), old);
	cr_expect_str_eq(name_at(0x40), "method 1");
}

Test(refresh_jitdump, names_code_that_replaced_cached_code)
{
	put_load(0, "generation 0");
	map_dump();
	look();
	for (int i = 1; i < 20; i++) {
		char name[32];

		snprintf(name, sizeof(name), "generation %d", i - 1);
		for (int j = 0; j < 3; j++)
			cr_expect_str_eq(name_at(8), name);
		snprintf(name, sizeof(name), "generation %d", i);
		put_load(0, name);
		cr_assert_null(sym_resolver_refresh(resolver, NULL));
		cr_expect_str_eq(name_at(8), name);
	}
}

Test(refresh_jitdump, uses_a_perf_map_that_appears_later)
{
	char *text;

	put_load(0, "of the dump");
	map_dump();
	look();
	cr_assert_str_eq(name_at(0), "of the dump");
	cr_assert_null(sym_resolver_refresh(resolver, NULL));
	cr_assert_geq(asprintf(&text, "%llx 20 of the map\n", (unsigned long long)code), 0);
	scratch_write(map_path, text, strlen(text));
	free(text);
	expect_refresh(SYM_REFRESH_REPLACED);
	cr_expect_str_eq(name_at(0), "of the map");
	put_load(0x40, "of the dump, later");
	expect_refresh(SYM_REFRESH_EXTENDED);
	cr_expect_str_eq(name_at(0x40), "of the dump, later");
	cr_expect_str_eq(name_at(0), "of the map");
}

/* It is in no file yet. */
Test(refresh_jitdump, names_unflushed_code)
{
	stream = fdopen(dup(dump_fd), "w");
	cr_assert_not_null(stream);
	setvbuf(stream, NULL, _IOFBF, 2 << 20);
	put_lines(0, 10);
	put_load(0, "held back");
	map_dump();
	look();
	cr_expect_str_eq(name_at(0), "held back");
	cr_assert_null(sym_result_set_fields(result, SYM_FIELD_LINES));
	cr_expect_eq(ask(9)->line, 11);
	cr_assert_null(sym_resolver_refresh(resolver, NULL));
	expect_refresh(SYM_REFRESH_UNCHANGED);
	for (uint64_t i = 1; i < 50; i++) {
		char name[32];

		snprintf(name, sizeof(name), "method %d", (int)i);
		put_lines(i * 0x40, (uint32_t)i * 10);
		put_load(i * 0x40, name);
		expect_refresh(SYM_REFRESH_EXTENDED);
		if (i % 7 == 0) {
			fflush(stream);
			expect_refresh(SYM_REFRESH_UNCHANGED);
		}
		cr_expect_str_eq(name_at(i * 0x40 + 0x1f), name);
		cr_expect_eq(ask(i * 0x40)->line, i * 10);
	}
	cr_expect_str_eq(name_at(0x40), "method 1");
	fclose(stream);
	cr_assert_null(sym_resolver_refresh(resolver, NULL));
	cr_expect_str_eq(name_at(49 * 0x40), "method 49");
	cr_expect_eq(ask(9)->line, 11);
}

Test(refresh_jitdump, finds_a_dump_that_appears_later)
{
	put_load(0, "late");
	look();
	cr_assert_str_eq(name_at(0), "-");
	map_dump();
	expect_refresh(SYM_REFRESH_REPLACED);
	cr_expect_str_eq(name_at(0), "late");
}

Test(refresh_jitdump, returns_lines_of_jitted_code_on_request)
{
	put_lines(0, 10);
	put_load(0, "first");
	put_load(0x40, "without lines");
	map_dump();
	look();
	cr_expect_null(ask(9)->file);
	cr_assert_null(sym_result_set_fields(result, SYM_FIELD_LINES | SYM_FIELD_INLINED));
	cr_assert_str_eq(ask(9)->file, "a.js");
	cr_expect_eq(ask(9)->line, 11);
	cr_expect_eq(ask(9)->column, 0);
	cr_expect_eq(ask(9)->inlined_count, 0);
	cr_expect_eq(ask(7)->line, 10);
	cr_expect_null(ask(0x40)->file);
	put_lines(0, 20);
	put_load(0, "second");
	cr_expect_eq(ask(7)->line, 10);
	cr_assert_null(sym_resolver_refresh(resolver, NULL));
	cr_expect_eq(ask(7)->line, 20);
	cr_assert_null(sym_result_set_fields(result, SYM_FIELD_INLINED));
	cr_expect_null(ask(7)->file);
}

/* ---- at times ---- */

static const struct sym_answer *ask_at(uint64_t address, uint64_t time_ns)
{
	cr_assert_null(sym_resolver_resolve_at(resolver, &address, &time_ns, 1, result));
	return sym_result_at(result, 0);
}

Test(refresh_jitdump, names_the_code_at_a_time)
{
	timestamp = 1000;
	put_load(0, "first");
	put_load(0x40, "beside");
	put_load(0, "second");
	map_dump();
	look();
	cr_expect_str_eq(ask_at(code + 4, 1001)->name, "first");
	cr_expect_eq(sym_result_at(result, 0)->offset_bytes, 4);
	cr_expect_eq(sym_result_at(result, 0)->source, SYM_SOURCE_JITDUMP);
	cr_expect_str_eq(ask_at(code, 1003)->name, "second");
	cr_expect_str_eq(ask_at(code, 0)->name, "second", "no time");
	cr_expect_str_eq(ask_at(code, 999)->name, "second", "the time of another clock");
	cr_expect_str_eq(ask_at(code + 0x40, 1001)->name, "beside", "written down later");
	cr_expect_eq(ask_at(code + 0x80, 1001)->status, SYM_NO_MATCH);
	/* New code counts from the refresh on, and only from its own time on. */
	put_load(0, "third");
	cr_assert_null(sym_resolver_refresh(resolver, NULL));
	cr_expect_str_eq(ask_at(code, 1003)->name, "second");
	cr_expect_str_eq(ask_at(code, 1004)->name, "third");
}

Test(refresh_jitdump, returns_the_line_of_the_code_at_a_time)
{
	timestamp = 1000;
	put_lines(0, 10);
	put_load(0, "first");
	put_lines(0, 20);
	put_load(0, "second");
	map_dump();
	look();
	cr_assert_null(sym_result_set_fields(result, SYM_FIELD_LINES));
	cr_expect_eq(ask_at(code + 8, 1001)->line, 11);
	cr_expect_eq(ask_at(code + 8, 1002)->line, 21);
	cr_expect_eq(ask_at(code + 8, 0)->line, 21);
	cr_expect_eq(ask_at(code + 8, 999)->line, 21, "the time of another clock");
}

Test(refresh_jitdump, names_freed_code)
{
	const uint64_t addresses[] = { code + 8, code + 8, code + 0x48, (uintptr_t)&ask_at };
	const uint64_t times_ns[] = { 1001, 0, 1001, 1001 };

	timestamp = 1000;
	put_load(0, "freed");
	put_load(0x40, "not there yet");
	map_dump();
	cr_assert_eq(munmap((void *)code, CODE_BYTES), 0);
	look();
	cr_assert_null(sym_resolver_resolve_at(resolver, addresses, times_ns, 4, result));
	cr_expect_eq(sym_result_at(result, 0)->status, SYM_RESOLVED);
	cr_expect_str_eq(sym_result_at(result, 0)->name, "freed");
	cr_expect_eq(sym_result_at(result, 1)->status, SYM_UNMAPPED);
	cr_expect_eq(sym_result_at(result, 2)->status, SYM_UNMAPPED);
	cr_expect_not_null(strstr(sym_result_at(result, 3)->name, "ask_at"));
}

/* Maps a file without symbols over the last part of the code. */
static void map_file_at(uint64_t offset)
{
	static const char text[] = "a file of no known kind";
	char *file = scratch_path(directory, "plugin");
	int fd;

	scratch_write(file, text, sizeof(text));
	fd = open(file, O_RDONLY | O_CLOEXEC);
	cr_assert_neq(mmap((void *)(code + offset), 4096, PROT_READ | PROT_EXEC,
			   MAP_PRIVATE | MAP_FIXED, fd, 0),
		      MAP_FAILED);
	close(fd);
	free(file);
}

Test(refresh_jitdump, uses_no_stub_where_a_file_is_mapped_at_any_time)
{
	timestamp = 1000;
	put_load(0, "stub in memory");
	put_load(0x8000, "stub CreateHelper<DynamicHelper>");
	put_load(0x8040, "a method");
	map_dump();
	map_file_at(0x8000);
	look();
	cr_expect_str_eq(ask_at(code, 1005)->name, "stub in memory");
	cr_expect_null(ask_at(code + 0x8000, 1005)->name);
	cr_expect_null(ask_at(code + 0x8000, 0)->name);
	cr_expect_str_eq(ask_at(code + 0x8040, 1005)->name, "a method");
}
