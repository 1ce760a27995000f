/* SPDX-License-Identifier: MIT */
#include "libsym/format/dotnet/il.h"

#include <endian.h>
#include <string.h>

enum {
	FAT_FORMAT = 3,
	FAT_WORDS = IL_HEADER_BYTES / 4,
	LONGER_OPCODE = 0xfe, /* first byte of a two-byte opcode */
	CALL = 0x28,
	SWITCH = 0x45,
	CALLVIRT = 0x6f,
	NEWOBJ = 0x73,
	/* Second bytes, after LONGER_OPCODE. */
	TAIL = 0x14,
	CONSTRAINED = 0x16
};

/* Opcodes `first` to `last` have operands of `bytes` bytes. Opcodes in no range have no operand. */
struct operands {
	uint8_t first, last, bytes;
};

/* ECMA-335 III.1.2.1 and III.3 to III.4. SWITCH has a table after these bytes. */
static const struct operands short_opcodes[] = {
	{ 0x0e, 0x13, 1 }, /* ldarg.s to stloc.s */
	{ 0x1f, 0x1f, 1 }, /* ldc.i4.s */
	{ 0x20, 0x20, 4 }, /* ldc.i4 */
	{ 0x21, 0x21, 8 }, /* ldc.i8 */
	{ 0x22, 0x22, 4 }, /* ldc.r4 */
	{ 0x23, 0x23, 8 }, /* ldc.r8 */
	{ 0x27, 0x29, 4 }, /* jmp, call, calli */
	{ 0x2b, 0x37, 1 }, /* br.s to blt.un.s */
	{ 0x38, 0x45, 4 }, /* br to blt.un, switch */
	{ 0x6f, 0x75, 4 }, /* callvirt to isinst */
	{ 0x79, 0x79, 4 }, /* unbox */
	{ 0x7b, 0x81, 4 }, /* ldfld to stobj */
	{ 0x8c, 0x8d, 4 }, /* box, newarr */
	{ 0x8f, 0x8f, 4 }, /* ldelema */
	{ 0xa3, 0xa5, 4 }, /* ldelem, stelem, unbox.any */
	{ 0xc2, 0xc2, 4 }, /* refanyval */
	{ 0xc6, 0xc6, 4 }, /* mkrefany */
	{ 0xd0, 0xd0, 4 }, /* ldtoken */
	{ 0xdd, 0xdd, 4 }, /* leave */
	{ 0xde, 0xde, 1 }, /* leave.s */
};

static const struct operands longer_opcodes[] = {
	{ 0x06, 0x07, 4 }, /* ldftn, ldvirtftn */
	{ 0x09, 0x0e, 2 }, /* ldarg to stloc */
	{ 0x12, 0x12, 1 }, /* unaligned. */
	{ 0x15, 0x16, 4 }, /* initobj, constrained. */
	{ 0x19, 0x19, 1 }, /* no. */
	{ 0x1c, 0x1c, 4 }, /* sizeof */
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static uint8_t operand_bytes(const struct operands *opcodes, size_t count, uint8_t opcode)
{
	for (size_t i = 0; i < count && opcodes[i].first <= opcode; i++)
		if (opcode <= opcodes[i].last)
			return opcodes[i].bytes;
	return 0;
}

bool il_code_bytes(const uint8_t *header, uint32_t *ret)
{
	uint32_t code_bytes;

	if (il_is_tiny(*header)) {
		*ret = *header >> 2;
		return true;
	}
	if ((*header & 7) != FAT_FORMAT || header[1] >> 4 != FAT_WORDS)
		return false;
	memcpy(&code_bytes, header + 4, sizeof(code_bytes));
	*ret = le32toh(code_bytes);
	return true;
}

/* Reads the instruction at *at, and moves *at behind it. Returns false for malformed code. */
static bool read_instruction(const uint8_t *code, size_t size_bytes, size_t *at,
			     bool *is_longer_ret, uint8_t *opcode_ret)
{
	uint8_t opcode = code[(*at)++];
	uint64_t operands_bytes;

	*is_longer_ret = opcode == LONGER_OPCODE;
	if (*is_longer_ret) {
		if (*at == size_bytes)
			return false;
		opcode = code[(*at)++];
		operands_bytes = operand_bytes(longer_opcodes, COUNT(longer_opcodes), opcode);
	} else {
		operands_bytes = operand_bytes(short_opcodes, COUNT(short_opcodes), opcode);
		if (opcode == SWITCH && size_bytes - *at >= 4) {
			uint32_t targets;

			memcpy(&targets, code + *at, sizeof(targets));
			operands_bytes += 4 * (uint64_t)le32toh(targets);
		}
	}
	*opcode_ret = opcode;
	if (operands_bytes > size_bytes - *at)
		return false;
	*at += (size_t)operands_bytes;
	return true;
}

bool il_has_tail_call(const uint8_t *code, size_t size_bytes)
{
	bool is_longer;
	uint8_t opcode;

	for (size_t at = 0; at < size_bytes;) {
		if (!read_instruction(code, size_bytes, &at, &is_longer, &opcode))
			return false;
		if (is_longer && opcode == TAIL)
			return true;
	}
	return false;
}

bool il_next_call(const uint8_t *code, size_t size_bytes, size_t *at, struct il_call *ret)
{
	ret->is_constrained = false;
	while (*at < size_bytes) {
		size_t begin = *at;
		bool is_longer;
		uint8_t opcode;

		if (!read_instruction(code, size_bytes, at, &is_longer, &opcode))
			return false;
		if (is_longer || (opcode != CALL && opcode != CALLVIRT && opcode != NEWOBJ)) {
			ret->is_constrained = is_longer && opcode == CONSTRAINED;
			continue;
		}
		ret->offset = (uint32_t)begin;
		memcpy(&ret->token, code + begin + 1, sizeof(ret->token));
		ret->token = le32toh(ret->token);
		return true;
	}
	return false;
}
