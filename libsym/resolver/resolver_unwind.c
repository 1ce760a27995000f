/* SPDX-License-Identifier: MIT */
/*
 * The public face of unwind/: which code an address is in, by what a resolver knows of the process,
 * or by what the reader of a recording says.
 */
#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/resolver/resolver.h"
#include "libsym/sym_unwind.h"
#include "libsym/unwind/stack_walk.h"

struct sym_unwinder {
	struct sym_live *live;         /* NULL: the resolver stays the same */
	struct sym_resolver *resolver; /* NULL: of a recording */
	sym_unwind_find_fn *find;      /* of a recording */
	void *context;
	struct sym_result *result;
	struct stack_walk *walk;
	uint64_t changes; /* the resolver's, when rows were last forgotten */
};

const char *sym_unwind_end_text(enum sym_unwind_end end)
{
	switch (end) {
	case SYM_UNWIND_WHOLE:
		return "whole";
	case SYM_UNWIND_SHORT:
		return "the copy of the stack is too small";
	case SYM_UNWIND_NO_RULE:
		return "no unwind table";
	case SYM_UNWIND_LOOP:
		return "the stack does not go on";
	case SYM_UNWIND_NOT_CODE:
		return "a return address that is not code";
	case SYM_UNWIND_FULL:
		return "too many frames";
	}
	return "unknown";
}

/* perf's numbers in the order of DWARF's: arch/x86/include/uapi/asm/perf_regs.h. Those of arm64 are
 * DWARF's own. */
static const uint8_t sample_numbers_x86_64[] = {
	0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8,
};

void sym_unwind_registers_of_sample(enum sym_unwind_machine machine, uint64_t mask,
				    const uint64_t *values, struct sym_unwind_registers *ret)
{
	bool is_arm = machine == SYM_UNWIND_ARM64;
	size_t count = is_arm ? SYM_UNWIND_REGISTERS : sizeof(sample_numbers_x86_64);

	*ret = (struct sym_unwind_registers){ .size = sizeof(*ret), .machine = machine };
	for (size_t i = 0; i < count; i++) {
		size_t number = is_arm ? i : sample_numbers_x86_64[i];

		if (!(mask & 1ull << number))
			continue;
		ret->values[i] = values[number];
		ret->known |= 1ull << i;
	}
}

static bool is_executable(const struct sym_unwinder *unwinder, uint64_t address)
{
	const struct sym_snapshot *snapshot = atomic_load(&unwinder->resolver->now);
	size_t line = address_space_find(snapshot->space, address);

	return line != ADDRESS_SPACE_NONE &&
	       snapshot->space->mappings[line].protection & SYM_EXECUTE;
}

static void describe_image(const struct sym_answer *answer, struct walk_code *ret)
{
	struct object_file *object = answer->image->object;

	if (!object || answer->image_position == UINT64_MAX)
		return;
	ret->object = object;
	ret->position = answer->image_position;
	ret->is_stub = answer->status == SYM_RESOLVED && answer->kind == SYM_SYMBOL_STUB;
	if (object->kind == SYM_IMAGE_ELF)
		ret->kind = WALK_ELF;
	else if (object->kind == SYM_IMAGE_READYTORUN || object->kind == SYM_IMAGE_COMPOSITE)
		ret->kind = WALK_R2R;
}

static struct sym_error *find_code(void *context, uint64_t address, struct walk_code *ret)
{
	struct sym_unwinder *unwinder = context;
	const struct sym_answer *answer;
	struct sym_error *error;

	*ret = (struct walk_code){ .kind = WALK_UNKNOWN };
	if (!is_executable(unwinder, address)) {
		ret->kind = WALK_NOT_CODE;
		return NULL;
	}
	error = sym_resolver_resolve(unwinder->resolver, &address, 1, unwinder->result);
	if (error)
		return error;
	answer = sym_result_at(unwinder->result, 0);
	if (answer->image) {
		describe_image(answer, ret);
	} else if (answer->status == SYM_RESOLVED && answer->kind == SYM_SYMBOL_STUB) {
		ret->kind = WALK_STUB;
	} else if (answer->status == SYM_RESOLVED && answer->size_bytes) {
		ret->kind = WALK_METHOD;
		ret->start_address = address - answer->offset_bytes;
		ret->size_bytes = answer->size_bytes;
	}
	return NULL;
}

static struct sym_error *find_recorded_code(void *context, uint64_t address, struct walk_code *ret)
{
	struct sym_unwinder *unwinder = context;
	struct sym_unwind_code code = { 0 };
	struct sym_error *error;

	unwinder->find(unwinder->context, address, &code);
	*ret = (struct walk_code){ .kind = code.not_code ? WALK_NOT_CODE : WALK_UNKNOWN };
	if (!code.image || code.not_code)
		return NULL;
	error = sym_image_resolve(code.image, SYM_POSITION_OFFSET, &code.offset, 1,
				  unwinder->result);
	if (!error)
		describe_image(sym_result_at(unwinder->result, 0), ret);
	return error;
}

void sym_unwinder_destroy(struct sym_unwinder *unwinder)
{
	if (!unwinder)
		return;
	stack_walk_destroy(unwinder->walk);
	sym_result_destroy(unwinder->result);
	free(unwinder);
}

DEFINE_GUARD(sym_unwinder, struct sym_unwinder *, sym_unwinder_destroy)

/* Starts without the caches of the previous walk: after an exec() they belong to another program.
 */
static struct sym_error *begin_walk(struct sym_unwinder *unwinder)
{
	const struct sym_resolver *resolver = unwinder->resolver;
	const struct walk_owner owner = {
		.context = unwinder,
		.find_code = resolver ? find_code : find_recorded_code,
		.process = resolver ? resolver->snapshot->process : NULL,
	};

	stack_walk_destroy(STEAL(unwinder->walk));
	return stack_walk_create(&owner, &unwinder->walk);
}

static struct sym_error *unwinder_create(const struct sym_unwinder *pattern,
					 struct sym_unwinder **ret)
{
	struct sym_unwinder *unwinder GUARDED(sym_unwinder) = calloc(1, sizeof(*unwinder));
	struct sym_error *error;

	if (!unwinder)
		return &sym_error_no_memory;
	*unwinder = *pattern;
	error = sym_result_create(&unwinder->result);
	if (!error)
		error = begin_walk(unwinder);
	if (!error)
		*ret = STEAL(unwinder);
	return error;
}

struct sym_error *sym_unwinder_create(struct sym_resolver *resolver, struct sym_unwinder **ret)
{
	return unwinder_create(&(struct sym_unwinder){ .resolver = resolver }, ret);
}

struct sym_error *sym_unwinder_create_live(struct sym_live *live, struct sym_unwinder **ret)
{
	return unwinder_create(
		&(struct sym_unwinder){ .live = live, .resolver = live_resolver(live) }, ret);
}

struct sym_error *sym_unwinder_create_recorded(sym_unwind_find_fn *find, void *context,
					       struct sym_unwinder **ret)
{
	return unwinder_create(&(struct sym_unwinder){ .find = find, .context = context }, ret);
}

void sym_unwinder_forget(struct sym_unwinder *unwinder)
{
	stack_walk_forget(unwinder->walk);
}

static struct sym_error *take_up_changes(struct sym_unwinder *unwinder)
{
	uint64_t changes;

	if (unwinder->live && live_resolver(unwinder->live) != unwinder->resolver) {
		unwinder->resolver = live_resolver(unwinder->live);
		unwinder->changes = atomic_load(&unwinder->resolver->changes);
		return begin_walk(unwinder);
	}
	changes = unwinder->resolver ? atomic_load(&unwinder->resolver->changes) : 0;
	if (changes != unwinder->changes)
		stack_walk_forget(unwinder->walk);
	unwinder->changes = changes;
	return unwinder->walk ? NULL : begin_walk(unwinder);
}

struct sym_error *sym_unwinder_unwind(struct sym_unwinder *unwinder,
				      const struct sym_unwind_registers *registers,
				      const struct sym_unwind_stack *stack,
				      struct sym_frame *frames, size_t capacity, size_t *count_ret,
				      enum sym_unwind_end *end_ret)
{
	struct sym_error *error = take_up_changes(unwinder);

	if (error)
		return error;
	return stack_walk_run(unwinder->walk, registers, stack, frames, capacity, count_ret,
			      end_ret);
}
