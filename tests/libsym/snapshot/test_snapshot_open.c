/* SPDX-License-Identifier: MIT */
/* Snapshots that cannot be opened. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <unistd.h>

#include "libsym/libsym.h"

Test(snapshot_open, rejects_unknown_options)
{
	struct {
		struct sym_snapshot_opts known;
		uint64_t later;
	} opts = { .known.size = sizeof(opts), .later = 0 };
	struct sym_snapshot *snapshot = NULL;
	struct sym_error *error;

	cr_assert_null(sym_snapshot_open(getpid(), &opts.known, &snapshot));
	sym_snapshot_close(snapshot);
	opts.later = 1;
	error = sym_snapshot_open(getpid(), &opts.known, &snapshot);
	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), SYM_ERROR_ARGUMENT);
	sym_error_destroy(error);
	opts.known.size = 0;
	error = sym_snapshot_open(getpid(), &opts.known, &snapshot);
	cr_assert_not_null(error);
	sym_error_destroy(error);
}

Test(snapshot_open, reports_a_missing_process)
{
	struct sym_snapshot *snapshot = NULL;
	struct sym_error *error = sym_snapshot_open(INT32_MAX, NULL, &snapshot);

	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), SYM_ERROR_NOT_FOUND);
	cr_expect_null(snapshot);
	sym_error_destroy(error);
}
