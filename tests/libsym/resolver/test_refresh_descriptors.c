/* SPDX-License-Identifier: MIT */
/* Files that could not be opened because no descriptors were left. */
#include <criterion/criterion.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
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

Test(refresh_descriptors, are_used_again_for_files_that_failed_to_open)
{
	struct asked asked = asked_open(getpid(), SYM_JIT_NONE);
	uint64_t address = (uint64_t)(uintptr_t)gnu_get_libc_version;

	cr_expect_eq(ask_without_descriptors(&asked, address).status, SYM_UNREADABLE);
	expect_name_after_refresh(&asked, address);
	asked_close(&asked);
}

Test(refresh_descriptors, are_used_again_for_debug_files_that_failed_to_open)
{
	struct asked asked = asked_open(getpid(), SYM_JIT_NONE);
	uint64_t address = (uint64_t)(uintptr_t)gnu_get_libc_version;

	cr_assert_null(sym_snapshot_open_images(asked.snapshot));
	cr_expect_neq(ask_without_descriptors(&asked, address).status, SYM_RESOLVED);
	expect_name_after_refresh(&asked, address);
	asked_close(&asked);
}

/* A function of the vDSO; 0: none. */
static uint64_t find_in_vdso(const struct asked *asked, char *name, size_t name_bytes)
{
	uint64_t base = getauxval(AT_SYSINFO_EHDR), found = 0;
	struct sym_symbols *symbols;

	cr_assert_null(sym_snapshot_symbols(asked->snapshot, SYM_SYMBOLS_ELF, &symbols));
	for (size_t i = 0; base && !found && i < sym_symbols_count(symbols); i++) {
		const struct sym_symbol *symbol = sym_symbols_at(symbols, i);

		if (symbol->start < base || symbol->start >= base + 0x4000)
			continue;
		found = symbol->start;
		snprintf(name, name_bytes, "%s", symbol->name);
	}
	sym_symbols_destroy(symbols);
	return found;
}

Test(refresh_descriptors, are_used_again_for_the_vdso)
{
	struct asked first = asked_open(getpid(), SYM_JIT_NONE), asked;
	enum sym_refresh refreshed;
	char name[64];
	uint64_t address = find_in_vdso(&first, name, sizeof(name));

	asked_close(&first);
	if (!address)
		cr_skip_test("there is no vDSO");
	asked = asked_open(getpid(), SYM_JIT_NONE);
	cr_expect_neq(ask_without_descriptors(&asked, address).status, SYM_RESOLVED);
	cr_assert_null(sym_resolver_refresh(asked.resolver, &refreshed));
	cr_expect_str_eq(ask(&asked, address).name, name);
	asked_close(&asked);
}

/* The limit applies to memory files too; SIGXFSZ would end the process. */
Test(refresh_descriptors, lose_only_the_vdso_by_a_file_size_limit)
{
	struct asked asked = asked_open(getpid(), SYM_JIT_NONE);
	uint64_t base = getauxval(AT_SYSINFO_EHDR);
	struct sym_answer vdso, library;
	struct rlimit limit, none;

	if (!base)
		cr_skip_test("the kernel maps no vDSO");
	cr_assert_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
	none = limit;
	for (none.rlim_cur = 0; none.rlim_cur <= 1000; none.rlim_cur += 1000) {
		cr_assert_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
		vdso = ask(&asked, base);
		library = ask(&asked, (uint64_t)(uintptr_t)gnu_get_libc_version);
		cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
		cr_expect_neq(vdso.status, SYM_RESOLVED);
		cr_expect_str_eq(library.name, "gnu_get_libc_version");
	}
	asked_close(&asked);
}
