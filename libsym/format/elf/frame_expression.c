/* SPDX-License-Identifier: MIT */
/*
 * A stack machine. run_operation() executes one operation, run_stack() and run_unary() those of
 * their groups, apply_binary() those with two operands. Any error (stack overflow or underflow, an
 * unknown operation, an unreadable word) sets is_bad, which ends the run without a result.
 */
#include "libsym/format/elf/frame_expression.h"

#include "libsym/base/leb.h"

enum {
	MAX_DEPTH = 64,
	MAX_STEPS = 1000,
};

enum {
	OP_ADDR = 0x03,
	OP_DEREF = 0x06,
	OP_CONST1U = 0x08, /* 1s, 2u, 2s, 4u, 4s, 8u, 8s follow */
	OP_CONST8S = 0x0f,
	OP_CONSTU = 0x10,
	OP_CONSTS = 0x11,
	OP_DUP = 0x12,
	OP_DROP = 0x13,
	OP_OVER = 0x14,
	OP_PICK = 0x15,
	OP_SWAP = 0x16,
	OP_ROT = 0x17,
	OP_ABS = 0x19,
	OP_AND = 0x1a,
	OP_DIV = 0x1b,
	OP_MINUS = 0x1c,
	OP_MOD = 0x1d,
	OP_MUL = 0x1e,
	OP_NEG = 0x1f,
	OP_NOT = 0x20,
	OP_OR = 0x21,
	OP_PLUS = 0x22,
	OP_PLUS_UCONST = 0x23,
	OP_SHL = 0x24,
	OP_SHR = 0x25,
	OP_SHRA = 0x26,
	OP_XOR = 0x27,
	OP_BRA = 0x28,
	OP_EQ = 0x29,
	OP_GE = 0x2a,
	OP_GT = 0x2b,
	OP_LE = 0x2c,
	OP_LT = 0x2d,
	OP_NE = 0x2e,
	OP_SKIP = 0x2f,
	OP_LIT0 = 0x30,
	OP_LIT31 = 0x4f,
	OP_BREG0 = 0x70,
	OP_BREG31 = 0x8f,
	OP_BREGX = 0x92,
	OP_DEREF_SIZE = 0x94,
	OP_NOP = 0x96,
};

struct machine {
	struct reader code;
	const struct frame_expression_input *input;
	uint64_t stack[MAX_DEPTH];
	unsigned int depth;
	bool is_bad;
};

static void push_value(struct machine *machine, uint64_t value)
{
	if (machine->depth == MAX_DEPTH)
		machine->is_bad = true;
	else
		machine->stack[machine->depth++] = value;
}

static uint64_t pop_value(struct machine *machine)
{
	if (!machine->depth) {
		machine->is_bad = true;
		return 0;
	}
	return machine->stack[--machine->depth];
}

static uint64_t pick_value(struct machine *machine, unsigned int below_top)
{
	if (below_top >= machine->depth) {
		machine->is_bad = true;
		return 0;
	}
	return machine->stack[machine->depth - 1 - below_top];
}

static void push_register(struct machine *machine, uint64_t number)
{
	int64_t offset = leb_signed(&machine->code);
	uint64_t value = 0;

	if (!machine->input->read_register(machine->input->context, number, &value))
		machine->is_bad = true;
	push_value(machine, value + (uint64_t)offset);
}

static void load_memory(struct machine *machine, unsigned int size_bytes)
{
	uint64_t address = pop_value(machine), value = 0;

	if (machine->is_bad ||
	    (size_bytes != 1 && size_bytes != 2 && size_bytes != 4 && size_bytes != 8))
		machine->is_bad = true;
	else if (!machine->input->read_memory(machine->input->context, address, size_bytes, &value))
		machine->is_bad = true;
	push_value(machine, value);
}

static uint64_t read_constant(struct machine *machine, unsigned int opcode)
{
	struct reader *code = &machine->code;

	switch (opcode - OP_CONST1U) {
	case 0:
		return reader_u8(code);
	case 1:
		return (uint64_t)(int8_t)reader_u8(code);
	case 2:
		return reader_u16(code);
	case 3:
		return (uint64_t)(int16_t)reader_u16(code);
	case 4:
		return reader_u32(code);
	case 5:
		return (uint64_t)(int32_t)reader_u32(code);
	default:
		return reader_u64(code);
	}
}

static uint64_t shift_value(unsigned int opcode, uint64_t value, uint64_t count)
{
	int64_t signed_value = (int64_t)value;

	if (opcode == OP_SHRA)
		return (uint64_t)(signed_value >> (count > 63 ? 63 : count));
	if (count > 63)
		return 0;
	return opcode == OP_SHL ? value << count : value >> count;
}

static uint64_t divide_values(struct machine *machine, unsigned int opcode, uint64_t a, uint64_t b)
{
	if (!b || (opcode == OP_DIV && a == (uint64_t)INT64_MIN && b == UINT64_MAX)) {
		machine->is_bad = true;
		return 0;
	}
	return opcode == OP_MOD ? a % b : (uint64_t)((int64_t)a / (int64_t)b);
}

/* `a` was below `b` on the stack. */
static uint64_t apply_binary(struct machine *machine, unsigned int opcode, uint64_t a, uint64_t b)
{
	switch (opcode) {
	case OP_AND:
		return a & b;
	case OP_DIV:
	case OP_MOD:
		return divide_values(machine, opcode, a, b);
	case OP_MINUS:
		return a - b;
	case OP_MUL:
		return a * b;
	case OP_OR:
		return a | b;
	case OP_PLUS:
		return a + b;
	case OP_SHL:
	case OP_SHR:
	case OP_SHRA:
		return shift_value(opcode, a, b);
	case OP_XOR:
		return a ^ b;
	case OP_EQ:
		return a == b;
	case OP_GE:
		return (int64_t)a >= (int64_t)b;
	case OP_GT:
		return (int64_t)a > (int64_t)b;
	case OP_LE:
		return (int64_t)a <= (int64_t)b;
	case OP_LT:
		return (int64_t)a < (int64_t)b;
	case OP_NE:
		return a != b;
	default:
		machine->is_bad = true;
		return 0;
	}
}

static void jump_by_operand(struct machine *machine)
{
	int16_t distance = (int16_t)reader_u16(&machine->code);
	int64_t target = (int64_t)machine->code.position + distance;

	if (target < 0 || target > (int64_t)machine->code.size_bytes)
		machine->is_bad = true;
	else
		reader_seek(&machine->code, (size_t)target);
}

static void rotate_top(struct machine *machine)
{
	uint64_t top = pop_value(machine), second = pop_value(machine), third = pop_value(machine);

	push_value(machine, top);
	push_value(machine, third);
	push_value(machine, second);
}

/* Operations that move values on the stack, and jumps. */
static bool run_stack(struct machine *machine, unsigned int opcode)
{
	uint64_t top, second;

	switch (opcode) {
	case OP_DUP:
		push_value(machine, pick_value(machine, 0));
		return true;
	case OP_DROP:
		pop_value(machine);
		return true;
	case OP_OVER:
		push_value(machine, pick_value(machine, 1));
		return true;
	case OP_PICK:
		push_value(machine, pick_value(machine, reader_u8(&machine->code)));
		return true;
	case OP_SWAP:
		top = pop_value(machine);
		second = pop_value(machine);
		push_value(machine, top);
		push_value(machine, second);
		return true;
	case OP_ROT:
		rotate_top(machine);
		return true;
	case OP_SKIP:
		jump_by_operand(machine);
		return true;
	case OP_BRA:
		if (pop_value(machine))
			jump_by_operand(machine);
		else
			reader_skip(&machine->code, 2);
		return true;
	default:
		return opcode == OP_NOP;
	}
}

/* Operations with at most one operand on the stack. */
static bool run_unary(struct machine *machine, unsigned int opcode)
{
	uint64_t value;

	switch (opcode) {
	case OP_ADDR:
		push_value(machine, reader_u64(&machine->code));
		return true;
	case OP_CONSTU:
		push_value(machine, leb_unsigned(&machine->code));
		return true;
	case OP_CONSTS:
		push_value(machine, (uint64_t)leb_signed(&machine->code));
		return true;
	case OP_DEREF:
		load_memory(machine, 8);
		return true;
	case OP_DEREF_SIZE:
		load_memory(machine, reader_u8(&machine->code));
		return true;
	case OP_ABS:
		value = pop_value(machine);
		push_value(machine, (int64_t)value < 0 ? -value : value);
		return true;
	case OP_NEG:
		push_value(machine, -pop_value(machine));
		return true;
	case OP_NOT:
		push_value(machine, ~pop_value(machine));
		return true;
	case OP_PLUS_UCONST:
		value = pop_value(machine);
		push_value(machine, value + leb_unsigned(&machine->code));
		return true;
	case OP_BREGX:
		push_register(machine, leb_unsigned(&machine->code));
		return true;
	default:
		return false;
	}
}

static void run_operation(struct machine *machine)
{
	unsigned int opcode = reader_u8(&machine->code);
	uint64_t second;

	if (opcode >= OP_LIT0 && opcode <= OP_LIT31) {
		push_value(machine, opcode - OP_LIT0);
	} else if (opcode >= OP_BREG0 && opcode <= OP_BREG31) {
		push_register(machine, opcode - OP_BREG0);
	} else if (opcode >= OP_CONST1U && opcode <= OP_CONST8S) {
		push_value(machine, read_constant(machine, opcode));
	} else if (!run_stack(machine, opcode) && !run_unary(machine, opcode)) {
		second = pop_value(machine);
		push_value(machine, apply_binary(machine, opcode, pop_value(machine), second));
	}
}

bool frame_expression_evaluate(struct reader code, const struct frame_expression_input *input,
			       bool has_initial, uint64_t initial, uint64_t *ret)
{
	struct machine machine = { .code = code, .input = input };

	if (has_initial)
		push_value(&machine, initial);
	for (int steps = 0; reader_left(&machine.code); steps++) {
		if (steps == MAX_STEPS)
			return false;
		run_operation(&machine);
		if (machine.is_bad || !reader_ok(&machine.code))
			return false;
	}
	if (!reader_ok(&machine.code) || !machine.depth)
		return false;
	*ret = machine.stack[machine.depth - 1];
	return true;
}
