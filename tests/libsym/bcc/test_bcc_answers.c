/* SPDX-License-Identifier: MIT */
/*
 * Where libsym-bcc differs from libbcc, one case each. Then what only ours supports: misuse,
 * processes that end or call exec(), several threads.
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/bcc_library.h"
#include "tests/support/cannot_run.h"
#include "tests/support/chosen_id.h"
#include "tests/support/elf_builder.h"
#include "tests/support/program.h"
#include "tests/support/waiting.h"

enum {
	CODE_BYTES = 0x10000
};

static struct bcc_library library;
static char map_path[64];
static uint64_t code;

/* Memory of this process for lines of a perf map, unless LIBSYM has better names for it. */
static void set_up(void)
{
	void *memory =
		mmap(NULL, CODE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(memory, MAP_FAILED);
	code = (uint64_t)memory;
	snprintf(map_path, sizeof(map_path), "/tmp/perf-%d.map", (int)getpid());
	forget_perf_map();
	setenv("LIBSYM_BCC_REFRESH_MS", "0", 1);
}

static void tear_down(void)
{
	unlink(map_path);
}

static struct criterion_test_params subjects(void)
{
	static int all[BCC_SUBJECTS] = { BCC_OURS, BCC_LIBBCC };

	return cr_make_param_array(int, all, BCC_SUBJECTS);
}

/* Each case runs with each library; `ours` selects the expected answer. */
#define CASE(name)                                                                                 \
	static void case_##name(__attribute__((unused)) bool ours);                                \
	ParameterizedTestParameters(bcc_answers, name)                                             \
	{                                                                                          \
		return subjects();                                                                 \
	}                                                                                          \
	ParameterizedTest(int *subject, bcc_answers, name, .init = set_up, .fini = tear_down)      \
	{                                                                                          \
		if (!bcc_library_open(&library, *subject))                                         \
			cannot_run("libbcc.so.0 is not installed");                                \
		case_##name(*subject == BCC_OURS);                                                 \
	}                                                                                          \
	static void case_##name(__attribute__((unused)) bool ours)

#define OURS(name)                                                                                 \
	static void only_##name(void);                                                             \
	Test(bcc_answers, name, .init = set_up, .fini = tear_down)                                 \
	{                                                                                          \
		cr_assert(bcc_library_open(&library, BCC_OURS));                                   \
		only_##name();                                                                     \
	}                                                                                          \
	static void only_##name(void)

static void append_line(uint64_t offset, unsigned int size_bytes, const char *name)
{
	FILE *map = fopen(map_path, "a");

	cr_assert(map);
	fprintf(map, "%lx %x %s\n", code + offset, size_bytes, name);
	fclose(map);
}

static void expect_name(void *cache, uint64_t offset, const char *name, uint64_t into)
{
	struct bcc_symbol symbol;

	cr_assert_eq(library.symcache_resolve_no_demangle(cache, code + offset, &symbol), 0,
		     "no name at %#lx, expected %s", offset, name);
	cr_expect_str_eq(symbol.name, name);
	cr_expect_eq(symbol.offset, into);
	cr_expect_str_eq(symbol.module, map_path);
	cr_expect_null(symbol.demangle_name);
}

/* It is refreshed when a refresh is due. */
static void expect_name_soon(void *cache, uint64_t offset, const char *name, uint64_t into)
{
	struct bcc_symbol symbol;

	for (int turn = 0; library.symcache_resolve_no_demangle(cache, code + offset, &symbol) ||
			   strcmp(symbol.name, name);
	     turn++)
		if (!wait_turn(turn))
			break;
	expect_name(cache, offset, name, into);
}

static void expect_none(void *cache, uint64_t offset)
{
	struct bcc_symbol symbol;

	cr_expect_eq(library.symcache_resolve_no_demangle(cache, code + offset, &symbol), -1);
	cr_expect_null(symbol.name);
}

CASE(nested_ranges_leave_the_outer_one_its_rest)
{
	void *cache;

	append_line(0x000, 0x100, "outer");
	append_line(0x010, 0x10, "first inner");
	append_line(0x030, 0x10, "second inner");
	cache = library.symcache_new(getpid(), NULL);
	expect_name(cache, 0x05, "outer", 5);
	expect_name(cache, 0x18, "first inner", 8);
	expect_name(cache, 0x35, "second inner", 5);
	if (ours)
		expect_name(cache, 0x50, "outer", 0x50);
	else
		expect_none(cache, 0x50);
	expect_none(cache, 0x101);
	library.free_symcache(cache, getpid());
}

CASE(the_address_behind_a_call_that_does_not_come_back_is_the_callers)
{
	void *cache;

	append_line(0, 0x20, "throws");
	append_line(0x40, 0x20, "calls");
	append_line(0x60, 0x20, "follows");
	cache = library.symcache_new(getpid(), NULL);
	if (ours)
		expect_name(cache, 0x20, "throws", 0x20);
	else
		expect_none(cache, 0x20);
	if (ours)
		expect_name(cache, 0x20, "throws", 0x20); /* the cached answer */
	expect_none(cache, 0x21);
	expect_name(cache, 0x60, "follows", 0);
	expect_name(cache, 0x1f, "throws", 0x1f);
	library.free_symcache(cache, getpid());
}

CASE(the_later_of_two_lines_wins)
{
	struct bcc_symbol symbol;
	void *cache;

	append_line(0x200, 0x20, "earlier");
	append_line(0x200, 0x20, "later");
	cache = library.symcache_new(getpid(), NULL);
	if (ours)
		expect_name(cache, 0x210, "later", 0x10);
	else
		cr_expect_eq(library.symcache_resolve(cache, code + 0x210, &symbol), 0);
	library.free_symcache(cache, getpid());
}

CASE(a_map_that_grows_is_read_again)
{
	void *cache;

	append_line(0x000, 0x20, "first");
	cache = library.symcache_new(getpid(), NULL);
	expect_name(cache, 0x01, "first", 1);
	append_line(0x300, 0x20, "second");
	if (ours)
		expect_name_soon(cache, 0x301, "second", 1);
	else
		expect_none(cache, 0x301);
	library.symcache_refresh(cache);
	expect_name(cache, 0x301, "second", 1);
	library.free_symcache(cache, getpid());
}

CASE(a_map_that_appears_is_read)
{
	void *cache = library.symcache_new(getpid(), NULL);
	struct bcc_symbol symbol;

	expect_none(cache, 0x10);
	append_line(0x000, 0x20, "late");
	/*
	 * An address without a name triggers no second refresh; its neighbours do, when one is due.
	 */
	for (int turn = 0; library.symcache_resolve(cache, code + 0x11, &symbol) < 0; turn++)
		if (ours ? !wait_turn(turn) : turn == 500)
			break;
	cr_expect_eq(symbol.name != NULL, ours);
	library.symcache_refresh(cache);
	expect_name(cache, 0x10, "late", 0x10);
	library.free_symcache(cache, getpid());
}

CASE(memory_that_is_not_mapped_has_no_name)
{
	struct bcc_symbol symbol;
	void *cache;

	append_line(0x40000000, 0x20, "gone");
	cache = library.symcache_new(getpid(), NULL);
	cr_expect_eq(library.symcache_resolve(cache, code + 0x40000001, &symbol), ours ? -1 : 0);
	library.free_symcache(cache, getpid());
}

CASE(names_of_64_kb_are_given_whole)
{
	char *name = malloc(65537);
	struct bcc_symbol symbol;
	void *cache;

	memset(name, 'n', 65536);
	name[65536] = '\0';
	append_line(0x400, 0x20, name);
	append_line(0x500, 0x20, "next");
	cache = library.symcache_new(getpid(), NULL);
	expect_name(cache, 0x501, "next", 1);
	cr_assert_eq(library.symcache_resolve(cache, code + 0x401, &symbol), 0);
	cr_expect_eq(strlen(symbol.name), 65536);
	cr_expect_str_eq(symbol.name, name);
	library.symbol_free_demangle_name(&symbol);
	library.free_symcache(cache, getpid());
	free(name);
}

CASE(a_name_of_c_plus_plus_is_made_readable)
{
	struct bcc_symbol symbol;
	void *cache;

	append_line(0x600, 0x20, "_Z3fooiPKc");
	cache = library.symcache_new(getpid(), NULL);
	cr_assert_eq(library.symcache_resolve(cache, code + 0x601, &symbol), 0);
	cr_expect_str_eq(symbol.name, "_Z3fooiPKc");
	cr_expect_str_eq(symbol.demangle_name, "foo(int, char const*)");
	library.symbol_free_demangle_name(&symbol);
	library.free_symcache(cache, getpid());
}

CASE(a_name_in_a_library_has_its_address)
{
	void *cache = library.symcache_new(getpid(), NULL);
	uint64_t found = 0, actual = (uint64_t)dlsym(RTLD_DEFAULT, "strdup");
	struct bcc_symbol symbol;

	cr_assert_eq(library.symcache_resolve(cache, actual, &symbol), 0);
	cr_assert_eq(library.symcache_resolve_name(cache, symbol.module, symbol.name, &found), 0);
	if (ours)
		cr_expect_eq(found, actual);
	cr_expect_eq(library.symcache_resolve_name(cache, symbol.module, "no such", &found), -1);
	cr_expect_eq(library.symcache_resolve_name(cache, "/no/such", "strdup", &found), -1);
	library.free_symcache(cache, getpid());
}

CASE(the_kernel_has_names)
{
	void *cache = library.symcache_new(-1, NULL);
	struct bcc_symbol symbol;
	uint64_t address = 0;

	need_root();
	if (library.symcache_resolve_name(cache, NULL, "vfs_read", &address) < 0)
		cannot_run("/proc/kallsyms shows no addresses");
	cr_assert_eq(library.symcache_resolve(cache, address + 1, &symbol), 0);
	cr_expect_str_eq(symbol.name, "vfs_read");
	cr_expect_str_eq(symbol.module, "kernel");
	cr_expect_eq(symbol.offset, 1);
	cr_expect_eq(symbol.demangle_name, symbol.name);
	cr_expect_eq(library.symcache_resolve(cache, 0x1000, &symbol), -1);
	cr_expect_eq(library.symcache_resolve(cache, UINT64_MAX, &symbol), ours ? -1 : 0);
	cr_expect_eq(library.symcache_resolve_name(cache, NULL, "no such symbol", &address), -1);
	library.free_symcache(cache, -1);
}

CASE(stacks_of_build_ids_have_names)
{
	struct bpf_stack_build_id frame = { .status = BPF_STACK_BUILD_ID_VALID };
	char *path = library.procutils_which_so("c", 0);
	void *cache = library.buildsymcache_new();
	struct bcc_symbol symbol = { 0 }, place;
	char text[64];

	cr_assert_eq(library.resolve_symname("c", "malloc", 0, 0, NULL, &place), 0);
	cr_assert_eq(library.elf_get_buildid(path, text), 0);
	for (int i = 0; i < 20; i++)
		cr_assert_eq(sscanf(text + 2 * i, "%2hhx", &frame.build_id[i]), 1);
	cr_expect_eq(library.buildsymcache_add_module(cache, "/etc/passwd"), -1);
	cr_assert_eq(library.buildsymcache_add_module(cache, path), 0);
	cr_assert_eq(library.buildsymcache_add_module(cache, path), 0);
	frame.offset = place.offset + 3;
	cr_assert_eq(library.buildsymcache_resolve(cache, &frame, &symbol), 0);
	cr_expect(strstr(symbol.name, "malloc"));
	cr_expect_eq(symbol.offset, 3);
	cr_expect_str_eq(symbol.module, path);
	frame.offset = 1ull << 40;
	cr_expect_eq(library.buildsymcache_resolve(cache, &frame, &symbol), ours ? -1 : 0);
	frame.build_id[0] ^= 1;
	cr_expect_eq(library.buildsymcache_resolve(cache, &frame, &symbol), -1);
	frame.status = BPF_STACK_BUILD_ID_IP;
	cr_expect_eq(library.buildsymcache_resolve(cache, &frame, &symbol), 0);
	library.free_buildsymcache(cache);
	free((char *)place.module);
	free(path);
}

CASE(a_debug_file_by_build_id_is_read)
{
	static const struct elf_builder_symbol own = { "own", 0x401010, 16, 1, 2, false, false };
	static const struct elf_builder_symbol debug = {
		"hidden", 0x401020, 16, 1, 2, false, false
	};
	struct bcc_symbol_option with = { 1, 1, 0, BCC_SYM_ALL_TYPES };
	struct bcc_symbol_option without = { 0, 1, 0, BCC_SYM_ALL_TYPES };
	char *scratch = scratch_create(), path[256], directory[256];
	struct bcc_symbol symbol;
	size_t size_bytes;
	uint8_t *bytes = elf_builder_make(&own, 1, (struct elf_builder_options){ .build_id = 0xab },
					  &size_bytes);

	snprintf(path, sizeof(path), "%s/image", scratch);
	scratch_write(path, bytes, size_bytes);
	free(bytes);
	/* The image is in SCRATCH, its debug file in SCRATCH/SCRATCH. */
	snprintf(directory, sizeof(directory), "mkdir -p %s%s", scratch, scratch);
	cr_assert_eq(system(directory), 0);
	snprintf(directory, sizeof(directory), "%s%s/image", scratch, scratch);
	bytes = elf_builder_make(&debug, 1, (struct elf_builder_options){ .build_id = 0xab },
				 &size_bytes);
	scratch_write(directory, bytes, size_bytes);
	free(bytes);
	setenv("BCC_SYMFS", scratch, 1);

	cr_expect_eq(library.resolve_symname(path, "own", 0, 0, &without, &symbol), 0);
	cr_expect_eq(symbol.offset, 0x1010);
	free((char *)symbol.module);
	cr_expect_eq(library.resolve_symname(path, "hidden", 0, 0, &without, &symbol), -1);
	cr_expect_eq(library.resolve_symname(path, "hidden", 0, 0, &with, &symbol), 0);
	cr_expect_eq(symbol.offset, 0x1020);
	free((char *)symbol.module);
	scratch_remove(scratch);
}

/* ---- the same files walked by both ------------------------------------------------------- */

struct tally {
	size_t count;
	uint64_t sum;
};

static int add_to_tally(const char *name, uint64_t start, uint64_t size_bytes, void *payload)
{
	struct tally *tally = payload;

	tally->count++;
	for (; *name; name++)
		tally->sum = tally->sum * 31 + (unsigned char)*name;
	tally->sum = (tally->sum * 31 + start) * 31 + size_bytes;
	return 0;
}

/* Scripts and directories are not programs, and an empty part of PATH is ignored for root. */
OURS(finds_the_programs_that_libbcc_finds)
{
	const char *const search[] = { "/usr/bin:/bin", ":/usr/bin:", "/usr", "/etc:/usr/bin", "" };
	const char *const names[] = { "sh",  "ldd",          "zgrep", "bin",     "lib",
				      "etc", "/usr/bin/ldd", "/etc",  "/bin/sh", "ls" };
	struct bcc_library theirs;
	size_t found = 0;

	if (!bcc_library_open(&theirs, BCC_LIBBCC))
		cannot_run("libbcc.so.0 is not installed");
	for (size_t i = 0; i < sizeof(search) / sizeof(search[0]); i++) {
		setenv("PATH", search[i], 1);
		for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
			char *path = library.procutils_which(names[k]);
			char *their_path = theirs.procutils_which(names[k]);

			cr_expect_str_eq(path ? path : "none", their_path ? their_path : "none",
					 "%s in '%s'", names[k], search[i]);
			found += path != NULL;
			free(path);
			free(their_path);
		}
	}
	cr_expect_gt(found, 6);
}

OURS(says_of_no_elf_file_what_libbcc_says)
{
	struct bcc_symbol_option every = { 1, 1, 0, BCC_SYM_ALL_TYPES };
	const char *const paths[] = { "/", "/dev/null", "/etc/passwd", "/no/such/file", "" };
	struct bcc_library theirs;
	struct tally none = { 0 };

	if (!bcc_library_open(&theirs, BCC_LIBBCC))
		cannot_run("libbcc.so.0 is not installed");
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		cr_expect_eq(library.elf_foreach_sym(paths[i], add_to_tally, &every, &none),
			     theirs.elf_foreach_sym(paths[i], add_to_tally, &every, &none), "%s",
			     paths[i]);
	cr_expect_eq(none.count, 0);
}

OURS(walks_symbol_tables_as_libbcc_does)
{
	struct bcc_symbol_option every = { 1, 1, 0, BCC_SYM_ALL_TYPES };
	const char *const names[] = { "c", "m", "elf", "z", "curl", "jansson" };
	struct bcc_library theirs;

	if (!bcc_library_open(&theirs, BCC_LIBBCC))
		cannot_run("libbcc.so.0 is not installed");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *path = library.procutils_which_so(names[i], 0);
		char *their_path = theirs.procutils_which_so(names[i], 0);
		struct tally mine = { 0 }, other = { 0 };

		if (!path)
			continue;
		cr_expect_str_eq(path, their_path);
		cr_expect_eq(library.elf_foreach_sym(path, add_to_tally, &every, &mine), 0);
		cr_expect_eq(theirs.elf_foreach_sym(path, add_to_tally, &every, &other), 0);
		cr_expect_eq(mine.count, other.count, "%s: %zu and %zu symbols", path, mine.count,
			     other.count);
		cr_expect_eq(mine.sum, other.sum);
		cr_expect_gt(mine.count, 5);
		free(path);
		free(their_path);
	}
}

/* ---- misuse ------------------------------------------------------------------------------------
 */

OURS(null_is_refused_everywhere)
{
	void *cache = library.symcache_new(getpid(), NULL);
	struct bcc_symbol symbol;
	uint64_t address;

	cr_expect_eq(library.symcache_resolve(NULL, code, &symbol), -1);
	cr_expect_eq(library.symcache_resolve(cache, code, NULL), -1);
	cr_expect_eq(library.symcache_resolve_name(NULL, "/m", "n", &address), -1);
	cr_expect_eq(library.symcache_resolve_name(cache, NULL, "n", &address), -1);
	cr_expect_eq(library.symcache_resolve_name(cache, "/m", NULL, &address), -1);
	cr_expect_eq(library.symcache_resolve_name(cache, "/m", "n", NULL), -1);
	library.symcache_refresh(NULL);
	library.free_symcache(NULL, 1);
	library.symbol_free_demangle_name(NULL);
	library.free_buildsymcache(NULL);
	cr_expect_eq(library.buildsymcache_add_module(NULL, "/bin/sh"), -1);
	cr_expect_eq(library.buildsymcache_resolve(NULL, NULL, NULL), -1);
	cr_expect_eq(library.foreach_function_symbol(NULL, NULL), -1);
	cr_expect_eq(library.resolve_symname("c", "malloc", 0, 0, NULL, NULL), -1);
	cr_expect_eq(library.resolve_global_addr(1, NULL, 0, 0, &address), -1);
	cr_expect_not(library.is_perf_map(NULL));
	cr_expect_eq(library.perf_map_foreach_sym(NULL, NULL, NULL), -1);
	cr_expect_eq(library.elf_foreach_sym(NULL, add_to_tally, NULL, NULL), -1);
	cr_expect_eq(library.elf_foreach_sym("/bin/sh", NULL, NULL, NULL), -1);
	cr_expect_eq(library.elf_get_type(NULL), -1);
	cr_expect_eq(library.elf_get_buildid("/bin/sh", NULL), -1);
	cr_expect_eq(library.procutils_each_module(getpid(), NULL, NULL), -1);
	cr_expect_eq(library.procutils_each_ksym(NULL, NULL), -1);
	cr_expect_null(library.procutils_which_so(NULL, 0));
	cr_expect_null(library.procutils_which(NULL));
	cr_expect_eq(library.mapping_is_file_backed(NULL), 0);
	library.free_symcache(cache, getpid());
}

OURS(a_freed_cache_and_what_is_none_are_refused)
{
	void *cache = library.symcache_new(getpid(), NULL),
	     *kernel = library.symcache_new(-1, NULL);
	void *build_ids = library.buildsymcache_new();
	struct bpf_stack_build_id frame = { .status = BPF_STACK_BUILD_ID_VALID };
	struct bcc_symbol symbol;
	uint64_t address;

	library.free_symcache(cache, getpid());
	library.free_symcache(cache, getpid());
	cr_expect_eq(library.symcache_resolve(cache, code, &symbol), -1);
	cr_expect_eq(library.symcache_resolve_name(cache, "/m", "n", &address), -1);
	library.symcache_refresh(cache);
	/* The wrong sign, for both. */
	library.free_symcache(kernel, getpid());
	cr_expect_eq(library.symcache_resolve(kernel, code, &symbol), -1);
	cache = library.symcache_new(getpid(), NULL);
	library.free_symcache(cache, -1);
	cr_expect_eq(library.symcache_resolve(cache, (uint64_t)&getpid, &symbol), -1);
	/* Memory of another allocator. */
	cr_expect_eq(library.symcache_resolve(&symbol, code, &symbol), -1);
	cr_expect_eq(library.symcache_resolve((void *)UINTPTR_MAX, code, &symbol), -1);
	library.free_buildsymcache(build_ids);
	library.free_buildsymcache(build_ids);
	cr_expect_eq(library.buildsymcache_resolve(build_ids, &frame, &symbol), -1);
}

OURS(a_process_that_is_not_there_has_no_names)
{
	const int pids[] = { 0, 999999999, 2 };
	struct bcc_symbol symbol;

	for (int i = 0; i < 3; i++) {
		void *cache = library.symcache_new(pids[i], NULL);

		cr_assert(cache);
		cr_expect_eq(library.symcache_resolve(cache, code, &symbol), -1);
		library.symcache_refresh(cache);
		cr_expect_eq(library.symcache_resolve(cache, code, &symbol), -1);
		library.free_symcache(cache, pids[i]);
	}
}

/* ---- time
 * ---------------------------------------------------------------------------------------- */

OURS(a_new_cache_follows_what_the_environment_says_now)
{
	void *cache;

	append_line(0x700, 0x20, "void [a] T::M()[OptimizedTier1]");
	cache = library.symcache_new(getpid(), NULL);
	expect_name(cache, 0x701, "void [a] T::M()[OptimizedTier1]", 1);
	library.free_symcache(cache, getpid());
	setenv("LIBSYM_BCC_TIERS", "strip", 1);
	cache = library.symcache_new(getpid(), NULL);
	expect_name(cache, 0x701, "void [a] T::M()", 1);
	library.free_symcache(cache, getpid());
}

OURS(folded_stacks_have_no_semicolon_in_a_name)
{
	void *cache;

	append_line(0x700, 0x20, "Ljava/lang/String;::hashCode");
	append_line(0x720, 0x20, "int32 [a] T;::M()[OptimizedTier1]");
	cache = library.symcache_new(getpid(), NULL);
	expect_name(cache, 0x701, "Ljava/lang/String;::hashCode", 1);
	library.free_symcache(cache, getpid());
	setenv("LIBSYM_BCC_FOLDED", "1", 1);
	cache = library.symcache_new(getpid(), NULL);
	expect_name(cache, 0x701, "Ljava/lang/String:::hashCode", 1);
	expect_name(cache, 0x721, "int32 [a] T:::M()[OptimizedTier1]", 1);
	library.free_symcache(cache, getpid());
}

/* Code that both have at the same address, named by a file, a perf map and a jitdump. */
static void expect_owner(void *cache, const char *owner)
{
	static const uint64_t places[] = { LOOK_ALIKE_NATIVE, LOOK_ALIKE_MAPPED,
					   LOOK_ALIKE_DUMPED };
	struct bcc_symbol symbol;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		cr_assert_eq(library.symcache_resolve_no_demangle(cache, places[i] + 4, &symbol), 0,
			     "place %zu of %s", i, owner);
		cr_expect_eq(strncmp(symbol.name, owner, strlen(owner)), 0, "%s is not of %s",
			     symbol.name, owner);
	}
}

/* It is looked at when a refresh is due. */
static void expect_owner_soon(void *cache, const char *owner)
{
	struct bcc_symbol symbol;

	for (int turn = 0;
	     library.symcache_resolve_no_demangle(cache, LOOK_ALIKE_NATIVE + 4, &symbol) ||
	     strncmp(symbol.name, owner, strlen(owner));
	     turn++)
		if (!wait_turn(turn))
			break;
	expect_owner(cache, owner);
}

OURS(an_id_that_is_used_again_is_another_process)
{
	char *directory = scratch_create();
	const unsigned int flags = LOOK_ALIKE_MAP | LOOK_ALIKE_DUMP;
	const struct look_alike first = { directory, "first", flags };
	const struct look_alike second = { directory, "second", flags };
	pid_t id = look_alike_start(0, &first);
	void *held = library.symcache_new(id, NULL), *freed = library.symcache_new(id, NULL);

	expect_owner(held, "first");
	expect_owner(freed, "first");
	library.free_symcache(freed, id);
	look_alike_end(id);
	look_alike_forget(id);
	expect_owner(held, "first");
	cr_assert_eq(look_alike_start(id, &second), id);
	/* A kept engine of a freed cache is checked at once; a cache in use when it is due. */
	freed = library.symcache_new(id, NULL);
	expect_owner(freed, "second");
	library.free_symcache(freed, id);
	expect_owner_soon(held, "second");
	library.free_symcache(held, id);
	look_alike_end(id);
	look_alike_forget(id);
	scratch_remove(directory);
}

/* ---- threads ---- */

enum {
	THREADS = 8
};

struct parked {
	pthread_t thread;
	pid_t id;
	int wake[2], awake[2];
};

static void *park(void *context)
{
	struct parked *parked = context;
	char byte = 0;

	parked->id = gettid();
	cr_assert_eq(write(parked->awake[1], &byte, 1), 1);
	cr_assert_eq(read(parked->wake[0], &byte, 1), 1);
	return NULL;
}

static void start_parked(struct parked *parked)
{
	char byte;

	cr_assert(!pipe(parked->wake) && !pipe(parked->awake));
	cr_assert_eq(pthread_create(&parked->thread, NULL, park, parked), 0);
	cr_assert_eq(read(parked->awake[0], &byte, 1), 1);
}

static void end_parked(struct parked *parked)
{
	char path[64];

	cr_assert_eq(write(parked->wake[1], "", 1), 1);
	pthread_join(parked->thread, NULL);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)parked->id);
	while (!access(path, F_OK))
		wait_pause();
	for (int i = 0; i < 2; i++) {
		close(parked->wake[i]);
		close(parked->awake[i]);
	}
}

/* As bpftrace does: a cache for every address, of the sampled thread. Some threads have ended. */
OURS(a_thread_that_has_ended_is_of_its_process)
{
	static struct parked parked[THREADS], other;

	append_line(0x000, 0x20, "method");
	for (int i = 0; i < THREADS; i++)
		start_parked(&parked[i]);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < THREADS; i++) {
			void *cache = library.symcache_new(parked[i].id, NULL);

			expect_name(cache, 0x01, "method", 1);
			library.free_symcache(cache, parked[i].id);
		}
		for (int i = 0; !round && i < THREADS; i++)
			end_parked(&parked[i]);
	}
	/* Nothing is known about a thread that had no cache during its life. */
	start_parked(&other);
	end_parked(&other);
	expect_none(library.symcache_new(other.id, NULL), 0x01);
}

/* So many mappings that a refresh takes long, and is therefore rare. */
static void be_slow_to_look_at(void)
{
	const size_t pages = 20000;
	char *room = mmap(NULL, pages * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(room, MAP_FAILED);
	for (size_t i = 0; i < pages; i += 2)
		cr_assert_eq(mprotect(room + i * 4096, 4096, PROT_READ), 0);
}

static void map_this_program(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	cr_assert_neq(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0), MAP_FAILED);
	close(fd);
}

OURS(a_library_that_was_loaded_hides_no_new_line)
{
	struct bcc_symbol symbol;
	void *cache;

	setenv("LIBSYM_BCC_REFRESH_MS", "40", 1);
	setenv("LIBSYM_BCC_NAMES", "short", 1);
	be_slow_to_look_at();
	append_line(0x000, 0x20, "old");
	cache = library.symcache_new(getpid(), NULL);
	cr_expect_eq(library.symcache_resolve(cache, code + 0x5000, &symbol), -1);
	expect_name(cache, 0x01, "old", 1);
	append_line(0x000, 0x20, "new");
	append_line(0x300, 0x20, "other");
	map_this_program();
	expect_name_soon(cache, 0x301, "other", 1);
	expect_name(cache, 0x01, "new", 1);
	library.free_symcache(cache, getpid());
}

OURS(a_cache_for_every_address_gives_the_same_answers)
{
	struct bcc_symbol symbol;

	append_line(0, 0x1000, "method");
	for (uint64_t i = 0; i < 300; i++) {
		void *cache = library.symcache_new(getpid(), NULL);

		cr_assert_eq(library.symcache_resolve(cache, code + i, &symbol), 0);
		cr_assert_str_eq(symbol.name, "method");
		cr_assert_eq(symbol.offset, i);
		library.free_symcache(cache, getpid());
	}
}

static void *look_up_much(void *cache)
{
	struct bcc_symbol symbol;
	size_t wrong = 0;

	for (uint64_t i = 0; i < 20000; i++)
		wrong += library.symcache_resolve_no_demangle(cache, code + i % 0x1000, &symbol) !=
				 0 ||
			 symbol.offset != i % 0x1000;
	return (void *)wrong;
}

OURS(threads_may_share_a_cache)
{
	pthread_t threads[4];
	void *cache, *wrong;

	append_line(0, 0x1000, "method");
	cache = library.symcache_new(getpid(), NULL);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, look_up_much, cache), 0);
	for (int i = 0; i < 20; i++)
		library.symcache_refresh(cache);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], &wrong);
		cr_expect_null(wrong);
	}
	library.free_symcache(cache, getpid());
}

OURS(the_place_of_a_name_in_a_string_table_gives_the_name)
{
	char name[64] = "unchanged";

	cr_expect_eq(library.elf_symbol_str("/no/such", 1, 1, name, sizeof(name), 0), -1);
	cr_expect_eq(library.elf_symbol_str("/proc/self/exe", 9999, 1, name, sizeof(name), 0), -1);
	cr_expect_str_eq(name, "unchanged");
}
