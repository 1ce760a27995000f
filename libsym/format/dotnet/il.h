/* SPDX-License-Identifier: MIT */
/*
 * Method bodies in IL (ECMA-335 II.25.4 and III): enough to step from one instruction to the next.
 */
#ifndef LIBSYM_FORMAT_DOTNET_IL_H
#define LIBSYM_FORMAT_DOTNET_IL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	IL_TINY_HEADER_BYTES = 1,
	IL_HEADER_BYTES = 12 /* of a fat body */
};

/* Is this first byte of a body a tiny header, which is the whole header? */
static inline bool il_is_tiny(uint8_t first)
{
	return (first & 3) == 2;
}

/* Size of the code that follows a header of IL_HEADER_BYTES. Returns false if it is not a fat
 * header. */
bool il_code_bytes(const uint8_t *header, uint32_t *ret);

/* Does the code contain a call with the prefix "tail."? Also returns false for malformed code. */
bool il_has_tail_call(const uint8_t *code, size_t size_bytes);

struct il_call {
	uint32_t offset;     /* of the instruction */
	uint32_t token;      /* MethodDef, MemberRef or MethodSpec, as it stands in the code */
	bool is_constrained; /* the type of the receiver decides about the method */
};

/*
 * Finds the next call, callvirt or newobj from *at on, where an instruction must begin; *at is then
 * behind it. Returns false at the end, and for malformed code.
 */
bool il_next_call(const uint8_t *code, size_t size_bytes, size_t *at, struct il_call *ret);

#endif
