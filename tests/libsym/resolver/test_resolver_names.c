/* SPDX-License-Identifier: MIT */
/* Names of a large perf map stay, whatever becomes of its file. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/libsym.h"
#include "tests/support/proc_tree.h"

enum {
	METHODS = 160000,
	LAST = METHODS - 1,
	METHOD_BYTES = 16
};

static const uint64_t first_address = 0x7f1000000000;
static const char maps[] = "7f1000000000-7f1001000000 r-xp 00000000 00:00 0 \n";

static struct proc_tree tree;
static struct sym_snapshot *snapshot;
static struct sym_resolver *resolver;
static struct sym_result *result;
static char *map_path;

static void write_map(void)
{
	FILE *file;

	proc_tree_write_text(&tree, "/tmp/perf-7.map", "");
	map_path = proc_tree_path(&tree, "/tmp/perf-7.map");
	file = fopen(map_path, "w");
	cr_assert_not_null(file);
	for (uint64_t i = 0; i < METHODS; i++)
		fprintf(file, "%lx %x M%lu()[OptimizedTier1]\n", first_address + i * METHOD_BYTES,
			METHOD_BYTES, i);
	fclose(file);
}

static void start(void)
{
	struct sym_snapshot_opts opts = { .size = sizeof(opts), .jit = SYM_JIT_PERF_MAP };

	proc_tree_create(&tree);
	proc_tree_add_process(
		&tree, &(struct proc_tree_process){ .pid = 7, .uid = geteuid(), .maps = maps });
	write_map();
	opts.root = tree.root;
	cr_assert_null(sym_snapshot_open(7, &opts, &snapshot));
	cr_assert_null(sym_resolver_create(snapshot, &resolver));
	cr_assert_null(sym_result_create(&result));
}

static void finish(void)
{
	sym_result_destroy(result);
	sym_resolver_destroy(resolver);
	sym_snapshot_close(snapshot);
	proc_tree_destroy(&tree);
	free(map_path);
}

TestSuite(resolver_names, .fini = finish);

static const struct sym_answer *ask(uint64_t method)
{
	uint64_t address = first_address + method * METHOD_BYTES + 3;

	cr_assert_null(sym_resolver_resolve(resolver, &address, 1, result));
	return sym_result_at(result, 0);
}

static void expect_name(uint64_t method)
{
	char expected[32];

	snprintf(expected, sizeof(expected), "M%lu()", method);
	cr_assert_str_eq(ask(method)->name, expected);
	cr_assert_str_eq(ask(method)->tier, "OptimizedTier1");
}

Test(resolver_names, stay_when_the_map_is_truncated_until_it_is_read_again)
{
	enum sym_refresh found;
	const char *kept;

	start();
	kept = ask(LAST)->name;
	cr_assert_eq(truncate(map_path, 100), 0);
	for (uint64_t method = 0; method < METHODS; method += 7)
		expect_name(method);
	proc_tree_write_text(&tree, "/tmp/perf-7.map", "7f1000000000 1000000 replaced\n");
	cr_assert_null(sym_resolver_refresh(resolver, &found));
	cr_expect_eq(found, SYM_REFRESH_REPLACED);
	cr_expect_str_eq(ask(LAST - 5000)->name, "replaced");
	cr_expect_str_eq(kept, "M159999()");
}

Test(resolver_names, stay_when_the_map_is_deleted_and_grows)
{
	FILE *file;

	start();
	expect_name(LAST);
	file = fopen(map_path, "a");
	cr_assert_not_null(file);
	proc_tree_remove(&tree, "/tmp/perf-7.map");
	fprintf(file, "%lx 4 later\n", first_address);
	fclose(file);
	for (uint64_t method = 1; method < METHODS; method += 7)
		expect_name(method);
	cr_assert_null(sym_resolver_refresh(resolver, NULL));
	cr_expect_str_eq(ask(0)->name, "later");
	expect_name(LAST - 1);
}
