/* SPDX-License-Identifier: MIT */
/* A file that could not be opened because there were no descriptors left. */
#include <criterion/criterion.h>
#include <gnu/libc-version.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/support/asked.h"

static struct sym_answer ask(struct asked *asked, uint64_t address)
{
	cr_assert_null(sym_resolver_resolve(asked->resolver, &address, 1, asked->result));
	return *sym_result_at(asked->result, 0);
}

static struct sym_answer ask_without_descriptors(struct asked *asked, uint64_t address)
{
	struct rlimit limit, none;
	struct sym_answer answer;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	answer = ask(asked, address);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	return answer;
}

static void expect_name_after_refresh(struct asked *asked, uint64_t address)
{
	struct sym_answer answer;
	enum sym_refresh refreshed;

	cr_assert_null(sym_resolver_refresh(asked->resolver, &refreshed));
	answer = ask(asked, address);
	cr_assert_eq(answer.status, SYM_RESOLVED, "%s", answer.reason);
	cr_expect_str_eq(answer.name, "gnu_get_libc_version");
}

Test(refresh_descriptors, a_refresh_opens_what_could_not_be_opened_before)
{
	struct asked asked = asked_open(getpid(), SYM_JIT_NONE);
	uint64_t address = (uint64_t)(uintptr_t)gnu_get_libc_version;

	cr_expect_eq(ask_without_descriptors(&asked, address).status, SYM_UNREADABLE);
	expect_name_after_refresh(&asked, address);
	asked_close(&asked);
}

Test(refresh_descriptors, a_refresh_looks_again_for_debug_files_that_could_not_be_opened)
{
	struct asked asked = asked_open(getpid(), SYM_JIT_NONE);
	uint64_t address = (uint64_t)(uintptr_t)gnu_get_libc_version;

	cr_assert_null(sym_snapshot_open_images(asked.snapshot));
	cr_expect_neq(ask_without_descriptors(&asked, address).status, SYM_RESOLVED);
	expect_name_after_refresh(&asked, address);
	asked_close(&asked);
}
