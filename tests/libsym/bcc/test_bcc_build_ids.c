/* SPDX-License-Identifier: MIT */
/* Stacks of build-ids, when a file has changed since it was added. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/support/bcc_library.h"
#include "tests/support/program.h"

static struct bcc_library library;

static void open_library(void)
{
	cr_assert(bcc_library_open(&library, BCC_OURS));
}

TestSuite(bcc_build_ids, .init = open_library);

/* Where malloc() is in the C library, with the build-id of this file. */
static struct bpf_stack_build_id frame_of(const char *path)
{
	struct bpf_stack_build_id frame = { .status = BPF_STACK_BUILD_ID_VALID };
	struct bcc_symbol place;
	char text[64];

	cr_assert_eq(library.resolve_symname("c", "malloc", 0, 0, NULL, &place), 0);
	frame.offset = place.offset;
	free((char *)place.module);
	cr_assert_eq(library.elf_get_buildid(path, text), 0);
	for (int i = 0; i < 20; i++)
		cr_assert_eq(sscanf(text + 2 * i, "%2hhx", &frame.build_id[i]), 1);
	return frame;
}

Test(bcc_build_ids, open_a_file_once_there_are_descriptors)
{
	char *path = library.procutils_which_so("c", 0);
	struct bpf_stack_build_id frame = frame_of(path);
	void *cache = library.buildsymcache_new();
	struct bcc_symbol symbol = { 0 };
	struct rlimit limit, none;
	int without;

	cr_assert_eq(library.buildsymcache_add_module(cache, path), 0);
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	without = library.buildsymcache_resolve(cache, &frame, &symbol);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	cr_expect_eq(without, -1);
	cr_assert_eq(library.buildsymcache_resolve(cache, &frame, &symbol), 0);
	cr_expect(strstr(symbol.name, "malloc"), "%s", symbol.name);
	library.free_buildsymcache(cache);
	free(path);
}

static void copy(const char *from, const char *to)
{
	size_t size_bytes;
	char *bytes = scratch_read(from, &size_bytes);

	cr_assert_not_null(bytes);
	scratch_write(to, bytes, size_bytes);
	free(bytes);
}

Test(bcc_build_ids, give_no_names_from_a_replaced_file)
{
	char *c = library.procutils_which_so("c", 0), *m = library.procutils_which_so("m", 0);
	char *scratch = scratch_create(), *path = scratch_path(scratch, "library.so");
	void *cache = library.buildsymcache_new();
	struct bpf_stack_build_id frame;
	struct bcc_symbol symbol = { 0 };

	copy(m, path);
	frame = frame_of(path);
	cr_assert_eq(library.buildsymcache_add_module(cache, path), 0);
	copy(c, path);
	cr_expect_eq(library.buildsymcache_resolve(cache, &frame, &symbol), -1, "%s", symbol.name);
	library.free_buildsymcache(cache);
	scratch_remove(scratch);
	free(path);
	free(m);
	free(c);
}
