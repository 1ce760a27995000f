/* SPDX-License-Identifier: MIT */
/*
 * Instructions of a BPF program, appended one by one. A jump forward is completed by
 * bpf_code_land(), where it lands. Documentation/bpf/standardization/instruction-set.rst.
 */
#ifndef MAPGEN_RECORD_BPF_CODE_H
#define MAPGEN_RECORD_BPF_CODE_H

#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>

enum {
	MOST_BPF_INSTRUCTIONS = 512, /* more than the programs have */
};

struct bpf_code {
	struct bpf_insn instructions[MOST_BPF_INSTRUCTIONS];
	size_t count;
};

/* Returns the number of the instruction. */
static inline size_t bpf_code_add(struct bpf_code *code, struct bpf_insn instruction)
{
	code->instructions[code->count] = instruction;
	return code->count++;
}

static inline void bpf_code_move(struct bpf_code *code, uint8_t to, uint8_t from)
{
	bpf_code_add(code, (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_X,
					      .dst_reg = to & 15,
					      .src_reg = from & 15 });
}

/* `operation`: BPF_MOV, BPF_ADD, BPF_RSH, ... with a number. */
static inline void bpf_code_compute(struct bpf_code *code, uint8_t operation, uint8_t to,
				    int32_t number)
{
	bpf_code_add(code, (struct bpf_insn){ .code = BPF_ALU64 | BPF_K | operation,
					      .dst_reg = to & 15,
					      .imm = number });
}

/* `operation`: BPF_ADD, BPF_SUB, ... with a register. */
static inline void bpf_code_combine(struct bpf_code *code, uint8_t operation, uint8_t to,
				    uint8_t from)
{
	bpf_code_add(code, (struct bpf_insn){ .code = BPF_ALU64 | BPF_X | operation,
					      .dst_reg = to & 15,
					      .src_reg = from & 15 });
}

static inline void bpf_code_load(struct bpf_code *code, uint8_t to, uint8_t from, int32_t at)
{
	bpf_code_add(code, (struct bpf_insn){ .code = BPF_LDX | BPF_MEM | BPF_DW,
					      .dst_reg = to & 15,
					      .src_reg = from & 15,
					      .off = (int16_t)at });
}

/* `size`: BPF_W or BPF_DW. */
static inline void bpf_code_store(struct bpf_code *code, uint8_t size, uint8_t to, int32_t at,
				  uint8_t from)
{
	bpf_code_add(code, (struct bpf_insn){ .code = BPF_STX | BPF_MEM | size,
					      .dst_reg = to & 15,
					      .src_reg = from & 15,
					      .off = (int16_t)at });
}

/* `operation`: BPF_ADD, BPF_ADD | BPF_FETCH, BPF_XCHG; `size`: BPF_W or BPF_DW. */
static inline void bpf_code_atomic(struct bpf_code *code, uint8_t size, int32_t operation,
				   uint8_t to, int32_t at, uint8_t from)
{
	bpf_code_add(code, (struct bpf_insn){ .code = BPF_STX | BPF_ATOMIC | size,
					      .dst_reg = to & 15,
					      .src_reg = from & 15,
					      .off = (int16_t)at,
					      .imm = operation });
}

/* `condition`: BPF_JEQ, BPF_JGE, BPF_JA, ... with a number. */
static inline size_t bpf_code_jump(struct bpf_code *code, uint8_t condition, uint8_t left,
				   int32_t number)
{
	return bpf_code_add(code, (struct bpf_insn){ .code = BPF_JMP | BPF_K | condition,
						     .dst_reg = left & 15,
						     .imm = number });
}

/* ... with a register. */
static inline size_t bpf_code_jump_by(struct bpf_code *code, uint8_t condition, uint8_t left,
				      uint8_t right)
{
	return bpf_code_add(code, (struct bpf_insn){ .code = BPF_JMP | BPF_X | condition,
						     .dst_reg = left & 15,
						     .src_reg = right & 15 });
}

/* The jump goes to the instruction that is appended next. */
static inline void bpf_code_land(struct bpf_code *code, size_t jump)
{
	code->instructions[jump].off = (int16_t)(code->count - jump - 1);
}

static inline void bpf_code_call(struct bpf_code *code, int32_t function)
{
	bpf_code_add(code, (struct bpf_insn){ .code = BPF_JMP | BPF_CALL, .imm = function });
}

static inline void bpf_code_exit(struct bpf_code *code)
{
	bpf_code_compute(code, BPF_MOV, BPF_REG_0, 0);
	bpf_code_add(code, (struct bpf_insn){ .code = BPF_JMP | BPF_EXIT });
}

/* A constant of 64 bits; its instruction takes two places. `kind`: 0, BPF_PSEUDO_MAP_FD,
 * BPF_PSEUDO_FUNC. */
static inline size_t bpf_code_constant(struct bpf_code *code, uint8_t to, uint8_t kind,
				       uint32_t number)
{
	size_t at = bpf_code_add(code, (struct bpf_insn){ .code = BPF_LD | BPF_DW | BPF_IMM,
							  .dst_reg = to & 15,
							  .src_reg = kind & 15,
							  .imm = (int32_t)number });

	bpf_code_add(code, (struct bpf_insn){ 0 });
	return at;
}

#endif
