/* SPDX-License-Identifier: MIT */
/*
 * Symbols of an ELF image by vaddr. Knows how far a symbol reaches: one with a
 * size as far as that, one without to the next symbol of its section, and what
 * has a size wins over what has not. Separate debug files will be asked here
 * when the image itself has only .dynsym.
 */
#include <stdlib.h>
#include <string.h>

#include "libsym/elf_symbols.h"
#include "libsym/index.h"
#include "libsym/source/source.h"

struct elf_source {
	const struct image *image;
	struct index *index;
};

static void close_elf(void *source)
{
	struct elf_source *elf = source;

	if (!elf)
		return;
	index_destroy(elf->index);
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
						  symbol->name, strlen(symbol->name), 0);
		}
	return error ? error : index_freeze(builder, ret);
}

static struct sym_error *open_elf(const struct source_input *input, struct buf *why, void **ret)
{
	struct elf_source *elf AUTO_ELF_SOURCE = NULL;
	struct elf_symbols symbols = { 0 };
	struct sym_error *error;

	*ret = NULL;
	if (input->image->kind != SYM_IMAGE_ELF)
		return NULL;
	error = elf_symbols_read(input->image, &symbols);
	if (error)
		return error;
	if (!symbols.count)
		buf_append_string(why, "it has no symbol table");
	elf = symbols.count ? calloc(1, sizeof(*elf)) : NULL;
	if (elf)
		error = index_symbols(&symbols, &elf->index);
	else if (symbols.count)
		error = &sym_error_no_memory;
	elf_symbols_deinit(&symbols);
	if (error || !elf)
		return error;
	elf->image = input->image;
	*ret = STEAL(elf);
	return NULL;
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
				    strlen(symbols.items[i].name));
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
