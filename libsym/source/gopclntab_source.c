/* SPDX-License-Identifier: MIT */
/*
 * Functions of a Go program by its function table, which strip(1) keeps.
 * Symbol tables come first: they have the same functions, and longer names of generic ones.
 * With a symbol table, this table is read only for an address without a symbol, or for a line.
 */
#include "libsym/source/gopclntab_source.h"

#include <stdlib.h>

#include "libsym/source/source.h"

struct gopclntab_source {
	struct object_file *object;
};

static struct sym_error *open_source(const struct source_input *input, struct buf *why, void **ret)
{
	struct gopclntab_source *own;

	(void)why;
	if (!input->has_symbols) {
		const struct go_functions *functions = go_functions_of(input->object);

		if (!functions)
			return &sym_error_no_memory;
		if (!go_functions_count(functions))
			return NULL;
	}
	own = calloc(1, sizeof(*own));
	if (!own)
		return &sym_error_no_memory;
	own->object = input->object;
	*ret = own;
	return NULL;
}

static enum source_outcome gopclntab_source_find(void *source, uint64_t position,
						 struct source_match *ret)
{
	struct gopclntab_source *own = source;
	struct go_functions *functions = go_functions_of(own->object);
	struct gopclntab_function function;

	if (!functions)
		return SOURCE_SHORT;
	if (!go_functions_find(functions, position, &function))
		return SOURCE_MISS;
	*ret = (struct source_match){
		.start = function.vaddr,
		.size_bytes = function.size_bytes,
		.name = function.name,
		.kind = SYM_SYMBOL_FUNCTION,
	};
	return SOURCE_HIT;
}

static struct sym_error *gopclntab_source_list(void *source, const struct source_sink *sink)
{
	struct gopclntab_source *own = source;
	struct go_functions *functions = go_functions_of(own->object);
	uint64_t end = 0;

	if (!functions)
		return &sym_error_no_memory;
	/*
	 * The functions of a corrupt table may overlap. Measuring all of them would take too long.
	 */
	for (uint64_t i = 0; i < go_functions_count(functions); i++) {
		struct gopclntab_function function;
		struct sym_symbol symbol = {
			.kind = SYM_SYMBOL_FUNCTION,
			.source = SYM_SOURCE_GOPCLNTAB,
			.image_index = sink->image_index,
		};

		if (!go_functions_at(functions, i, end, &function) || !function.size_bytes)
			continue;
		end = function.vaddr + function.size_bytes;
		symbol.start = sink->base + function.vaddr;
		symbol.size_bytes = function.size_bytes;
		symbols_builder_add(sink->builder, &symbol, function.name, strlen(function.name));
	}
	return NULL;
}

bool gopclntab_source_describe(void *source, uint64_t vaddr, struct gopclntab_line *ret,
			       struct sym_inlined *inlined, size_t inlined_max,
			       size_t *inlined_count_ret)
{
	struct gopclntab_source *own = source;
	struct go_functions *functions = go_functions_of(own->object);

	return functions && go_functions_describe(functions, vaddr, ret, inlined, inlined_max,
						  inlined_count_ret);
}

const struct source_ops source_gopclntab = {
	.kind = SYM_SOURCE_GOPCLNTAB,
	.for_elf = true,
	.open = open_source,
	.find = gopclntab_source_find,
	.list = gopclntab_source_list,
	.close = free,
};
