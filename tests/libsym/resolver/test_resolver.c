/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/libsym.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/own_perf_map.h"
#include "tests/support/proc_tree.h"
#include "tests/support/program.h"

static const char sample[] = "fixtures/recorded/opt/sample/sample.dll";

struct opened {
	struct proc_tree tree;
	bool recorded;
	struct sym_snapshot *snapshot;
	struct sym_resolver *resolver;
	struct sym_result *result;
};

static void open_resolver(struct opened *opened, int32_t pid)
{
	struct sym_snapshot_opts opts = { .size = sizeof(opts),
					  .root = opened->recorded ? opened->tree.root : NULL,
					  .jit = SYM_JIT_PERF_MAP };

	cr_assert_null(sym_snapshot_open(pid, &opts, &opened->snapshot));
	cr_assert_null(sym_resolver_create(opened->snapshot, &opened->resolver));
	cr_assert_null(sym_result_create(&opened->result));
}

static void end(struct opened *opened)
{
	sym_result_destroy(opened->result);
	sym_resolver_destroy(opened->resolver);
	sym_snapshot_close(opened->snapshot);
	if (opened->recorded)
		proc_tree_destroy(&opened->tree);
}

/* sample.dll, memory with jitted code, a view of the file, and mappings without names. */
static const char maps[] =
	"7f0000000000-7f0000001000 r--p 00000000 00:29 4 /opt/sample/sample.dll\n"
	"7f0000010000-7f0000019000 r-xp 00000000 00:29 4 /opt/sample/sample.dll\n"
	"7f1000000000-7f1000010000 r-xs 00000000 00:01 9 /memfd:doublemapper (deleted)\n"
	"7f1000010000-7f1000020000 rwxp 00000000 00:00 0 \n"
	"7f1000020000-7f1000030000 rw-p 00000000 00:00 0 [heap]\n"
	"7f3000000000-7f300000d000 r--s 00000000 00:29 4 /opt/sample/sample.dll\n"
	"7fff00000000-7fff00002000 r-xp 00000000 00:00 0 [vdso]\n";

static void record(struct opened *opened, const char *perf_map)
{
	size_t size_bytes;
	char *bytes = scratch_read(sample, &size_bytes);

	*opened = (struct opened){ .recorded = true };
	cr_assert_not_null(bytes);
	proc_tree_create(&opened->tree);
	proc_tree_write(&opened->tree, "/opt/sample/sample.dll", bytes, size_bytes);
	proc_tree_add_process(&opened->tree, &(struct proc_tree_process){
						     .pid = 7, .uid = geteuid(), .maps = maps });
	if (perf_map)
		proc_tree_write_text(&opened->tree, "/tmp/perf-7.map", perf_map);
	free(bytes);
	open_resolver(opened, 7);
}

static const struct sym_answer *ask(struct opened *opened, uint64_t address)
{
	cr_assert_null(sym_resolver_resolve(opened->resolver, &address, 1, opened->result));
	cr_assert_eq(sym_result_count(opened->result), 1);
	return sym_result_at(opened->result, 0);
}

/* A function with a unique name, global so that every symbol table has it. */
__attribute__((noinline, used)) int resolver_test_landmark(int x);
int resolver_test_landmark(int x)
{
	return x * 31 + 7;
}

Test(resolver, names_functions_of_this_process)
{
	struct opened opened = { 0 };
	const struct sym_answer *answer;
	uint64_t address = (uint64_t)(uintptr_t)&resolver_test_landmark;

	open_resolver(&opened, getpid());
	answer = ask(&opened, address + 1);
	cr_assert_eq(answer->status, SYM_RESOLVED, "%s", answer->reason ? answer->reason : "");
	cr_expect_str_eq(answer->name, "resolver_test_landmark");
	cr_expect_eq(answer->offset_bytes, 1);
	cr_expect_eq(answer->source, SYM_SOURCE_ELF);
	cr_expect_eq(answer->address, address + 1);
	cr_expect_eq(answer->image_position + sym_image_load_base(answer->image), address + 1);
	cr_expect_gt(answer->size_bytes, 1);
	end(&opened);
}

/*
 * The addresses come from libc itself: sanitizers put functions of their own before some of these.
 */
Test(resolver, names_exported_functions_of_libc)
{
	static const char *const names[] = { "getenv", "qsort", "strtoul", "fopen" };
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	struct opened opened = { 0 };

	cr_assert_not_null(libc);
	open_resolver(&opened, getpid());
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct sym_answer *answer =
			ask(&opened, (uint64_t)(uintptr_t)dlsym(libc, names[i]));

		cr_assert_eq(answer->status, SYM_RESOLVED);
		cr_expect_str_eq(answer->name, names[i]);
	}
	end(&opened);
	dlclose(libc);
}

/*
 * The kernel maps its own code into every process. The global name wins over the weak alias, as in
 * perf.
 */
Test(resolver, names_functions_of_the_vdso)
{
#ifdef __aarch64__
	static const char name[] = "__kernel_clock_gettime";
#else
	static const char name[] = "__vdso_clock_gettime";
#endif
	uint64_t base = getauxval(AT_SYSINFO_EHDR);
	struct opened opened = { 0 };
	bool found = false;

	if (!base)
		return; /* a kernel that has none */
	open_resolver(&opened, getpid());
	for (uint64_t offset = 0; offset < 0x2000 && !found; offset++) {
		const struct sym_answer *answer = ask(&opened, base + offset);

		found = answer->status == SYM_RESOLVED && !strcmp(answer->name, name);
	}
	cr_expect(found);
	end(&opened);
}

Test(resolver, names_precompiled_and_jitted_code)
{
	struct opened opened;
	const struct sym_answer *answer;
	struct sym_symbols *methods = NULL;
	const struct sym_symbol *first;

	record(&opened, "7f1000000100 20 void [sample] Jitted::M()[OptimizedTier1]\n"
			"7f1000010100 20 stub Thunk<X>\n");
	cr_assert_null(sym_image_symbols(sym_snapshot_image_at(opened.snapshot, 0), 0, &methods));
	first = sym_symbols_at(methods, 0);
	answer = ask(&opened, 0x7f0000000000 + first->start + first->size_bytes - 1);
	cr_assert_eq(answer->status, SYM_RESOLVED);
	cr_expect_str_eq(answer->name, first->name);
	cr_expect_str_eq(answer->tier, "PreJIT");
	cr_expect_eq(answer->source, SYM_SOURCE_READYTORUN);
	cr_expect_eq(answer->offset_bytes, first->size_bytes - 1);
	cr_expect_str_eq(answer->image_path, "/opt/sample/sample.dll");

	answer = ask(&opened, 0x7f1000000110);
	cr_assert_eq(answer->status, SYM_RESOLVED);
	cr_expect_str_eq(answer->name, "void [sample] Jitted::M()");
	cr_expect_str_eq(answer->tier, "OptimizedTier1");
	cr_expect_eq(answer->source, SYM_SOURCE_PERF_MAP);
	cr_expect_null(answer->image);
	cr_expect_str_eq(answer->image_path, "/memfd:doublemapper");

	answer = ask(&opened, 0x7f1000010100);
	cr_expect_eq(answer->kind, SYM_SYMBOL_STUB);
	cr_expect_str_eq(answer->image_path, "");
	sym_symbols_destroy(methods);
	end(&opened);
}

Test(resolver, answers_in_the_order_asked)
{
	struct opened opened;
	uint64_t addresses[] = { 0x7f1000010100, 0x10, 0x7f1000000110, 0x10, 0x7f1000010100 };

	record(&opened, "7f1000000100 20 first\n7f1000010100 20 second\n");
	cr_assert_null(sym_resolver_resolve(opened.resolver, addresses, 5, opened.result));
	cr_assert_eq(sym_result_count(opened.result), 5);
	for (size_t i = 0; i < 5; i++)
		cr_expect_eq(sym_result_at(opened.result, i)->address, addresses[i]);
	cr_expect_str_eq(sym_result_at(opened.result, 0)->name, "second");
	cr_expect_eq(sym_result_at(opened.result, 1)->status, SYM_UNMAPPED);
	cr_expect_str_eq(sym_result_at(opened.result, 2)->name, "first");
	cr_expect_str_eq(sym_result_at(opened.result, 4)->name, "second");
	cr_expect_null(sym_result_at(opened.result, 5));
	cr_assert_null(sym_resolver_resolve(opened.resolver, NULL, 0, opened.result));
	cr_expect_eq(sym_result_count(opened.result), 0);
	end(&opened);
}

Test(resolver, explains_a_missing_name)
{
	struct opened opened;
	const struct sym_answer *answer;

	record(&opened, NULL);
	answer = ask(&opened, 0x10);
	cr_expect_eq(answer->status, SYM_UNMAPPED);
	cr_expect_null(answer->name);
	cr_expect_str_eq(answer->image_path, "");
	answer = ask(&opened, 0x7f1000000110);
	cr_expect_eq(answer->status, SYM_NO_SYMBOLS);
	cr_expect_str_eq(answer->reason,
			 "code in memory of no file; the process has written neither a "
			 "perf map nor a jitdump");
	answer = ask(&opened, 0x7f1000020010);
	cr_expect_eq(answer->status, SYM_NO_SYMBOLS);
	cr_expect_str_eq(answer->reason, "memory that is not executable");
	answer = ask(&opened, 0x7fff00000010);
	cr_expect_eq(answer->status, SYM_NO_SYMBOLS);
	cr_expect_str_eq(answer->image_path, "[vdso]");
	/* The bytes before the first method of .text. */
	answer = ask(&opened, 0x7f0000010200);
	cr_expect_eq(answer->status, SYM_NO_MATCH);
	cr_expect_not_null(answer->image);
	end(&opened);
}

/* Also for a core file, which is opened that way. */
Test(resolver, does_not_mention_an_unused_perf_map)
{
	void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const enum sym_jit_method ways[] = { SYM_JIT_NONE, SYM_JIT_CONTRACT };

	cr_assert_neq(code, MAP_FAILED);
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		struct sym_snapshot_opts opts = { .size = sizeof(opts), .jit = ways[i] };
		struct opened opened = { 0 };
		const struct sym_answer *answer;

		cr_assert_null(sym_snapshot_open(getpid(), &opts, &opened.snapshot));
		cr_assert_null(sym_resolver_create(opened.snapshot, &opened.resolver));
		cr_assert_null(sym_result_create(&opened.result));
		answer = ask(&opened, (uint64_t)(uintptr_t)code);
		cr_expect_eq(answer->status, SYM_NO_SYMBOLS);
		cr_expect_str_eq(answer->reason,
				 "code in memory of no file; neither a perf map nor a jitdump was "
				 "looked at");
		end(&opened);
	}
	munmap(code, 4096);
}

/* The saved heap of SBCL, where most of its code runs. */
Test(resolver, reports_a_file_of_an_unknown_kind)
{
	struct opened opened = { .recorded = true };
	const struct sym_answer *answer;

	proc_tree_create(&opened.tree);
	proc_tree_write(&opened.tree, "/opt/sbcl.core", "LCBS and so on", 14);
	proc_tree_add_process(
		&opened.tree,
		&(struct proc_tree_process){ .pid = 7,
					     .uid = geteuid(),
					     .maps = "50000000-50001000 r-xp 00000000 00:29 4 "
						     "/opt/sbcl.core\n" });
	open_resolver(&opened, 7);
	answer = ask(&opened, 0x50000010);
	cr_expect_eq(answer->status, SYM_NO_SYMBOLS);
	cr_expect_str_eq(answer->reason, "code in a file that is neither ELF nor PE");
	end(&opened);
}

Test(resolver, reports_a_perf_map_without_a_line)
{
	struct opened opened;

	record(&opened, "7f1000000100 20 first\n");
	cr_expect_eq(ask(&opened, 0x7f1000000120)->status, SYM_NO_MATCH);
	end(&opened);
}

/* In a flat view the file is not loaded: its start is not rva 0. */
Test(resolver, does_not_name_a_mapping_that_is_not_executable)
{
	struct opened opened;
	const struct sym_answer *answer;

	record(&opened, NULL);
	answer = ask(&opened, 0x7f3000000300);
	cr_expect_eq(answer->status, SYM_NO_SYMBOLS);
	cr_expect_eq(answer->image_position, 0x10300);
	end(&opened);
}

Test(resolver, allocates_nothing_when_hot)
{
	struct opened opened;
	struct sym_error *error;
	uint64_t addresses[] = { 0x7f0000011300, 0x7f1000000100, 0x7f1000010100, 0x10 };

	record(&opened, "7f1000000100 20 first\n7f1000010100 20 second\n");
	cr_assert_null(sym_resolver_resolve(opened.resolver, addresses, 4, opened.result));
	cr_assert_eq(sym_result_at(opened.result, 0)->status, SYM_RESOLVED);
	alloc_fail_after(0);
	error = sym_resolver_resolve(opened.resolver, addresses, 4, opened.result);
	cr_expect_not(alloc_fail_stop());
	cr_expect_null(error);
	cr_expect_eq(sym_result_at(opened.result, 0)->status, SYM_RESOLVED);
	end(&opened);
}

Test(resolver, resolves_positions_of_a_file_by_offset_and_rva)
{
	struct sym_symbols *methods = NULL;
	struct sym_result *result = NULL;
	struct sym_image *image = NULL;
	const struct sym_symbol *first;
	struct sym_error *error;
	uint64_t position;

	cr_assert_null(sym_image_open(sample, &image));
	cr_assert_null(sym_result_create(&result));
	cr_assert_null(sym_image_symbols(image, 0, &methods));
	first = sym_symbols_at(methods, 0);
	cr_assert_null(sym_image_resolve(image, SYM_POSITION_RVA, &first->start, 1, result));
	cr_expect_str_eq(sym_result_at(result, 0)->name, first->name);
	/* .text: rva 0x10200 is offset 0x200, as in the maps lines of every runtime from 8 on. */
	position = first->start - 0x10000;
	cr_assert_null(sym_image_resolve(image, SYM_POSITION_OFFSET, &position, 1, result));
	cr_expect_str_eq(sym_result_at(result, 0)->name, first->name);
	cr_expect_eq(sym_result_at(result, 0)->address, position);
	cr_expect_eq(sym_result_at(result, 0)->image_position, first->start);
	position = UINT64_MAX;
	cr_assert_null(sym_image_resolve(image, SYM_POSITION_RVA, &position, 1, result));
	cr_expect_eq(sym_result_at(result, 0)->status, SYM_NO_MATCH);
	cr_assert_null(sym_image_resolve(image, SYM_POSITION_OFFSET, &position, 1, result));
	cr_expect_eq(sym_result_at(result, 0)->status, SYM_NO_MATCH);
	error = sym_image_resolve(image, SYM_POSITION_VADDR, &position, 1, result);
	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), SYM_ERROR_ARGUMENT);
	sym_error_destroy(error);
	sym_symbols_destroy(methods);
	sym_result_destroy(result);
	sym_image_close(image);
}

struct dense {
	struct opened *opened;
	const uint64_t *addresses;
	size_t count;
	size_t resolved[4];
};

struct member {
	struct dense *dense;
	size_t number;
};

static void *resolve_all(void *context)
{
	struct member *member = context;
	struct dense *dense = member->dense;
	struct sym_result *result = NULL;
	struct sym_error *error = sym_result_create(&result);

	for (int round = 0; !error && round < 3; round++) {
		error = sym_resolver_resolve(dense->opened->resolver, dense->addresses,
					     dense->count, result);
		dense->resolved[member->number] = 0;
		for (size_t i = 0; !error && i < dense->count; i++)
			dense->resolved[member->number] +=
				sym_result_at(result, i)->status == SYM_RESOLVED;
	}
	sym_result_destroy(result);
	return error;
}

/* The first thread that needs something loads it. Run with SAN=thread. */
Test(resolver, may_be_used_by_four_threads_at_once)
{
	struct opened opened;
	struct dense dense = { .opened = &opened };
	struct member members[4];
	pthread_t threads[4];
	uint64_t addresses[600];

	record(&opened, "7f1000000100 20 first\n7f1000010100 20 second\n");
	for (size_t i = 0; i < 600; i++)
		addresses[i] = i % 3 == 0   ? 0x7f1000000100
			       : i % 3 == 1 ? 0x7f0000011000 + i * 16
					    : 0x7f1000010100;
	dense.addresses = addresses;
	dense.count = 600;
	for (size_t i = 0; i < 4; i++) {
		members[i] = (struct member){ &dense, i };
		cr_assert_eq(pthread_create(&threads[i], NULL, resolve_all, &members[i]), 0);
	}
	for (size_t i = 0; i < 4; i++) {
		void *error;

		pthread_join(threads[i], &error);
		cr_expect_null(error);
	}
	cr_expect_gt(dense.resolved[0], 400);
	for (size_t i = 1; i < 4; i++)
		cr_expect_eq(dense.resolved[i], dense.resolved[0]);
	end(&opened);
}

struct attempt {
	struct proc_tree *tree;
};

static bool open_and_resolve(void *context)
{
	struct attempt *attempt = context;
	struct sym_snapshot_opts opts = { .size = sizeof(opts),
					  .root = attempt->tree->root,
					  .jit = SYM_JIT_PERF_MAP };
	uint64_t addresses[] = { 0x7f0000011300, 0x7f1000000100 };
	struct sym_snapshot *snapshot = NULL;
	struct sym_resolver *resolver = NULL;
	struct sym_result *result = NULL;
	struct sym_symbols *symbols = NULL;
	struct sym_error *error = sym_snapshot_open(7, &opts, &snapshot);

	if (!error)
		error = sym_resolver_create(snapshot, &resolver);
	if (!error)
		error = sym_result_create(&result);
	if (!error)
		error = sym_resolver_resolve(resolver, addresses, 2, result);
	/* An answer may be missing for lack of memory, but it is never wrong. */
	if (!error && sym_result_at(result, 1)->status == SYM_RESOLVED)
		cr_expect_str_eq(sym_result_at(result, 1)->name, "first");
	if (!error)
		error = sym_snapshot_symbols(snapshot, 0, &symbols);
	if (error)
		cr_expect_eq(sym_error_code(error), SYM_ERROR_NO_MEMORY, "%s",
			     sym_error_message(error));
	sym_symbols_destroy(symbols);
	sym_result_destroy(result);
	sym_resolver_destroy(resolver);
	sym_snapshot_close(snapshot);
	sym_error_destroy(error);
	return !error;
}

Test(resolver, survives_every_failing_allocation)
{
	struct opened opened;
	struct attempt attempt = { &opened.tree };

	record(&opened, "7f1000000100 20 first\n");
	cr_expect_gt(alloc_fail_each(open_and_resolve, &attempt), 50);
	end(&opened);
}

/* The hook of the tests fails the next allocation, which would show. */
Test(resolver, allocates_nothing_in_a_hot_look_up)
{
	struct opened opened;
	uint64_t addresses[100];

	record(&opened, "7f1000000000 100 jitted\n");
	for (size_t i = 0; i < 100; i++)
		addresses[i] = i % 4 == 0   ? 0x7f1000000000 + i
			       : i % 4 == 1 ? 0x7f0000010100 + i
			       : i % 4 == 2 ? 0x7f1000008000 + i
					    : i;
	cr_assert_null(sym_resolver_resolve(opened.resolver, addresses, 100, opened.result));
	alloc_fail_after(0);
	for (size_t i = 0; i < 100; i++)
		cr_assert_null(
			sym_resolver_resolve(opened.resolver, &addresses[i], 1, opened.result));
	cr_assert_null(sym_resolver_resolve(opened.resolver, addresses, 100, opened.result));
	cr_expect_not(alloc_fail_stop());
	cr_expect_str_eq(sym_result_at(opened.result, 0)->name, "jitted");
	end(&opened);
}

Test(resolver, leaves_the_tier_in_the_name_on_request)
{
	struct sym_snapshot_opts opts = { .size = sizeof(opts),
					  .jit = SYM_JIT_PERF_MAP,
					  .flags = SYM_SNAPSHOT_TIER_IN_NAME };
	struct sym_snapshot *refused = NULL;
	struct sym_error *error;
	struct opened opened;

	record(&opened, "7f1000000000 100 M()[OptimizedTier1]\n");
	sym_resolver_destroy(opened.resolver);
	sym_snapshot_close(opened.snapshot);
	opts.root = opened.tree.root;
	cr_assert_null(sym_snapshot_open(7, &opts, &opened.snapshot));
	cr_assert_null(sym_resolver_create(opened.snapshot, &opened.resolver));
	cr_expect_str_eq(ask(&opened, 0x7f1000000000)->name, "M()[OptimizedTier1]");
	cr_expect_null(ask(&opened, 0x7f1000000000)->tier);
	end(&opened);
	opts.flags = (uint32_t)1 << 31;
	error = sym_snapshot_open(7, &opts, &refused);
	cr_assert_not_null(error, "a flag that there is not");
	cr_expect_eq(sym_error_code(error), SYM_ERROR_ARGUMENT);
	sym_error_destroy(error);
}

/* ---- refreshing ---------------------------------------------------------------------- */

static void expect_refresh(struct opened *opened, enum sym_refresh expected)
{
	enum sym_refresh found = SYM_REFRESH_UNCHANGED;

	cr_assert_null(sym_resolver_refresh(opened->resolver, &found));
	cr_assert_eq(found, expected);
}

static void append_line(struct opened *opened, const char *text)
{
	char *path = proc_tree_path(&opened->tree, "/tmp/perf-7.map");
	FILE *file = fopen(path, "a");

	cr_assert_not_null(file);
	fputs(text, file);
	fclose(file);
	free(path);
}

Test(resolver, reads_appended_lines_and_keeps_old_names)
{
	struct opened opened;
	const char *old;

	record(&opened, "7f1000000000 100 before\n");
	expect_refresh(&opened, SYM_REFRESH_UNCHANGED);
	old = ask(&opened, 0x7f1000000000)->name;
	cr_expect_str_eq(old, "before");
	append_line(&opened, "7f1000000010 10 after[OptimizedTier1]\n7f1000000020 10 to");
	expect_refresh(&opened, SYM_REFRESH_EXTENDED);
	cr_expect_str_eq(ask(&opened, 0x7f1000000010)->name, "after");
	cr_expect_str_eq(ask(&opened, 0x7f1000000010)->tier, "OptimizedTier1");
	cr_expect_eq(ask(&opened, 0x7f1000000000)->name, old);
	cr_expect_str_eq(ask(&opened, 0x7f1000000020)->name, "before");
	append_line(&opened, "rn\n");
	expect_refresh(&opened, SYM_REFRESH_EXTENDED);
	cr_expect_str_eq(ask(&opened, 0x7f1000000020)->name, "torn");
	end(&opened);
}

Test(resolver, reads_a_truncated_or_replaced_map_again)
{
	struct opened opened;
	const char *old;

	record(&opened, "7f1000000000 100 before\n");
	old = ask(&opened, 0x7f1000000000)->name;
	proc_tree_write_text(&opened.tree, "/tmp/perf-7.map", "7f1000000000 100 x\n");
	expect_refresh(&opened, SYM_REFRESH_REPLACED);
	cr_expect_str_eq(ask(&opened, 0x7f1000000000)->name, "x");
	cr_expect_str_eq(old, "before");
	for (int i = 0; i < 4; i++) {
		proc_tree_remove(&opened.tree, "/tmp/perf-7.map");
		proc_tree_write_text(&opened.tree, "/tmp/perf-7.map",
				     i % 2 ? "7f1000000000 100 odd\n" : "7f1000000000 100 even!\n");
		expect_refresh(&opened, SYM_REFRESH_REPLACED);
		cr_expect_str_eq(ask(&opened, 0x7f1000000000)->name, i % 2 ? "odd" : "even!");
	}
	end(&opened);
}

Test(resolver, keeps_its_names_when_the_map_becomes_a_fifo)
{
	struct opened opened;
	char *path;

	record(&opened, "7f1000000000 100 before\n");
	ask(&opened, 0x7f1000000000);
	path = proc_tree_path(&opened.tree, "/tmp/perf-7.map");
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(mkfifo(path, 0644), 0);
	expect_refresh(&opened, SYM_REFRESH_UNCHANGED);
	cr_expect_str_eq(ask(&opened, 0x7f1000000000)->name, "before");
	free(path);
	end(&opened);
}

Test(resolver, explains_a_missing_map_as_of_the_last_refresh)
{
	struct opened opened;
	char *path;

	record(&opened, "");
	path = proc_tree_path(&opened.tree, "/tmp/perf-7.map");
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(mkfifo(path, 0644), 0);
	cr_expect(strstr(ask(&opened, 0x7f1000000000)->reason, "is a FIFO"));
	cr_assert_eq(unlink(path), 0);
	expect_refresh(&opened, SYM_REFRESH_UNCHANGED);
	cr_expect(strstr(ask(&opened, 0x7f1000000000)->reason, "neither a perf map"));
	free(path);
	end(&opened);
}

Test(resolver, finds_a_map_that_appears_later)
{
	struct opened opened;

	record(&opened, NULL);
	cr_expect_neq(ask(&opened, 0x7f1000000000)->status, SYM_RESOLVED);
	expect_refresh(&opened, SYM_REFRESH_UNCHANGED);
	proc_tree_write_text(&opened.tree, "/tmp/perf-7.map", "7f1000000000 100 late\n");
	expect_refresh(&opened, SYM_REFRESH_REPLACED);
	cr_expect_str_eq(ask(&opened, 0x7f1000000000)->name, "late");
	end(&opened);
}

Test(resolver, still_answers_for_a_process_that_has_ended)
{
	struct opened opened = { 0 };
	char path[64];
	int ready[2];
	uint64_t address;
	FILE *file;
	pid_t pid;

	cr_assert_eq(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		void *code =
			mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
		file = fopen(path, "w");
		fprintf(file, "%lx 100 of the dead\n", (unsigned long)(uintptr_t)code);
		fclose(file);
		if (write(ready[1], &code, sizeof(code)) != sizeof(code))
			_exit(1);
		pause();
		_exit(0);
	}
	cr_assert_eq(read(ready[0], &address, sizeof(address)), (ssize_t)sizeof(address));
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)pid);
	open_resolver(&opened, pid);
	cr_expect_str_eq(ask(&opened, address)->name, "of the dead");
	expect_refresh(&opened, SYM_REFRESH_UNCHANGED);
	cr_assert_eq(kill(pid, SIGKILL), 0);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	/* Another file by now. */
	file = fopen(path, "w");
	fprintf(file, "%lx 100 of another\n", (unsigned long)address);
	fclose(file);
	expect_refresh(&opened, SYM_REFRESH_EXITED);
	cr_expect_str_eq(ask(&opened, address)->name, "of the dead");
	/* The kernel that it ran on is still available. */
	cr_expect_neq(ask(&opened, 0xffffffff81000100)->status, SYM_UNREADABLE);
	unlink(path);
	close(ready[0]);
	close(ready[1]);
	end(&opened);
}
