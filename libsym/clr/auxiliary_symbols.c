/* SPDX-License-Identifier: MIT */
#include "libsym/clr/auxiliary_symbols.h"

#include <stdlib.h>

static const uint32_t most_symbols = 1024; /* .NET 11 has 11 */

static bool is_printable(const char *name)
{
	while (*name > ' ' && *name <= '~')
		name++;
	return !*name;
}

static int compare_symbols(const void *left_item, const void *right_item)
{
	const struct auxiliary_symbol *left = left_item, *right = right_item;

	return left->address < right->address ? -1 : left->address > right->address;
}

/* Several names of one address belong to the same code. The first one stays. */
static void auxiliary_symbols_sort(struct auxiliary_symbols *symbols)
{
	size_t kept = 0;

	for (size_t i = 0; i < symbols->count; i++) {
		size_t same = 0;

		while (same < kept && symbols->items[same].address != symbols->items[i].address)
			same++;
		if (same == kept)
			symbols->items[kept++] = symbols->items[i];
	}
	symbols->count = kept;
	if (kept)
		qsort(symbols->items, kept, sizeof(*symbols->items), compare_symbols);
}

static void read_all(struct remote_memory *memory, const struct layout_auxiliary *layout,
		     uint32_t count, struct auxiliary_symbols *symbols)
{
	symbols->count = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t at = layout->symbols_address + (uint64_t)i * layout->size_bytes, name;
		struct auxiliary_symbol *symbol = &symbols->items[symbols->count];

		remote_begin(memory);
		symbol->address = remote_u64(memory, at + layout->address);
		name = remote_u64(memory, at + layout->name);
		if (remote_state(memory) == REMOTE_OK && symbol->address && name &&
		    remote_string(memory, name, symbol->name, sizeof(symbol->name)) &&
		    symbol->name[0] && is_printable(symbol->name))
			symbols->count++;
	}
}

struct sym_error *auxiliary_symbols_read(struct remote_memory *memory,
					 const struct layout_auxiliary *layout,
					 struct auxiliary_symbols *ret)
{
	struct auxiliary_symbols symbols = { calloc(most_symbols, sizeof(*symbols.items)), 0 };
	struct sym_error *error = symbols.items ? NULL : &sym_error_no_memory;

	for (bool again = true; !error && again;) {
		uint32_t count;

		remote_begin(memory);
		count = remote_u32(memory, layout->count_address);
		if (remote_state(memory) == REMOTE_OK && count <= most_symbols)
			read_all(memory, layout, count, &symbols);
		error = remote_memory_fetch(memory, &again);
	}
	auxiliary_symbols_sort(&symbols);
	if (error)
		auxiliary_symbols_deinit(&symbols);
	else
		*ret = symbols;
	return error;
}

void auxiliary_symbols_deinit(struct auxiliary_symbols *symbols)
{
	free(symbols->items);
	*symbols = (struct auxiliary_symbols){ 0 };
}
