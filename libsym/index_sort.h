/* SPDX-License-Identifier: MIT */
/*
 * Puts positions in order: a stable radix sort over the bits in which they
 * differ. Knows nothing of symbols.
 */
#ifndef LIBSYM_INDEX_SORT_H
#define LIBSYM_INDEX_SORT_H

#include <stddef.h>
#include <stdint.h>

/*
 * The numbers of `count` (less than 2^32) positions in ascending order, equal ones in the order
 * they have. The first position is at `positions`, each of the others `stride_bytes` behind the one
 * before. Returns a heap array of `count`, or NULL without memory.
 */
uint32_t *index_sort(const uint64_t *positions, size_t stride_bytes, size_t count);

#endif
