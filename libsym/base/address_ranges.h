/* SPDX-License-Identifier: MIT */
/* Ranges of addresses, ascending and disjoint; zeroed at first. */
#ifndef LIBSYM_BASE_ADDRESS_RANGES_H
#define LIBSYM_BASE_ADDRESS_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct address_range {
	uint64_t start, end; /* the first address behind it */
};

struct address_ranges {
	struct address_range *items;
	size_t count;
};

/* Behind all that there are: `start` is not below the last end. What touches the last one becomes
 * part of it. False: no memory. */
bool address_ranges_append(struct address_ranges *ranges, uint64_t start, uint64_t end);
/* Of any ranges, which it sorts: what lies in at least one of them. `ret` is zeroed at first.
 * False: no memory. */
bool address_ranges_unite(struct address_range *items, size_t count, struct address_ranges *ret);
/* `ret` has items, also where there are none: unlike one that was never made. False: no memory. */
bool address_ranges_copy(const struct address_ranges *ranges, struct address_ranges *ret);
void address_ranges_deinit(struct address_ranges *ranges);

/* The first that ends behind `start`; their count when none does. */
size_t address_ranges_first_behind(const struct address_ranges *ranges, uint64_t start);
/* Does one of them have all these bytes, and the first address if there are none? */
bool address_ranges_have(const struct address_ranges *ranges, uint64_t start, uint64_t size_bytes);
/* Has one of them any of the bytes up to `end`? */
bool address_ranges_meet(const struct address_ranges *ranges, uint64_t start, uint64_t end);

#endif
