/* SPDX-License-Identifier: MIT */
/*
 * The stacks of a view as lines of folded text, each text once, in the order of the text.
 */
#ifndef MAPGEN_VIEW_STACK_LINES_H
#define MAPGEN_VIEW_STACK_LINES_H

#include "mapgen/view/view.h"

struct stack_line {
	const char *text; /* PROCESS;THREAD;FRAME;...; no thread where it has no name */
	uint64_t count, weight;
};

struct stack_lines {
	struct stack_line *items;
	size_t count;
	char *text;
};

/* Errors: those of selection_make(). */
struct sym_error *stack_lines_make(const struct view *view, struct stack_lines *ret)
	__attribute__((warn_unused_result));
void stack_lines_deinit(struct stack_lines *lines);

#endif
