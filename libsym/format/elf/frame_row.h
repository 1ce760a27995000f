/* SPDX-License-Identifier: MIT */
/*
 * How to step from one frame to its caller at one instruction: where the canonical frame address
 * (CFA) is, and where each register of the caller is. Call frame information of ELF files, unwind
 * codes of PE files and frame pointers all produce such a row. Registers have their DWARF numbers.
 *
 *   x86-64   0 rax, 1 rdx, 2 rcx, 3 rbx, 4 rsi, 5 rdi, 6 rbp, 7 rsp, 8 to 15 r8 to r15, 16 rip
 *   arm64    0 to 30 x0 to x30 (29 frame pointer, 30 link register), 31 sp, 32 pc
 *
 * System V ABI AMD64 1.0, table 3.36; DWARF for the Arm 64-bit Architecture, 4.1.
 */
#ifndef LIBSYM_FORMAT_ELF_FRAME_ROW_H
#define LIBSYM_FORMAT_ELF_FRAME_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum frame_machine {
	FRAME_X86_64,
	FRAME_ARM64,
};

enum {
	FRAME_REGISTERS = 33,
	FRAME_X86_64_RBX = 3,
	FRAME_X86_64_RBP = 6,
	FRAME_X86_64_RSP = 7,
	FRAME_X86_64_RIP = 16,
	FRAME_ARM64_FP = 29,
	FRAME_ARM64_LR = 30,
	FRAME_ARM64_SP = 31,
	FRAME_ARM64_PC = 32,
};

enum frame_rule_kind {
	FRAME_SAME = 0,        /* the caller has the value of this frame */
	FRAME_UNDEFINED,       /* lost; for the return address: this is the outermost frame */
	FRAME_AT_OFFSET,       /* in memory at CFA + value */
	FRAME_IS_OFFSET,       /* CFA + value itself */
	FRAME_IN_REGISTER,     /* in register `value` of this frame */
	FRAME_AT_EXPRESSION,   /* in memory at the result of an expression */
	FRAME_IS_EXPRESSION,   /* the result of an expression itself */
	FRAME_REGISTER_OFFSET, /* CFA only: register `reg` + value */
	FRAME_AT_REGISTER,     /* in memory at register `reg` + value */
};

struct frame_rule {
	uint8_t kind; /* enum frame_rule_kind */
	uint8_t reg;
	uint16_t expression_bytes;
	int32_t value; /* bytes; or start of the expression, as an offset into its section */
};

struct frame_row {
	struct frame_rule cfa; /* REGISTER_OFFSET or IS_EXPRESSION */
	struct frame_rule registers[FRAME_REGISTERS];
	uint8_t return_register; /* its value in the caller is the return address */
	/* the caller was interrupted: its address is not a return address */
	bool is_signal_frame;
	bool is_ra_signed; /* arm64: the return address has pointer authentication bits */
	uint64_t ruled;    /* bit n: registers[n] is not SAME; frame_row_finish() */
};

/* Must be called last, when all rules are set. */
static inline void frame_row_finish(struct frame_row *row)
{
	row->ruled = 0;
	for (unsigned int i = 0; i < FRAME_REGISTERS; i++)
		if (row->registers[i].kind != FRAME_SAME)
			row->ruled |= 1ull << i;
}

/* Register numbers of the stack pointer, the frame pointer and the program counter. */
static inline uint8_t frame_sp(enum frame_machine machine)
{
	return machine == FRAME_ARM64 ? FRAME_ARM64_SP : FRAME_X86_64_RSP;
}

static inline uint8_t frame_fp(enum frame_machine machine)
{
	return machine == FRAME_ARM64 ? FRAME_ARM64_FP : FRAME_X86_64_RBP;
}

static inline uint8_t frame_pc(enum frame_machine machine)
{
	return machine == FRAME_ARM64 ? FRAME_ARM64_PC : FRAME_X86_64_RIP;
}

#endif
