/* SPDX-License-Identifier: MIT */
/*
 * The answers to one batch of positions. Its memory only grows, so that a batch
 * no larger than one before allocates nothing.
 *
 * Most answers need only what fits into one cache line. So an answer begins with one, and it is
 * noted of each whether the others are still as of a blank answer, and need not be written.
 */
#ifndef LIBSYM_RESULT_H
#define LIBSYM_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/error.h"
#include "libsym/libsym.h"

enum {
	RESULT_LINE_BYTES = 64
};

struct result_slot {
	_Alignas(RESULT_LINE_BYTES) struct sym_answer answer;
};

_Static_assert(offsetof(struct sym_answer, image_position) == RESULT_LINE_BYTES,
	       "what every answer has is in the first line");

struct sym_result {
	struct result_slot *slots;
	/*
	 * One a slot: 0, or RESULT_PLAIN + kind for an answer that has this kind and, behind its
	 * first line, nothing else that a blank one has not.
	 */
	uint8_t *plain;
	size_t count;
	size_t capacity;
	uint32_t want; /* enum sym_want */
	/* Of all answers; an answer points into it once all are made. */
	struct sym_inlined *inlined;
	size_t inlined_count;
	size_t inlined_capacity;
};

#define RESULT_PLAIN 1

/* Room for more answers than there is. */
struct sym_error *result_grow(struct sym_result *result, size_t count)
	__attribute__((warn_unused_result));

/* Has `count` answers, for which there is room, and none of which is blank. */
static inline void result_empty(struct sym_result *result, size_t count)
{
	result->count = count;
	result->inlined_count = 0;
}

/* Makes room for `count` answers, none of which is blank. Errors: NO_MEMORY; the old answers stay
 * then. */
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

/* Makes one of them blank, with its position as asked; anything may be written to it. */
static inline struct sym_answer *result_blank(struct sym_result *result, size_t number,
					      uint64_t position)
{
	struct sym_answer *answer = &result->slots[number].answer;

	result->plain[number] = 0;
	*answer = (struct sym_answer){ .address = position,
				       .image_path = "",
				       .image_position = UINT64_MAX };
	return answer;
}

/* One of them, all of which is going to be written, or nothing. */
static inline struct sym_answer *result_any(struct sym_result *result, size_t number)
{
	result->plain[number] = 0;
	return &result->slots[number].answer;
}

/* Is it one of which only the first line is to be written? */
static inline bool result_is_plain(const struct sym_result *result, size_t number,
				   enum sym_symbol_kind kind)
{
	return __builtin_expect(result->plain[number] == RESULT_PLAIN + kind, 1);
}

/* Makes one of them an answer of which only the first line is to be written yet, all of it. */
static inline struct sym_answer *result_plain(struct sym_result *result, size_t number,
					      enum sym_symbol_kind kind)
{
	struct sym_answer *answer = &result->slots[number].answer;

	if (!result_is_plain(result, number, kind)) {
		if (!result->plain[number])
			result_blank(result, number, 0);
		answer->kind = kind;
		result->plain[number] = (uint8_t)(RESULT_PLAIN + kind);
	}
	return answer;
}

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
