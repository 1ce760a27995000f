/* SPDX-License-Identifier: MIT */
#include "libsym/unwind/frame_step.h"

#include "libsym/format/elf/frame_expression.h"

struct step {
	const struct frame_row *row;
	const struct reader *expressions;
	const struct frame_memory *memory;
	const struct frame_registers *before;
	uint64_t cfa;
	enum frame_step_outcome outcome;
};

static bool is_known(const struct frame_registers *registers, uint64_t number)
{
	return number < FRAME_REGISTERS && registers->known & 1ull << number;
}

static bool read_register(void *context, uint64_t number, uint64_t *ret)
{
	struct step *step = (struct step *)context;

	if (!is_known(step->before, number)) {
		step->outcome = FRAME_STEP_NO_REGISTER;
		return false;
	}
	*ret = step->before->values[number];
	return true;
}

static bool read_memory(void *context, uint64_t address, unsigned int size_bytes, uint64_t *ret)
{
	struct step *step = (struct step *)context;

	if (step->memory->read(step->memory->context, address, size_bytes, ret))
		return true;
	step->outcome = FRAME_STEP_NO_MEMORY;
	return false;
}

static bool evaluate(struct step *step, const struct frame_rule *rule, bool has_cfa, uint64_t *ret)
{
	const struct frame_expression_input input = { step, read_register, read_memory };
	struct reader code =
		reader_part(step->expressions, (size_t)rule->value, rule->expression_bytes);

	if (frame_expression_evaluate(code, &input, has_cfa, step->cfa, ret))
		return true;
	if (step->outcome == FRAME_STEP_DONE)
		step->outcome = FRAME_STEP_BAD_RULE;
	return false;
}

static bool find_cfa(struct step *step)
{
	const struct frame_rule *rule = &step->row->cfa;

	if (rule->kind == FRAME_IS_EXPRESSION)
		return evaluate(step, rule, false, &step->cfa);
	if (!read_register(step, rule->reg, &step->cfa))
		return false;
	step->cfa += (uint64_t)(int64_t)rule->value;
	return true;
}

/* The caller's value of a register; *known_ret is false when it is lost. */
static bool find_value(struct step *step, uint64_t number, uint64_t *ret, bool *known_ret)
{
	const struct frame_rule *rule = &step->row->registers[number];
	uint64_t offset = (uint64_t)(int64_t)rule->value, address;

	*known_ret = true;
	switch ((enum frame_rule_kind)rule->kind) {
	case FRAME_SAME:
		*known_ret = is_known(step->before, number);
		*ret = step->before->values[number];
		return true;
	case FRAME_AT_OFFSET:
		return read_memory(step, step->cfa + offset, 8, ret);
	case FRAME_IS_OFFSET:
		*ret = step->cfa + offset;
		return true;
	case FRAME_IN_REGISTER:
		*known_ret = is_known(step->before, (uint64_t)rule->value);
		*ret = *known_ret ? step->before->values[rule->value] : 0;
		return true;
	case FRAME_AT_REGISTER:
		return read_register(step, rule->reg, &address) &&
		       read_memory(step, address + offset, 8, ret);
	case FRAME_AT_EXPRESSION:
		return evaluate(step, rule, true, &address) && read_memory(step, address, 8, ret);
	case FRAME_IS_EXPRESSION:
		return evaluate(step, rule, true, ret);
	default:
		*known_ret = false;
		return true;
	}
}

/*
 * Replaces the registers that the row has a rule for. All values are read first, because rules are
 * about the registers of this frame. A register that cannot be found is lost to the caller; it does
 * not end the stack by itself.
 */
static void replace_others(struct step *step, uint64_t ruled, struct frame_registers *registers)
{
	uint64_t values[FRAME_REGISTERS], found = 0;

	for (uint64_t left = ruled; left; left &= left - 1) {
		unsigned int number = (unsigned int)__builtin_ctzll(left);
		bool known;

		step->outcome = FRAME_STEP_DONE;
		if (find_value(step, number, &values[number], &known) && known)
			found |= 1ull << number;
	}
	registers->known = (registers->known & ~ruled) | found;
	for (uint64_t left = found; left; left &= left - 1) {
		unsigned int number = (unsigned int)__builtin_ctzll(left);

		registers->values[number] = values[number];
	}
}

/* Pointer authentication puts a signature into bits 48 and above. */
static uint64_t without_signature(uint64_t address)
{
	return address & 0x0000ffffffffffff;
}

enum frame_step_outcome frame_step(const struct frame_row *row, enum frame_machine machine,
				   const struct reader *expressions,
				   const struct frame_memory *memory,
				   struct frame_registers *registers)
{
	struct step step = { row, expressions, memory, registers, 0, FRAME_STEP_DONE };
	unsigned int sp = frame_sp(machine), pc = frame_pc(machine);
	uint64_t return_address;
	bool known;

	if (row->registers[row->return_register].kind == FRAME_UNDEFINED)
		return FRAME_STEP_OUTERMOST;
	if (!find_cfa(&step))
		return step.outcome;
	if (!find_value(&step, row->return_register, &return_address, &known))
		return step.outcome;
	if (!known)
		return FRAME_STEP_NO_REGISTER;
	/* The program counter is set below. */
	replace_others(&step, row->ruled & ~(1ull << pc), registers);
	if (row->registers[sp].kind == FRAME_SAME)
		registers->values[sp] = step.cfa;
	registers->values[pc] =
		row->is_ra_signed ? without_signature(return_address) : return_address;
	registers->known |= 1ull << sp | 1ull << pc;
	return FRAME_STEP_DONE;
}
