/* SPDX-License-Identifier: MIT */
/* A process and its resolver, for single queries. */
#ifndef TESTS_SUPPORT_ASKED_H
#define TESTS_SUPPORT_ASKED_H

#include <criterion/criterion.h>

#include "libsym/libsym.h"

struct asked {
	struct sym_snapshot *snapshot;
	struct sym_resolver *resolver;
	struct sym_result *result;
};

/* May fail; must be closed in any case. */
static inline struct sym_error *asked_try(struct asked *ret, int32_t pid, enum sym_jit_method jit)
{
	struct sym_snapshot_opts opts = { .size = sizeof(opts), .jit = jit };
	struct sym_error *error;

	*ret = (struct asked){ 0 };
	error = sym_snapshot_open(pid, &opts, &ret->snapshot);
	if (!error)
		error = sym_resolver_create(ret->snapshot, &ret->resolver);
	return error ? error : sym_result_create(&ret->result);
}

static inline struct asked asked_open(int32_t pid, enum sym_jit_method jit)
{
	struct asked asked;

	cr_assert_null(asked_try(&asked, pid, jit));
	return asked;
}

static inline void asked_close(struct asked *asked)
{
	sym_result_destroy(asked->result);
	sym_resolver_destroy(asked->resolver);
	sym_snapshot_close(asked->snapshot);
}

/* Valid until the next query. */
static inline const struct sym_answer *asked_answer(const struct asked *asked, uint64_t address)
{
	cr_assert_null(sym_resolver_resolve(asked->resolver, &address, 1, asked->result));
	return sym_result_at(asked->result, 0);
}

#endif
