/* SPDX-License-Identifier: MIT */
/* Sorting of what is often sorted; search of 64-bit numbers and of structs that begin with one. */
#ifndef LIBSYM_BASE_ASCENDING_H
#define LIBSYM_BASE_ASCENDING_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static inline int ascending_compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

/* qsort() for items that are often in order already. */
static inline void ascending_sort_by(void *items, size_t count, size_t item_bytes,
				     int (*compare)(const void *left, const void *right))
{
	const char *item = items;

	for (size_t i = 1; i < count; i++, item += item_bytes)
		if (compare(item, item + item_bytes) > 0) {
			qsort(items, count, item_bytes, compare);
			return;
		}
}

/* Sorts by the leading 64 bits. */
static inline void ascending_sort_items(void *items, size_t count, size_t item_bytes)
{
	ascending_sort_by(items, count, item_bytes, ascending_compare);
}

static inline void ascending_sort(uint64_t *numbers, size_t count)
{
	ascending_sort_items(numbers, count, sizeof(*numbers));
}

/*
 * Counts the leading items for which `holds`, an expression of the index `i`, is true. It must be
 * true for no item after one for which it is not.
 */
#define ASCENDING_COUNT(count, i, holds)                                                           \
	({                                                                                         \
		size_t low_ = 0, high_ = (count);                                                  \
                                                                                                   \
		while (low_ < high_) {                                                             \
			size_t i = low_ + (high_ - low_) / 2;                                      \
                                                                                                   \
			if (holds)                                                                 \
				low_ = i + 1;                                                      \
			else                                                                       \
				high_ = i;                                                         \
		}                                                                                  \
		low_;                                                                              \
	})

/* Counts the items whose leading 64 bits are at most `last`. Items are in ascending order. */
static inline size_t ascending_items_up_to(const void *items, size_t count, size_t item_bytes,
					   uint64_t last)
{
	return ASCENDING_COUNT(
		count, i,
		*(const uint64_t *)(const void *)((const char *)items + i * item_bytes) <= last);
}

/* Counts the items whose leading 64 bits are below `end`. Items are in ascending order. */
static inline size_t ascending_items_below(const void *items, size_t count, size_t item_bytes,
					   uint64_t end)
{
	return end ? ascending_items_up_to(items, count, item_bytes, end - 1) : 0;
}

/* Counts the numbers below `end`. Numbers are in ascending order. */
static inline size_t ascending_count_below(const uint64_t *numbers, size_t count, uint64_t end)
{
	return ascending_items_below(numbers, count, sizeof(*numbers), end);
}

#endif
