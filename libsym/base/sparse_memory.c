/* SPDX-License-Identifier: MIT */
#include "libsym/base/sparse_memory.h"

#include <stdint.h>
#include <sys/mman.h>

#include "libsym/base/huge_memory.h"

static void *create(size_t size_bytes, int protection)
{
	void *memory = mmap(NULL, size_bytes, protection,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	/* Of a huge page most would lie idle. */
	(void)madvise(memory, size_bytes, MADV_NOHUGEPAGE);
	return memory;
}

void *sparse_memory_create(size_t size_bytes)
{
	return create(size_bytes, PROT_READ | PROT_WRITE);
}

/* What lies before and behind the aligned part is given back. */
void *sparse_memory_reserve(size_t size_bytes)
{
	const size_t alignment_bytes = HUGE_MEMORY_PAGE_BYTES;
	char *memory = create(size_bytes + alignment_bytes, PROT_NONE), *aligned;

	if (!memory)
		return NULL;
	aligned = memory + (-(uintptr_t)memory & (alignment_bytes - 1));
	if (aligned > memory)
		munmap(memory, (size_t)(aligned - memory));
	munmap(aligned + size_bytes, (size_t)(memory + alignment_bytes - aligned));
	return aligned;
}

bool sparse_memory_open(void *memory, size_t size_bytes)
{
	return !mprotect(memory, size_bytes, PROT_READ | PROT_WRITE);
}

void sparse_memory_destroy(void *memory, size_t size_bytes)
{
	if (memory)
		munmap(memory, size_bytes);
}
