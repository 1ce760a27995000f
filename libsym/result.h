/* SPDX-License-Identifier: MIT */
/*
 * The answers to one batch of positions. Its memory only grows, so that a batch
 * no larger than one before allocates nothing.
 */
#ifndef LIBSYM_RESULT_H
#define LIBSYM_RESULT_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/error.h"

struct sym_result {
	struct sym_answer *answers;
	size_t count;
	size_t capacity;
};

/* Makes `count` blank answers, each with its position as asked. Errors: NO_MEMORY; the old answers
 * stay then. */
struct sym_error *result_prepare(struct sym_result *result, const uint64_t *positions, size_t count)
	__attribute__((warn_unused_result));

#endif
