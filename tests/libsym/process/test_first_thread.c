/* SPDX-License-Identifier: MIT */
/*
 * A process whose first thread has ended before the others (pthread_exit() in main()). /proc/PID
 * then shows nothing of its memory, but it still runs.
 */
#include <criterion/criterion.h>
#include <elf.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libsym/libsym.h"
#include "tests/support/elf_builder.h"
#include "tests/support/program.h"
#include "tests/support/waiting.h"

/* Above the memory of AddressSanitizer. */
static const uint64_t code = 0x220000000000, library = 0x210000000000;

enum {
	PAGE_BYTES = 0x1000
};

/* Each ends on command. The last one maps a library first. */
enum member {
	FIRST,
	OTHER,
	LAST,
	MEMBERS
};

static int orders[MEMBERS][2], ready[2];
static pid_t child;
static char *directory, *library_path;
static struct sym_snapshot *snapshot;
static struct sym_resolver *resolver;
static struct sym_result *result;

static void await_order(enum member member)
{
	char byte;

	if (read(orders[member][0], &byte, 1) != 1)
		_exit(1);
}

static void say_ready(void)
{
	if (write(ready[1], "r", 1) != 1)
		_exit(1);
}

static void *live(void *unused)
{
	await_order(OTHER);
	return unused;
}

static void *map_and_live(void *unused)
{
	FILE *file;

	await_order(LAST);
	file = fopen(library_path, "r");
	if (!file || mmap((void *)(uintptr_t)(library - ELF_BUILDER_TEXT_OFFSET),
			  ELF_BUILDER_TEXT_OFFSET + ELF_BUILDER_TEXT_BYTES, PROT_READ | PROT_EXEC,
			  MAP_PRIVATE | MAP_FIXED_NOREPLACE, fileno(file), 0) == MAP_FAILED)
		_exit(1);
	fclose(file);
	say_ready();
	await_order(LAST);
	_exit(unused != NULL); /* the process ends with it, without the leak check */
}

static void run_child(void)
{
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (mmap((void *)(uintptr_t)code, PAGE_BYTES, PROT_READ | PROT_EXEC,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED ||
	    pthread_create(&thread, NULL, live, NULL) ||
	    pthread_create(&thread, NULL, map_and_live, NULL))
		_exit(1);
	say_ready();
	await_order(FIRST);
	pthread_exit(NULL);
}

static void await_ready(void)
{
	char byte;

	cr_assert_eq(read(ready[0], &byte, 1), 1);
}

static void order(enum member member)
{
	cr_assert_eq(write(orders[member][1], "g", 1), 1);
}

static void append_line(unsigned int offset, const char *name)
{
	char path[64];
	FILE *map;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)child);
	map = fopen(path, "a");
	cr_assert_not_null(map);
	fprintf(map, "%llx 10 %s\n", (unsigned long long)code + offset, name);
	fclose(map);
}

static void make_library(void)
{
	static const struct elf_builder_symbol symbols[] = {
		{ "loaded_later", ELF_BUILDER_TEXT_VADDR, 0x40, STB_GLOBAL, STT_FUNC },
	};
	size_t size_bytes;
	uint8_t *bytes = elf_builder_make(
		symbols, 1, (struct elf_builder_options){ .position_independent = true },
		&size_bytes);

	directory = scratch_create();
	library_path = scratch_path(directory, "library.so");
	scratch_write(library_path, bytes, size_bytes);
	free(bytes);
}

static void start(void)
{
	char path[64];

	make_library();
	for (int i = 0; i < MEMBERS; i++)
		cr_assert_eq(pipe(orders[i]), 0);
	cr_assert_eq(pipe(ready), 0);
	child = fork();
	cr_assert_geq(child, 0);
	if (child == 0)
		run_child();
	close(ready[1]);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)child);
	unlink(path);
	await_ready();
	append_line(0, "written_first");
}

static void finish(void)
{
	char path[64];

	sym_result_destroy(result);
	sym_resolver_destroy(resolver);
	sym_snapshot_close(snapshot);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)child);
	unlink(path);
	free(library_path);
	scratch_remove(directory);
}

TestSuite(first_thread, .init = start, .fini = finish);

static char state_of_child(void)
{
	char path[64], state = '?';
	FILE *stat;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)child);
	stat = fopen(path, "r");
	if (stat && fscanf(stat, "%*d (%*[^)]) %c", &state) != 1)
		state = '?';
	if (stat)
		fclose(stat);
	return state;
}

static void end_first(void)
{
	order(FIRST);
	while (state_of_child() != 'Z')
		wait_pause();
}

static void load_library(void)
{
	order(LAST);
	await_ready();
}

static void look(void)
{
	struct sym_snapshot_opts opts = { .size = sizeof(opts), .jit = SYM_JIT_PERF_MAP };

	cr_assert_null(sym_snapshot_open(child, &opts, &snapshot));
	cr_assert_null(sym_resolver_create(snapshot, &resolver));
	cr_assert_null(sym_result_create(&result));
}

static void expect_name(uint64_t address, const char *name)
{
	const struct sym_answer *answer;

	cr_assert_null(sym_resolver_resolve(resolver, &address, 1, result));
	answer = sym_result_at(result, 0);
	cr_assert_eq(answer->status, SYM_RESOLVED, "%s: %s %s", name,
		     sym_status_text(answer->status), answer->reason ? answer->reason : "");
	cr_expect_str_eq(answer->name, name);
}

static enum sym_refresh refresh(void)
{
	enum sym_refresh found = SYM_REFRESH_UNCHANGED;
	struct sym_error *error = sym_resolver_refresh(resolver, &found);

	cr_assert_null(error, "%s", sym_error_message(error));
	return found;
}

Test(first_thread, may_end_before_the_process_is_opened)
{
	struct sym_symbols *symbols = NULL;

	load_library();
	end_first();
	/* The file is in memory only, which the first thread does not show either. */
	cr_assert_eq(unlink(library_path), 0);
	look();
	cr_expect_not_null(strstr(sym_snapshot_process(snapshot)->executable, "unit"));
	cr_expect_null(sym_snapshot_check(snapshot));
	expect_name((uintptr_t)live, "live");
	expect_name(code, "written_first");
	expect_name(library, "loaded_later");
	cr_assert_null(sym_snapshot_symbols(snapshot, SYM_SYMBOLS_PERF_MAP, &symbols));
	cr_expect_eq(sym_symbols_count(symbols), 1);
	sym_symbols_destroy(symbols);
}

Test(first_thread, may_end_while_the_process_is_read)
{
	look();
	expect_name((uintptr_t)live, "live");
	expect_name(code, "written_first");
	end_first();
	cr_expect_null(sym_snapshot_check(snapshot));
	cr_expect_neq(refresh(), SYM_REFRESH_EXITED); /* pthread_exit() loads libgcc_s */
	cr_expect_eq(refresh(), SYM_REFRESH_UNCHANGED);
	append_line(0x40, "written_later");
	cr_expect_eq(refresh(), SYM_REFRESH_EXTENDED);
	expect_name(code + 0x40, "written_later");
	load_library();
	cr_expect_eq(refresh(), SYM_REFRESH_REMAPPED);
	expect_name(library, "loaded_later");
	expect_name((uintptr_t)live, "live");
}

Test(first_thread, may_end_before_all_other_threads)
{
	struct sym_error *error;

	end_first();
	look();
	order(OTHER);
	load_library();
	cr_expect_eq(refresh(), SYM_REFRESH_REMAPPED);
	expect_name(library, "loaded_later");
	cr_expect_null(sym_snapshot_check(snapshot));
	order(LAST);
	cr_assert_eq(waitid(P_PID, (id_t)child, &(siginfo_t){ 0 }, WEXITED | WNOWAIT), 0);
	error = sym_snapshot_check(snapshot);
	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), SYM_ERROR_STALE);
	sym_error_destroy(error);
	cr_expect_eq(refresh(), SYM_REFRESH_EXITED);
	expect_name(library, "loaded_later");
}

Test(first_thread, does_not_end_the_lists_of_a_live_process)
{
	const struct sym_snapshot_opts as_map = { .size = sizeof(as_map), .jit = SYM_JIT_PERF_MAP };
	const struct sym_live_opts opts = { .size = sizeof(opts), .snapshot = &as_map };
	struct sym_live_change change = { .size = sizeof(change) };
	const struct sym_symbols *symbols;
	struct sym_live *live = NULL;

	cr_assert_null(sym_live_open(child, &opts, &live));
	cr_assert_null(sym_live_symbols(live, SYM_SYMBOLS_PERF_MAP, &symbols, &change));
	end_first();
	append_line(0x40, "written_later");
	cr_assert_null(sym_live_symbols(live, SYM_SYMBOLS_PERF_MAP, &symbols, &change));
	cr_expect_eq(change.added, 1);
	cr_expect_eq(change.removed, 0);
	sym_live_close(live);
}
