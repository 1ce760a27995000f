/* SPDX-License-Identifier: MIT */
/* Tiers of methods as numbers of five bits: they are a few static strings. */
#ifndef LIBSYM_SOURCE_TIER_TABLE_H
#define LIBSYM_SOURCE_TIER_TABLE_H

#include <stdint.h>

enum {
	TIER_TABLE_ROOM = 32,
	TIER_TABLE_MASK = TIER_TABLE_ROOM - 1
};

/* Zero is empty; number 0 is "none". */
struct tier_table {
	const char *tiers[TIER_TABLE_ROOM];
	unsigned int count; /* without "none" */
};

/* 0 when there is none, or too many. */
static inline uint32_t tier_table_number(struct tier_table *table, const char *tier)
{
	if (!tier)
		return 0;
	for (unsigned int i = 1; i <= table->count; i++)
		if (table->tiers[i] == tier)
			return i;
	if (table->count == TIER_TABLE_MASK)
		return 0;
	table->tiers[++table->count] = tier;
	return table->count;
}

#endif
