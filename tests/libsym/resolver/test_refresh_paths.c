/* SPDX-License-Identifier: MIT */
/* Paths and names of what comes and goes during the life of a resolver. */
#include <criterion/criterion.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/asked.h"
#include "tests/support/own_perf_map.h"

enum {
	PAGE_BYTES = 4096
};

static void refresh(const struct asked *asked)
{
	cr_assert_null(sym_resolver_refresh(asked->resolver, NULL));
}

Test(refresh_paths, keep_the_path_of_a_remapped_file_once)
{
	struct asked asked = asked_open(getpid(), SYM_JIT_NONE);
	int fd = memfd_create("comes and goes", MFD_CLOEXEC);
	const char *kept[3];

	cr_assert_eq(ftruncate(fd, PAGE_BYTES), 0);
	refresh(&asked);
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		void *memory = mmap(NULL, PAGE_BYTES, PROT_READ, MAP_PRIVATE, fd, 0);

		cr_assert_neq(memory, MAP_FAILED);
		refresh(&asked);
		kept[i] = asked_answer(&asked, (uint64_t)(uintptr_t)memory)->image_path;
		cr_assert_str_eq(kept[i], "/memfd:comes and goes");
		cr_expect_eq(kept[i], kept[0], "mapped for the %zuth time", i);
		munmap(memory, PAGE_BYTES);
		refresh(&asked);
	}
	close(fd);
	asked_close(&asked);
}

static void replace_map(const struct own_perf_map *map, uint64_t address, const char *name)
{
	FILE *file;

	cr_assert_eq(unlink(map->path), 0);
	file = fopen(map->path, "w");
	cr_assert_not_null(file);
	fprintf(file, "%llx 100 %s\n", (unsigned long long)address, name);
	cr_assert_eq(fclose(file), 0);
}

/* As libsym.h documents: until the second change after the one that replaced their map. */
Test(refresh_paths, keep_names_of_a_replaced_map_for_another_change)
{
	static const char *const names[] = { "first", "second", "third", "fourth", "fifth" };
	void *code =
		mmap(NULL, PAGE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t address = (uint64_t)(uintptr_t)code;
	struct own_perf_map map = own_perf_map_create();
	struct asked asked = asked_open(getpid(), SYM_JIT_PERF_MAP);
	const char *kept[sizeof(names) / sizeof(names[0])];

	fclose(map.file);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		replace_map(&map, address, names[i]);
		refresh(&asked);
		kept[i] = asked_answer(&asked, address)->name;
		for (size_t k = i < 2 ? 0 : i - 2; k <= i; k++)
			cr_expect_str_eq(kept[k], names[k]);
	}
	unlink(map.path);
	asked_close(&asked);
	munmap(code, PAGE_BYTES);
}
