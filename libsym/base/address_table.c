/* SPDX-License-Identifier: MIT */
#include "libsym/base/address_table.h"

#include <stdlib.h>

static void put(struct address_slot *slots, size_t capacity, uint64_t address, void *value)
{
	size_t i = (size_t)((address * 0x9E3779B97F4A7C15u) >> 32) & (capacity - 1);

	while (slots[i].address)
		i = (i + 1) & (capacity - 1);
	slots[i] = (struct address_slot){ address, value };
}

bool address_table_add(struct address_table *table, uint64_t address, void *value)
{
	if (2 * (table->count + 1) > table->capacity) {
		size_t capacity = table->capacity ? 4 * table->capacity : 64;
		struct address_slot *slots = calloc(capacity, sizeof(*slots));

		if (!slots)
			return false;
		for (size_t i = 0; i < table->capacity; i++)
			if (table->slots[i].address)
				put(slots, capacity, table->slots[i].address,
				    table->slots[i].value);
		free(table->slots);
		table->slots = slots;
		table->capacity = capacity;
	}
	put(table->slots, table->capacity, address, value);
	table->count++;
	return true;
}

void address_table_deinit(struct address_table *table)
{
	free(table->slots);
	*table = (struct address_table){ 0 };
}
