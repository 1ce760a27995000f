/* SPDX-License-Identifier: MIT */
/*
 * Memory for arrays of many megabytes that are filled once and read at random. It is aligned to
 * cache lines and uses huge pages if the system provides them, which saves most page faults and TLB
 * misses. Freed with free().
 */
#ifndef LIBSYM_BASE_HUGE_MEMORY_H
#define LIBSYM_BASE_HUGE_MEMORY_H

#include <stddef.h>

/* The size of a huge page. */
#define HUGE_MEMORY_PAGE_BYTES ((size_t)2 << 20)

/* Allocates `size_bytes`, aligned to at least 64; NULL if out of memory. */
void *huge_memory_allocate(size_t size_bytes);

/* Asks for huge pages for memory that was allocated elsewhere, where a whole huge page fits. */
void huge_memory_advise(void *memory, size_t size_bytes);

/* Populates memory that is about to be written completely, with huge pages where possible. This
 * takes a fifth of the time of single page faults. Only advice; Linux follows it since 5.14. */
void huge_memory_populate(void *memory, size_t size_bytes);

#endif
