/* SPDX-License-Identifier: MIT */
#include "mapgen/live/answer_name.h"

#include <stdlib.h>

#include "libsym/error.h"

struct inlined_block {
	struct inlined_block *next;
	struct stack_inlined items[];
};

void answer_names_free(struct answer_names *names)
{
	while (names->blocks) {
		struct inlined_block *block = names->blocks;

		names->blocks = block->next;
		free(block);
	}
}

/* The answer has the line of the innermost function; each other one has that of its call. */
static bool take_inlined(struct answer_names *names, const struct sym_answer *found,
			 struct stack_name *ret)
{
	const size_t count = found->inlined_count;
	struct inlined_block *block = malloc(sizeof(*block) + count * sizeof(struct stack_inlined));
	struct source_place place = ret->place;

	if (!block)
		return false;
	for (size_t i = 0; i < count; i++) {
		const struct sym_inlined *inlined = &found->inlined[i];

		block->items[i] = (struct stack_inlined){ inlined->name, place };
		place = (struct source_place){ inlined->call_file, inlined->call_line, false };
	}
	block->next = names->blocks;
	names->blocks = block;
	ret->inlined = block->items;
	ret->inlined_count = count;
	ret->place = place;
	return true;
}

struct sym_error *answer_names_take(struct answer_names *names, const struct stack_query *query,
				    const struct sym_answer *found, struct stack_name *ret)
{
	/* The tool that named native code shows what is inlined there itself. */
	const bool is_shown = !query->is_named || found->method_token;

	*ret = (struct stack_name){
		.name = found->name,
		.tier = found->tier,
		.path = found->image_path,
		.offset_bytes = found->offset_bytes + (query->is_return ? 1 : 0),
		.place = { found->file, found->line, found->line_quality == SYM_LINE_NEAREST },
	};
	if (is_shown && found->inlined_count && !take_inlined(names, found, ret))
		return &sym_error_no_memory;
	ret->line_reason = ret->place.line ? NULL : found->line_reason;
	return NULL;
}
