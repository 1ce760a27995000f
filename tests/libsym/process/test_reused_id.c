/* SPDX-License-Identifier: MIT */
/*
 * The id of an ended process, used by another one with other code at the same addresses. Objects of
 * the old process never return a name of the new one, and objects of the new process never one of
 * the old.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libsym/libsym.h"
#include "tests/support/asked.h"
#include "tests/support/chosen_id.h"
#include "tests/support/error_code.h"
#include "tests/support/program.h"
#include "tests/support/waiting.h"

static const uint64_t places[] = { LOOK_ALIKE_NATIVE + 8, LOOK_ALIKE_MAPPED + 8,
				   LOOK_ALIKE_DUMPED + 8 };

enum {
	PLACES = sizeof(places) / sizeof(places[0])
};

static char *directory;
static struct look_alike old, new;
static pid_t id;

static void start(void)
{
	directory = scratch_create();
	old = (struct look_alike){ directory, "old", LOOK_ALIKE_MAP | LOOK_ALIKE_DUMP };
	new = (struct look_alike){ directory, "new", LOOK_ALIKE_MAP | LOOK_ALIKE_DUMP };
	id = look_alike_start(0, &old);
}

static void finish(void)
{
	look_alike_end(id);
	look_alike_forget(id);
	scratch_remove(directory);
}

TestSuite(reused_id, .init = start, .fini = finish);

/* Which of the three places have names of this process. A name of the other one fails the test. */
static unsigned int names_of(struct asked *asked, const char *name)
{
	unsigned int named = 0;

	cr_assert_null(sym_resolver_resolve(asked->resolver, places, PLACES, asked->result));
	for (size_t i = 0; i < PLACES; i++) {
		const struct sym_answer *answer = sym_result_at(asked->result, i);

		if (answer->status != SYM_RESOLVED)
			continue;
		cr_assert(!strncmp(answer->name, name, strlen(name)), "%s at place %zu, not of %s",
			  answer->name, i, name);
		named |= 1U << i;
	}
	return named;
}

static uint64_t started_at_tick(void)
{
	char path[64], text[4096] = "";
	unsigned long long ticks = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", id);
	file = fopen(path, "r");
	cr_assert_not_null(file);
	cr_assert_gt(fread(text, 1, sizeof(text) - 1, file), 0);
	fclose(file);
	cr_assert_eq(sscanf(strrchr(text, ')'),
			    ") %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
			    "%*s %*s %llu",
			    &ticks),
		     1);
	return ticks;
}

/* The kernel tells start times in ticks, and without random addresses nothing else tells two
 * processes of one program apart. So the next one starts in another tick. */
static void reuse(void)
{
	const uint64_t tick_ns = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);
	const uint64_t tick = started_at_tick();
	struct timespec now;

	look_alike_end(id);
	do
		clock_gettime(CLOCK_BOOTTIME, &now);
	while (((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec) / tick_ns <= tick);
	cr_assert_eq(look_alike_start(id, &new), id);
}

Test(reused_id, keeps_what_was_read_of_the_old_process)
{
	enum sym_refresh found = SYM_REFRESH_UNCHANGED;
	struct asked before, after;

	cr_assert_null(asked_try(&before, id, SYM_JIT_AUTO));
	cr_assert_eq(names_of(&before, "old"), 7);
	reuse();
	cr_expect_eq(code_and_end(sym_snapshot_check(before.snapshot)), SYM_ERROR_STALE);
	cr_expect_eq(names_of(&before, "old"), 7);
	cr_assert_null(sym_resolver_refresh(before.resolver, &found));
	cr_expect_eq(found, SYM_REFRESH_EXITED);
	cr_expect_eq(names_of(&before, "old"), 7);
	cr_assert_null(asked_try(&after, id, SYM_JIT_AUTO));
	cr_expect_eq(names_of(&after, "new") & 5, 5);
	asked_close(&after);
	asked_close(&before);
}

Test(reused_id, reads_nothing_of_the_new_process_for_the_old_one)
{
	enum sym_refresh found = SYM_REFRESH_UNCHANGED;
	struct sym_symbols *symbols = NULL;
	struct sym_error *error;
	struct asked asked;

	cr_assert_null(asked_try(&asked, id, SYM_JIT_AUTO));
	reuse();
	cr_expect_eq(names_of(&asked, "old") & ~1U, 0, "its map and dump were not read in time");
	cr_assert_null(sym_resolver_refresh(asked.resolver, &found));
	cr_expect_eq(found, SYM_REFRESH_EXITED);
	names_of(&asked, "old");
	error = sym_snapshot_symbols(asked.snapshot, SYM_SYMBOLS_PERF_MAP | SYM_SYMBOLS_ELF,
				     &symbols);
	sym_error_destroy(error);
	for (size_t i = 0; symbols && i < sym_symbols_count(symbols); i++)
		cr_assert_neq(strncmp(sym_symbols_at(symbols, i)->name, "new_", 4), 0, "%s",
			      sym_symbols_at(symbols, i)->name);
	sym_symbols_destroy(symbols);
	asked_close(&asked);
}

static const char *map_path(void)
{
	static char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)id);
	return path;
}

static void append_line(const char *line)
{
	const char *path = map_path();
	FILE *map;

	map = fopen(path, "a");
	cr_assert_not_null(map);
	fputs(line, map);
	fclose(map);
}

/* The left map of the old process is where the map of the new one would be. */
Test(reused_id, does_not_use_a_left_map_for_the_new_process)
{
	struct asked asked;

	new.flags = 0;
	/* Start times have ticks of 1/100 s. */
	wait_until_old(map_path(), 60);
	reuse();
	cr_assert_null(asked_try(&asked, id, SYM_JIT_AUTO));
	cr_expect_eq(names_of(&asked, "new"), 1, "of the file that it has mapped");
	asked_close(&asked);
}

Test(reused_id, does_not_use_a_map_written_until_the_end)
{
	const struct sym_perf_map_info *info;
	struct asked asked;

	new.flags = 0;
	wait_until_old(map_path(), 60);
	append_line("100 10 old_too\n");
	reuse();
	cr_assert_null(asked_try(&asked, id, SYM_JIT_AUTO));
	cr_expect_eq(names_of(&asked, "new"), 1, "of the file that it has mapped");
	cr_assert_null(sym_snapshot_perf_map(asked.snapshot, &info));
	cr_expect_null(info->path);
	cr_expect_not_null(info->rejected_reason);
	/* A file written later can only belong to the new process. */
	wait_for_age(id, 30);
	append_line("200 10 new_too\n");
	cr_assert_null(sym_snapshot_perf_map(asked.snapshot, &info));
	cr_expect_not_null(info->path);
	asked_close(&asked);
}

Test(reused_id, ends_the_lists_of_a_live_process)
{
	const uint32_t flags = SYM_SYMBOLS_PERF_MAP | SYM_SYMBOLS_ELF;
	const struct sym_snapshot_opts snapshot = { .size = sizeof(snapshot),
						    .jit = SYM_JIT_PERF_MAP };
	const struct sym_live_opts opts = { .size = sizeof(opts), .snapshot = &snapshot };
	const struct sym_symbols *symbols = NULL;
	struct sym_live *live = NULL;
	size_t count;

	cr_assert_null(sym_live_open(id, &opts, &live));
	cr_assert_null(sym_live_symbols(live, flags, &symbols, NULL));
	count = sym_symbols_count(symbols);
	reuse();
	for (int i = 0; i < 3; i++) {
		cr_expect_eq(code_and_end(sym_live_symbols(live, flags, &symbols, NULL)),
			     SYM_ERROR_STALE);
		cr_expect_eq(sym_symbols_count(symbols), count);
	}
	sym_live_close(live);
}

static uint64_t clock_now_ns;

static uint64_t read_clock(void *context)
{
	(void)context;
	return clock_now_ns;
}

static struct sym_live *open_live(uint32_t flags)
{
	const struct sym_snapshot_opts snapshot = { .size = sizeof(snapshot) };
	const struct sym_live_opts opts = {
		.size = sizeof(opts), .flags = flags, .snapshot = &snapshot, .clock_ns = read_clock
	};
	struct sym_live *live = NULL;

	clock_now_ns = 1000000000;
	cr_assert_null(sym_live_open(id, &opts, &live));
	return live;
}

/* How many of the three places have a name. A name of another process fails the test. */
static size_t count_named(struct sym_live *live, const char *name)
{
	struct sym_result *result = NULL;
	size_t named = 0;

	cr_assert_null(sym_result_create(&result));
	cr_assert_null(sym_live_resolve(live, places, NULL, PLACES, result));
	for (size_t i = 0; i < PLACES; i++) {
		const struct sym_answer *answer = sym_result_at(result, i);

		if (answer->status != SYM_RESOLVED)
			continue;
		cr_assert(!strncmp(answer->name, name, strlen(name)), "%s at place %zu",
			  answer->name, i);
		named++;
	}
	sym_result_destroy(result);
	return named;
}

Test(reused_id, is_followed_by_a_live_process)
{
	struct sym_live *live = open_live(0);

	cr_expect_eq(count_named(live, "old"), 3);
	reuse();
	cr_expect_eq(count_named(live, "old"), 3, "no refresh is due");
	cr_expect_eq(sym_live_generation(live), 0);
	clock_now_ns += 1000000000;
	cr_expect_geq(count_named(live, "new"), 2);
	/* A map as old as the process is rejected, and searched once more later. */
	cr_expect_geq(sym_live_generation(live), 1);
	sym_live_close(live);
}

Test(reused_id, is_not_followed_where_the_same_process_is_meant)
{
	struct sym_live *live = open_live(SYM_LIVE_SAME_PROCESS);

	cr_expect_eq(count_named(live, "old"), 3);
	reuse();
	clock_now_ns += 1000000000;
	cr_expect_eq(count_named(live, "old"), 3);
	cr_expect_eq(sym_live_generation(live), 0);
	sym_live_close(live);
}

/* ---- in the middle of opening --------------------------------------------------------- */

static atomic_bool enough;
static atomic_uint reused;

static void *reuse_again_and_again(void *unused)
{
	const struct look_alike *next = &new;

	while (!atomic_load(&enough)) {
		look_alike_end(id);
		look_alike_forget(id);
		cr_assert_eq(look_alike_start(id, next), id);
		next = next == &new ? &old : &new;
		atomic_fetch_add(&reused, 1);
	}
	return unused;
}

/* Whose names one object has: all must be of one process. */
static void expect_one_process(struct asked *asked)
{
	char owner[4] = "";

	cr_assert_null(sym_resolver_resolve(asked->resolver, places, PLACES, asked->result));
	for (size_t i = 0; i < PLACES; i++) {
		const struct sym_answer *answer = sym_result_at(asked->result, i);

		if (answer->status != SYM_RESOLVED)
			continue;
		if (!*owner)
			memcpy(owner, answer->name, 3);
		cr_assert_eq(memcmp(owner, answer->name, 3), 0, "%s beside names of %s",
			     answer->name, owner);
	}
}

Test(reused_id, never_mixes_two_processes_with_the_same_id)
{
	/* With a sanitizer a new process starts slowly. */
	time_t end = time(NULL) + 20;
	unsigned int openings = 0;
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, reuse_again_and_again, NULL), 0);
	while (atomic_load(&reused) < 150 && time(NULL) < end) {
		struct asked asked;
		struct sym_error *error = asked_try(&asked, id, SYM_JIT_AUTO);

		if (!error) {
			expect_one_process(&asked);
			openings++;
		}
		sym_error_destroy(error);
		asked_close(&asked);
	}
	atomic_store(&enough, true);
	pthread_join(thread, NULL);
	cr_assert_gt(openings, 10);
	cr_assert_gt(reused, 1);
}
