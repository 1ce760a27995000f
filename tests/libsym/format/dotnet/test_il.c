/* SPDX-License-Identifier: MIT */
#include "libsym/format/dotnet/il.h"

#include <criterion/criterion.h>
#include <string.h>

enum {
	NOP = 0x00,
	LDARG_S = 0x0e,
	LDC_I4 = 0x20,
	LDC_I8 = 0x21,
	CALL = 0x28,
	RET = 0x2a,
	SWITCH = 0x45,
	LONGER = 0xfe,
	CEQ = 0x01, /* after LONGER, like all that follow */
	LDFTN = 0x06,
	TAIL = 0x14,
};

/* Bytes that would be "tail." at the start of an instruction. */
#define LOOKS_LIKE_TAIL LONGER, TAIL

#define HAS_TAIL(...)                                                                              \
	il_has_tail_call((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

Test(il, finds_a_call_marked_tail)
{
	cr_assert(HAS_TAIL(LONGER, TAIL, CALL, 1, 0, 0, 6, RET));
	cr_assert(HAS_TAIL(NOP, LDARG_S, 4, LONGER, CEQ, LONGER, TAIL, CALL, 1, 0, 0, 6, RET));
	cr_assert_not(HAS_TAIL(NOP, CALL, 1, 0, 0, 6, RET));
}

Test(il, does_not_read_operands_as_instructions)
{
	cr_assert_not(HAS_TAIL(LDC_I4, LOOKS_LIKE_TAIL, LOOKS_LIKE_TAIL, RET));
	cr_assert_not(HAS_TAIL(LDC_I8, LOOKS_LIKE_TAIL, 0, 0, 0, 0, LOOKS_LIKE_TAIL, RET));
	cr_assert_not(HAS_TAIL(CALL, 1, LOOKS_LIKE_TAIL, 6, RET));
	cr_assert_not(HAS_TAIL(LONGER, LDFTN, LOOKS_LIKE_TAIL, 0, 6, RET));
	cr_assert_not(HAS_TAIL(LDARG_S, LONGER, TAIL, RET));
}

Test(il, skips_the_targets_of_a_switch)
{
	cr_assert_not(
		HAS_TAIL(SWITCH, 2, 0, 0, 0, LOOKS_LIKE_TAIL, 0, 0, 0, 0, LOOKS_LIKE_TAIL, RET));
	cr_assert(HAS_TAIL(SWITCH, 1, 0, 0, 0, 9, 9, 9, 9, LONGER, TAIL, RET));
	cr_assert(HAS_TAIL(SWITCH, 0, 0, 0, 0, LONGER, TAIL, RET));
	cr_assert_not(HAS_TAIL(SWITCH, 0xff, 0xff, 0xff, 0xff, LONGER, TAIL, RET));
	cr_assert_not(HAS_TAIL(SWITCH, 0, 0, 0, 0x40, LONGER, TAIL, RET));
}

/* One line for 32 opcodes: the operand size of each, as in OpCodes of System.Reflection.Emit (.NET
 * 10); '.': not an opcode. */
static const char short_operands[] = "00000000000000111111000000000001"
				     "4848.004440111111111111144444444"
				     "44444.00000000000000000000000000" /* without switch */
				     "00000000000000044444440..4044444"
				     "44000000000044040000000000000000"
				     "000444.............00000000....."
				     "..40..4.........4000000000000410"
				     "0.......................000000.0";
static const char longer_operands[] = "00000044.2222220.01004400.0.400";

static void assert_operands(const uint8_t *prefix, size_t prefix_bytes, const char *operands)
{
	for (size_t opcode = 0; operands[opcode]; opcode++) {
		size_t behind = (size_t)(operands[opcode] - '0'), at = prefix_bytes + 1 + behind;
		uint8_t code[16] = { 0 };

		if (operands[opcode] == '.')
			continue;
		memcpy(code, prefix, prefix_bytes);
		code[prefix_bytes] = (uint8_t)opcode;
		code[at] = LONGER;
		code[at + 1] = TAIL;
		cr_assert(il_has_tail_call(code, at + 2), "too far behind %zx", opcode);
		if (!behind)
			continue;
		code[at - 1] = LONGER;
		code[at] = TAIL;
		cr_assert_not(il_has_tail_call(code, at + 1), "not far enough behind %zx", opcode);
	}
}

Test(il, knows_the_operand_size_of_each_opcode)
{
	static const uint8_t longer = LONGER;

	assert_operands(&longer, 0, short_operands);
	assert_operands(&longer, 1, longer_operands);
}

Test(il, finds_nothing_after_a_truncated_instruction)
{
	static const uint8_t code[] = { LDC_I8, 0, 0, 0, 0, 0, 0, 0, 0, LONGER, TAIL };

	for (size_t size = 0; size < sizeof(code); size++)
		cr_assert_not(il_has_tail_call(code, size));
	cr_assert(il_has_tail_call(code, sizeof(code)));
	cr_assert_not(HAS_TAIL(SWITCH, 0, 0));
}

Test(il, reads_the_code_size_of_a_body)
{
	static const uint8_t tiny[] = { 13 << 2 | 2 };
	uint8_t fat[IL_HEADER_BYTES] = { 0x13, 0x30, 8, 0, 0x34, 0x12, 1, 0 };
	uint32_t size = 0;

	cr_assert(il_is_tiny(tiny[0]));
	cr_assert(il_code_bytes(tiny, &size));
	cr_assert_eq(size, 13);
	cr_assert_not(il_is_tiny(fat[0]));
	cr_assert(il_code_bytes(fat, &size));
	cr_assert_eq(size, 0x11234);
	fat[1] = 0x20;
	cr_assert_not(il_code_bytes(fat, &size), "a header of another size");
	fat[1] = 0x30;
	fat[0] = 0x10;
	cr_assert_not(il_code_bytes(fat, &size), "an unknown format");
}

Test(il, finds_calls_in_their_order)
{
	static const uint8_t code[] = { NOP,  LDC_I4, CALL, 1, 0,  0,    CALL, 0x11, 0, 0,  6,
					0x6f, 0x22,   0,    0, 10, 0x73, 0x33, 0,    0, 10, RET };
	static const struct il_call wanted[] = { { 6, 0x06000011 },
						 { 11, 0x0a000022 },
						 { 16, 0x0a000033 } };
	struct il_call call;
	size_t at = 0;

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		cr_assert(il_next_call(code, sizeof(code), &at, &call));
		cr_assert_eq(call.offset, wanted[i].offset);
		cr_assert_eq(call.token, wanted[i].token);
	}
	cr_assert_not(il_next_call(code, sizeof(code), &at, &call));
	at = 0;
	cr_assert_not(il_next_call(code, 10, &at, &call), "the operand is cut");
}
