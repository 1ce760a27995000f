/* SPDX-License-Identifier: MIT */
/*
 * Memory for what is written here and there: zeros, of ordinary pages that are there once they are
 * written. Until then it is only addresses, which count for RLIMIT_AS.
 */
#ifndef LIBSYM_BASE_SPARSE_MEMORY_H
#define LIBSYM_BASE_SPARSE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* Aligned to pages; NULL when there is no room for `size_bytes`, which are not 0. */
void *sparse_memory_create(size_t size_bytes);
/* The same size. */
void sparse_memory_destroy(void *memory, size_t size_bytes);

/* The same, aligned to huge pages, but none of it may be touched yet: so it does not count as
 * memory that may be written, which a system may limit too. */
void *sparse_memory_reserve(size_t size_bytes);
/* From now on the first `size_bytes`, which are whole pages, may be. False: no memory. */
bool sparse_memory_open(void *memory, size_t size_bytes);

#endif
