/* SPDX-License-Identifier: MIT */
#include "mapgen/left_names.h"

#include <string.h>

#include "mapgen/module_places.h"

static const struct sym_symbol *symbol_at(const struct sym_symbols *symbols, uint64_t address)
{
	size_t low = 0, high = sym_symbols_count(symbols);
	const struct sym_symbol *symbol;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (sym_symbols_at(symbols, middle)->start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	symbol = low ? sym_symbols_at(symbols, low - 1) : NULL;
	return symbol && address - symbol->start < symbol->size_bytes ? symbol : NULL;
}

/*
 * Of what lay in files a perf map says nothing, and offsets into them nothing without the mappings,
 * which are gone. A runtime that maps its code twice (W^X) has it in a memory file, of which perf
 * prints addresses, others offsets: none is so large.
 */
static bool may_be_left(const struct stack_query *query)
{
	static const char memory_file[] = "/memfd:";
	const size_t bytes = sizeof(memory_file) - 1;

	if (!query->module || module_is_memory(query->module, query->module_bytes))
		return true;
	return query->value > UINT32_MAX && query->module_bytes > bytes &&
	       !memcmp(query->module, memory_file, bytes);
}

struct left_counts left_names_find(const struct sym_symbols *left,
				   const struct stack_query *queries, size_t count,
				   struct stack_name *answers)
{
	struct left_counts counts = { 0 };

	for (size_t i = 0; i < count; i++) {
		uint64_t address = queries[i].value - (queries[i].is_return ? 1 : 0);
		const struct sym_symbol *symbol;

		if (!may_be_left(&queries[i])) {
			counts.gone++;
			continue;
		}
		symbol = symbol_at(left, address);
		if (!symbol)
			symbol = symbol_at(left, queries[i].value);
		/* Nothing returns to the first instruction of a function: see process_names.c. */
		if (!symbol || (address < symbol->start && queries[i].value != symbol->start)) {
			counts.unmapped++;
			continue;
		}
		answers[i] = (struct stack_name){ symbol->name, symbol->tier, "",
						  queries[i].value - symbol->start };
		counts.named++;
	}
	return counts;
}
