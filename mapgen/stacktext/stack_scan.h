/* SPDX-License-Identifier: MIT */
/* Words and numbers in a line of text, for the readers of stack_text.h. Pure. */
#ifndef MAPGEN_STACKTEXT_STACK_SCAN_H
#define MAPGEN_STACKTEXT_STACK_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "libsym/base/hex.h"

/* The rest of a line. */
struct stack_span {
	const char *at;
	const char *end;
};

/* A hexadecimal number as a word of its own. */
struct stack_number {
	const char *start; /* with its prefix */
	const char *end;
	uint64_t value;
	unsigned int digits;
	bool prefixed; /* "0x" */
	bool lettered; /* has a digit above 9 */
};

static inline bool stack_is_blank(char byte)
{
	return byte == ' ' || byte == '\t';
}

static inline bool stack_is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

enum {
	STACK_UNKNOWN_BYTES = sizeof("[unknown]") - 1,
};

static inline size_t stack_left(const struct stack_span *span)
{
	return (size_t)(span->end - span->at);
}

static inline bool stack_at_end_of_word(const struct stack_span *span)
{
	return span->at == span->end || stack_is_blank(*span->at);
}

static inline void stack_skip_blanks(struct stack_span *span)
{
	while (span->at < span->end && stack_is_blank(*span->at))
		span->at++;
}

static inline bool stack_begins(const struct stack_span *span, const char *word, size_t length)
{
	return stack_left(span) >= length && !memcmp(span->at, word, length);
}

#define STACK_BEGINS(span, literal) stack_begins(span, literal, sizeof(literal) - 1)

/* First place of `word` in a span; NULL when there is none. */
static inline const char *stack_find(const struct stack_span *span, const char *word, size_t length)
{
	return memmem(span->at, stack_left(span), word, length);
}

#define STACK_FIND(span, literal) stack_find(span, literal, sizeof(literal) - 1)

/* Reads a hexadecimal number of at most 64 bits and steps over it, whatever follows. */
bool stack_read_number(struct stack_span *span, struct stack_number *ret);

/* Reads "0x1f" or "31" and steps over it. */
bool stack_read_either(struct stack_span *span, uint64_t *ret);

/* Reads the decimal digits at the start of a span as a process id, and steps over them; false when
 * there are none, or they are no process id. */
bool stack_read_id(struct stack_span *span, int32_t *ret);

/* Without "0x" a number must look like an address, unlike counts and sums. */
bool stack_is_address(const struct stack_number *number);

/* An address of the kernel, which the tool names itself or we cannot name. */
static inline bool stack_is_kernel(uint64_t value)
{
	return value >> 63;
}

#endif
