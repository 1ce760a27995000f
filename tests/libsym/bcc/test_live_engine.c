/* SPDX-License-Identifier: MIT */
/*
 * When libsym-bcc looks at a process again, by a clock that the test sets. The process is this test
 * or a child of it. Its perf map gets lines for memory that it has mapped.
 */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "libsym/bcc/bcc_settings.h"
#include "libsym/bcc/symcache.h"
#include "tests/support/bcc_library.h"
#include "tests/support/own_perf_map.h"

static const struct bcc_symbol_option option = { 1, 1, 1, BCC_SYM_ALL_TYPES };

static uint64_t now_ns;
static uint64_t code;

static uint64_t read_clock(void *context)
{
	(void)context;
	return now_ns;
}

static void pass_ms(uint64_t ms)
{
	now_ns += ms * 1000000;
}

static struct bcc_settings settings_of_test(void)
{
	struct bcc_settings settings;

	bcc_settings_read(&settings);
	settings.clock_ns = read_clock;
	return settings;
}

static void *create_engine(pid_t pid)
{
	const struct bcc_settings settings = settings_of_test();
	void *engine = live_engine_create(pid, &option, &settings);

	cr_assert_not_null(engine);
	return engine;
}

static void set_up(void)
{
	void *memory =
		mmap(NULL, 0x1000, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(memory, MAP_FAILED);
	code = (uintptr_t)memory;
	unsetenv("LIBSYM_BCC_REFRESH_MS");
	now_ns = 1000000000000;
}

TestSuite(live_engine, .init = set_up);

static const char *name_at(void *engine, uint64_t address)
{
	struct bcc_symbol symbol = { 0 };

	return live_engine_ops.resolve(engine, address, &symbol) ? "" : symbol.name;
}

static void write_line(const struct own_perf_map *map, const char *name)
{
	fprintf(map->file, "%lx 10 %s\n", (unsigned long)code, name);
	fflush(map->file);
}

/* Code that is compiled again keeps its address. */
static void expect_new_name_after(uint64_t ms)
{
	struct own_perf_map map = own_perf_map_create();
	void *engine;

	write_line(&map, "first");
	engine = create_engine(getpid());
	cr_expect_str_eq(name_at(engine, code), "first");
	write_line(&map, "second");
	pass_ms(ms - 1);
	cr_expect_str_eq(name_at(engine, code), "first");
	pass_ms(1);
	cr_expect_str_eq(name_at(engine, code), "second");
	live_engine_ops.destroy(engine);
	fclose(map.file);
	unlink(map.path);
}

Test(live_engine, looks_again_after_250_ms)
{
	expect_new_name_after(250);
}

Test(live_engine, looks_again_after_the_time_in_the_environment)
{
	setenv("LIBSYM_BCC_REFRESH_MS", "2000", 1);
	expect_new_name_after(2000);
}

Test(live_engine, keeps_the_names_of_an_ended_process)
{
	uint64_t known = (uint64_t)dlsym(RTLD_DEFAULT, "strdup");
	struct bcc_child child;
	void *engine;

	cr_assert(bcc_child_start(&child, 0, NULL, NULL));
	engine = create_engine(child.pid);
	cr_assert_str_neq(name_at(engine, known), "");
	bcc_child_end(&child);
	for (int i = 0; i < 100; i++) {
		pass_ms(100);
		cr_assert_str_neq(name_at(engine, known), "");
		cr_expect_str_eq(name_at(engine, code), "");
	}
	live_engine_ops.refresh(engine);
	cr_expect_str_neq(name_at(engine, known), "");
	live_engine_ops.destroy(engine);
}

Test(live_engine, is_kept_for_ten_seconds_without_a_cache)
{
	const struct bcc_settings settings = settings_of_test();
	void *engine = create_engine(getpid());

	name_at(engine, code);
	pass_ms(9999);
	cr_expect_neq(live_engine_ops.worth_ms(engine), 0);
	cr_expect(live_engine_ops.still_good(engine, &settings));
	pass_ms(1);
	cr_expect_eq(live_engine_ops.worth_ms(engine), 0);
	cr_expect(!live_engine_ops.still_good(engine, &settings));
	live_engine_ops.destroy(engine);
}

/* A program that has used up its descriptors gets some back. */
Test(live_engine, opens_a_process_when_it_can)
{
	uint64_t known = (uint64_t)dlsym(RTLD_DEFAULT, "strdup");
	struct rlimit usual, none = { 0 };
	void *engine;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &usual), 0);
	none.rlim_max = usual.rlim_max;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	engine = create_engine(getpid());
	cr_expect_str_eq(name_at(engine, known), "");
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &usual), 0);
	pass_ms(249);
	cr_expect_str_eq(name_at(engine, known), "");
	pass_ms(1);
	cr_expect_str_neq(name_at(engine, known), "");
	live_engine_ops.destroy(engine);
}
