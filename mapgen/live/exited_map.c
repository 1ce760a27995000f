/* SPDX-License-Identifier: MIT */
#include "mapgen/live/exited_map.h"

#include <string.h>

#include "libsym/base/ascending.h"
#include "libsym/format/linux/mapping_name.h"
#include "mapgen/live/mapped_offsets.h"

const struct sym_symbol *exited_map_at(const struct sym_symbols *symbols, uint64_t address)
{
	size_t low = ASCENDING_COUNT(sym_symbols_count(symbols), i,
				     sym_symbols_at(symbols, i)->start <= address);
	const struct sym_symbol *symbol = low ? sym_symbols_at(symbols, low - 1) : NULL;

	return symbol && address - symbol->start < symbol->size_bytes ? symbol : NULL;
}

/*
 * A perf map does not name code in files, and offsets into files mean nothing without the mappings,
 * which are gone. A runtime that maps its code twice (W^X) has it in a memory file. perf prints
 * addresses for such a file, other tools print offsets, and no offset is as large as an address.
 */
static bool may_be_left(const struct stack_query *query)
{
	if (!query->image || names_memory(query->image, query->image_bytes))
		return true;
	return query->value > UINT32_MAX &&
	       mapping_name_kind(query->image, query->image_bytes) == MAPPING_NAME_MEMORY_FILE;
}

void exited_map_find(const struct sym_symbols *left, const struct stack_query *queries,
		     size_t count, struct stack_name *answers, struct process_names_counts *counts)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t address = queries[i].value - (queries[i].is_return ? 1 : 0);
		const struct sym_symbol *symbol;

		if (queries[i].is_named)
			continue;
		if (!may_be_left(&queries[i])) {
			counts->gone++;
			continue;
		}
		symbol = exited_map_at(left, address);
		if (!symbol)
			symbol = exited_map_at(left, queries[i].value);
		/* No call returns to the first instruction of a function: see process_names.c. */
		if (!symbol || (address < symbol->start && queries[i].value != symbol->start)) {
			counts->unmapped++;
			continue;
		}
		answers[i] = (struct stack_name){
			.name = symbol->name,
			.tier = symbol->tier,
			.path = "",
			.offset_bytes = queries[i].value - symbol->start,
		};
		counts->named++;
	}
}
