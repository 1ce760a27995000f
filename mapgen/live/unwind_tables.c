/* SPDX-License-Identifier: MIT */
#include "mapgen/live/unwind_tables.h"

#include <stddef.h>

#include "libsym/base/cleanup.h"
#include "libsym/error.h"

enum {
	MOST_FUNCTIONS = 64, /* that are looked at */
	STACK_WORDS = 64,
	FAR = 8, /* no address of the stack */
};

static const uint64_t stack_address = 0x10000, code_address = 0x20000;

DEFINE_GUARD(symbols, struct sym_symbols *, sym_symbols_destroy)
DEFINE_GUARD(unwinder, struct sym_unwinder *, sym_unwinder_destroy)

/* The only code of a made process is one function of the image. */
struct place {
	struct sym_image *image;
	uint64_t offset;
};

static void find_code(void *context, uint64_t address, struct sym_unwind_code *ret)
{
	const struct place *place = context;

	ret->not_code = address != code_address;
	ret->image = address == code_address ? place->image : NULL;
	ret->offset = place->offset;
}

/* The stack has return addresses only; the frame pointer leads nowhere. */
static bool has_rule(struct sym_unwinder *unwinder)
{
	uint64_t words[STACK_WORDS];
	const struct sym_unwind_stack stack = { stack_address, words, sizeof(words) };
	struct sym_unwind_registers registers = { .size = sizeof(registers) };
	struct sym_frame frames[2];
	enum sym_unwind_end end = SYM_UNWIND_NO_RULE;
	size_t count = 0;
	struct sym_error *error;

	for (size_t i = 0; i < STACK_WORDS; i++)
		words[i] = code_address + 1;
	for (size_t i = 0; i < SYM_UNWIND_REGISTERS; i++)
		registers.values[i] = FAR;
#ifdef __aarch64__
	registers.machine = SYM_UNWIND_ARM64;
	registers.values[31] = stack_address;
	registers.values[32] = code_address;
#else
	registers.machine = SYM_UNWIND_X86_64;
	registers.values[7] = stack_address;
	registers.values[16] = code_address;
#endif
	registers.known = (1ull << SYM_UNWIND_REGISTERS) - 1;
	error = sym_unwinder_unwind(unwinder, &registers, &stack, frames, 2, &count, &end);
	sym_error_destroy(error);
	if (error)
		return false;
	return count > 1 ? frames[1].origin == SYM_FRAME_CALL_INFO : end != SYM_UNWIND_NO_RULE;
}

/* Functions in the middle, so that neither prolog nor padding is asked about. */
static bool most_have_rules(struct place *place, const struct sym_symbols *symbols)
{
	struct sym_unwinder *unwinder GUARDED(unwinder) = NULL;
	size_t count = sym_symbols_count(symbols), step = count / MOST_FUNCTIONS + 1;
	size_t asked = 0, with_rule = 0;
	struct sym_error *error = sym_unwinder_create_recorded(find_code, place, &unwinder);

	if (error) {
		sym_error_destroy(error);
		return true;
	}
	for (size_t i = 0; i < count; i += step) {
		const struct sym_symbol *symbol = sym_symbols_at(symbols, i);

		if (symbol->kind != SYM_SYMBOL_FUNCTION || !symbol->size_bytes)
			continue;
		place->offset = symbol->start + symbol->size_bytes / 2;
		sym_unwinder_forget(unwinder);
		asked++;
		with_rule += has_rule(unwinder);
	}
	return with_rule * 2 >= asked;
}

bool unwind_tables_are_there(struct sym_image *image)
{
	struct sym_symbols *symbols GUARDED(symbols) = NULL;
	struct place place = { image, 0 };
	struct sym_error *error = sym_image_symbols(
		image, SYM_IMAGE_SYMBOLS_BY_OFFSET | SYM_IMAGE_SYMBOLS_LINKAGE_NAMES, &symbols);

	sym_error_destroy(error);
	return error || most_have_rules(&place, symbols);
}
