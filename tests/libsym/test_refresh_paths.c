/* SPDX-License-Identifier: MIT */
/* Paths of what comes and goes while a resolver is held. */
#include <criterion/criterion.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/asked.h"

enum {
	PAGE_BYTES = 4096
};

static void refresh(const struct asked *asked)
{
	cr_assert_null(sym_resolver_refresh(asked->resolver, NULL));
}

Test(refresh_paths, the_path_of_what_is_mapped_again_is_kept_once)
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
