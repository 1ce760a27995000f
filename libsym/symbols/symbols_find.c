/* SPDX-License-Identifier: MIT */
/* Finds symbols by name with a hash table (open addressing), which is built on the first search and
 * then never changes. Symbols of one name are chained, so each further one takes one step. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "libsym/base/cleanup.h"
#include "libsym/symbols/symbols.h"

/* A symbol has two places: 2 * number for its full name, and the next one for its short name if
 * that differs. Place + 1 is stored; 0 means none. */
struct slot {
	uint32_t first; /* first place of a name */
	uint32_t tag;   /* part of its hash */
};

struct symbols_table {
	size_t mask;
	/* by place: the next place of the same name, ascending; stored after the slots */
	uint32_t *next;
	struct slot slots[];
};

enum {
	SHORT_ROOM = 512
};

/* The result of sym_name_shorten(), in `room` if it fits. */
struct short_name {
	const char *text; /* NULL if out of memory */
	char *heap;
	char room[SHORT_ROOM];
};

static inline void guard_short_name(struct short_name *name)
{
	free(name->heap);
}
#define AUTO_SHORT_NAME GUARDED(short_name)

static const char *shorten_name(const char *name, struct short_name *ret)
{
	size_t bytes = sym_name_shorten(name, ret->room, sizeof(ret->room)) + 1;

	ret->heap = bytes > sizeof(ret->room) ? malloc(bytes) : NULL;
	if (ret->heap)
		sym_name_shorten(name, ret->heap, bytes);
	ret->text = bytes > sizeof(ret->room) ? ret->heap : ret->room;
	return ret->text;
}

/* The place of `number` that has this name; SYM_NONE if neither name matches. */
static size_t place_of(const struct sym_symbols *symbols, size_t number, const char *name)
{
	const char *full = symbols->items[number].name;
	struct short_name room AUTO_SHORT_NAME = { 0 };
	const char *text;

	if (!strcmp(full, name))
		return 2 * number;
	text = shorten_name(full, &room);
	return text && !strcmp(text, name) ? 2 * number + 1 : SYM_NONE;
}

/* The slot of a name, or the free slot where it belongs. */
static size_t slot_of(const struct sym_symbols *symbols, const struct symbols_table *table,
		      const char *name, uint32_t *tag_ret)
{
	/* The hash only selects a slot; names are compared. */
	uint64_t hash = XXH3_64bits(name, strlen(name));
	uint32_t tag = (uint32_t)(hash >> 32);
	size_t slot = hash & table->mask;

	*tag_ret = tag;
	while (table->slots[slot].first &&
	       (table->slots[slot].tag != tag ||
		place_of(symbols, (table->slots[slot].first - 1) / 2, name) == SYM_NONE))
		slot = (slot + 1) & table->mask;
	return slot;
}

/* Inserts before the other symbols of the same name. */
static void insert_place(const struct sym_symbols *symbols, struct symbols_table *table,
			 const char *name, size_t place)
{
	uint32_t tag;
	struct slot *slot = &table->slots[slot_of(symbols, table, name, &tag)];

	table->next[place] = slot->first;
	*slot = (struct slot){ (uint32_t)(place + 1), tag };
}

static struct symbols_table *make_table(const struct sym_symbols *symbols)
{
	size_t capacity = 16;
	struct symbols_table *table;

	/* Two names per symbol, and at most two thirds full. */
	while (capacity < 3 * symbols->count)
		capacity *= 2;
	table = calloc(1, sizeof(*table) + capacity * sizeof(*table->slots) +
				  2 * symbols->count * sizeof(*table->next));
	if (!table)
		return NULL;
	table->mask = capacity - 1;
	table->next = (uint32_t *)&table->slots[capacity];
	for (size_t i = symbols->count; i-- > 0;) {
		const char *name = symbols->items[i].name;
		struct short_name room AUTO_SHORT_NAME = { 0 };
		const char *text = shorten_name(name, &room);

		insert_place(symbols, table, name, 2 * i);
		if (text && strcmp(name, text) != 0)
			insert_place(symbols, table, text, 2 * i + 1);
	}
	return table;
}

/* NULL if there is no memory for a table. */
static const struct symbols_table *table_of(const struct sym_symbols *symbols)
{
	_Atomic(struct symbols_table *) *place = &((struct sym_symbols *)symbols)->table;
	struct symbols_table *table = atomic_load_explicit(place, memory_order_acquire);
	struct symbols_table *made;

	if (table)
		return table;
	made = make_table(symbols);
	/* Another thread may have been faster; its table is equal. */
	if (made && !atomic_compare_exchange_strong(place, &table, made)) {
		free(made);
		return table;
	}
	return made;
}

/* The lowest symbol with this name at or after `first`. */
static size_t find_in_table(const struct sym_symbols *symbols, const struct symbols_table *table,
			    const char *name, size_t first)
{
	size_t before =
		first && first <= symbols->count ? place_of(symbols, first - 1, name) : SYM_NONE;
	uint32_t at, tag;

	if (before != SYM_NONE)
		at = table->next[before];
	else
		at = table->slots[slot_of(symbols, table, name, &tag)].first;
	while (at && (at - 1) / 2 < first)
		at = table->next[at - 1];
	return at ? (at - 1) / 2 : SYM_NONE;
}

size_t sym_symbols_find(const struct sym_symbols *symbols, const char *name, size_t previous)
{
	const struct symbols_table *table = table_of(symbols);
	/* For SYM_NONE this wraps to 0. */
	size_t first = previous + 1;

	if (table)
		return find_in_table(symbols, table, name, first);
	for (size_t i = first; i < symbols->count; i++)
		if (place_of(symbols, i, name) != SYM_NONE)
			return i;
	return SYM_NONE;
}
