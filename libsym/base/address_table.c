/* SPDX-License-Identifier: MIT */
#include "libsym/base/address_table.h"

#include <stdlib.h>

/* The slot that holds the address, or the free slot where it belongs. */
static struct range_slot *slot_of(struct range_slot *slots, size_t capacity, uint64_t address)
{
	size_t i = (size_t)((address * 0x9E3779B97F4A7C15u) >> 32) & (capacity - 1);

	while (slots[i].address && slots[i].address != address)
		i = (i + 1) & (capacity - 1);
	return &slots[i];
}

struct range_slot *address_table_slot(struct address_table *table, uint64_t address)
{
	struct range_slot *slot;

	if (2 * (table->count + 1) > table->capacity) {
		size_t capacity = table->capacity ? 4 * table->capacity : 64;
		struct range_slot *slots = calloc(capacity, sizeof(*slots));

		if (!slots)
			return NULL;
		for (size_t i = 0; i < table->capacity; i++)
			if (table->slots[i].address)
				*slot_of(slots, capacity, table->slots[i].address) =
					table->slots[i];
		free(table->slots);
		table->slots = slots;
		table->capacity = capacity;
	}
	slot = slot_of(table->slots, table->capacity, address);
	table->count += !slot->address;
	slot->address = address;
	return slot;
}

bool address_table_add(struct address_table *table, uint64_t address, void *value)
{
	struct range_slot *slot = address_table_slot(table, address);

	if (slot)
		slot->value = value;
	return slot;
}

void address_table_deinit(struct address_table *table)
{
	free(table->slots);
	*table = (struct address_table){ 0 };
}
