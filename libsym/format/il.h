/* SPDX-License-Identifier: MIT */
/*
 * Bodies of methods in IL (ECMA-335 II.25.4 and III), as far as it takes to find
 * instructions in them.
 */
#ifndef LIBSYM_FORMAT_IL_H
#define LIBSYM_FORMAT_IL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	IL_TINY_HEADER_BYTES = 1,
	IL_HEADER_BYTES = 12 /* of any other */
};

/* Is the byte, the first one of a body, all its header? */
static inline bool il_is_tiny(uint8_t first)
{
	return (first & 3) == 2;
}

/* How much code is behind the header, which begins with so many bytes; false: it is none. */
bool il_code_bytes(const uint8_t *header, uint32_t *ret);

/* Is a call of the code marked "tail."? False as well where instructions are torn or none. */
bool il_has_tail_call(const uint8_t *code, size_t size_bytes);

#endif
