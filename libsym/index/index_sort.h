/* SPDX-License-Identifier: MIT */
/* A stable radix sort of positions over the bits in which they differ. */
#ifndef LIBSYM_INDEX_INDEX_SORT_H
#define LIBSYM_INDEX_INDEX_SORT_H

#include <stddef.h>
#include <stdint.h>

/*
 * Returns the numbers of `count` positions (less than 2^32) in ascending order, equal ones in their
 * original order. Positions are `stride_bytes` apart. The result is a heap array of `count`
 * numbers, or NULL if out of memory.
 */
uint32_t *index_sort(const uint64_t *positions, size_t stride_bytes, size_t count);

#endif
