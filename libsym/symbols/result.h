/* SPDX-License-Identifier: MIT */
/* The answers to one batch of positions. The memory only grows, so a batch that is not larger than
 * a previous one allocates nothing. */
#ifndef LIBSYM_SYMBOLS_RESULT_H
#define LIBSYM_SYMBOLS_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/error.h"
#include "libsym/libsym.h"

struct sym_result {
	struct sym_answer *slots;
	size_t count;
	size_t capacity;
	uint32_t fields; /* enum sym_field */
	/* Chains of all answers. Answers point into it after result_finish(). */
	struct sym_inlined *inlined;
	size_t inlined_count;
	size_t inlined_capacity;
};

/* Makes room for more answers than the capacity. */
struct sym_error *result_grow(struct sym_result *result, size_t count)
	__attribute__((warn_unused_result));

/* Sets the number of answers, which fit the capacity. They are not blank. */
static inline void result_empty(struct sym_result *result, size_t count)
{
	result->count = count;
	result->inlined_count = 0;
}

/* Makes room for `count` answers, which are not blank. Errors: NO_MEMORY; the old answers then
 * stay. */
static inline __attribute__((warn_unused_result)) struct sym_error *
result_begin(struct sym_result *result, size_t count)
{
	if (__builtin_expect(count > result->capacity, 0)) {
		struct sym_error *error = result_grow(result, count);

		if (error)
			return error;
	}
	result_empty(result, count);
	return NULL;
}

/* Makes one answer blank, with its requested position. */
static inline struct sym_answer *result_blank(struct sym_result *result, size_t number,
					      uint64_t position)
{
	struct sym_answer *answer = &result->slots[number];

	*answer = (struct sym_answer){ .address = position,
				       .image_path = "",
				       .image_position = UINT64_MAX };
	return answer;
}

/* Makes `count` blank answers with their requested positions. Errors: NO_MEMORY; the old answers
 * then stay. */
struct sym_error *result_prepare(struct sym_result *result, const uint64_t *positions, size_t count)
	__attribute__((warn_unused_result));

/* Adds a chain for the answer with this number. Errors: NO_MEMORY. */
struct sym_error *result_add_inlined(struct sym_result *result, size_t number,
				     const struct sym_inlined *inlined, size_t count)
	__attribute__((warn_unused_result));

/*
 * The addresses or positions to look up: with SYM_FIELD_RETURN_ADDRESSES those before, in
 * *room_ret, which the caller frees. NULL when out of memory.
 */
const uint64_t *result_looked_up(const struct sym_result *result, const uint64_t *positions,
				 size_t count, uint64_t **room_ret);
/* Makes the answers those of the return addresses. */
void result_return(struct sym_result *result);

/* Must be called after all answers are made. */
void result_finish(struct sym_result *result);

#endif
