/* SPDX-License-Identifier: MIT */
/*
 * DWARF expressions as call frame information uses them: a small stack machine over registers and
 * memory. They occur in PLT entries, signal frames and some functions written in assembler. Steps
 * and depth are bounded. Operations that compilers do not emit there are missing.
 *
 * DWARF 5, section 2.5.
 */
#ifndef LIBSYM_FORMAT_ELF_FRAME_EXPRESSION_H
#define LIBSYM_FORMAT_ELF_FRAME_EXPRESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "libsym/base/reader.h"

/* The registers and memory that an expression reads. */
struct frame_expression_input {
	void *context;
	/* Reads a register. Returns false if its value is unknown. */
	bool (*read_register)(void *context, uint64_t number, uint64_t *ret);
	/* Reads a word of 1, 2, 4 or 8 bytes. Returns false if it cannot be read. */
	bool (*read_memory)(void *context, uint64_t address, unsigned int size_bytes,
			    uint64_t *ret);
};

/* Evaluates an expression. If `has_initial`, `initial` (the CFA) is on the stack at the start. */
bool frame_expression_evaluate(struct reader code, const struct frame_expression_input *input,
			       bool has_initial, uint64_t initial, uint64_t *ret);

#endif
