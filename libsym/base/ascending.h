/* SPDX-License-Identifier: MIT */
/* Numbers in ascending order. */
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

static inline void ascending_sort(uint64_t *numbers, size_t count)
{
	if (count)
		qsort(numbers, count, sizeof(*numbers), ascending_compare);
}

/* How many of them are below `end`. */
static inline size_t ascending_count_below(const uint64_t *numbers, size_t count, uint64_t end)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (numbers[middle] < end)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

#endif
