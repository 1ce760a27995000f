/* SPDX-License-Identifier: MIT */
/*
 * How a stack is walked.
 *
 *   registers --> address of the code --> row (from the cache, or made) --> step --> registers
 *
 * The address is the program counter for the innermost frame and for a frame that a signal
 * interrupted.
 * For all others it is the byte before the return address, because a call may be the last
 * instruction of its function.
 *
 * A row comes from the best data about the code:
 *
 *   ELF image             its call frame information
 *   ReadyToRun image      the unwind codes of its runtime function, or the instructions of its
 * epilog jitted .NET method    the same from the header of its code, in the memory of the process
 *   stub                  the return address is on top of the stack
 *   anything else         the frame pointer; a guess
 *
 * A row depends on the address only, so rows are cached by address.
 * A stack is whole where call frame information has no rule for the return address (clone3,
 * _start), or where a chain of frame pointers ends with zero.
 */
#include "libsym/unwind/stack_walk.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/hash.h"
#include "libsym/unwind/elf_rows.h"
#include "libsym/unwind/frame_step.h"
#include "libsym/unwind/jitted_rows.h"
#include "libsym/unwind/r2r_rows.h"

enum {
	CACHE_BITS = 12,
	CACHE_ROWS = 1 << CACHE_BITS,
	MOST_PUSHED = 2, /* registers that a stub may have saved */
};

/* The tables of one image: one of the two, or neither when they cannot be read. */
struct image_rows {
	struct object_file *object; /* shared; the key */
	struct elf_rows *elf;
	struct r2r_rows *r2r;
	UT_hash_handle hh;
};

struct cached_row {
	uint64_t address; /* 0: free */
	const struct reader *expressions;
	struct frame_row row;
	uint8_t origin; /* enum sym_frame_origin of the caller */
	bool is_guess;
	bool is_code;
};

struct stack_walk {
	struct walk_owner owner;
	struct image_rows *images;
	struct cached_row *cache;
};

struct sym_error *stack_walk_create(const struct walk_owner *owner, struct stack_walk **ret)
{
	struct stack_walk *walk = calloc(1, sizeof(*walk));

	if (!walk)
		return &sym_error_no_memory;
	walk->owner = *owner;
	walk->cache = calloc(CACHE_ROWS, sizeof(*walk->cache));
	if (!walk->cache) {
		free(walk);
		return &sym_error_no_memory;
	}
	*ret = walk;
	return NULL;
}

static void image_rows_destroy(struct image_rows *rows)
{
	elf_rows_close(rows->elf);
	r2r_rows_close(rows->r2r);
	object_file_close(rows->object);
	free(rows);
}

void stack_walk_destroy(struct stack_walk *walk)
{
	if (!walk)
		return;
	HASH_DESTROY(walk->images, image_rows_destroy);
	free(walk->cache);
	free(walk);
}

void stack_walk_forget(struct stack_walk *walk)
{
	for (size_t i = 0; i < CACHE_ROWS; i++)
		walk->cache[i].address = 0;
}

/* ---- rows ---------------------------------------------------------------------------------- */

static struct sym_error *open_image_rows(const struct walk_code *code, struct image_rows *rows)
{
	struct sym_error *error = code->kind == WALK_ELF ? elf_rows_open(code->object, &rows->elf)
							 : r2r_rows_open(code->object, &rows->r2r);

	/* An image whose tables cannot be read has no rows. */
	return sym_error_only_no_memory(error);
}

static struct sym_error *get_image_rows(struct stack_walk *walk, const struct walk_code *code,
					struct image_rows **ret)
{
	struct image_rows *rows;
	struct sym_error *error;

	HASH_FIND_PTR(walk->images, &code->object, rows);
	*ret = rows;
	if (rows)
		return NULL;
	rows = calloc(1, sizeof(*rows));
	if (!rows)
		return &sym_error_no_memory;
	rows->object = object_file_share(code->object);
	error = open_image_rows(code, rows);
	if (!error) {
		HASH_ADD_PTR(walk->images, object, rows);
		if (!hash_added(rows))
			error = &sym_error_no_memory;
	}
	if (error)
		image_rows_destroy(rows);
	else
		*ret = rows;
	return error;
}

/* After its prolog the function has [fp] = the caller's fp, [fp + 8] = the return address. */
static void set_frame_pointer_row(struct cached_row *cached, enum frame_machine machine)
{
	uint8_t fp = frame_fp(machine), pc = frame_pc(machine);

	memset(&cached->row, 0, sizeof(cached->row));
	cached->row.cfa =
		(struct frame_rule){ .kind = FRAME_REGISTER_OFFSET, .reg = fp, .value = 16 };
	cached->row.return_register = pc;
	cached->row.registers[fp] = (struct frame_rule){ .kind = FRAME_AT_OFFSET, .value = -16 };
	cached->row.registers[pc] = (struct frame_rule){ .kind = FRAME_AT_OFFSET, .value = -8 };
	cached->row.is_ra_signed = machine == FRAME_ARM64;
	frame_row_finish(&cached->row);
	cached->origin = SYM_FRAME_POINTER;
	cached->is_guess = true;
}

/* On x86-64 the return address is on top of the stack, on arm64 in the link register. */
static void set_leaf_row(struct cached_row *cached, enum frame_machine machine)
{
	uint8_t sp = frame_sp(machine), pc = frame_pc(machine);
	bool is_x86 = machine == FRAME_X86_64;

	memset(&cached->row, 0, sizeof(cached->row));
	cached->row.cfa = (struct frame_rule){ .kind = FRAME_REGISTER_OFFSET,
					       .reg = sp,
					       .value = is_x86 ? 8 : 0 };
	cached->row.return_register = is_x86 ? pc : FRAME_ARM64_LR;
	if (is_x86)
		cached->row.registers[pc] =
			(struct frame_rule){ .kind = FRAME_AT_OFFSET, .value = -8 };
	frame_row_finish(&cached->row);
	cached->origin = SYM_FRAME_LEAF;
	cached->is_guess = true;
}

static struct sym_error *make_image_row(struct stack_walk *walk, const struct walk_code *code,
					bool is_call, struct cached_row *cached, bool *found_ret)
{
	struct image_rows *rows;
	struct sym_error *error = get_image_rows(walk, code, &rows);

	if (error)
		return error;
	if (rows->elf)
		*found_ret = elf_rows_find(rows->elf, code->position, is_call, &cached->row,
					   &cached->expressions);
	else if (rows->r2r)
		*found_ret =
			code->position <= UINT32_MAX &&
			r2r_rows_find(rows->r2r, (uint32_t)code->position, is_call, &cached->row);
	cached->origin = rows->elf ? SYM_FRAME_CALL_INFO : SYM_FRAME_UNWIND_CODES;
	return NULL;
}

static struct sym_error *make_row(struct stack_walk *walk, uint64_t address, bool is_call,
				  enum frame_machine machine, struct cached_row *cached)
{
	struct walk_code code = { .kind = WALK_UNKNOWN };
	struct sym_error *error = walk->owner.find_code(walk->owner.context, address, &code);
	bool found = false;

	if (error)
		return error;
	*cached = (struct cached_row){ .is_code = code.kind != WALK_NOT_CODE };
	if (code.kind == WALK_ELF || code.kind == WALK_R2R)
		error = make_image_row(walk, &code, is_call, cached, &found);
	else if (code.kind == WALK_METHOD && machine == FRAME_X86_64)
		found = jitted_row_find(walk->owner.process, code.start_address, code.size_bytes,
					address, is_call, &cached->row);
	if (error)
		return error;
	if (code.kind == WALK_METHOD)
		cached->origin = SYM_FRAME_UNWIND_CODES;
	if (code.kind == WALK_STUB || (!found && code.is_stub))
		set_leaf_row(cached, machine);
	else if (!found)
		set_frame_pointer_row(cached, machine);
	cached->address = address;
	return NULL;
}

static struct sym_error *get_row(struct stack_walk *walk, uint64_t address, bool is_call,
				 enum frame_machine machine, const struct cached_row **ret)
{
	size_t place = (size_t)(address * 0x9e3779b97f4a7c15ull >> (64 - CACHE_BITS));
	struct cached_row *cached = &walk->cache[place];
	struct sym_error *error = NULL;

	if (cached->address != address || !address) {
		cached->address = 0;
		error = make_row(walk, address, is_call, machine, cached);
	}
	*ret = cached;
	return error;
}

/* ---- the walk ------------------------------------------------------------------------------ */

static bool read_stack(void *context, uint64_t address, unsigned int size_bytes, uint64_t *ret)
{
	const struct sym_unwind_stack *stack = context;
	uint64_t offset = address - stack->address;

	if (stack->size_bytes < size_bytes || offset > stack->size_bytes - size_bytes)
		return false;
	*ret = 0;
	memcpy(ret, (const uint8_t *)stack->bytes + offset, size_bytes);
	return true;
}

/* State of a walk. */
struct walk_state {
	struct frame_registers registers;
	enum frame_machine machine;
	struct frame_memory memory;
	bool is_exact;   /* the program counter is not a return address */
	bool was_signal; /* the frame below was a signal frame: this may be another stack */
	uint64_t sp_before;
};

static struct sym_error *begin(const struct sym_unwind_registers *registers,
			       const struct sym_unwind_stack *stack, struct walk_state *ret)
{
	uint64_t needed;

	*ret = (struct walk_state){ .machine = registers->machine == SYM_UNWIND_ARM64
						       ? FRAME_ARM64
						       : FRAME_X86_64,
				    .memory = { (void *)stack, read_stack },
				    .is_exact = true };
	needed = 1ull << frame_pc(ret->machine) | 1ull << frame_sp(ret->machine);
	if (registers->size < sizeof(*registers) || (registers->known & needed) != needed)
		return sym_error_create(SYM_ERROR_ARGUMENT,
					"registers without program counter or stack pointer");
	memcpy(ret->registers.values, registers->values, sizeof(ret->registers.values));
	ret->registers.known = registers->known;
	return NULL;
}

static void put_frame(const struct walk_state *state, uint32_t origin, bool is_guess,
		      struct sym_frame *ret)
{
	*ret = (struct sym_frame){
		.address = state->registers.values[frame_pc(state->machine)],
		.stack_address = state->registers.values[frame_sp(state->machine)],
		.origin = origin,
		.flags = (state->is_exact ? 0 : SYM_FRAME_IS_RETURN) |
			 (is_guess ? SYM_FRAME_IS_GUESSED : 0),
	};
}

static enum sym_unwind_end end_of(enum frame_step_outcome outcome, const struct cached_row *row)
{
	switch (outcome) {
	case FRAME_STEP_OUTERMOST:
		return SYM_UNWIND_WHOLE;
	case FRAME_STEP_NO_MEMORY:
		/* A guessed frame pointer may hold anything. */
		return row->is_guess ? SYM_UNWIND_NO_RULE : SYM_UNWIND_SHORT;
	default:
		return SYM_UNWIND_NO_RULE;
	}
}

/* Moves to the caller. False: the stack ends here, *end_ret has the reason. */
static bool advance(struct walk_state *state, const struct cached_row *row,
		    enum sym_unwind_end *end_ret)
{
	static const struct reader no_expressions = { .data = (const uint8_t *)"" };
	unsigned int sp = frame_sp(state->machine), pc = frame_pc(state->machine);
	uint64_t before = state->registers.values[sp], pc_before = state->registers.values[pc];
	enum frame_step_outcome outcome;

	outcome = frame_step(&row->row, state->machine,
			     row->expressions ? row->expressions : &no_expressions, &state->memory,
			     &state->registers);
	if (outcome != FRAME_STEP_DONE) {
		*end_ret = end_of(outcome, row);
		return false;
	}
	if (!state->registers.values[pc]) {
		*end_ret = SYM_UNWIND_WHOLE;
		return false;
	}
	/* A signal handler may run on its own stack. A link register moves no stack pointer. */
	if (!row->row.is_signal_frame &&
	    (state->registers.values[sp] < before ||
	     (state->registers.values[sp] == before && pc_before == state->registers.values[pc]))) {
		*end_ret = SYM_UNWIND_LOOP;
		return false;
	}
	state->is_exact = row->row.is_signal_frame;
	return true;
}

/*
 * A stub may have saved registers above its return address: on x86-64 VSD_ResolveStub pushes rdx,
 * and entries of a procedure linkage table push up to two numbers. The return address is then the
 * first word that points into code.
 */
static struct sym_error *skip_pushed(struct stack_walk *walk, const struct walk_state *state,
				     struct cached_row *leaf)
{
	uint64_t sp = state->registers.values[frame_sp(state->machine)], address;

	for (int32_t bytes = 8; bytes <= 8 * (1 + MOST_PUSHED); bytes += 8) {
		const struct cached_row *caller;
		struct sym_error *error;

		if (!read_stack(state->memory.context, sp + (uint64_t)bytes - 8, 8, &address))
			return NULL;
		error = get_row(walk, address - 1, true, state->machine, &caller);
		if (error)
			return error;
		if (!caller->is_code)
			continue;
		leaf->row.cfa.value = bytes;
		return NULL;
	}
	return NULL;
}

static struct sym_error *find_row(struct stack_walk *walk, const struct walk_state *state,
				  struct cached_row *leaf, const struct cached_row **ret)
{
	uint64_t address = state->registers.values[frame_pc(state->machine)] - !state->is_exact;
	struct sym_error *error = get_row(walk, address, !state->is_exact, state->machine, ret);

	if (error || (*ret)->origin != SYM_FRAME_LEAF || state->machine != FRAME_X86_64)
		return error;
	*leaf = **ret;
	*ret = leaf;
	return skip_pushed(walk, state, leaf);
}

struct sym_error *stack_walk_run(struct stack_walk *walk,
				 const struct sym_unwind_registers *registers,
				 const struct sym_unwind_stack *stack, struct sym_frame *frames,
				 size_t capacity, size_t *count_ret, enum sym_unwind_end *end_ret)
{
	struct walk_state state;
	struct cached_row leaf;
	struct sym_error *error = begin(registers, stack, &state);
	size_t count = 0;

	if (error)
		return error;
	put_frame(&state, SYM_FRAME_REGISTERS, false, &frames[count++]);
	for (;;) {
		const struct cached_row *row;

		error = find_row(walk, &state, &leaf, &row);
		if (error)
			return error;
		if (!row->is_code) {
			*end_ret = SYM_UNWIND_NOT_CODE;
			/* An address outside code was not a frame, unless the thread was there. */
			count -= count > 1;
			break;
		}
		if (!advance(&state, row, end_ret))
			break;
		if (count == capacity) {
			*end_ret = SYM_UNWIND_FULL;
			break;
		}
		put_frame(&state, row->origin, row->is_guess, &frames[count++]);
	}
	*count_ret = count;
	return NULL;
}
