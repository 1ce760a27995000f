/* SPDX-License-Identifier: MIT */
/*
 * A table from addresses to what was found there: open addressing, because it
 * is asked several times for every method of a process. Address 0 is no key.
 * Knows nothing of what the values are and frees none of them.
 */
#ifndef LIBSYM_BASE_ADDRESS_TABLE_H
#define LIBSYM_BASE_ADDRESS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/prefetch.h"

struct address_slot {
	uint64_t address; /* 0: free */
	void *value;
};

struct address_table {
	struct address_slot *slots; /* a power of two; NULL while empty */
	size_t capacity, count;
};

/* NULL when it is not in the table. */
static inline void *address_table_find(const struct address_table *table, uint64_t address)
{
	size_t i = (size_t)((address * 0x9E3779B97F4A7C15u) >> 32);

	if (!table->capacity)
		return NULL;
	for (i &= table->capacity - 1; table->slots[i].address; i = (i + 1) & (table->capacity - 1))
		if (table->slots[i].address == address)
			return table->slots[i].value;
	return NULL;
}

/* Tells the processor where address_table_find() will look first. */
static inline void address_table_prefetch(const struct address_table *table, uint64_t address)
{
	size_t i = (size_t)((address * 0x9E3779B97F4A7C15u) >> 32);

	if (table->capacity)
		prefetch(&table->slots[i & (table->capacity - 1)]);
}

/* `address` is not 0 and not in the table yet, `value` not NULL. False: no memory, and nothing has
 * changed. */
bool address_table_add(struct address_table *table, uint64_t address, void *value);

/* The slot of an address that is not 0, with the value NULL if it was not in the table; good until
 * the next call. NULL: no memory, and nothing has changed. */
struct address_slot *address_table_take(struct address_table *table, uint64_t address);

/* Empty again, and without memory. */
void address_table_deinit(struct address_table *table);

#endif
