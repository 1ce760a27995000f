/* SPDX-License-Identifier: MIT */
/* Walks over made-up stacks: each page of code is of one kind. test_resolver_unwind.c has real
 * ones. */
#include <criterion/criterion.h>

#include "libsym/unwind/stack_walk.h"

enum {
	MOST = 8
};

static const uint64_t stub = 0x10000, plain = 0x20000, stack_address = 0x700000;

static struct sym_error *find_code(void *context, uint64_t address, struct walk_code *ret)
{
	(void)context;
	*ret = (struct walk_code){ .kind = WALK_NOT_CODE };
	if (address >> 12 == stub >> 12)
		ret->kind = WALK_STUB;
	else if (address >> 12 == plain >> 12)
		ret->kind = WALK_UNKNOWN;
	return NULL;
}

struct walked {
	struct sym_frame frames[MOST];
	size_t count;
	enum sym_unwind_end end;
};

static struct walked walk_from(uint64_t pc, uint64_t fp, const uint64_t *words, size_t count)
{
	const struct walk_owner owner = { NULL, find_code, NULL };
	const struct sym_unwind_stack stack = { stack_address, words, count * sizeof(*words) };
	struct sym_unwind_registers registers = { .size = sizeof(registers),
						  .known = 1 << 16 | 1 << 7 | 1 << 6 };
	struct walked walked = { 0 };
	struct stack_walk *walk;

	registers.values[16] = pc;
	registers.values[7] = stack_address;
	registers.values[6] = fp;
	cr_assert_null(stack_walk_create(&owner, &walk));
	cr_assert_null(stack_walk_run(walk, &registers, &stack, walked.frames, MOST, &walked.count,
				      &walked.end));
	stack_walk_destroy(walk);
	return walked;
}

Test(stack_walk, ends_where_the_chain_of_frame_pointers_has_a_zero)
{
	const uint64_t words[] = { stack_address + 16, plain + 8, 0, plain + 9 };
	struct walked walked = walk_from(plain, stack_address, words, 4);

	cr_assert_eq(walked.count, 3);
	cr_assert_eq(walked.frames[1].address, plain + 8);
	cr_assert_eq(walked.frames[2].address, plain + 9);
	cr_expect(walked.frames[2].flags & SYM_FRAME_IS_GUESSED);
}

Test(stack_walk, finds_the_caller_of_a_stub)
{
	const uint64_t words[] = { plain + 8, 0, 0 };
	struct walked walked = walk_from(stub, 0, words, 3);

	cr_assert_eq(walked.count, 2);
	cr_assert_eq(walked.frames[1].address, plain + 8);
	cr_assert_eq(walked.frames[1].stack_address, stack_address + 8);
}

Test(stack_walk, skips_registers_that_a_stub_has_pushed)
{
	const uint64_t words[] = { 5, 6, plain + 8, 0 };

	for (size_t pushed = 0; pushed < 3; pushed++) {
		struct walked walked = walk_from(stub, 0, words + 2 - pushed, 2 + pushed);

		cr_assert_eq(walked.count, 2);
		cr_expect_eq(walked.frames[1].address, plain + 8);
		cr_expect_eq(walked.frames[1].stack_address, stack_address + 8 * (pushed + 1));
		cr_expect(walked.frames[1].flags & SYM_FRAME_IS_GUESSED);
	}
}

Test(stack_walk, says_that_a_stub_has_no_caller)
{
	const uint64_t words[] = { 5, 6, 7, plain + 8 };
	struct walked walked = walk_from(stub, 0, words, 4);

	cr_expect_eq(walked.count, 1);
	cr_expect_eq(walked.end, SYM_UNWIND_NOT_CODE);
}

Test(stack_walk, ends_a_chain_that_goes_round)
{
	const uint64_t words[] = { stack_address, plain + 8 };
	struct walked walked = walk_from(plain, stack_address, words, 2);

	cr_expect_eq(walked.end, SYM_UNWIND_LOOP);
}

Test(stack_walk, ends_where_the_copy_of_the_stack_ends)
{
	const uint64_t words[] = { plain + 8 };
	struct walked walked = walk_from(stub, stack_address + 64, words, 1);

	cr_expect_eq(walked.count, 2);
	cr_expect_neq(walked.end, SYM_UNWIND_WHOLE);
}
