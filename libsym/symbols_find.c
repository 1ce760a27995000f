/* SPDX-License-Identifier: MIT */
/*
 * Names of a list to their symbols: a table of hashes, open addressing, made
 * when a list is first asked and then never changed.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "libsym/base/cleanup.h"
#include "libsym/symbols.h"

/* Each symbol by its full name and, if that is another, its short one. */
struct symbols_table {
	size_t mask;
	uint32_t slots[]; /* number of the symbol and 1; 0: free */
};

enum {
	SHORT_ROOM = 512
};

static bool has_name(const struct sym_symbol *symbol, const char *name, char *room)
{
	size_t needed;

	if (!strcmp(symbol->name, name))
		return true;
	needed = sym_name_shorten(symbol->name, room, SHORT_ROOM);
	/* Longer ones are only known by their full name. */
	return needed < SHORT_ROOM && !strcmp(room, name);
}

static uint64_t hash(const char *name)
{
	return XXH3_64bits(name, strlen(name));
}

static void insert(struct symbols_table *table, const char *name, size_t symbol)
{
	size_t slot = hash(name) & table->mask;

	while (table->slots[slot])
		slot = (slot + 1) & table->mask;
	table->slots[slot] = (uint32_t)(symbol + 1);
}

static struct symbols_table *make_table(const struct sym_symbols *symbols)
{
	size_t capacity = 16;
	struct symbols_table *table;
	char room[SHORT_ROOM];

	/* Two names a symbol and half as much air. */
	while (capacity < 3 * symbols->count)
		capacity *= 2;
	table = calloc(1, sizeof(*table) + capacity * sizeof(*table->slots));
	if (!table)
		return NULL;
	table->mask = capacity - 1;
	for (size_t i = 0; i < symbols->count; i++) {
		const char *name = symbols->items[i].name;

		insert(table, name, i);
		if (sym_name_shorten(name, room, sizeof(room)) < sizeof(room) &&
		    strcmp(name, room) != 0)
			insert(table, room, i);
	}
	return table;
}

/* Without memory for a table there is none: NULL. */
static const struct symbols_table *table_of(const struct sym_symbols *symbols)
{
	_Atomic(struct symbols_table *) *place = &((struct sym_symbols *)symbols)->table;
	struct symbols_table *table = atomic_load_explicit(place, memory_order_acquire);
	struct symbols_table *made;

	if (table)
		return table;
	made = make_table(symbols);
	/* Somebody else may have been faster: theirs is as good. */
	if (made && !atomic_compare_exchange_strong(place, &table, made)) {
		free(made);
		return table;
	}
	return made;
}

/* Symbols of one name lie anywhere along its slots: the lowest one behind `first` is wanted. */
static size_t find_in(const struct sym_symbols *symbols, const struct symbols_table *table,
		      const char *name, size_t first)
{
	size_t best = SYM_NONE, slot;
	char room[SHORT_ROOM];

	for (slot = hash(name) & table->mask; table->slots[slot]; slot = (slot + 1) & table->mask) {
		size_t number = table->slots[slot] - 1;

		if (number >= first && number < best &&
		    has_name(&symbols->items[number], name, room))
			best = number;
	}
	return best;
}

size_t sym_symbols_find(const struct sym_symbols *symbols, const char *name, size_t previous)
{
	const struct symbols_table *table = table_of(symbols);
	/* Behind SYM_NONE is 0. */
	size_t first = previous + 1;
	char room[SHORT_ROOM];

	if (table)
		return find_in(symbols, table, name, first);
	for (size_t i = first; i < symbols->count; i++)
		if (has_name(&symbols->items[i], name, room))
			return i;
	return SYM_NONE;
}
