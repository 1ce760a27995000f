/* SPDX-License-Identifier: MIT */
/* Checks of an expected error. */
#ifndef TESTS_SUPPORT_ERROR_CODE_H
#define TESTS_SUPPORT_ERROR_CODE_H

#include <criterion/criterion.h>

#include "libsym/libsym.h"

/* The code of an error, which is destroyed. */
static inline enum sym_error_code code_and_end(struct sym_error *error)
{
	enum sym_error_code code;

	cr_assert_not_null(error, "nothing failed");
	code = sym_error_code(error);
	sym_error_destroy(error);
	return code;
}

#endif
