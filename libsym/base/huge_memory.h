/* SPDX-License-Identifier: MIT */
/*
 * Memory for arrays of many megabytes that are filled once and read at random:
 * aligned to cache lines, and of huge pages where the system gives them, which
 * saves most of the page faults and of the TLB misses. Ended with free().
 */
#ifndef LIBSYM_BASE_HUGE_MEMORY_H
#define LIBSYM_BASE_HUGE_MEMORY_H

#include <stddef.h>

/* Of a huge page, where there are any. */
#define HUGE_MEMORY_PAGE_BYTES ((size_t)2 << 20)

/* Room for `size_bytes`, aligned to 64 at least; NULL when there is no memory. */
void *huge_memory_allocate(size_t size_bytes);

/* Has huge pages where all of one lies in memory that comes from elsewhere, once it is written. */
void huge_memory_advise(void *memory, size_t size_bytes);

/* Has the pages at once of memory that is going to be written as a whole, huge ones as far as it
 * goes: those take a fifth of the time of a fault for each page in them. Advice, which Linux
 * follows from 5.14 on. */
void huge_memory_populate(void *memory, size_t size_bytes);

#endif
