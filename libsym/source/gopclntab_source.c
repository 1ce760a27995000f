/* SPDX-License-Identifier: MIT */
/*
 * Functions of a Go program by its function table, which strip(1) leaves. Asked where no
 * symbol table knows: that one has the same functions, with longer names of generic ones.
 * Where there is any, the table is not looked for before an address that it does not have, or a
 * line, asks.
 */
#include "libsym/source/gopclntab_source.h"

#include <stdlib.h>

#include "libsym/source/source.h"

struct gopclntab_source {
	struct image *image;
};

static struct sym_error *open_source(const struct source_input *input, struct buf *why, void **ret)
{
	struct gopclntab_source *own;

	(void)why;
	*ret = NULL;
	if (input->image->kind != SYM_IMAGE_ELF)
		return NULL;
	if (!input->has_symbols) {
		const struct go_functions *functions = go_functions_of(input->image);

		if (!functions)
			return &sym_error_no_memory;
		if (!go_functions_count(functions))
			return NULL;
	}
	own = calloc(1, sizeof(*own));
	if (!own)
		return &sym_error_no_memory;
	own->image = input->image;
	*ret = own;
	return NULL;
}

static void close_source(void *source)
{
	free(source);
}

static enum source_outcome find(void *source, uint64_t position, struct source_match *ret)
{
	struct gopclntab_source *own = source;
	struct go_functions *functions = go_functions_of(own->image);
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

static struct sym_error *list(void *source, const struct source_sink *sink)
{
	struct gopclntab_source *own = source;
	struct go_functions *functions = go_functions_of(own->image);
	uint64_t end = 0;

	if (!functions)
		return &sym_error_no_memory;
	/* Those of a table that lies may overlap, and would take long to be measured all. */
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
	struct go_functions *functions = go_functions_of(own->image);

	return functions && go_functions_describe(functions, vaddr, ret, inlined, inlined_max,
						  inlined_count_ret);
}

const struct source_ops source_gopclntab = {
	.kind = SYM_SOURCE_GOPCLNTAB,
	.open = open_source,
	.find = find,
	.list = list,
	.close = close_source,
};
