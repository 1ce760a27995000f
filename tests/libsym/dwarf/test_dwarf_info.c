/* SPDX-License-Identifier: MIT */
#include "libsym/dwarf/dwarf_info.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/libsym.h"
#include "tests/support/program.h"

/* The functions to find: one of this file, and one of this file that is inlined into it. */
__attribute__((always_inline)) static inline int dwarf_test_inner(volatile int *x)
{
	*x += 3;
	return *x * 7;
}

__attribute__((noinline, used)) int dwarf_test_outer(volatile int *x);
int dwarf_test_outer(volatile int *x)
{
	return dwarf_test_inner(x) + 1;
}

struct opened {
	struct sym_snapshot *snapshot;
	struct sym_resolver *resolver;
	struct sym_result *result;
};

static void open_self(struct opened *opened)
{
	cr_assert_null(sym_snapshot_open(getpid(), NULL, &opened->snapshot));
	cr_assert_null(sym_resolver_create(opened->snapshot, &opened->resolver));
	cr_assert_null(sym_result_create(&opened->result));
}

static void end(struct opened *opened)
{
	sym_result_destroy(opened->result);
	sym_resolver_destroy(opened->resolver);
	sym_snapshot_close(opened->snapshot);
}

/* Queries every address of the outer function in one batch. */
static void ask_all(struct opened *opened)
{
	uint64_t start = (uint64_t)(uintptr_t)&dwarf_test_outer, addresses[512];
	size_t size;

	cr_assert_null(sym_resolver_resolve(opened->resolver, &start, 1, opened->result));
	size = sym_result_at(opened->result, 0)->size_bytes;
	cr_assert_gt(size, 0);
	size = size < 512 ? size : 512;
	for (size_t i = 0; i < size; i++)
		addresses[i] = start + i;
	cr_assert_null(sym_resolver_resolve(opened->resolver, addresses, size, opened->result));
}

static bool is_this_file(const char *path)
{
	static const char own[] = "test_dwarf_info.c";

	return path && strlen(path) >= strlen(own) &&
	       !strcmp(path + strlen(path) - strlen(own), own);
}

Test(dwarf_info, finds_lines_and_inlined_functions)
{
	struct opened opened;
	size_t with_line = 0, inlined = 0;

	open_self(&opened);
	cr_assert_null(sym_result_set_fields(opened.result, SYM_FIELD_LINES | SYM_FIELD_INLINED));
	ask_all(&opened);
	for (size_t i = 0; i < sym_result_count(opened.result); i++) {
		const struct sym_answer *answer = sym_result_at(opened.result, i);

		cr_expect_str_eq(answer->name, "dwarf_test_outer");
		with_line += is_this_file(answer->file) && answer->line > 0;
		if (!answer->inlined_count)
			continue;
		inlined++;
		cr_expect_eq(answer->inlined_count, 1);
		cr_expect_str_eq(answer->inlined[0].name, "dwarf_test_inner");
		cr_expect(is_this_file(answer->inlined[0].call_file));
		cr_expect_gt(answer->inlined[0].call_line, answer->line);
	}
	cr_expect_eq(with_line, sym_result_count(opened.result));
	cr_expect_gt(inlined, 0);
	end(&opened);
}

Test(dwarf_info, is_not_read_without_a_request)
{
	struct opened opened;

	open_self(&opened);
	cr_assert_null(sym_result_set_fields(opened.result, SYM_FIELD_LINES | SYM_FIELD_INLINED));
	ask_all(&opened);
	cr_assert_null(sym_result_set_fields(opened.result, 0));
	ask_all(&opened);
	for (size_t i = 0; i < sym_result_count(opened.result); i++) {
		cr_expect_null(sym_result_at(opened.result, i)->file);
		cr_expect_null(sym_result_at(opened.result, i)->inlined);
	}
	end(&opened);
}

Test(dwarf_info, rejects_unknown_fields)
{
	struct sym_result *result;
	struct sym_error *error;

	cr_assert_null(sym_result_create(&result));
	error = sym_result_set_fields(result, 1 << 9);
	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), SYM_ERROR_ARGUMENT);
	sym_error_destroy(error);
	sym_result_destroy(result);
}

/* ---- files of fixtures/make-dwarf-corpus.py ------------------------------------------ */

static bool forks; /* true: the following tests use a child process */

/* *info_ret is NULL if the file's DWARF is not used. */
static void open_file(const char *path, struct object_file **object_ret,
		      struct dwarf_info **info_ret)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	cr_assert_geq(fd, 0, "%s", path);
	cr_assert_null(object_file_open(NULL, fd, path, 0, SPARSE_FILE_TO_END, object_ret));
	cr_assert_null(dwarf_info_open(*object_ret, &(struct dwarf_fetch){ 0 }, forks, info_ret));
}

static void open_seed(const char *name, struct object_file **object_ret,
		      struct dwarf_info **info_ret)
{
	char path[128];

	snprintf(path, sizeof(path), "fixtures/corpus/dwarf/%s", name);
	open_file(path, object_ret, info_ret);
}

static bool find_in(const char *name, uint64_t vaddr, char *function, size_t room,
		    struct sym_inlined inlined[4], size_t *count_ret)
{
	struct dwarf_info *info AUTO_DWARF_INFO = NULL;
	struct object_file *object AUTO_OBJECT_FILE = NULL;
	struct dwarf_place place;
	bool found;

	*count_ret = 0;
	open_seed(name, &object, &info);
	found = info && dwarf_info_find(info, vaddr, &place, inlined, 4, count_ret);
	snprintf(function, room, "%s", found && place.name ? place.name : "");
	return found;
}

static void expect_chains(void)
{
	static const char *const names[] = { "dwarf-4", "dwarf-5", "packed",
					     "packed-with-zstandard", "alternate" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct sym_inlined inlined[4];
		char function[32];
		size_t count;

		cr_expect(find_in(names[i], 0x425, function, sizeof(function), inlined, &count));
		cr_expect_str_eq(function, "outer", "%s", names[i]);
		cr_assert_eq(count, 2);
		cr_expect_eq(inlined[0].call_line, 8);
		cr_expect_eq(inlined[1].call_line, 7);
		find_in(names[i], 0x505, function, sizeof(function), inlined, &count);
		cr_expect_str_eq(function, "inner", "a function by its origin in %s", names[i]);
	}
}

Test(dwarf_info, lists_inlined_functions_innermost_first)
{
	expect_chains();
}

Test(dwarf_info, gives_the_same_answers_from_a_child_process)
{
	forks = true;
	expect_chains();
}

Test(dwarf_info, has_no_name_for_an_index_beyond_the_strings)
{
	struct dwarf_info *info AUTO_DWARF_INFO = NULL;
	struct object_file *object AUTO_OBJECT_FILE = NULL;
	struct sym_inlined inlined[4];
	struct dwarf_place place;
	size_t count;

	open_seed("name-behind-the-texts", &object, &info);
	cr_assert_not_null(info);
	cr_assert(dwarf_info_find(info, 0x404, &place, inlined, 4, &count));
	cr_expect_eq(place.start, 0x400);
	cr_expect_null(place.name);
}

Test(dwarf_info, does_not_follow_circles)
{
	struct sym_inlined inlined[4];
	char function[32];
	size_t count;

	find_in("origins-in-a-circle", 0x410, function, sizeof(function), inlined, &count);
	cr_expect_str_empty(function);
	find_in("sibling-backwards", 0x409, function, sizeof(function), inlined, &count);
	cr_expect_str_eq(function, "in");
}

Test(dwarf_info, stops_at_a_deep_tree_and_a_widely_shared_list)
{
	struct sym_inlined inlined[4];
	char function[32];
	size_t count;

	find_in("deep", 0x404, function, sizeof(function), inlined, &count);
	cr_expect_str_eq(function, "deep");
	cr_expect(find_in("one-list-of-ranges-often", 0x404, function, sizeof(function), inlined,
			  &count));
}

Test(dwarf_info, does_not_unpack_a_section_that_declares_too_much)
{
	struct sym_inlined inlined[4];
	char function[32];
	size_t count;

	cr_expect_not(find_in("packed-lie", 0x425, function, sizeof(function), inlined, &count));
	cr_expect_not(find_in("packed-with-zstandard-lie", 0x425, function, sizeof(function),
			      inlined, &count));
}

/*
 * Beside a copy of the seed lies a FIFO without a writer, under the name that the seed refers to.
 */
static void find_beside_a_fifo(const char *seed, const char *name, uint64_t vaddr,
			       struct dwarf_place *ret)
{
	char *directory = scratch_create(), *copy = scratch_path(directory, "copy"), *bytes;
	char *fifo = scratch_path(directory, name), path[128];
	struct sym_inlined inlined[4];
	struct dwarf_info *info AUTO_DWARF_INFO = NULL;
	struct object_file *object AUTO_OBJECT_FILE = NULL;
	size_t size_bytes, count;

	snprintf(path, sizeof(path), "fixtures/corpus/dwarf/%s", seed);
	bytes = scratch_read(path, &size_bytes);
	cr_assert_not_null(bytes);
	scratch_write(copy, bytes, size_bytes);
	cr_assert_eq(mkfifo(fifo, 0600), 0);
	open_file(copy, &object, &info);
	cr_assert_not_null(info);
	cr_expect(dwarf_info_find(info, vaddr, ret, inlined, 4, &count));
	cr_expect_not_null(ret->line.file);
	free(bytes);
	free(fifo);
	free(copy);
	scratch_remove(directory);
}

Test(dwarf_info, does_not_wait_for_a_fifo_that_a_file_refers_to, .timeout = 20)
{
	struct dwarf_place place = { .start = 0 };

	find_beside_a_fifo("alternate", "nowhere.debug", 0x404, &place);
	find_beside_a_fifo("split", "nowhere.dwo", 0x404, &place);
}

/* A sanitizer reserves terabytes of address space, so that no limit of memory is possible. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

static uint64_t address_space_bytes(void)
{
	char text[64] = "";
	int fd AUTO_CLOSE = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);

	return fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 ? strtoull(text, NULL, 10) * 4096
							       : 0;
}

/* Queries with `left_bytes` of memory, then with all. Exits with the result. */
static void ask_with(size_t left_bytes)
{
	struct rlimit limit = { .rlim_max = RLIM_INFINITY };
	uint64_t address = (uint64_t)(uintptr_t)&dwarf_test_outer;
	struct opened opened;
	struct sym_error *error;

	open_self(&opened);
	cr_assert_null(sym_result_set_fields(opened.result, SYM_FIELD_LINES | SYM_FIELD_INLINED));
	limit.rlim_cur = address_space_bytes() + left_bytes;
	if (setrlimit(RLIMIT_AS, &limit))
		_exit(1);
	error = sym_resolver_resolve(opened.resolver, &address, 1, opened.result);
	if (error && sym_error_code(error) != SYM_ERROR_NO_MEMORY)
		_exit(2);
	sym_error_destroy(error);
	limit.rlim_cur = RLIM_INFINITY;
	if (setrlimit(RLIMIT_AS, &limit) ||
	    sym_resolver_resolve(opened.resolver, &address, 1, opened.result))
		_exit(3);
	_exit(is_this_file(sym_result_at(opened.result, 0)->file) ? 0 : 4);
}

/* libdw ends the process if it runs out of memory. */
Test(dwarf_info, survives_out_of_memory_and_recovers)
{
	enum {
		STEPS = 96,
		STEP_BYTES = 256 << 10
	};

	for (size_t i = 0; i < STEPS; i++) {
		pid_t pid = fork();
		int status;

		cr_assert_geq(pid, 0);
		if (!pid)
			ask_with(i * STEP_BYTES);
		cr_assert_eq(waitpid(pid, &status, 0), pid);
		cr_assert_eq(status, 0, "%zu KiB left: status 0x%x", i * (STEP_BYTES >> 10),
			     (unsigned int)status);
	}
}

#endif
