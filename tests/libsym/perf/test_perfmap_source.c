/* SPDX-License-Identifier: MIT */
#include "libsym/perf/perfmap_source.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/budget_api.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/elf_builder.h"

static struct perfmap_source *open_texts(const char *const *texts, const size_t *sizes,
					 size_t count)
{
	static const char *const paths[] = { "first.map", "second.map" };
	struct perfmap_source *source = NULL;
	struct perfmap_input inputs[2] = { { 0 } };

	for (size_t i = 0; i < count; i++)
		inputs[i] = (struct perfmap_input){
			.fd = elf_builder_file(texts[i], sizes ? sizes[i] : strlen(texts[i])),
			.path = paths[i],
		};
	cr_assert_null(perfmap_source_open(inputs, count, 0, &source));
	for (size_t i = 0; i < count; i++)
		close(inputs[i].fd);
	return source;
}

static struct perfmap_source *open_text(const char *text)
{
	return open_texts(&text, NULL, 1);
}

static void expect_name(const struct perfmap_source *source, uint64_t address, const char *name,
			const char *tier, enum sym_symbol_kind kind)
{
	struct source_match match = { 0 };

	cr_assert_eq(perfmap_source_find(source, address, &match), SOURCE_HIT);
	cr_expect_str_eq(match.name, name);
	cr_expect_eq(match.kind, kind);
	if (tier)
		cr_expect_str_eq(match.tier, tier);
	else
		cr_expect_null(match.tier);
}

Test(perfmap_source, finds_names_with_tier_and_kind)
{
	struct perfmap_source *source AUTO_PERFMAP_SOURCE =
		open_text("0x7f0000001000 20 void [A] N.T::M()[OptimizedTier1]\n"
			  "0x7f0000001020 20 void [A] N.T::M()[QuickJitted]\n"
			  "7f0000002000 10 stub GenerateLookupStub<ResolveStub>\n"
			  "7f0000002010 10 stub<3> GenerateDispatchStub<DispatchStub>\n"
			  "7f0000003000 8 stubborn function\n");

	expect_name(source, 0x7f0000001000, "void [A] N.T::M()", "OptimizedTier1",
		    SYM_SYMBOL_FUNCTION);
	expect_name(source, 0x7f000000103f, "void [A] N.T::M()", "QuickJitted",
		    SYM_SYMBOL_FUNCTION);
	expect_name(source, 0x7f0000002000, "stub GenerateLookupStub<ResolveStub>", NULL,
		    SYM_SYMBOL_STUB);
	expect_name(source, 0x7f000000201f, "stub<3> GenerateDispatchStub<DispatchStub>", NULL,
		    SYM_SYMBOL_STUB);
	expect_name(source, 0x7f0000003007, "stubborn function", NULL, SYM_SYMBOL_FUNCTION);
	cr_expect_eq(perfmap_source_find(source, 0x7f0000003008, &(struct source_match){ 0 }),
		     SOURCE_MISS);
}

Test(perfmap_source, lets_the_later_line_and_the_later_file_win)
{
	static const char *const texts[] = { "1000 100 first\n1000 10 second\n", "1008 8 third\n" };
	struct perfmap_source *source AUTO_PERFMAP_SOURCE = open_texts(texts, NULL, 2);
	struct source_match match;

	expect_name(source, 0x1000, "second", NULL, SYM_SYMBOL_FUNCTION);
	expect_name(source, 0x1008, "third", NULL, SYM_SYMBOL_FUNCTION);
	expect_name(source, 0x1010, "first", NULL, SYM_SYMBOL_FUNCTION);
	/* The rest of a symbol keeps the start of the whole symbol. */
	cr_assert_eq(perfmap_source_find(source, 0x1010, &match), SOURCE_HIT);
	cr_expect_eq(match.start, 0x1000);
	cr_expect_eq(match.size_bytes, 0x100);
	cr_expect_eq(perfmap_source_count(source), 3);
}

Test(perfmap_source, keeps_an_incomplete_last_line_back)
{
	struct perfmap_source *source AUTO_PERFMAP_SOURCE = open_text("1000 10 whole\n2000 10 to");

	cr_expect_eq(perfmap_source_count(source), 1);
	cr_expect_eq(perfmap_source_bad_lines(source), 0);
}

/* The first line of a file does not complete the incomplete last line of the file before. */
Test(perfmap_source, does_not_join_lines_of_two_files)
{
	static const char *const texts[] = { "1000 10 to", "rn\n2000 10 other\n" };
	struct perfmap_source *source AUTO_PERFMAP_SOURCE = open_texts(texts, NULL, 2);

	cr_expect_eq(perfmap_source_count(source), 1);
	cr_expect_eq(perfmap_source_bad_lines(source), 1);
	expect_name(source, 0x2000, "other", NULL, SYM_SYMBOL_FUNCTION);
}

Test(perfmap_source, counts_bad_lines_and_continues)
{
	struct perfmap_source *source AUTO_PERFMAP_SOURCE =
		open_text("garbage\n1000 10 good\nffffffffffffffff 10 beyond the end\n"
			  "2000 10\n3000 zz bad\n4000 10 also good\n");

	cr_expect_eq(perfmap_source_count(source), 2);
	cr_expect_eq(perfmap_source_bad_lines(source), 4);
}

/* Lines of every length around the size of one read: none may be lost or torn at a boundary. */
static void expect_every_line(size_t lines, size_t least_bytes)
{
	size_t capacity = lines * 64, size_bytes = 0;
	char *text = malloc(capacity);
	struct perfmap_source *source AUTO_PERFMAP_SOURCE = NULL;

	cr_assert_not_null(text);
	for (size_t i = 0; i < lines; i++)
		size_bytes += (size_t)snprintf(text + size_bytes, capacity - size_bytes,
					       "%zx 10 name %.*s%zu\n", 0x1000 + i * 16,
					       (int)(i % 29), "xxxxxxxxxxxxxxxxxxxxxxxxxxxxx", i);
	cr_assert_geq(size_bytes, least_bytes);
	source = open_texts((const char *const *)&text, &size_bytes, 1);
	cr_expect_eq(perfmap_source_count(source), lines);
	cr_expect_eq(perfmap_source_bad_lines(source), 0);
	for (size_t i = 0; i < lines; i++) {
		struct source_match match;
		char expected[64];

		snprintf(expected, sizeof(expected), "name %.*s%zu", (int)(i % 29),
			 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxx", i);
		cr_assert_eq(perfmap_source_find(source, 0x1000 + i * 16, &match), SOURCE_HIT);
		cr_assert_str_eq(match.name, expected);
	}
	free(text);
}

Test(perfmap_source, reads_across_the_boundaries_of_its_steps)
{
	expect_every_line(60000, (size_t)1 << 20);
}

/* A large text is read in larger steps. */
Test(perfmap_source, reads_across_the_boundaries_of_a_large_text)
{
	expect_every_line(1000000, (size_t)33 << 20);
}

/* 4 MB without a newline must cost one bad line and no memory to speak of. */
Test(perfmap_source, skips_a_line_without_end)
{
	size_t long_bytes = 4 << 20;
	char *text = malloc(long_bytes + 64);
	struct perfmap_source *source AUTO_PERFMAP_SOURCE = NULL;
	size_t size_bytes;

	cr_assert_not_null(text);
	memcpy(text, "1000 10 ", 8);
	memset(text + 8, 'x', long_bytes - 8);
	memcpy(text + long_bytes, "\n2000 10 good\n", 14);
	size_bytes = long_bytes + 14;
	source = open_texts((const char *const *)&text, &size_bytes, 1);
	cr_expect_eq(perfmap_source_count(source), 1);
	cr_expect_eq(perfmap_source_bad_lines(source), 1);
	expect_name(source, 0x2000, "good", NULL, SYM_SYMBOL_FUNCTION);
	free(text);
}

static bool load(void *context)
{
	struct perfmap_source *source AUTO_PERFMAP_SOURCE = NULL;
	const struct perfmap_input input = { .fd = *(int *)context, .path = "map" };
	struct sym_error *error = perfmap_source_open(&input, 1, 0, &source);

	if (!error) {
		cr_expect_eq(perfmap_source_count(source), 2);
		return true;
	}
	cr_expect_eq(sym_error_code(error), SYM_ERROR_NO_MEMORY);
	sym_error_destroy(error);
	return false;
}

Test(perfmap_source, survives_every_failing_allocation)
{
	int fd = elf_builder_file("1000 10 a[QuickJitted]\n1008 10 b\n", 33);

	cr_expect_gt(alloc_fail_each(load, &fd), 3);
	close(fd);
}

/* ---- a map that grows ------------------------------------------------------------------ */

/* A file of its own name; `path` has room for 64 bytes. */
static int make_file(char *path)
{
	int fd;

	snprintf(path, 64, "/tmp/perfmap-source-XXXXXX");
	fd = mkstemp(path);
	cr_assert_geq(fd, 0);
	return fd;
}

static void append(int fd, const char *text)
{
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static struct perfmap_source *open_path(int fd, const char *path)
{
	const struct perfmap_input input = { .fd = fd, .path = path };
	struct perfmap_source *source = NULL;

	cr_assert_null(perfmap_source_open(&input, 1, 0, &source));
	return source;
}

static void expect_refresh(struct perfmap_source *source, enum perfmap_refresh expected)
{
	enum perfmap_refresh refreshed;

	cr_assert_null(perfmap_source_refresh(source, &refreshed));
	cr_assert_eq(refreshed, expected);
}

Test(perfmap_source, reads_appended_lines)
{
	char path[64];
	int fd = make_file(path);
	struct perfmap_source *source AUTO_PERFMAP_SOURCE = NULL;

	append(fd, "1000 100 first\n2000 100 second\n");
	source = open_path(fd, path);
	expect_refresh(source, PERFMAP_UNCHANGED);
	append(fd, "1040 10 inner[OptimizedTier1]\n3000 10 thi");
	expect_refresh(source, PERFMAP_APPENDED);
	expect_name(source, 0x1039, "first", NULL, SYM_SYMBOL_FUNCTION);
	expect_name(source, 0x1040, "inner", "OptimizedTier1", SYM_SYMBOL_FUNCTION);
	expect_name(source, 0x1050, "first", NULL, SYM_SYMBOL_FUNCTION);
	cr_expect_eq(perfmap_source_find(source, 0x3000, &(struct source_match){ 0 }), SOURCE_MISS,
		     "a torn line");
	append(fd, "rd");
	expect_refresh(source, PERFMAP_UNCHANGED);
	append(fd, "\n");
	expect_refresh(source, PERFMAP_APPENDED);
	expect_name(source, 0x3000, "third", NULL, SYM_SYMBOL_FUNCTION);
	unlink(path);
	append(fd, "4000 10 deleted\n");
	expect_refresh(source, PERFMAP_APPENDED);
	expect_name(source, 0x4000, "deleted", NULL, SYM_SYMBOL_FUNCTION);
	close(fd);
}

Test(perfmap_source, uses_only_lines_in_the_given_memory)
{
	char path[64];
	int fd = make_file(path);
	struct address_range range = { 0x1000, 0x2000 };
	struct address_ranges only = { &range, 1 };
	const struct perfmap_input inputs[2] = {
		{ .fd = fd, .path = path, .only = &only },
		{ .fd = elf_builder_file("2000 100 own\n1080 10 inner\n", 27), .path = "own" },
	};
	struct perfmap_source *source AUTO_PERFMAP_SOURCE = NULL;

	append(fd, "1000 100 first\n2000 100 outside\n1ff0 20 half\n");
	cr_assert_null(perfmap_source_open(inputs, 2, 0, &source));
	range.end = 0;
	expect_name(source, 0x1000, "first", NULL, SYM_SYMBOL_FUNCTION);
	expect_name(source, 0x1080, "inner", NULL, SYM_SYMBOL_FUNCTION);
	expect_name(source, 0x2000, "own", NULL, SYM_SYMBOL_FUNCTION);
	cr_expect_eq(perfmap_source_find(source, 0x1ff0, &(struct source_match){ 0 }), SOURCE_MISS);
	append(fd, "1800 10 appended\n2800 10 appended outside\n");
	expect_refresh(source, PERFMAP_APPENDED);
	expect_name(source, 0x1800, "appended", NULL, SYM_SYMBOL_FUNCTION);
	cr_expect_eq(perfmap_source_find(source, 0x2800, &(struct source_match){ 0 }), SOURCE_MISS);
	append(fd, "2900 10 more outside\n");
	expect_refresh(source, PERFMAP_UNCHANGED);
	unlink(path);
	close(fd);
	close(inputs[1].fd);
}

Test(perfmap_source, detects_a_truncated_rewritten_or_replaced_map)
{
	char path[64], other[64];
	int fd = make_file(path), other_fd = make_file(other);
	struct perfmap_source *source AUTO_PERFMAP_SOURCE = NULL;

	append(fd, "1000 100 first\n2000 100 second\n");
	source = open_path(fd, path);
	cr_assert_eq(ftruncate(fd, 10), 0);
	expect_refresh(source, PERFMAP_REPLACED);
	cr_assert_eq(ftruncate(fd, 0), 0);
	cr_assert_eq(lseek(fd, 0, SEEK_SET), 0);
	append(fd, "1000 100 others\n2000 100 entirely\n3000 100 and more\n");
	expect_refresh(source, PERFMAP_REPLACED);
	expect_name(source, 0x1000, "first", NULL, SYM_SYMBOL_FUNCTION);
	cr_assert_eq(rename(other, path), 0);
	expect_refresh(source, PERFMAP_REPLACED);
	unlink(path);
	close(fd);
	close(other_fd);
}

/* Names of one width, as from agents that rewrite a whole map again and again. */
Test(perfmap_source, detects_an_overwritten_map)
{
	const struct timespec earlier[2] = { { .tv_sec = 1000000000 }, { .tv_sec = 1000000000 } };
	enum {
		LINE_BYTES = 16
	};
	char path[64], line[LINE_BYTES + 1];
	int fd = make_file(path);
	struct perfmap_source *source AUTO_PERFMAP_SOURCE = NULL;
	struct perfmap_source *again AUTO_PERFMAP_SOURCE = NULL;

	for (int i = 0; i < 20; i++) {
		snprintf(line, sizeof(line), "%d000 10 name_%02d\n", i % 9 + 1, i);
		append(fd, line);
	}
	source = open_path(fd, path);
	cr_assert_eq(pwrite(fd, "others", 6, 10 * LINE_BYTES + 8), 6);
	cr_assert_eq(futimens(fd, earlier), 0);
	expect_refresh(source, PERFMAP_REPLACED);
	again = open_path(fd, path);
	cr_assert_eq(pwrite(fd, "others", 6, 8), 6);
	append(fd, "a000 10 name_99\n");
	expect_refresh(again, PERFMAP_REPLACED);
	unlink(path);
	close(fd);
}

Test(perfmap_source, prefers_a_symbol_with_a_size_in_any_order)
{
	char path[64];
	int fd = make_file(path);
	struct perfmap_source *source AUTO_PERFMAP_SOURCE = NULL;

	append(fd, "1000 10 sized\n2000 0 label\n");
	source = open_path(fd, path);
	append(fd, "1000 0 label\n2000 10 sized\n3000 0 alone\n");
	expect_refresh(source, PERFMAP_APPENDED);
	expect_name(source, 0x1000, "sized", NULL, SYM_SYMBOL_FUNCTION);
	expect_name(source, 0x2000, "sized", NULL, SYM_SYMBOL_FUNCTION);
	expect_name(source, 0x3000, "alone", NULL, SYM_SYMBOL_FUNCTION);
	unlink(path);
	close(fd);
}

enum {
	GROWN_WORLD = 4096,
	GROWN_STEPS = 120
};

/*
 * A model in which each line paints its bytes. After each refresh all answers must equal the
 * model's.
 */
Test(perfmap_source, agrees_with_a_painted_model_while_it_grows)
{
	static int owner[GROWN_WORLD], label[GROWN_WORLD];
	char path[64], line[64];
	int fd = make_file(path), number = 0;
	struct perfmap_source *source AUTO_PERFMAP_SOURCE = NULL;

	memset(owner, -1, sizeof(owner));
	memset(label, -1, sizeof(label));
	srandom(7);
	append(fd, "100000 1 elsewhere\n");
	source = open_path(fd, path);
	for (int step = 0; step < GROWN_STEPS; step++) {
		for (long lines = random() % (step % 10 ? 5 : 200); lines >= 0; lines--) {
			int at = (int)(random() % (GROWN_WORLD - 256));
			int bytes = random() % 8 ? (int)(random() % 256) : 0;

			snprintf(line, sizeof(line), "%x %x line %d\n", at, bytes, number);
			append(fd, line);
			for (int i = at; i < at + bytes; i++)
				owner[i] = number;
			if (!bytes)
				label[at] = number;
			number++;
		}
		expect_refresh(source, PERFMAP_APPENDED);
		for (int i = 0; i < GROWN_WORLD; i++) {
			int expected = owner[i] >= 0 ? owner[i] : label[i];
			struct source_match match = { .name = "-" };

			snprintf(line, sizeof(line), "line %d", expected);
			perfmap_source_find(source, (uint64_t)i, &match);
			cr_assert_str_eq(match.name, expected < 0 ? "-" : line, "step %d at %x",
					 step, (unsigned int)i);
		}
		if (step % 3 == 0)
			perfmap_source_collect(source);
	}
	unlink(path);
	close(fd);
}

/* However often the first lines were merged with later ones. */
struct growing {
	int fd;
	char path[64];
};

static bool open_and_refresh(void *context)
{
	struct growing *growing = context;
	const struct perfmap_input input = { .fd = growing->fd, .path = growing->path };
	struct perfmap_source *source AUTO_PERFMAP_SOURCE = NULL;
	enum perfmap_refresh refreshed = PERFMAP_UNCHANGED;
	struct sym_error *error;

	cr_assert_eq(ftruncate(growing->fd, 0), 0);
	cr_assert_eq(lseek(growing->fd, 0, SEEK_SET), 0);
	append(growing->fd, "1000 10 first\n");
	error = perfmap_source_open(&input, 1, 0, &source);
	if (!error) {
		append(growing->fd, "1004 10 second\n");
		error = perfmap_source_refresh(source, &refreshed);
		expect_name(source, 0x1000, "first", NULL, SYM_SYMBOL_FUNCTION);
		if (!error)
			expect_name(source, 0x1004, "second", NULL, SYM_SYMBOL_FUNCTION);
	}
	if (error)
		cr_assert_eq(sym_error_code(error), SYM_ERROR_NO_MEMORY);
	sym_error_destroy(error);
	return !error;
}

Test(perfmap_source, stays_unchanged_when_out_of_memory)
{
	struct growing growing;

	growing.fd = make_file(growing.path);
	cr_expect_gt(alloc_fail_each(open_and_refresh, &growing), 20);
	unlink(growing.path);
	close(growing.fd);
}

/* ---- what the writer holds back ---------------------------------------------------------- */

/* Returns `text` as unflushed bytes, and records that it was closed. */
struct teller {
	const char *text;
	size_t closed_count;
};

static bool tell(void *context, int fd, struct buf *ret, struct stat *status_ret)
{
	const struct teller *teller = context;

	buf_clear(ret);
	cr_assert_eq(fstat(fd, status_ret), 0);
	if (!teller->text)
		return false;
	buf_append(ret, teller->text, strlen(teller->text));
	return true;
}

static void count_close(void *context)
{
	((struct teller *)context)->closed_count++;
}

static struct sym_error *open_told(int fd, const char *path, struct teller *teller,
				   struct perfmap_source **ret)
{
	const struct perfmap_input input = {
		.fd = fd,
		.path = path,
		.writer = { .read = tell, .close = count_close, .context = teller },
	};

	return perfmap_source_open(&input, 1, 0, ret);
}

static void expect_none(const struct perfmap_source *source, uint64_t address)
{
	cr_expect_eq(perfmap_source_find(source, address, &(struct source_match){ 0 }),
		     SOURCE_MISS);
}

Test(perfmap_source, includes_unflushed_lines)
{
	struct teller teller = { .text = "0 10 second\n3000 10 third\n4000 10 fou" };
	struct perfmap_source *source = NULL;
	char path[64];
	int fd = make_file(path);

	append(fd, "1000 10 first\n200");
	cr_assert_null(open_told(fd, path, &teller, &source));
	expect_name(source, 0x1000, "first", NULL, SYM_SYMBOL_FUNCTION);
	expect_name(source, 0x2000, "second", NULL, SYM_SYMBOL_FUNCTION);
	expect_name(source, 0x3000, "third", NULL, SYM_SYMBOL_FUNCTION);
	expect_none(source, 0x4000);
	cr_expect_eq(perfmap_source_bad_lines(source), 0);
	expect_refresh(source, PERFMAP_UNCHANGED);
	teller.text = "0 10 second\n3000 10 third\n4000 10 fourth\n";
	expect_refresh(source, PERFMAP_APPENDED);
	expect_name(source, 0x4000, "fourth", NULL, SYM_SYMBOL_FUNCTION);
	/* It arrives in the file where it was expected. */
	append(fd, teller.text);
	teller.text = "";
	expect_refresh(source, PERFMAP_UNCHANGED);
	teller.text = "5000 10 fifth\n";
	expect_refresh(source, PERFMAP_APPENDED);
	expect_name(source, 0x5000, "fifth", NULL, SYM_SYMBOL_FUNCTION);
	expect_name(source, 0x2000, "second", NULL, SYM_SYMBOL_FUNCTION);
	cr_expect_eq(teller.closed_count, 0);
	perfmap_source_close(source);
	cr_expect_eq(teller.closed_count, 1);
	unlink(path);
	close(fd);
}

Test(perfmap_source, keeps_unflushed_lines_of_a_killed_writer)
{
	struct teller teller = { .text = "2000 10 second\n" };
	struct perfmap_source *source AUTO_PERFMAP_SOURCE = NULL;
	char path[64];
	int fd = make_file(path);

	append(fd, "1000 10 first\n");
	cr_assert_null(open_told(fd, path, &teller, &source));
	teller.text = NULL;
	expect_refresh(source, PERFMAP_UNCHANGED);
	expect_name(source, 0x2000, "second", NULL, SYM_SYMBOL_FUNCTION);
	/* Other text than announced means another file. */
	append(fd, "3000 10 third, where the second was to be\n");
	expect_refresh(source, PERFMAP_REPLACED);
	cr_assert_eq(ftruncate(fd, 4), 0);
	expect_refresh(source, PERFMAP_REPLACED);
	unlink(path);
	close(fd);
}

/* These are not in the file yet. */
Test(perfmap_source, includes_unflushed_lines_after_a_large_map)
{
	struct teller teller = { .text = "f000 10 held back\n" };
	struct perfmap_source *source AUTO_PERFMAP_SOURCE = NULL;
	char path[64], line[64];
	int fd = make_file(path);

	for (size_t bytes = 0, i = 0; bytes < (size_t)5 << 20; i++) {
		snprintf(line, sizeof(line), "%zx 10 a name that takes much room %zu\n",
			 0x10000 + 16 * i, i);
		append(fd, line);
		bytes += strlen(line);
	}
	cr_assert_null(open_told(fd, path, &teller, &source));
	expect_name(source, 0xf000, "held back", NULL, SYM_SYMBOL_FUNCTION);
	unlink(path);
	close(fd);
}

struct told_file {
	int fd;
	char path[64];
	struct teller teller;
	size_t opened_count;
};

static bool open_what_is_told(void *context)
{
	struct told_file *file = context;
	struct perfmap_source *source AUTO_PERFMAP_SOURCE = NULL;
	struct sym_error *error = open_told(file->fd, file->path, &file->teller, &source);

	file->opened_count++;
	if (error)
		cr_assert_eq(sym_error_code(error), SYM_ERROR_NO_MEMORY);
	sym_error_destroy(error);
	return !error;
}

Test(perfmap_source, closes_its_writer_when_out_of_memory)
{
	struct told_file file = { .teller = { .text = "1000 10 first\n" } };

	file.fd = make_file(file.path);
	cr_expect_gt(alloc_fail_each(open_what_is_told, &file), 10);
	cr_expect_eq(file.teller.closed_count, file.opened_count);
	unlink(file.path);
	close(file.fd);
}

/*
 * Bytes that this process has read with read(), pread() and so on; 0: the kernel does not count
 * them.
 */
static uint64_t bytes_read(void)
{
	unsigned long long bytes = 0;
	FILE *counters = fopen("/proc/self/io", "r");

	if (!counters || fscanf(counters, "rchar: %llu", &bytes) != 1)
		bytes = 0;
	if (counters)
		fclose(counters);
	return bytes;
}

Test(perfmap_source, skips_a_hole)
{
	static const char first[] = "1000 10 first\n2000 10 torn", second[] = "\n3000 10 second\n";
	const off_t hole_end = (off_t)64 << 20;
	struct perfmap_source *source AUTO_PERFMAP_SOURCE = NULL;
	int fd = elf_builder_file(first, strlen(first));
	const struct perfmap_input input = { .fd = fd, .path = "sparse.map" };
	uint64_t before;

	cr_assert_eq(pwrite(fd, second, strlen(second), hole_end), (ssize_t)strlen(second));
	before = bytes_read();
	cr_assert_null(perfmap_source_open(&input, 1, 0, &source));
	if (before)
		cr_expect_lt(bytes_read() - before, (uint64_t)8 << 20);
	expect_name(source, 0x1000, "first", NULL, SYM_SYMBOL_FUNCTION);
	expect_name(source, 0x3000, "second", NULL, SYM_SYMBOL_FUNCTION);
	cr_expect_eq(perfmap_source_find(source, 0x2000, &(struct source_match){ 0 }), SOURCE_MISS);
	cr_expect_eq(perfmap_source_bad_lines(source), 1);
	close(fd);
}

Test(perfmap_source, is_charged_for_what_it_holds)
{
	struct perfmap_source *source = NULL;
	struct sym_error *error;
	struct budget budget;
	char *text = malloc(40 * 5000), *end = text;
	struct perfmap_input input = { .path = "f.map", .account = &budget.others };

	cr_assert(text);
	for (unsigned int i = 0; i < 5000; i++)
		end += snprintf(end, 40, "%x 10 function_%u\n", 0x1000 + 16 * i, i);
	budget_init(&budget);
	input.fd = elf_builder_file(text, (size_t)(end - text));
	cr_assert_null(perfmap_source_open(&input, 1, 0, &source));
	cr_expect_gt(budget.others.held_bytes, (uint64_t)(end - text));
	perfmap_source_close(source);
	cr_expect_eq(budget.others.held_bytes, 0);
	budget.others.most_bytes = (uint64_t)(end - text);
	error = perfmap_source_open(&input, 1, 0, &source);
	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), SYM_ERROR_LIMIT);
	cr_expect_eq(budget.others.held_bytes, 0);
	sym_error_destroy(error);
	budget_deinit(&budget);
	close(input.fd);
	free(text);
}
