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
	uint32_t want; /* enum sym_want */
	/* Of all answers; an answer points into it once all are made. */
	struct sym_inlined *inlined;
	size_t inlined_count;
	size_t inlined_capacity;
};

/* Makes `count` blank answers, each with its position as asked. Errors: NO_MEMORY; the old answers
 * stay then. */
struct sym_error *result_prepare(struct sym_result *result, const uint64_t *positions, size_t count)
	__attribute__((warn_unused_result));

/* Adds a chain for the answer with this number. Errors: NO_MEMORY. */
struct sym_error *result_add_inlined(struct sym_result *result, size_t number,
				     const struct sym_inlined *inlined, size_t count)
	__attribute__((warn_unused_result));

/* To be called once all answers are made. */
void result_finish(struct sym_result *result);

#endif
