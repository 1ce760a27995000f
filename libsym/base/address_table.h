/* SPDX-License-Identifier: MIT */
/* A hash table from addresses to pointers, with open addressing: it is queried several times for
 * each method of a process. Address 0 cannot be a key. The table does not own the values. */
#ifndef LIBSYM_BASE_ADDRESS_TABLE_H
#define LIBSYM_BASE_ADDRESS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct range_slot {
	uint64_t address; /* 0: free */
	void *value;
};

struct address_table {
	struct range_slot *slots; /* a power of two; NULL while empty */
	size_t capacity, count;
};

/* NULL if the address is not in the table. */
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

/* `address` is not 0 and not in the table yet; `value` is not NULL. Returns false and changes
 * nothing if out of memory. */
bool address_table_add(struct address_table *table, uint64_t address, void *value);

/* The slot of a nonzero address; its value is NULL if the address is new. Valid until the next
 * call. Returns NULL and changes nothing if out of memory. */
struct range_slot *address_table_slot(struct address_table *table, uint64_t address);

/* Frees the memory and leaves an empty table. */
void address_table_deinit(struct address_table *table);

#endif
