/* SPDX-License-Identifier: MIT */
/*
 * A stack of a process whose eight pages of code are what the input says: not code, jitted, stubs,
 * or unknown. Twice, because the second walk has the rows of the first: both find the same frames.
 * A walk ends, and its frames go up.
 *
 *   u8 flags (bit 0: arm64) | 8 kinds | u64 pc, fp | 512 bytes: each page of code | the stack
 */
#include <stdlib.h>
#include <string.h>

#include "libsym/unwind/stack_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	PAGES = 8,
	PAGE_BYTES = 4096,
	MEMORY_BYTES = 512,
	MOST_FRAMES = 64,
	IS_ARM64 = 1,
};

static const uint64_t code_address = 0x400000, stack_address = 0x700000;

struct input {
	const uint8_t *kinds, *memory;
};

static struct sym_error *find_code(void *context, uint64_t address, struct walk_code *ret)
{
	static const enum walk_code_kind kinds[] = { WALK_NOT_CODE, WALK_METHOD, WALK_STUB,
						     WALK_UNKNOWN };
	const struct input *input = context;
	uint64_t page = (address - code_address) / PAGE_BYTES;

	*ret = (struct walk_code){ .kind = WALK_NOT_CODE };
	if (page >= PAGES)
		return NULL;
	*ret = (struct walk_code){ .kind = kinds[input->kinds[page] % 4],
				   .start_address = code_address + page * PAGE_BYTES,
				   .size_bytes = PAGE_BYTES,
				   .is_stub = input->kinds[page] & 4 };
	return NULL;
}

static size_t read_memory(const struct core *core, uint64_t address, void *room, size_t size_bytes)
{
	const struct input *input = (const struct input *)core;

	for (size_t i = 0; i < size_bytes; i++)
		((uint8_t *)room)[i] = input->memory[(address + i) % MEMORY_BYTES];
	return size_bytes;
}

static const struct process_core_ops ops = { .read = read_memory };

static size_t walk_once(struct stack_walk *walk, const struct sym_unwind_registers *registers,
			const struct sym_unwind_stack *stack, struct sym_frame *frames)
{
	enum sym_unwind_end end = SYM_UNWIND_WHOLE;
	size_t count = 0;
	struct sym_error *error =
		stack_walk_run(walk, registers, stack, frames, MOST_FRAMES, &count, &end);

	if (error) {
		sym_error_destroy(error);
		return 0;
	}
	if (!count || count > MOST_FRAMES || end > SYM_UNWIND_FULL ||
	    (end == SYM_UNWIND_FULL && count != MOST_FRAMES))
		abort();
	for (size_t i = 1; i < count; i++)
		if (frames[i].stack_address < frames[i - 1].stack_address)
			abort();
	return count;
}

/* One for all inputs: its cache of 4,096 rows costs more than a walk. */
static struct stack_walk *walk_of(struct input **input_ret)
{
	static struct input input;
	static struct process process = { .core_ops = &ops };
	static struct stack_walk *walk;
	const struct walk_owner owner = { &input, find_code, &process };

	process.core = (struct core *)&input;
	if (!walk)
		sym_error_destroy(stack_walk_create(&owner, &walk));
	else
		stack_walk_forget(walk);
	*input_ret = &input;
	return walk;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const size_t head_bytes = 1 + PAGES + 2 * 8 + MEMORY_BYTES;
	struct sym_frame first[MOST_FRAMES], second[MOST_FRAMES];
	struct sym_unwind_registers registers = { .size = sizeof(registers) };
	struct sym_unwind_stack stack;
	struct stack_walk *walk;
	struct input *input;
	bool is_arm;
	size_t count;

	walk = size < head_bytes ? NULL : walk_of(&input);
	if (!walk)
		return 0;
	is_arm = data[0] & IS_ARM64;
	*input = (struct input){ data + 1, data + head_bytes - MEMORY_BYTES };
	registers.machine = is_arm ? SYM_UNWIND_ARM64 : SYM_UNWIND_X86_64;
	registers.values[is_arm ? 31 : 7] = stack_address;
	memcpy(&registers.values[is_arm ? 32 : 16], data + 1 + PAGES, 8);
	memcpy(&registers.values[is_arm ? 29 : 6], data + 1 + PAGES + 8, 8);
	registers.known = (1ull << SYM_UNWIND_REGISTERS) - 1;
	stack = (struct sym_unwind_stack){ stack_address, data + head_bytes, size - head_bytes };
	count = walk_once(walk, &registers, &stack, first);
	if (walk_once(walk, &registers, &stack, second) != count ||
	    memcmp(first, second, count * sizeof(*first)) != 0)
		abort();
	return 0;
}
