/* SPDX-License-Identifier: MIT */
/* The budget of the caller, and its errors. base/budget.h charges it. */
#ifndef LIBSYM_BUDGET_API_H
#define LIBSYM_BUDGET_API_H

#include "libsym/base/budget.h"
#include "libsym/error.h"

/* NULL for NULL. */
struct budget *budget_inside(struct sym_budget *budget);

/* As budget_reserve() and budget_has_time(), with an error. */
struct sym_error *budget_charge(struct budget_account *account, uint64_t bytes, const char *path)
	__attribute__((warn_unused_result));
struct sym_error *budget_check_time(struct budget_account *account, const char *path)
	__attribute__((warn_unused_result));

#endif
