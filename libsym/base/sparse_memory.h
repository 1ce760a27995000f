/* SPDX-License-Identifier: MIT */
/* Zeroed memory that is written sparsely. It consists of ordinary pages, which are allocated on
 * first write. Before that it uses only address space, which counts for RLIMIT_AS. */
#ifndef LIBSYM_BASE_SPARSE_MEMORY_H
#define LIBSYM_BASE_SPARSE_MEMORY_H

#include <stddef.h>

/* Aligned to pages. `size_bytes` is not 0. NULL if there is no room. */
void *sparse_memory_create(size_t size_bytes);
/* `size_bytes` is the size that was created. */
void sparse_memory_destroy(void *memory, size_t size_bytes);

#endif
