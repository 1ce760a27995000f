/* SPDX-License-Identifier: MIT */
/*
 * The symbol tests of libbcc's own C tests, rewritten for two libraries: ours, and libbcc itself
 * where it is installed. A case that passes with libbcc and not with ours is a defect of ours.
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "tests/support/bcc_library.h"
#include "tests/support/cannot_run.h"
#include "tests/support/elf_builder.h"
#include "tests/support/program.h"

static struct bcc_library library;

static struct criterion_test_params subjects(void)
{
	static int all[BCC_SUBJECTS] = { BCC_OURS, BCC_LIBBCC };

	return cr_make_param_array(int, all, BCC_SUBJECTS);
}

/* Each case runs with each library. */
#define CASE(name)                                                                                 \
	static void case_##name(void);                                                             \
	ParameterizedTestParameters(bcc_contract, name)                                            \
	{                                                                                          \
		return subjects();                                                                 \
	}                                                                                          \
	ParameterizedTest(int *subject, bcc_contract, name)                                        \
	{                                                                                          \
		if (!bcc_library_open(&library, *subject))                                         \
			cannot_run("libbcc.so.0 is not installed");                                \
		case_##name();                                                                     \
	}                                                                                          \
	static void case_##name(void)

/* ---- libraries, programs, the kernel --------------------------------------------------- */

CASE(finds_a_library_by_its_name)
{
	char *path = library.procutils_which_so("m", 0);

	cr_assert(path && path[0] == '/' && strstr(path, "libm.so"));
	free(path);
}

CASE(finds_a_library_that_a_process_has_loaded)
{
	char *path = library.procutils_which_so("elf", getpid());

	cr_assert(path && path[0] == '/' && strstr(path, "libelf"));
	free(path);
}

CASE(finds_a_program)
{
	char *path = library.procutils_which("ld");

	cr_assert(path && path[0] == '/');
	free(path);
}

static void take_kernel_symbol(const char *name, const char *module, uint64_t address,
			       void *payload)
{
	cr_assert(*name && *module && address);
	++*(size_t *)payload;
}

CASE(lists_the_symbols_of_the_kernel)
{
	size_t count = 0;

	need_root();
	cr_assert_eq(library.procutils_each_ksym(take_kernel_symbol, &count), 0);
	cr_assert_gt(count, 1000);
}

CASE(tells_mappings_of_files_from_others)
{
	cr_expect_eq(library.mapping_is_file_backed("/bin/ls"), 1);
	cr_expect_eq(library.mapping_is_file_backed(""), 0);
	cr_expect_eq(library.mapping_is_file_backed("//anon"), 0);
	cr_expect_eq(library.mapping_is_file_backed("/dev/zero"), 0);
	cr_expect_eq(library.mapping_is_file_backed("/anon_hugepage"), 0);
	cr_expect_eq(library.mapping_is_file_backed("/anon_hugepage (deleted)"), 0);
	cr_expect_eq(library.mapping_is_file_backed("[stack"), 0);
	cr_expect_eq(library.mapping_is_file_backed("/SYSV"), 0);
	cr_expect_eq(library.mapping_is_file_backed("[heap]"), 0);
}

/* ---- names to places in files ------------------------------------------------------------ */

CASE(finds_a_function_of_a_library)
{
	struct bcc_symbol symbol;

	cr_assert_eq(library.resolve_symname("c", "malloc", 0, 0, NULL, &symbol), 0);
	cr_expect(strstr(symbol.module, "libc.so"));
	cr_expect_eq(symbol.module[0], '/');
	cr_expect_neq(symbol.offset, 0);
	cr_expect_str_eq(symbol.name, "malloc");
	free((char *)symbol.module);
}

CASE(finds_a_function_of_a_library_that_a_process_has_loaded)
{
	struct bcc_symbol symbol;

	cr_assert_eq(library.resolve_symname(library.soname, "bcc_procutils_which", 0, getpid(),
					     NULL, &symbol),
		     0);
	cr_expect(strstr(symbol.module, library.soname));
	cr_expect_eq(symbol.module[0], '/');
	cr_expect_neq(symbol.offset, 0);
	free((char *)symbol.module);
}

CASE(says_what_it_does_not_find)
{
	struct bcc_symbol symbol;

	cr_expect_eq(library.resolve_symname("c", "no_such_function", 0, 0, NULL, &symbol), -1);
	cr_expect_null(symbol.module);
	cr_expect_eq(library.resolve_symname("no_such_library", "f", 0, 0, NULL, &symbol), -1);
	cr_expect_eq(library.resolve_symname(NULL, "f", 0, 0, NULL, &symbol), -1);
	cr_expect_eq(library.resolve_symname("c", NULL, 0, 0, NULL, &symbol), -1);
}

CASE(arithmetic_goes_there_and_back)
{
	uint64_t address = library.calc_global_addr(0x7f0000001000, 0x1000, 0x2000, 0x1000, 0x2345);

	cr_expect_eq(address, 0x7f0000001345);
	cr_expect_eq(library.calc_mod_offset(0x7f0000001000, 0x1000, 0x2000, 0x1000, address),
		     0x2345);
}

CASE(finds_an_address_of_a_mapped_file)
{
	char *path = library.procutils_which_so("c", getpid());
	uint64_t start = 0, at_fifteen = 0;

	cr_assert(path);
	cr_assert_eq(library.resolve_global_addr(getpid(), path, 0, 0, &start), 0);
	cr_assert_eq(library.resolve_global_addr(getpid(), path, 0x15, 0, &at_fifteen), 0);
	cr_expect_eq(at_fifteen, start + 0x15);
	cr_expect_eq(library.resolve_global_addr(getpid(), "/no/such/file", 0x15, 0, &start), -1);
	free(path);
}

/* Code of this file has other vaddrs than offsets, as with lld. */
CASE(finds_a_vaddr_that_is_no_offset)
{
	struct elf_builder_options options = { .position_independent = true, .debug_link = "none" };
	const size_t page = ELF_BUILDER_TEXT_BYTES;
	uint64_t address = 0;
	char *scratch = scratch_create(), *path = scratch_path(scratch, "shifted.so");
	size_t size_bytes;
	uint8_t *bytes = elf_builder_make(NULL, 0, options, &size_bytes);
	int fd AUTO_CLOSE = -1;
	void *code;

	scratch_write(path, bytes, size_bytes);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	code = mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, ELF_BUILDER_TEXT_OFFSET);
	cr_assert(code != MAP_FAILED);
	cr_assert_eq(library.resolve_global_addr(getpid(), path, ELF_BUILDER_TEXT_VADDR + 0x15, 0,
						 &address),
		     0);
	cr_expect_eq(address, (uint64_t)(uintptr_t)code + 0x15);
	cr_assert_eq(library.resolve_global_addr(getpid(), path, ELF_BUILDER_DATA_VADDR + 8, 0,
						 &address),
		     0, "a semaphore of a probe");
	cr_expect_eq(address, (uint64_t)(uintptr_t)code + page + 8);
	munmap(code, page);
	free(bytes);
	free(path);
	scratch_remove(scratch);
}

/* ---- maps --------------------------------------------------------------------------------- */

/* libbcc's layout, which its callers copy. */
struct mod_search {
	const char *name;
	uint64_t inode, dev_major, dev_minor, addr;
	uint8_t inode_match_only;
	uint64_t start, file_offset;
};

static const char some_maps[] =
	"00400000-007c8000 r-xp 00000000 00:1b 11644523 /path/to/some/program\n"
	"00800000-00a00000 rw-p 00000000 00:00 0 [heap]\n"
	"7f1515bad000-7f1515baf000 r-xp 00000000 00:1b 72809526 /other/path/lib/libutil-2.26.so\n"
	"7f1515baf000-7f1515dae000 ---p 00002000 00:1b 72809526 /other/path/lib/libutil-2.26.so\n"
	"7f15164b5000-7f15164ca000 r-xp 00000000 00:1b 72809538 /other/path/lib/libz.so.1.2.8\n"
	"7f15164cb000-7f15164cc000 rwxp 00000000 00:00 0 \n"
	"7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0 [vdso]\n";

static int search_maps(struct mod_search *search)
{
	FILE *maps = fmemopen((char *)some_maps, sizeof(some_maps) - 1, "r");
	int found = library.each_module_of(maps, 42, library.find_module, search);

	fclose(maps);
	return found;
}

CASE(searches_maps_by_name)
{
	struct mod_search there = { .name = "/other/path/lib/libutil-2.26.so", .addr = 1 };
	struct mod_search not_there = { .name = "/lib/libdoesntexist.so", .addr = 1 };

	cr_expect_eq(search_maps(&there), 0);
	cr_expect_eq(there.start, 0x7f1515bad000);
	cr_expect_eq(search_maps(&not_there), -1);
}

CASE(searches_maps_by_file_whatever_its_name)
{
	struct mod_search same = { .name = "/proc/5/root/lib/libz.so.1.2.8",
				   .inode = 72809538,
				   .dev_minor = 0x1b,
				   .addr = 2 };
	struct mod_search other = { .name = "/other/path/lib/libutil-2.26.so",
				    .inode = 9999999,
				    .dev_major = 0x42,
				    .dev_minor = 0x1b,
				    .addr = 2 };

	cr_expect_eq(search_maps(&same), 0);
	cr_expect_eq(same.start, 0x7f15164b5000);
	cr_expect_eq(search_maps(&other), -1);
}

CASE(searches_maps_by_inode_alone_when_told)
{
	struct mod_search search = { .name = "/other/path/lib/libutil-2.26.so",
				     .inode = 72809526,
				     .dev_major = 0x11,
				     .dev_minor = 0x11,
				     .addr = 2 };

	cr_expect_eq(search_maps(&search), -1);
	search.inode_match_only = 1;
	cr_expect_eq(search_maps(&search), 0);
	cr_expect_eq(search.start, 0x7f1515bad000);
}

struct descriptor_search {
	uint64_t start;
	char name[64];
	int below_root;
};

static int note_module(mod_info *module, int below_root, void *payload)
{
	struct descriptor_search *search = payload;

	if (module->start_addr != search->start)
		return 0;
	snprintf(search->name, sizeof(search->name), "%s", module->name);
	search->below_root = below_root;
	return -1;
}

CASE(tells_a_file_of_memory_by_a_descriptor_of_it)
{
	int fd = memfd_create("code", MFD_CLOEXEC);
	struct descriptor_search search = { 0 };
	char expected[64];
	void *memory;

	cr_assert_eq(ftruncate(fd, 4096), 0);
	memory = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	cr_assert_neq(memory, MAP_FAILED);
	search.start = (uint64_t)memory;
	cr_expect_eq(library.procutils_each_module(getpid(), note_module, &search), 0);
	snprintf(expected, sizeof(expected), "/proc/%d/fd/%d", (int)getpid(), fd);
	cr_expect_str_eq(search.name, expected);
	cr_expect_not(search.below_root);
	close(fd);
	cr_expect_eq(library.procutils_each_module(getpid(), note_module, &search), 0);
	cr_expect_str_eq(search.name, "/memfd:code (deleted)");
	cr_expect(search.below_root);
	munmap(memory, 4096);
}

/* ---- addresses to names ---------------------------------------------------------------------- */

int bcc_contract_function(const char *text);

__attribute__((noinline)) int bcc_contract_function(const char *text)
{
	int length = 0;

	while (text[length])
		length++;
	return length;
}

/* With a default cache and one with options, which must agree. */
static void resolve_twice(uint64_t address, struct bcc_symbol *ret)
{
	struct bcc_symbol_option lazy = { 1, 1, 1, BCC_SYM_ALL_TYPES };
	void *cache = library.symcache_new(getpid(), NULL);
	void *lazy_cache = library.symcache_new(getpid(), &lazy);
	struct bcc_symbol other;

	cr_assert(cache && lazy_cache);
	cr_assert_eq(library.symcache_resolve(cache, address, ret), 0);
	cr_assert_eq(library.symcache_resolve(lazy_cache, address, &other), 0);
	cr_expect_str_eq(other.name, ret->name);
	cr_expect_str_eq(other.module, ret->module);
	cr_expect_str_eq(ret->demangle_name, ret->name);
	library.free_symcache(lazy_cache, getpid());
}

CASE(names_a_function_of_the_program)
{
	char *program = realpath("/proc/self/exe", NULL);
	struct bcc_symbol symbol;

	resolve_twice((uint64_t)&bcc_contract_function, &symbol);
	cr_expect_str_eq(symbol.name, "bcc_contract_function");
	cr_expect_str_eq(symbol.module, program);
	cr_expect_eq(symbol.offset, 0);
	free(program);
}

CASE(names_a_function_of_the_library_itself)
{
	struct bcc_symbol symbol;

	resolve_twice((uint64_t)library.resolve_symname, &symbol);
	cr_expect_str_eq(symbol.name, "bcc_resolve_symname");
	cr_expect(strstr(symbol.module, library.soname));
}

/* libc's own function; a sanitizer has functions of the same names. */
static void *libc_function(const char *name)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);

	return libc ? dlsym(libc, name) : NULL;
}

CASE(names_a_function_of_libc)
{
	uint64_t address = (uint64_t)libc_function("strtok");
	struct bcc_symbol symbol;

	resolve_twice(address, &symbol);
	cr_expect_eq(symbol.offset, 0);
	cr_expect(strstr(symbol.module, "libc"));
	/* Or an alias with the same address. */
	if (strcmp(symbol.name, "strtok") != 0)
		cr_expect_eq((uint64_t)libc_function(symbol.name), address);
}

CASE(says_the_module_of_what_has_no_name)
{
	struct bcc_symbol symbol = { "stale", "stale", "stale", 1 };
	void *cache;

	forget_perf_map();
	cache = library.symcache_new(getpid(), NULL);
	cr_assert_eq(library.symcache_resolve(cache, 0x10, &symbol), -1);
	cr_expect_null(symbol.name);
	cr_expect_null(symbol.demangle_name);
	cr_expect_null(symbol.module);
	cr_expect_eq(symbol.offset, 0);
}

/* A private /tmp with a copy of a library in it, loaded from there. */
static int load_copy(void *argument)
{
	size_t size_bytes;
	char *bytes = scratch_read(argument, &size_bytes);

	if (!bytes)
		return -1;
	scratch_write("/tmp/libz.so.1", bytes, size_bytes);
	free(bytes);
	return dlopen("/tmp/libz.so.1", RTLD_NOW) ? 0 : -1;
}

CASE(finds_names_in_another_mount_namespace)
{
	char *path = library.procutils_which_so("z", 0);
	struct bcc_child child;
	uint64_t address = 0;
	void *cache;

	need_root();
	if (!path)
		cannot_run("needs libz");
	if (!bcc_child_start(&child, BCC_CHILD_PID_NAMESPACE | BCC_CHILD_MOUNT_NAMESPACE, load_copy,
			     path))
		cannot_run("no namespaces here");
	cache = library.symcache_new(child.pid, NULL);
	cr_expect_eq(
		library.symcache_resolve_name(cache, "/tmp/libz.so.1", "zlibVersion", &address), 0);
	cr_expect_neq(address, 0);
	library.free_symcache(cache, child.pid);
	bcc_child_end(&child);
	free(path);
}

/* ---- perf maps ---------------------------------------------------------------------------------
 */

static void *code;

static void write_map(int pid)
{
	char path[64], text[128];
	int length = snprintf(text, sizeof(text), "%lx 10 dummy_fn\n%lx 10 right_next_door_fn\n",
			      (uint64_t)code, (uint64_t)code + 0x10);

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
	scratch_write(path, text, (size_t)length);
}

static int write_own_map(void *argument)
{
	(void)argument;
	write_map(getpid());
	return 0;
}

static void remove_map(int pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
	unlink(path);
}

static bool start_with_code(struct bcc_child *child, unsigned int flags, int (*prepare)(void *))
{
	code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(code, MAP_FAILED);
	return bcc_child_start(child, flags, prepare, NULL);
}

/* `map_pid` is the PID in the map's name. */
static void expect_both_names(const struct bcc_child *child, int map_pid)
{
	static const char *const names[] = { "dummy_fn", "right_next_door_fn" };
	void *cache = library.symcache_new(child->pid, NULL);
	struct bcc_symbol symbol;
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", map_pid);
	for (uint64_t i = 0; i < 2; i++) {
		cr_assert_eq(
			library.symcache_resolve(cache, (uint64_t)code + i * 0x10 + 3, &symbol), 0);
		cr_expect_str_eq(symbol.name, names[i]);
		cr_expect_str_eq(symbol.module, path);
		cr_expect_eq(symbol.offset, 3);
	}
	library.free_symcache(cache, child->pid);
}

CASE(reads_the_perf_map_of_a_process)
{
	struct bcc_child child;

	cr_assert(start_with_code(&child, 0, write_own_map));
	expect_both_names(&child, child.pid);
	remove_map(child.pid);
	bcc_child_end(&child);
}

CASE(reads_the_perf_map_of_a_process_in_another_pid_namespace)
{
	/* Its map has the path of the map in the same test of the other library. */
	int shared AUTO_CLOSE = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct bcc_child child;

	cr_assert_eq(flock(shared, LOCK_EX), 0);
	need_root();
	if (access("/tmp/perf-1.map", F_OK) == 0)
		cr_skip_test("another process 1 has left its map");
	if (!start_with_code(&child, BCC_CHILD_PID_NAMESPACE, write_own_map))
		cannot_run("no namespaces here");
	expect_both_names(&child, 1);
	remove_map(1);
	bcc_child_end(&child);
}

CASE(reads_the_perf_map_of_a_process_in_other_pid_and_mount_namespaces)
{
	struct bcc_child child;

	need_root();
	if (!start_with_code(&child, BCC_CHILD_PID_NAMESPACE | BCC_CHILD_MOUNT_NAMESPACE,
			     write_own_map))
		cannot_run("needs namespaces");
	expect_both_names(&child, 1);
	bcc_child_end(&child);
}

CASE(reads_the_map_on_the_host_of_a_process_in_other_namespaces)
{
	struct bcc_child child;

	need_root();
	if (!start_with_code(&child, BCC_CHILD_PID_NAMESPACE | BCC_CHILD_MOUNT_NAMESPACE, NULL))
		cannot_run("needs namespaces");
	write_map(child.pid);
	expect_both_names(&child, child.pid);
	remove_map(child.pid);
	bcc_child_end(&child);
}
