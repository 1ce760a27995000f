/* SPDX-License-Identifier: MIT */
#include "libsym/base/sparse_memory.h"

#include <sys/mman.h>

void *sparse_memory_create(size_t size_bytes)
{
	void *memory = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	/* Most of a huge page would stay unused. */
	(void)madvise(memory, size_bytes, MADV_NOHUGEPAGE);
	return memory;
}

void sparse_memory_destroy(void *memory, size_t size_bytes)
{
	if (memory)
		munmap(memory, size_bytes);
}
