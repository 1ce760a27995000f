/* SPDX-License-Identifier: MIT */
#include "libsym/dwarf_info.h"

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include "libsym/libsym.h"

/* What is looked for: in a function of this file, a function of this file that is inlined. */
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

/* Every address of the outer function, in one batch. */
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

Test(dwarf_info, tells_lines_and_what_was_inlined)
{
	struct opened opened;
	size_t with_line = 0, inlined = 0;

	open_self(&opened);
	cr_assert_null(sym_result_want(opened.result, SYM_WANT_LINES | SYM_WANT_INLINED));
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

Test(dwarf_info, is_not_asked_unless_wanted)
{
	struct opened opened;

	open_self(&opened);
	cr_assert_null(sym_result_want(opened.result, SYM_WANT_LINES | SYM_WANT_INLINED));
	ask_all(&opened);
	cr_assert_null(sym_result_want(opened.result, 0));
	ask_all(&opened);
	for (size_t i = 0; i < sym_result_count(opened.result); i++) {
		cr_expect_null(sym_result_at(opened.result, i)->file);
		cr_expect_null(sym_result_at(opened.result, i)->inlined);
	}
	end(&opened);
}

Test(dwarf_info, refuses_wants_that_are_not_known)
{
	struct sym_result *result;
	struct sym_error *error;

	cr_assert_null(sym_result_create(&result));
	error = sym_result_want(result, 1 << 9);
	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), SYM_ERROR_ARGUMENT);
	sym_error_destroy(error);
	sym_result_destroy(result);
}
