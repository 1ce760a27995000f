/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libsym/libsym.h"
#include "libsym/resolver/kernel.h"
#include "tests/support/bpf_program.h"
#include "tests/support/cannot_run.h"
#include "tests/support/proc_tree.h"

/* A kernel, a module after a gap of 1 GiB, and a BPF program in its own. */
static const char recorded[] = "ffffffff81000000 T startup_64\n"
			       "ffffffff81000000 T _text\n"
			       "ffffffff81000100 t a_local\n"
			       "ffffffff81000100 T a_global\n"
			       "ffffffff81000300 T last_function\n"
			       "ffffffff81002000 T _etext\n"
			       "ffffffff82000000 D some_data\n"
			       "0000000000001000 A per_cpu_offset\n"
			       "ffffffffc0000000 t module_init\t[sample]\n"
			       "ffffffffc0000040 t module_work\t[sample]\n"
			       "ffffffffc1000010 t bpf_prog_1_x\t[bpf]\n";

static struct proc_tree tree;
static struct sym_kernel *kernel;
static struct sym_result *result;

static void record(const char *text)
{
	proc_tree_create(&tree);
	proc_tree_write_text(&tree, "/proc/kallsyms", text);
	cr_assert_null(sym_kernel_open(tree.root, &kernel));
	cr_assert_null(sym_result_create(&result));
}

static void end(void)
{
	sym_result_destroy(result);
	sym_kernel_close(kernel);
	proc_tree_destroy(&tree);
}

static const struct sym_answer *ask(uint64_t address)
{
	cr_assert_null(sym_kernel_resolve(kernel, &address, 1, result));
	return sym_result_at(result, 0);
}

static void expect_answer(uint64_t address, const char *name, uint64_t offset_bytes,
			  const char *module)
{
	const struct sym_answer *answer = ask(address);

	cr_assert_eq(answer->status, SYM_RESOLVED, "%" PRIx64, address);
	cr_expect_str_eq(answer->name, name);
	cr_expect_eq(answer->offset_bytes, offset_bytes);
	cr_expect_str_eq(answer->image_path, module);
	cr_expect_eq(answer->source, SYM_SOURCE_KERNEL);
}

Test(kernel, names_functions_of_the_kernel_and_of_modules)
{
	record(recorded);
	expect_answer(0xffffffff81000000, "startup_64", 0, "[kernel.kallsyms]");
	expect_answer(0xffffffff810002ff, "a_global", 0x1ff, "[kernel.kallsyms]");
	expect_answer(0xffffffffc000003f, "module_init", 0x3f, "[sample]");
	expect_answer(0xffffffffc0000050, "module_work", 0x10, "[sample]");
	expect_answer(0xffffffffc1000020, "bpf_prog_1_x", 0x10, "[bpf]");
	end();
}

Test(kernel, does_not_extend_a_function_over_unknown_memory)
{
	record(recorded);
	expect_answer(0xffffffff81001fff, "last_function", 0x1cff, "[kernel.kallsyms]");
	cr_expect_eq(ask(0xffffffff81002000)->status, SYM_NO_MATCH, "behind the end of the code");
	cr_expect_eq(ask(0xffffffff82000000)->status, SYM_NO_MATCH, "data");
	cr_expect_eq(ask(0xffffffffc0001000)->status, SYM_NO_MATCH, "the page behind a module");
	cr_expect_eq(ask(0xffffffffc1001000)->status, SYM_NO_MATCH);
	cr_expect_eq(ask(0x1000)->status, SYM_NO_MATCH, "no address of code");
	end();
}

Test(kernel, reports_hidden_addresses)
{
	const struct sym_answer *answer;

	record("0000000000000000 T startup_64\n0000000000000000 t module_init\t[sample]\n");
	cr_assert_not_null(sym_kernel_problem(kernel));
	cr_expect_not_null(strstr(sym_kernel_problem(kernel), "kptr_restrict"));
	answer = ask(0xffffffff81000000);
	cr_expect_eq(answer->status, SYM_NO_SYMBOLS);
	cr_expect_str_eq(answer->reason, sym_kernel_problem(kernel));
	end();
}

Test(kernel, is_used_by_a_resolver)
{
	static const char maps[] = "55550000-55560000 r-xp 00000000 00:00 0 \n";
	uint64_t addresses[] = { 0xffffffff81000104, 0xffffffffffff0000, 0x7000 };
	struct sym_snapshot_opts opts = { .size = sizeof(opts), .jit = SYM_JIT_NONE };
	struct sym_snapshot *snapshot;
	struct sym_resolver *resolver;

	record(recorded);
	proc_tree_add_process(&tree, &(struct proc_tree_process){ .pid = 7, .maps = maps });
	opts.root = tree.root;
	cr_assert_null(sym_snapshot_open(7, &opts, &snapshot));
	cr_assert_null(sym_resolver_create(snapshot, &resolver));
	cr_assert_null(sym_resolver_resolve(resolver, addresses, 3, result));
	cr_expect_str_eq(sym_result_at(result, 0)->name, "a_global");
	cr_expect_eq(sym_result_at(result, 1)->status, SYM_NO_MATCH);
	cr_expect_eq(sym_result_at(result, 2)->status, SYM_UNMAPPED);
	sym_resolver_destroy(resolver);
	sym_snapshot_close(snapshot);
	end();
}

Test(kernel, lists_its_functions_by_address)
{
	struct sym_symbols *symbols;
	size_t found;

	record(recorded);
	cr_assert_null(sym_kernel_symbols(kernel, &symbols));
	cr_assert_eq(sym_symbols_count(symbols), 6);
	found = sym_symbols_find(symbols, "module_work", SYM_NONE);
	cr_assert_neq(found, SYM_NONE);
	cr_expect_eq(sym_symbols_at(symbols, found)->start, 0xffffffffc0000040);
	sym_symbols_destroy(symbols);
	end();
}

/* The kernel's own list is the oracle: each listed function is named at its own address. */
Test(kernel, agrees_with_the_running_kernel)
{
	size_t same = 0, other = 0;
	uint64_t address;
	char name[512], type;
	FILE *file = fopen("/proc/kallsyms", "r");

	cr_assert_null(sym_kernel_open(NULL, &kernel));
	cr_assert_null(sym_result_create(&result));
	if (!file || sym_kernel_problem(kernel))
		cannot_run("the kernel's addresses cannot be seen");
	while (fscanf(file, "%" SCNx64 " %c %511s%*[^\n]", &address, &type, name) == 3) {
		if (type != 'T' || !(address >> 63))
			continue;
		if (ask(address)->status == SYM_RESOLVED && ask(address)->offset_bytes == 0 &&
		    !strcmp(ask(address)->name, name))
			same++;
		else
			other++;
	}
	fclose(file);
	/* The rest are aliases and labels. */
	cr_expect_gt(same, 1000);
	cr_expect_lt(other, same / 5, "%zu of %zu", other, same + other);
	sym_result_destroy(result);
	sym_kernel_close(kernel);
}

Test(kernel, fails_without_its_file)
{
	struct sym_error *error;

	proc_tree_create(&tree);
	error = sym_kernel_open(tree.root, &kernel);
	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), SYM_ERROR_NOT_FOUND);
	sym_error_destroy(error);
	proc_tree_destroy(&tree);
}

Test(kernel, rejects_values_that_are_not_addresses)
{
	cr_expect(kernel_has_address(0xffff800000000000));
	cr_expect(kernel_has_address(0xff11000000000000), "with five levels of page tables");
#ifdef __powerpc64__
	cr_expect(kernel_has_address(0xc000000000000000));
#else
	cr_expect_not(kernel_has_address(0xd0e85944000b0b10), "of the stack of a JVM");
#endif
	cr_expect_not(kernel_has_address(0x90669000003ffb25));
	cr_expect_not(kernel_has_address(0x00007fffffffffff));
}

enum {
	BPF_ROUNDS = 8
};

/* The kernel's form of a name: bpf_prog_TAG_NAME. */
static bool is_program(const struct sym_answer *answer, const char *name)
{
	return answer->status == SYM_RESOLVED && strrchr(answer->name, '_') &&
	       !strcmp(strrchr(answer->name, '_') + 1, name);
}

typedef const struct sym_answer *asking(uint64_t address);

/* Other tests may free programs at the same time, and kallsyms skips lines then. */
static const struct sym_answer *ask_until_named(asking *ask_now, uint64_t address)
{
	const struct sym_answer *answer;
	time_t end = time(NULL) + 20;

	do
		answer = ask_now(address);
	while (answer->status != SYM_RESOLVED && time(NULL) < end);
	cr_assert_eq(answer->status, SYM_RESOLVED);
	return answer;
}

/*
 * Programs that are loaded one after another, each at the place of the one before or elsewhere. The
 * oracle is the kernel's list at that moment.
 */
static void load_and_free_programs(asking *ask_now)
{
	const struct sym_answer *answer;
	char name[16], kept[256] = "";
	const char *first = NULL;
	uint64_t address = 0;

	for (int i = 0; i < BPF_ROUNDS; i++) {
		int fd;

		/* Tests run in parallel. */
		snprintf(name, sizeof(name), "sym%c%d", 'a' + i, getpid());
		fd = bpf_program_load(name);
		if (fd < 0 || !bpf_program_listed(name, &address))
			cannot_run("BPF programs cannot be loaded, or are not listed");
		answer = ask_until_named(ask_now, address);
		cr_expect(is_program(answer, name), "%s is called %s", name, answer->name);
		cr_expect_str_eq(answer->image_path, "[bpf]");
		if (!first && answer->name) {
			first = answer->name;
			snprintf(kept, sizeof(kept), "%s", first);
		}
		bpf_program_free(fd, name);
		answer = ask_now(address);
		cr_expect_not(is_program(answer, name), "%s is named after it was freed", name);
	}
	cr_expect_str_eq(first, kept, "a name that was handed out has changed");
}

Test(kernel, never_has_the_name_of_a_freed_bpf_program)
{
	cr_assert_null(sym_kernel_open(NULL, &kernel));
	cr_assert_null(sym_result_create(&result));
	load_and_free_programs(ask);
	sym_result_destroy(result);
	sym_kernel_close(kernel);
}

static struct sym_resolver *open_resolver;

static const struct sym_answer *ask_resolver(uint64_t address)
{
	cr_assert_null(sym_resolver_resolve(open_resolver, &address, 1, result));
	return sym_result_at(result, 0);
}

Test(kernel, never_has_a_stale_name_in_a_resolver_that_stays_open)
{
	struct sym_snapshot *snapshot;

	cr_assert_null(sym_result_create(&result));
	cr_assert_null(sym_snapshot_open(getpid(), NULL, &snapshot));
	cr_assert_null(sym_resolver_create(snapshot, &open_resolver));
	load_and_free_programs(ask_resolver);
	sym_resolver_destroy(open_resolver);
	sym_snapshot_close(snapshot);
	sym_result_destroy(result);
}

/* Number of functions in the list that belong to the program. Only this test uses its name. */
static size_t count_listed(const char *name)
{
	struct sym_symbols *symbols;
	size_t found = 0;

	cr_assert_null(sym_kernel_symbols(kernel, &symbols));
	for (size_t i = 0; i < sym_symbols_count(symbols); i++) {
		const char *last = strrchr(sym_symbols_at(symbols, i)->name, '_');

		found += last && !strcmp(last + 1, name);
	}
	sym_symbols_destroy(symbols);
	return found;
}

Test(kernel, lists_the_loaded_bpf_programs)
{
	time_t end = time(NULL) + 20;
	uint64_t address;
	char name[16];
	int fd;

	cr_assert_null(sym_kernel_open(NULL, &kernel));
	snprintf(name, sizeof(name), "list%d", getpid());
	fd = bpf_program_load(name);
	if (fd < 0 || !bpf_program_listed(name, &address))
		cannot_run("BPF programs cannot be loaded, or are not listed");
	/* kallsyms skips lines while other programs are freed. */
	while (!count_listed(name) && time(NULL) < end)
		;
	cr_expect_eq(count_listed(name), 1);
	bpf_program_free(fd, name);
	cr_expect_eq(count_listed(name), 0);
	sym_kernel_close(kernel);
}
