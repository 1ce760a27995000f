/* SPDX-License-Identifier: MIT */
/*
 * JIT_WriteBarrier on x86-64. The runtime copies it to a page of its own, where it changes it
 * whenever the heap does, so that no symbol table has it where it runs; and only the contract of
 * .NET 11 tells where that is. Knows it by its neighbour in the page, which is copied with it and
 * never changed: JIT_CheckedWriteBarrier, as it was found in .NET 8.0, 9.0, 10.0 and 11.0.
 */
#ifndef LIBSYM_CLR_WRITE_BARRIER_H
#define LIBSYM_CLR_WRITE_BARRIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WRITE_BARRIER_PAGE_BYTES 4096

struct write_barrier {
	uint64_t start_address;
	uint32_t size_bytes; /* 0: it was not found */
};

extern const char write_barrier_name[];

/* False when the page is another one. */
bool write_barrier_recognise(const uint8_t page[WRITE_BARRIER_PAGE_BYTES], uint64_t address,
			     struct write_barrier *ret);

#endif
