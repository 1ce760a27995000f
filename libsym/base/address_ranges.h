/* SPDX-License-Identifier: MIT */
/* Address ranges, ascending and disjoint. A zeroed struct address_ranges is empty. */
#ifndef LIBSYM_BASE_ADDRESS_RANGES_H
#define LIBSYM_BASE_ADDRESS_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct address_range {
	uint64_t start, end; /* `end` is the first address after the range */
};

struct address_ranges {
	struct address_range *items;
	size_t count;
};

/* Appends a range that starts at or after the last end, or any range before a call of
 * address_ranges_unite(). A range that touches the last one extends it; an empty one is left out.
 * Returns false if out of memory. */
bool address_ranges_append(struct address_ranges *ranges, uint64_t start, uint64_t end);
/* Sorts and unites what was appended. */
void address_ranges_unite(struct address_ranges *ranges);
/* `ret->items` is never NULL, even without ranges. Returns false if out of memory. */
bool address_ranges_copy(const struct address_ranges *ranges, struct address_ranges *ret);
void address_ranges_deinit(struct address_ranges *ranges);

/* Index of the first range that ends after `start`, or `count`. */
size_t address_ranges_first_ending_after(const struct address_ranges *ranges, uint64_t start);
/* Does one range contain [start, start + size_bytes)? With size 0: does one contain `start`? */
bool address_ranges_contain(const struct address_ranges *ranges, uint64_t start,
			    uint64_t size_bytes);
/* Does any range overlap [start, end)? */
bool address_ranges_overlap(const struct address_ranges *ranges, uint64_t start, uint64_t end);

#endif
