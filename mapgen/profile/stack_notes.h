/* SPDX-License-Identifier: MIT */
/*
 * The unwinder's notes on stacks that are not whole, or have guessed frames: names/stacks of a
 * recording (mapgen/record/recording_file.h). A line that makes no sense is skipped and counted.
 */
#ifndef MAPGEN_PROFILE_STACK_NOTES_H
#define MAPGEN_PROFILE_STACK_NOTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/libsym.h"

struct stack_note {
	uint64_t time_ns;
	int32_t tid;
	uint32_t end; /* enum sym_unwind_end */
	size_t first_guessed, guessed_count;
};

struct stack_notes {
	struct stack_note *items; /* by time and thread */
	size_t count, capacity;
	uint32_t *guessed; /* numbers of frames of user space, innermost 0 */
	size_t guessed_count, guessed_capacity;
	size_t bad_lines;
};

/* Errors: NO_MEMORY. */
struct sym_error *stack_notes_read(struct stack_notes *notes, const char *text, size_t size_bytes)
	__attribute__((warn_unused_result));
void stack_notes_deinit(struct stack_notes *notes);

/* NULL: the stack is whole, and no frame was guessed. */
const struct stack_note *stack_notes_find(const struct stack_notes *notes, uint64_t time_ns,
					  int32_t tid);

#endif
