/* SPDX-License-Identifier: MIT */
/*
 * Symbols of an ELF image by vaddr. Knows how far a symbol reaches: one with a
 * size as far as that, one without to the next symbol of its section, and what
 * has a size wins over what has not. An image that has only .dynsym is asked
 * for its separate debug file; where there is none, other functions lie between its
 * symbols, and one without a size ends where the next function begins.
 */
#include <stdlib.h>
#include <string.h>

#include "libsym/debugfile.h"
#include "libsym/elf_functions.h"
#include "libsym/elf_symbols.h"
#include "libsym/index.h"
#include "libsym/source/source.h"

struct elf_source {
	const struct image *image; /* where the table is: the image itself, or its debug file */
	struct image *debug_image; /* NULL: none */
	struct index *index;
};

static void close_elf(void *source)
{
	struct elf_source *elf = source;

	if (!elf)
		return;
	index_destroy(elf->index);
	image_close(elf->debug_image);
	free(elf);
}

DEFINE_GUARD(elf_source, struct elf_source *, close_elf)
#define AUTO_ELF_SOURCE GUARDED(elf_source)

static bool is_first_at_its_place(const struct elf_symbols *symbols, size_t i)
{
	return !i || symbols->items[i - 1].vaddr != symbols->items[i].vaddr;
}

/* Those without a size first: what is added later wins. */
static struct sym_error *index_symbols(const struct elf_symbols *symbols, struct index **ret)
{
	struct index_builder *builder AUTO_INDEX_BUILDER = NULL;
	struct sym_error *error = index_builder_create(&builder);

	for (int sized = 0; !error && sized < 2; sized++)
		for (size_t i = 0; i < symbols->count; i++) {
			const struct elf_symbol *symbol = &symbols->items[i];

			if (is_first_at_its_place(symbols, i) && !!symbol->size_bytes == sized)
				index_builder_add(builder, symbol->vaddr, symbol->reach_bytes,
						  symbol->name, symbol->name_bytes, 0);
		}
	return error ? error : index_freeze(builder, ret);
}

/* The better of what the image and its debug file have; the image's own when that one has less. */
static struct sym_error *read_best_symbols(struct elf_source *elf, struct elf_symbols *ret)
{
	struct elf_symbols separate;
	struct sym_error *error = elf_symbols_read(elf->image, ret);

	if (error || ret->has_full_table)
		return error;
	error = debugfile_open(DEBUGFILE_TREE, &ret->build_id, &elf->debug_image);
	if (!error && elf->debug_image)
		error = elf_symbols_read(elf->debug_image, &separate);
	if (!error && elf->debug_image && separate.count > ret->count) {
		elf_symbols_deinit(ret);
		*ret = separate;
		elf->image = elf->debug_image;
	} else if (!error && elf->debug_image) {
		elf_symbols_deinit(&separate);
	} else if (error && sym_error_code(error) != SYM_ERROR_NO_MEMORY) {
		/* A damaged debug file costs only itself. */
		sym_error_destroy(STEAL(error));
	}
	if (error)
		elf_symbols_deinit(ret);
	return error;
}

/* .init and .fini, whose symbols often have no size, hold nothing else and are smaller. */
enum {
	LARGEST_SECTION_OF_ONE = 32
};

static bool may_reach_too_far(const struct elf_symbols *symbols)
{
	if (symbols->has_full_table)
		return false;
	for (size_t i = 0; i < symbols->count; i++)
		if (!symbols->items[i].size_bytes &&
		    symbols->items[i].reach_bytes > LARGEST_SECTION_OF_ONE)
			return true;
	return false;
}

/* Bounds of functions that have no symbol stop those that have one but no size. */
static struct sym_error *bound_reach(const struct image *image, struct elf_symbols *symbols)
{
	struct elf_functions functions;
	struct sym_error *error;

	if (!may_reach_too_far(symbols))
		return NULL;
	error = elf_functions_read(image, &functions);
	if (error && sym_error_code(error) != SYM_ERROR_NO_MEMORY) {
		sym_error_destroy(error);
		return NULL;
	}
	if (error)
		return error;
	for (size_t i = 0; i < symbols->count; i++) {
		struct elf_symbol *symbol = &symbols->items[i];
		uint64_t next = elf_functions_next_start(&functions, symbol->vaddr);

		if (!symbol->size_bytes && next - symbol->vaddr < symbol->reach_bytes)
			symbol->reach_bytes = next - symbol->vaddr;
	}
	elf_functions_deinit(&functions);
	return NULL;
}

static struct sym_error *open_elf(const struct source_input *input, struct buf *why, void **ret)
{
	struct elf_source *elf AUTO_ELF_SOURCE = NULL;
	struct elf_symbols symbols;
	struct sym_error *error;

	*ret = NULL;
	if (input->image->kind != SYM_IMAGE_ELF)
		return NULL;
	elf = calloc(1, sizeof(*elf));
	if (!elf)
		return &sym_error_no_memory;
	elf->image = input->image;
	error = read_best_symbols(elf, &symbols);
	if (error)
		return error;
	error = bound_reach(input->image, &symbols);
	if (!error && symbols.count)
		error = index_symbols(&symbols, &elf->index);
	else if (!error)
		buf_append_string(why, "it has no symbol table");
	if (!error && symbols.count)
		*ret = STEAL(elf);
	elf_symbols_deinit(&symbols);
	return error;
}

static enum source_outcome find_symbol(void *source, uint64_t position, struct source_match *ret)
{
	const struct elf_source *elf = source;
	size_t found = index_find(elf->index, position);
	struct index_entry entry;

	if (found == INDEX_NONE)
		return SOURCE_MISS;
	index_at(elf->index, found, &entry);
	*ret = (struct source_match){
		.start = entry.symbol_start,
		.size_bytes = entry.symbol_size_bytes,
		.name = entry.name,
		.kind = SYM_SYMBOL_FUNCTION,
	};
	return SOURCE_HIT;
}

/* The index keeps one name for a place; a list has them all, so the table is read again. */
static struct sym_error *list_symbols(void *source, const struct source_sink *sink)
{
	const struct elf_source *elf = source;
	struct elf_symbols symbols;
	struct sym_error *error = elf_symbols_read(elf->image, &symbols);

	if (error)
		return error;
	for (size_t i = 0; i < symbols.count; i++) {
		struct sym_symbol symbol = {
			.start = sink->base + symbols.items[i].vaddr,
			.size_bytes = symbols.items[i].reach_bytes,
			.kind = SYM_SYMBOL_FUNCTION,
			.source = SYM_SOURCE_ELF,
			.image_index = sink->image_index,
		};

		symbols_builder_add(sink->builder, &symbol, symbols.items[i].name,
				    symbols.items[i].name_bytes);
	}
	elf_symbols_deinit(&symbols);
	return NULL;
}

const struct source_ops source_elf = {
	.kind = SYM_SOURCE_ELF,
	.open = open_elf,
	.find = find_symbol,
	.list = list_symbols,
	.close = close_elf,
};
