/* SPDX-License-Identifier: MIT */
#include "libsym/base/huge_memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static const size_t line_bytes = 64;
static const size_t page_bytes = HUGE_MEMORY_PAGE_BYTES;

static uintptr_t round_down(uintptr_t address, uintptr_t bytes)
{
	return address & ~(bytes - 1);
}

void *huge_memory_allocate(size_t size_bytes)
{
	/* At most half of a huge page stays unused. */
	size_t huge_bytes = round_down(size_bytes + page_bytes / 2, page_bytes);
	void *memory;

	if (size_bytes < huge_bytes || !size_bytes)
		size_bytes = huge_bytes + !huge_bytes;
	if (posix_memalign(&memory, huge_bytes ? page_bytes : line_bytes, size_bytes))
		return NULL;
	/* Only advice: ordinary pages serve as well. */
	if (huge_bytes)
		(void)madvise(memory, huge_bytes, MADV_HUGEPAGE);
	return memory;
}

void huge_memory_advise(void *memory, size_t size_bytes)
{
	uintptr_t first = round_down((uintptr_t)memory + page_bytes - 1, page_bytes);
	uintptr_t end = round_down((uintptr_t)memory + size_bytes, page_bytes);

	if (first < end)
		(void)madvise((void *)first, end - first, MADV_HUGEPAGE);
}

void huge_memory_populate(void *memory, size_t size_bytes)
{
#ifdef MADV_POPULATE_WRITE
	uintptr_t small_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t end = (uintptr_t)memory + size_bytes;
	uintptr_t begin = round_down((uintptr_t)memory + small_bytes - 1, small_bytes);

	huge_memory_advise(memory, size_bytes);
	if (begin < round_down(end, small_bytes))
		(void)madvise((void *)begin, round_down(end, small_bytes) - begin,
			      MADV_POPULATE_WRITE);
#else
	(void)memory, (void)size_bytes;
#endif
}
