/* SPDX-License-Identifier: MIT */
/* A stable radix sort of positions over the bits in which they differ. */
#ifndef LIBSYM_INDEX_INDEX_SORT_H
#define LIBSYM_INDEX_INDEX_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Returns the numbers of `count` positions (less than 2^32) in ascending order, equal ones in their
 * original order. Positions are `stride_bytes` apart. The result is a heap array of `count`
 * numbers, or NULL if out of memory.
 */
uint32_t *index_sort(const uint64_t *positions, size_t stride_bytes, size_t count);

/* Sorts items that begin with their position, in the same order. An item has at most 64 bytes.
 * Returns false if out of memory. */
bool index_sort_items(void *items, size_t item_bytes, size_t count);

#endif
