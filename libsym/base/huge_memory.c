/* SPDX-License-Identifier: MIT */
#include "libsym/base/huge_memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static const size_t line_bytes = 64;
static const size_t page_bytes = (size_t)2 << 20;
/* Below this half of a huge page or more could lie idle. */
static const size_t smallest_bytes = (size_t)2 << 20;

void *huge_memory_allocate(size_t size_bytes)
{
	size_t alignment = size_bytes < smallest_bytes ? line_bytes : page_bytes;
	void *memory;

	if (posix_memalign(&memory, alignment, size_bytes ? size_bytes : 1))
		return NULL;
	/* Advice: where there are no huge pages, ordinary ones serve. */
	if (alignment == page_bytes)
		(void)madvise(memory, size_bytes - size_bytes % page_bytes, MADV_HUGEPAGE);
	return memory;
}

void huge_memory_populate(void *memory, size_t size_bytes)
{
#ifdef MADV_POPULATE_WRITE
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)memory;
	uintptr_t end = (begin + size_bytes) & ~(page - 1);

	/* Pages that are all of it. */
	begin = (begin + page - 1) & ~(page - 1);
	if (begin < end)
		(void)madvise((void *)begin, end - begin, MADV_POPULATE_WRITE);
#else
	(void)memory, (void)size_bytes;
#endif
}
